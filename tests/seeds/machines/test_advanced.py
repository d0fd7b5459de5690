"""docs/references/advanced-configuration.md: its runtime of one's own runs, with what the TrainJob changes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.seeds.machines.site import examples

if TYPE_CHECKING:
    from tests.seeds.machines.site import Site

PAGE = examples("references/advanced-configuration.md")


def test_a_runtime_of_one_s_own_has_all_that_the_page_gives_it(site: Site) -> None:
    site.apply_example(*PAGE["A runtime of one's own"])
    site.wait_state("tuned", "Succeeded")
    assert set(site.logs("tuned")) == {"NCCL_DEBUG=INFO", "NCCL_SOCKET_IFNAME=eth0"}
    kept = site.cluster.folder / "shared" / site.namespace / "huggingface"
    assert {path.name for path in kept.iterdir()} == {"node-0", "node-1"}
    for pod in site.pods("tuned"):
        prepared, sidecar = pod["status"]["initContainerStatuses"]
        assert prepared["state"]["terminated"]["exitCode"] == 0
        assert "terminated" in sidecar["state"], "the sidecar ends with the training"
