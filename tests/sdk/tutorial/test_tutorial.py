"""docs/sdk.md, followed to the letter: as processes, as containers and on a cluster."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest
import yaml

from lab.paths import REPOSITORY
from tests.fleet.guide.page import says
from tests.sdk.local.machine import RUN_OPTIONS, Podman, image_store
from tests.sdk.notebooks.session import Home, code_cells, notebook_of, printed, run_notebook, shown
from tests.sdk.notebooks.stage import make_namespace, runtime
from tests.sdk.tutorial.interpreter import make_interpreter
from tests.sdk.tutorial.reader import Block, read_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Cluster
    from tests.suite import SuiteReport

PAGE = (REPOSITORY / "docs/sdk.md").read_text()
BLOCKS = read_blocks(PAGE)
NOT_RUN = {
    "pip install trainplane": "the checkout is what is tested",
    'Queue("team-queue")': "there is no Kueue here: make fleet has one, and tests/sdk/kubernetes reads its answers",
}
"""What the page's reader does and this test does not, and why: by a piece of the block."""


TALK = re.compile(
    r"\b[EWI]\d{4} [\d:.]+ .*(torch/distributed/elastic/|\[c10d\])|^(\[node-\d\] )?(Exception raised from|frame #\d)"
)


def without_talk(text: str) -> str:
    """Return a text without what torch logs when a node calls the first before it listens, or leaves it behind."""
    return "".join(line for line in text.splitlines(keepends=True) if not TALK.search(line))


def is_run(block: Block) -> bool:
    return not any(piece in block.code for piece in NOT_RUN)


@pytest.fixture
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    engine = Podman.below(tmp_path_factory.mktemp("podman"), image_store("python", "torch"))
    yield engine
    engine.call("system", "reset", "--force")


@pytest.fixture
def swaps(tmp_path: Path, podman: Podman) -> dict[str, str]:
    """Return what is different on this machine: where torch is, and how its podman must be called."""
    (tmp_path / "interpreter").mkdir()
    python = make_interpreter("torch", tmp_path / "interpreter")
    (tmp_path / "runtimes.yaml").write_text(yaml.safe_dump(runtime("torch-distributed")))
    container = (
        f'container_runtime="podman", pull_policy="Never", engine_options={podman.options!r}, '
        f"run_options={RUN_OPTIONS!r}, runtime_source=TrainingRuntimeSource([{str(tmp_path / 'runtimes.yaml')!r}])"
    )
    return {
        "LocalProcessBackendConfig())": f"LocalProcessBackendConfig(python={str(python)!r}))",
        "ContainerBackendConfig())": f"ContainerBackendConfig({container}))",
        "import ContainerBackendConfig\n": "import ContainerBackendConfig, TrainingRuntimeSource\n",
    }


@pytest.mark.timeout(1200)
def test_the_page_leads_from_a_function_to_two_nodes_everywhere(
    cluster: Cluster, swaps: dict[str, str], tmp_path: Path, report: SuiteReport
) -> None:
    namespace = make_namespace(cluster)
    cluster.apply(runtime("torch-distributed"))
    home = Home.of(cluster, namespace, tmp_path)
    blocks = [block for block in BLOCKS if is_run(block)]
    began = time.monotonic()
    done = run_notebook(notebook_of([block.cell(swaps) for block in blocks]), home)
    report.figure("sdk_tutorial_s", round(time.monotonic() - began, 1))
    other = [
        f"docs/sdk.md:{block.line} printed:\n{printed(cell)}"
        for block, cell in zip(blocks, code_cells(done), strict=True)
        if block.prints is not None and not says(block.prints, without_talk(printed(cell)))
    ]
    assert other == [], "\n".join(other)
    waits = [cell for cell in code_cells(done) if "wait_for_job_status" in cell.source]
    assert [len(shown(cell)) for cell in waits] == [1] * len(waits), "one card for each wait, updated in place"
    assert "Complete" in shown(waits[0])[0]
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")
    cluster.kubectl("delete", "clustertrainingruntime", "torch-distributed")


def test_what_is_not_run_is_named() -> None:
    for piece in NOT_RUN:
        assert [block for block in BLOCKS if piece in block.code], f"docs/sdk.md has no block with {piece}"
    left = [block for block in BLOCKS if not is_run(block)]
    assert len(left) == len(NOT_RUN)
    assert {block.needs for block in BLOCKS} == {"", "containers", "kueue"}


class TestReader:
    def test_every_block_of_the_page_is_found(self) -> None:
        fences = sum(line.startswith(("```python", "```sh")) for line in PAGE.splitlines())
        assert len(BLOCKS) == fences
        assert sum(line == "```text" for line in PAGE.splitlines()) == sum(b.prints is not None for b in BLOCKS)

    def test_needs_language_and_output_are_read(self) -> None:
        first = "<!-- needs: x -->\n```python\na = 1\n```\n```text\none\n```\n"
        page = f"# t\n{first}\n```sh\nls\n```\nwords\n```text\nno\n```\n"
        assert read_blocks(page) == [Block(3, "python", "a = 1\n", "x", "one\n"), Block(10, "sh", "ls\n")]

    def test_cells_have_swaps_and_shells_a_magic(self) -> None:
        assert Block(1, "python", "a = b\n").cell({"b": "c"}) == "a = c\n"
        assert Block(1, "sh", "ls\n").cell({}) == "%%bash -eu\nls\n"
