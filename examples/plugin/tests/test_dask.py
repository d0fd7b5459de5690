"""Renders the example's TrainJob with the plugin as it is installed: no cluster, no Dask."""

# A test's name says what it shows, and a test asserts.
# ruff: noqa: D103, S101

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainplane.api import names
from trainplane.api.document import Document, read
from trainplane.api.runtime import ClusterTrainingRuntime
from trainplane.api.trainjob import TrainJob
from trainplane.api.tree import get
from trainplane.render.errors import PluginRefusedError
from trainplane.render.pipeline import Pipeline

EXAMPLE = Path(__file__).parent.parent
PIPELINE = Pipeline.default()
NODE = ("spec", "replicatedJobs", ("name", "node"))
POD = (*NODE, "template", "spec", "template", "spec")
CONTAINER = (*POD, "containers", ("name", "node"))


def load(name: str) -> Any:
    return yaml.safe_load((EXAMPLE / name).read_text())


@pytest.fixture
def runtime() -> Document[ClusterTrainingRuntime]:
    return read(load("runtime.yaml"), ClusterTrainingRuntime)


@pytest.fixture
def job() -> Document[TrainJob]:
    return read(load("trainjob.yaml"), TrainJob)


def test_the_installed_plugin_works_after_the_built_in_frameworks() -> None:
    order = [plugin.name for plugin in PIPELINE.plugins]
    assert order.index("Torch") < order.index("Dask") < order.index("JobSet")


def test_every_node_finds_the_scheduler(runtime: Document[ClusterTrainingRuntime], job: Document[TrainJob]) -> None:
    config, jobset = PIPELINE.render(job, runtime).objects
    assert json.loads(config.tree["data"]["dask.yaml"]) == {"scheduler-address": "tcp://forest-node-0-0.forest:8786"}
    assert get(jobset.tree, *POD, "volumes") == [{"name": "dask-config", "configMap": {"name": "forest-dask-config"}}]
    container = get(jobset.tree, *CONTAINER)
    assert container["volumeMounts"] == [{"name": "dask-config", "mountPath": "/etc/dask", "readOnly": True}]
    assert [variable["name"] for variable in container["env"]] == ["TREES", "DASK_NODE_RANK"]
    assert get(jobset.tree, *NODE, "template", "spec", "parallelism") == 3


def test_the_config_belongs_to_the_trainjob(runtime: Document[ClusterTrainingRuntime], job: Document[TrainJob]) -> None:
    config = PIPELINE.render(job.put("metadata", "uid", value="u-1"), runtime).objects[0]
    assert config.tree["metadata"]["namespace"] == "team"
    assert config.tree["metadata"]["ownerReferences"][0]["uid"] == "u-1"


def test_what_the_plugin_wrote_says_so(runtime: Document[ClusterTrainingRuntime], job: Document[TrainJob]) -> None:
    config, jobset = PIPELINE.render(job, runtime).objects
    assert str(jobset.origin_of(*CONTAINER, "env", ("name", "DASK_NODE_RANK"))) == "plugin Dask"
    assert str(jobset.origin_of(*CONTAINER, "env", ("name", "TREES"), "value")) == "trainjob spec.trainer.env"
    assert str(config.origin_of("data", "dask.yaml")) == "plugin Dask"


def test_other_frameworks_are_left_alone(runtime: Document[ClusterTrainingRuntime], job: Document[TrainJob]) -> None:
    plain = runtime.put("metadata", "labels", names.LABEL_FRAMEWORK, value="other")
    (jobset,) = PIPELINE.render(job, plain).objects
    assert "volumes" not in get(jobset.tree, *POD)


def test_the_rank_is_ours(runtime: Document[ClusterTrainingRuntime], job: Document[TrainJob]) -> None:
    wrong = job.put("spec", "trainer", "env", value=[{"name": "DASK_NODE_RANK", "value": "0"}])
    (finding,) = PIPELINE.validate(wrong, None, runtime).errors
    assert finding.path == "spec.trainer.env"


def test_one_node_is_worth_a_warning(runtime: Document[ClusterTrainingRuntime], job: Document[TrainJob]) -> None:
    verdict = PIPELINE.validate(job.put("spec", "trainer", "numNodes", value=1), None, runtime)
    assert verdict.allowed
    assert "numNodes" in verdict.warnings[0]


def test_a_runtime_without_a_trainer_is_refused(
    runtime: Document[ClusterTrainingRuntime], job: Document[TrainJob]
) -> None:
    path = ("spec", "template", "spec", "replicatedJobs", ("name", "node"), "template", "metadata")
    with pytest.raises(PluginRefusedError, match=r"spec.runtimeRef: .* \(plugin Dask\)"):
        PIPELINE.render(job, runtime.drop(*path))
