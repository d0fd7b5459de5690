"""examples/notebooks without a cluster: the same cells, as processes and as containers of this machine."""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.sdk.local.machine import RUN_OPTIONS, Podman, image_store
from tests.sdk.notebooks.session import Home, code_cells, printed, run_notebook
from tests.sdk.notebooks.stage import IMAGES, runtime
from tests.sdk.notebooks.test_notebooks import NOTEBOOKS, load
from tests.sdk.tutorial.interpreter import make_interpreter
from trainplane import ContainerBackendConfig, LocalProcessBackendConfig, TrainingRuntimeSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.suite import SuiteReport

IMPORTS = "from pathlib import PosixPath\nfrom trainplane import *\n"


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    folder = Path(tempfile.mkdtemp())
    engine = Podman.below(folder, image_store("torch", "frameworks"))
    yield engine
    engine.remove()


def configuration(backend: str, uses: str, folder: Path, request: pytest.FixtureRequest) -> Any:
    """Return where the notebook's client runs jobs, with the notebook's runtime and the lab's image of it."""
    runtimes = folder / "runtime.yaml"
    runtimes.write_text(yaml.safe_dump(runtime(uses)))
    source, state = TrainingRuntimeSource([str(runtimes)]), folder / "state"
    if backend == "process":
        python = make_interpreter(IMAGES.get(uses, "torch"), folder)
        return LocalProcessBackendConfig(runtime_source=source, python=str(python), state=state)
    return ContainerBackendConfig(
        pull_policy="Never",
        container_runtime="podman",
        runtime_source=source,
        engine_options=request.getfixturevalue("podman").options,
        run_options=RUN_OPTIONS,
        state=state,
    )


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("backend", ["process", "container"])
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_trains_on_this_machine_unchanged(
    name: str, backend: str, tmp_path: Path, request: pytest.FixtureRequest, report: SuiteReport
) -> None:
    uses, ends = NOTEBOOKS[name]
    config = configuration(backend, uses, tmp_path, request)
    notebook = load(name)
    first = code_cells(notebook)[0]
    assert "TrainerClient()" in first.source
    first.source = IMPORTS + first.source.replace("TrainerClient()", f"TrainerClient({config!r})")
    began = time.monotonic()
    done = run_notebook(notebook, Home(tmp_path, tmp_path / "no-cluster"))
    report.row(notebook=name, backend=backend, seconds=round(time.monotonic() - began, 1))
    said = "".join(map(printed, code_cells(done)))
    for end in ends:
        end = end.replace("on 2 hosts", "on 1 hosts") if backend == "process" else end  # noqa: PLW2901 this machine
        assert re.search(end, said, re.MULTILINE), f"no line has {end!r}:\n{said}"
