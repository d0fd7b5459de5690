"""The runtimes that we ship: good to install, found by the SDK, and what TrainJobs on them become."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.unit.render.objects import PIPELINE, container_of, job, pods_of, values_of
from trainplane.api.document import read
from trainplane.api.runtime import ClusterTrainingRuntime
from trainplane.api.trainjob import TrainJob
from trainplane.lint.runtimes import validate

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parents[3] / "runtimes"
FILES = sorted(FOLDER.glob("*.yaml"))
FRAMEWORKS = {
    "torch-distributed": "torch",
    "jax-distributed": "jax",
    "xgboost-distributed": "xgboost",
    "tensorflow-distributed": "tensorflow",
    "paddle-distributed": "paddle",
    "flux-distributed": "flux",
    "torchtune-llama3.2-1b": "torchtune",
    "torchtune-llama3.2-3b": "torchtune",
    "torchtune-qwen2.5-1.5b": "torchtune",
}
FIRST = {
    "torch": ("PET_MASTER_ADDR", "job-node-0-0.job"),
    "torchtune": ("PET_MASTER_ADDR", "job-node-0-0.job"),
    "jax": ("JAX_COORDINATOR_ADDRESS", "job-node-0-0.job:29500"),
    "xgboost": ("DMLC_TRACKER_URI", "job-node-0-0.job"),
    "paddle": ("PADDLE_MASTER", "job-node-0-0.job:29500"),
}


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@cache
def schema() -> dict[str, Any]:
    (crd,) = (FOLDER.parent / "manifests/crds").glob("*_clustertrainingruntimes.yaml")
    found: dict[str, Any] = load(crd)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def missing(value: Any, schema: dict[str, Any], path: str = "", *, listed: bool = False) -> Iterator[str]:
    """Yield the fields of items of lists that a schema would fill in."""
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from missing(item, schema.get("items", {}), f"{path}[{number}]", listed=True)
    elif isinstance(value, dict):
        for name, part in schema.get("properties", {}).items():
            if name in value:
                yield from missing(value[name], part, f"{path}.{name}", listed=listed)
            elif listed and "default" in part:
                yield f"{path}.{name}"


def test_all_are_there() -> None:
    assert FRAMEWORKS.keys() <= {path.stem for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
class TestEach:
    def test_it_is_good_to_install(self, path: Path) -> None:
        assert validate(path.read_text(), pipeline=PIPELINE) == []

    def test_its_name_is_that_of_its_file(self, path: Path) -> None:
        tree = load(path)
        assert (tree["kind"], tree["metadata"]["name"]) == ("ClusterTrainingRuntime", path.stem)
        framework = tree["metadata"]["labels"]["trainer.kubeflow.org/framework"]
        assert FRAMEWORKS.get(path.stem, framework) == framework

    def test_it_leaves_no_default_in_a_list_to_the_schema(self, path: Path) -> None:
        """Argo CD's own diff takes a default that the API server fills into a list for drift (docs/gitops.md)."""
        assert list(missing(load(path), schema())) == []

    def test_it_points_to_its_page(self, path: Path) -> None:
        first = path.read_text().partition("\n")[0]
        page = first.rpartition(" ")[2]
        assert (FOLDER.parent / page).is_file(), page

    def test_the_shortest_trainjob_is_allowed_and_rendered(self, path: Path) -> None:
        runtime = read(load(path), ClusterTrainingRuntime)
        asked = job(runtime_name=path.stem)
        verdict = PIPELINE.validate(asked, None, runtime)
        assert (verdict.errors, verdict.warnings) == ((), ())
        assert PIPELINE.render(asked, runtime).jobset.tree["spec"]["replicatedJobs"]


@pytest.mark.parametrize("name", [name for name, framework in FRAMEWORKS.items() if framework in FIRST])
def test_nodes_meet_at_the_first(name: str) -> None:
    runtime = read(load(FOLDER / f"{name}.yaml"), ClusterTrainingRuntime)
    rendering = PIPELINE.render(job(runtime_name=name, trainer={"numNodes": 2}), runtime)
    variable, value = FIRST[FRAMEWORKS[name]]
    assert values_of(container_of(rendering))[variable] == value
    assert pods_of(rendering) == (2, 2)


def test_runtimes_that_name_kubeflows_initializers_run_them_as_before() -> None:
    """Its images read the same variables, and have a program and a user of their own."""
    documents = yaml.safe_load_all((FOLDER.parent / "examples/trainjobs/initializers.yaml").read_text())
    runtime, asked = documents
    asked["spec"]["initializer"] = {part: {"storageUri": f"hf://owner/{part}"} for part in ("dataset", "model")}
    rendering = PIPELINE.render(read(asked, TrainJob), read(runtime, ClusterTrainingRuntime))
    for part in ("dataset", "model"):
        name = f"{part}-initializer"
        container = container_of(rendering, name, name)
        assert container["image"] == f"ghcr.io/kubeflow/trainer/{name}"
        assert not container.keys() & {"command", "args", "securityContext"}
        assert values_of(container) == {"STORAGE_URI": f"hf://owner/{part}"}
