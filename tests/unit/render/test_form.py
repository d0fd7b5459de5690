from __future__ import annotations

from typing import Any

import pytest

from trainplane.api import document
from trainplane.api.runtime import ClusterTrainingRuntime
from trainplane.api.trainjob import TrainJob
from trainplane.render.errors import ResolveError
from trainplane.render.pipeline import Pipeline

POD = {"containers": [{"name": "node", "image": "x"}]}


def runtime(template: Any) -> Any:
    spec = {"mlPolicy": {"mpi": {}}, "template": {"spec": {"replicatedJobs": [{"name": "node", "template": template}]}}}
    return document.read({"metadata": {"name": "r"}, "spec": spec}, ClusterTrainingRuntime)


def whole(**fields: Any) -> Any:
    spec = {"mlPolicy": {"mpi": {}}, "template": {"spec": {"replicatedJobs": [{"name": "node", **fields}]}}}
    return document.read({"metadata": {"name": "r"}, "spec": spec}, ClusterTrainingRuntime)


def container(**fields: Any) -> Any:
    return {"spec": {"template": {"spec": {"containers": [{"name": "node", "image": "x", **fields}]}}}}


@pytest.mark.parametrize(
    ("template", "field"),
    [
        ("x", "$.template"),
        ({"spec": []}, "$.template.spec"),
        ({"spec": {"template": "None"}}, "$.template.spec.template"),
        ({"spec": {"template": {"metadata": {"labels": [1]}}}}, "$.template.spec.template.metadata.labels"),
        ({"spec": {"template": {"spec": {"containers": {}}}}}, "$.template.spec.template.spec.containers"),
        ({"spec": {"template": {"spec": {"containers": [5]}}}}, "$.template.spec.template.spec.containers[0]"),
        (container(command=["tune", "run", None]), "containers[0].command[2]"),
        (container(args=[{}]), "containers[0].args[0]"),
        (container(env=["A"]), "containers[0].env[0]"),
        (container(resources={"limits": 5}), "containers[0].resources.limits"),
    ],
)
def test_a_runtime_that_no_schema_has_seen_is_refused_with_the_field(template: Any, field: str) -> None:
    job = document.read({"metadata": {"name": "j", "uid": "1"}, "spec": {"runtimeRef": {"name": "r"}}}, TrainJob)
    with pytest.raises(ResolveError, match=r"does not have the form of a JobSet") as refused:
        Pipeline.default().render(job, runtime(template))
    assert f"{field}`" in str(refused.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"replicas": {}},
        {"replicas": "2"},
        {"template": {"spec": {"parallelism": []}}},
        {"template": {"spec": {"completions": "x"}}},
    ],
)
def test_a_count_that_is_no_number_is_refused(fields: Any) -> None:
    job = document.read({"metadata": {"name": "j", "uid": "1"}, "spec": {"runtimeRef": {"name": "r"}}}, TrainJob)
    with pytest.raises(ResolveError, match="Expected `int"):
        Pipeline.default().render(job, whole(**fields))
