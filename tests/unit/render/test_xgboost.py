from __future__ import annotations

from typing import Any

import pytest

from tests.unit.render.objects import (
    PIPELINE,
    Runtime,
    container_of,
    in_container,
    job,
    node,
    origin,
    pods_of,
    render,
    replicated_job,
    runtime,
    values_of,
)
from trainplane.render.findings import Finding

RANK = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
GPU = "nvidia.com/gpu"


def xgboost(*jobs: Any, nodes: int = 1) -> Runtime:
    return runtime(*jobs, policy={"numNodes": nodes, "xgboost": {}}, name="xgboost-distributed")


def workers(have: Any = None, *, nodes: int = 2, **trainer: Any) -> str:
    """Return DMLC_NUM_WORKER for resources of the runtime and words of the TrainJob."""
    container = node(resources=have) if have else node()
    value: str = values_of(container_of(render(job(trainer=trainer), xgboost(container, nodes=nodes))))[
        "DMLC_NUM_WORKER"
    ]
    return value


class TestVariables:
    def test_every_node_is_told_where_the_tracker_is(self) -> None:
        rendering = render(job(trainer={"numNodes": 4}), xgboost())
        container = container_of(rendering)
        assert container["env"] == [
            {"name": "DMLC_TRACKER_URI", "value": "job-node-0-0.job"},
            {"name": "DMLC_TRACKER_PORT", "value": "29500"},
            {"name": "DMLC_TASK_ID", "valueFrom": RANK},
            {"name": "DMLC_NUM_WORKER", "value": "4"},
        ]
        assert container["ports"] == [{"containerPort": 29500}]
        assert pods_of(rendering) == (4, 4)
        assert origin(rendering.jobset, *in_container("env", ("name", "DMLC_TASK_ID"))) == "plugin XGBoost"

    def test_also_without_a_trainer(self) -> None:
        values = values_of(container_of(render(job(), xgboost(nodes=3))))
        assert values["DMLC_NUM_WORKER"] == "3"
        assert values["DMLC_TRACKER_URI"] == "job-node-0-0.job"

    def test_the_name_of_the_job_the_subdomain_and_the_port_are_respected(self) -> None:
        have = (
            xgboost(replicated_job("w", "trainer"))
            .put("spec", "template", "spec", "network", value={"subdomain": "net"})
            .put("metadata", "annotations", value={"trainer.kubeflow.org/port": "9091"})
        )
        container = container_of(render(job(), have), job="w")
        assert values_of(container)["DMLC_TRACKER_URI"] == "job-w-0-0.net"
        assert values_of(container)["DMLC_TRACKER_PORT"] == "9091"
        assert container["ports"] == [{"containerPort": 9091}]

    def test_an_unnamed_port_of_the_runtime_stays(self) -> None:
        container = container_of(render(job(), xgboost(node(ports=[{"containerPort": 8080}]))))
        assert container["ports"] == [{"containerPort": 8080}, {"containerPort": 29500}]

    def test_what_a_runtime_sets_gives_way(self) -> None:
        have = xgboost(node(env=[{"name": "DMLC_NUM_WORKER", "value": "9"}]), nodes=2)
        assert values_of(container_of(render(job(), have)))["DMLC_NUM_WORKER"] == "2"


class TestWorkers:
    """One for each GPU of a node, or one."""

    @pytest.mark.parametrize(
        ("have", "said", "result"),
        [
            (None, {}, "2"),
            ({"limits": {"cpu": 8}}, {}, "2"),
            ({"limits": {GPU: 4}}, {}, "8"),
            ({"requests": {"amd.com/gpu": 1}}, {}, "2"),
            ({"limits": {"nvidia.com/mig-1g.5gb": 3}}, {}, "6"),
            ({"limits": {"google.com/tpu": 4}}, {}, "2"),
            (None, {"resourcesPerNode": {"limits": {GPU: 2}}}, "4"),
            ({"limits": {GPU: 4}}, {"resourcesPerNode": {"limits": {GPU: 2}}}, "4"),
            ({"limits": {GPU: 4}}, {"resourcesPerNode": {"requests": {"cpu": 2}}}, "8"),
            ({"limits": {GPU: 4}}, {"numProcPerNode": 1}, "2"),
            (None, {"numProcPerNode": 3}, "6"),
            ({"limits": {GPU: 2}}, {"numProcPerNode": 0}, "4"),
            ({"limits": {GPU: 2}}, {"numProcPerNode": "auto"}, "4"),
        ],
    )
    def test_by_resources_unless_the_trainjob_says(self, have: Any, said: Any, result: str) -> None:
        assert workers(have, **said) == result

    def test_nodes_of_the_trainjob_count(self) -> None:
        assert workers({"limits": {GPU: 2}}, numNodes=5) == "10"


class TestValidation:
    def test_its_own_variables_are_refused_one_by_one(self) -> None:
        env = [{"name": name, "value": "1"} for name in ("DMLC_TASK_ID", "MINE", "DMLC_TRACKER_URI")]
        verdict = PIPELINE.validate(job(trainer={"env": env}), None, xgboost())
        assert verdict.errors == (
            Finding("spec.trainer.env[0]", "DMLC_TASK_ID: set by the XGBoost plugin, leave out", "Forbidden"),
            Finding("spec.trainer.env[2]", "DMLC_TRACKER_URI: set by the XGBoost plugin, leave out", "Forbidden"),
        )

    def test_they_are_anyones_in_other_frameworks(self) -> None:
        env = [{"name": "DMLC_TASK_ID", "value": "1"}]
        assert PIPELINE.validate(job(trainer={"env": env}), None, runtime()).allowed
        assert values_of(container_of(render(job(trainer={"env": env}), runtime()))) == {"DMLC_TASK_ID": "1"}

    @pytest.mark.parametrize("spec", [{}, {"trainer": {"numNodes": 2, "env": [{"name": "A", "value": "1"}]}}])
    def test_a_good_trainjob(self, spec: Any) -> None:
        verdict = PIPELINE.validate(job(**spec), None, xgboost())
        assert (verdict.errors, verdict.warnings) == ((), ())

    def test_a_runtime_that_trains_nowhere_is_left_alone(self) -> None:
        rendering = render(job(trainer={"numNodes": 3}), xgboost(replicated_job("other")))
        assert container_of(rendering, "other", "other") == {"name": "other", "image": "image/other"}
