"""examples/notebooks: each runs from top to bottom on real pods, and is stored as a person would want to find it."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import nbformat
import pytest

from lab.paths import REPOSITORY
from tests.sdk.notebooks.session import Home, code_cells, printed, run_notebook, shown
from tests.sdk.notebooks.stage import make_namespace, runtime

if TYPE_CHECKING:
    from pathlib import Path

    from lab.cluster import Cluster
    from tests.suite import SuiteReport

FOLDER = REPOSITORY / "examples/notebooks"
NOTEBOOKS = {
    "torch": ("torch-distributed", [r"\[node-0\] epoch 200: loss", r"\[node-1\] rank 1 of 2: (9\d|100)% of unseen"]),
    "xgboost": ("xgboost-distributed", [r"\[node-0\] node 0 of 2: error 0\.0", r"\[node-1\] node 1 of 2: error 0\.0"]),
    "mpi": ("deepspeed-distributed", [r"^4 processes on 2 hosts: pi is about 3\.1"]),
    "jax": ("jax-distributed", [r"\[node-0\] step 1000", r"\[node-1\] node 1 of 2: y = 3\.0x \+ 1\.0"]),
    "tensorflow": ("tensorflow-distributed", [r"\[node-0\] step 1000", r"\[node-1\] worker 1 of 2: y = 3\.0x \+ 1\.0"]),
}
"""The notebook → its runtime, and lines that it ends with."""
USUAL = {"torch", "xgboost"}
"""Those that run without FULL=1: a framework with a launcher, and one without."""


def load(name: str) -> Any:
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)  # type: ignore[no-untyped-call] # as it is


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[] if one in USUAL else [pytest.mark.full]) for one in NOTEBOOKS]
)
def test_it_trains_on_two_nodes(name: str, cluster: Cluster, tmp_path: Path, report: SuiteReport) -> None:
    uses, ends = NOTEBOOKS[name]
    namespace = make_namespace(cluster)
    cluster.apply(runtime(uses))
    began = time.monotonic()
    done = run_notebook(load(name), Home.of(cluster, namespace, tmp_path))
    report.row(notebook=name, seconds=round(time.monotonic() - began, 1))
    report.figure("sdk_notebooks_run", report.figures.get("sdk_notebooks_run", 0) + 1)
    said = "".join(map(printed, code_cells(done)))
    for end in ends:
        assert re.search(end, said, re.MULTILINE), f"no line has {end!r}:\n{said}"
    assert uses in shown(code_cells(done)[0])[0], "the runtime is shown as a table"
    (waited,) = (cell for cell in code_cells(done) if "wait_for_job_status" in cell.source)
    (card,) = shown(waited)
    assert "Complete" in card
    assert cluster.get("trainjobs", f"--namespace={namespace}")["items"] == [], "the notebook leaves nothing behind"
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")
    cluster.kubectl("delete", "clustertrainingruntime", uses)


def test_all_notebooks_are_known_and_listed() -> None:
    names = {path.stem for path in FOLDER.glob("*.ipynb")}
    assert names == NOTEBOOKS.keys()
    index = (FOLDER / "README.md").read_text()
    assert set(re.findall(r"\]\((\w+)\.ipynb\)", index)) == names


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_is_stored_without_outputs_and_traces(name: str) -> None:
    nbformat.validate(load(name))
    for cell in code_cells(load(name)):
        assert cell.outputs == []
        assert cell.execution_count is None
        compile(cell.source, f"{name}.ipynb", "exec")
    stored = json.loads((FOLDER / f"{name}.ipynb").read_text())
    assert stored["metadata"]["language_info"] == {"name": "python"}, "nothing of who ran it last"
    assert max(len(line) for cell in load(name).cells for line in cell.source.splitlines()) <= 125
