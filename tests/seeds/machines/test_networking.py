"""docs/networking.md: variables, host networks, shared claims and places are as it says."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from lab import addresses, node
from tests.seeds.machines.site import MACHINES, Site, examples

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = examples("networking.md")


def test_the_trainjobs_variables_go_before_the_runtimes(site: Site) -> None:
    site.apply_example(*PAGE["NCCL"])
    site.wait_state("torch-nccl", "Succeeded")
    assert site.logs("torch-nccl") == ["NCCL_DEBUG=INFO", "NCCL_IB_DISABLE=1", "NCCL_SOCKET_IFNAME=eth0"] * 2


def test_pods_on_the_machines_own_network_find_each_other(site: Site) -> None:
    site.apply_example(*PAGE["Host network"])
    site.wait_state("host-network", "Succeeded")
    assert "node 0 says hello" in site.logs("host-network")
    hosts = {addresses.node(site.cluster.index, number) for number in (1, 2)}
    assert {pod["status"]["podIP"] for pod in site.pods("host-network")} == hosts


def test_a_claim_is_shared_by_initializer_and_trainers_on_two_machines(site: Site) -> None:
    site.apply_example(*PAGE["Shared storage"])
    site.wait_state("shared", "Succeeded")
    assert set(site.places("shared").values()) == set(MACHINES)
    assert site.logs("shared") == ["100", "100"]
    assert {path.name for path in (site.cluster.folder / "shared" / site.namespace).iterdir()} == {
        *("dataset", "seen-0", "seen-1"),
    }


@pytest.mark.parametrize("broken", [None, node.SECOND])
def test_pods_run_where_the_runtime_wants_them(site: Site, broken: str | None) -> None:
    with _pool(site, broken):
        site.apply_example(*PAGE["Where pods run"])
        site.wait_state("placed", "Succeeded")
    assert set(site.places("placed").values()) == set(MACHINES) - {broken}
    assert {pod["spec"]["priority"] for pod in site.pods("placed")} == {1000}


@contextmanager
def _pool(site: Site, broken: str | None) -> Iterator[None]:
    """Make both machines a reserved pool, in a rack each, for a while; one of them may be broken."""
    cluster = site.cluster
    try:
        for machine in MACHINES:
            labels = ["example.com/pool=training", f"example.com/rack={machine}"]
            labels += ["example.com/broken=yes"] if machine == broken else []
            cluster.kubectl("label", "node", machine, *labels)
            cluster.kubectl("taint", "node", machine, "example.com/reserved=yes:NoSchedule")
        yield
    finally:
        for machine in MACHINES:
            cluster.kubectl("label", "node", machine, *(f"example.com/{name}-" for name in ("pool", "rack", "broken")))
            cluster.kubectl("taint", "node", machine, "example.com/reserved-")
