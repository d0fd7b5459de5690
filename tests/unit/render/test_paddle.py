from __future__ import annotations

from typing import Any

import pytest

from tests.unit.render.kubelet import environment
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

LABEL = "trainer.kubeflow.org/framework"


def paddle(*jobs: Any, nodes: int = 1) -> Runtime:
    have = runtime(*jobs, policy={"numNodes": nodes}, name="paddle-distributed")
    return have.put("metadata", "labels", value={LABEL: "paddle"})


class TestVariables:
    @pytest.mark.parametrize("index", [0, 1])
    def test_each_node_knows_the_master_and_its_own_name(self, index: int) -> None:
        rendering = render(job(trainer={"numNodes": 2}), paddle())
        assert environment(container_of(rendering), index) == {
            "PADDLE_JOB_ID": "job",
            "PADDLE_NNODES": "2",
            "PADDLE_MASTER": "job-node-0-0.job:29500",
            "PADDLE_RANK": str(index),
            "POD_IP": f"job-node-0-{index}.job",
        }
        assert container_of(rendering)["ports"] == [{"containerPort": 29500}]
        assert pods_of(rendering) == (2, 2)
        assert origin(rendering.jobset, *in_container("env", ("name", "PADDLE_MASTER"))) == "plugin Paddle"

    def test_the_first_is_the_master(self) -> None:
        """The launcher begins the meeting where its own address is that of the master."""
        container = container_of(render(job(name="a-0"), paddle(nodes=12)))
        masters = [environment(container, index)["PADDLE_MASTER"].partition(":")[0] for index in range(12)]
        own = [environment(container, index)["POD_IP"] for index in range(12)]
        assert [own[index] == masters[index] for index in range(12)] == [True, *[False] * 11]
        assert own[11] == "a-0-node-0-11.a-0"

    def test_also_without_a_trainer(self) -> None:
        assert values_of(container_of(render(job(), paddle(nodes=3))))["PADDLE_NNODES"] == "3"

    def test_the_name_of_the_job_the_subdomain_and_the_port_are_respected(self) -> None:
        have = (
            paddle(replicated_job("w", "trainer"))
            .put("metadata", "annotations", value={"trainer.kubeflow.org/port": "36543"})
            .put("spec", "template", "spec", "network", value={"subdomain": "net"})
        )
        container = container_of(render(job(), have), job="w")
        seen = environment(container, 3)
        assert (seen["PADDLE_MASTER"], seen["POD_IP"]) == ("job-w-0-0.net:36543", "job-w-0-3.net")
        assert container["ports"] == [{"containerPort": 36543}]

    def test_a_variable_of_the_runtimes_gives_way_wherever_it_stood(self) -> None:
        env = [
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "A", "value": "a"},
        ]
        container = container_of(render(job(), paddle(node(env=env, ports=[{"containerPort": 8080}]))))
        assert environment(container, 1)["POD_IP"] == "job-node-0-1.job"
        assert environment(container, 1)["A"] == "a"
        assert container["ports"] == [{"containerPort": 8080}, {"containerPort": 29500}]


class TestProcesses:
    def test_the_launcher_counts_devices_itself(self) -> None:
        have = paddle(node(resources={"limits": {"nvidia.com/gpu": 4}}))
        assert "PADDLE_NPROC_PER_NODE" not in values_of(container_of(render(job(trainer={}), have)))

    def test_unless_the_trainjob_says_how_many(self) -> None:
        rendering = render(job(trainer={"numProcPerNode": 2}), paddle())
        assert values_of(container_of(rendering))["PADDLE_NPROC_PER_NODE"] == "2"
        path = in_container("env", ("name", "PADDLE_NPROC_PER_NODE"))
        assert origin(rendering.jobset, *path) == "trainjob spec.trainer.numProcPerNode"


class TestLimits:
    def test_its_own_variables_are_refused(self) -> None:
        env = [{"name": "POD_IP", "value": "1"}, {"name": "A", "value": "1"}, {"name": "PADDLE_RANK", "value": "1"}]
        verdict = PIPELINE.validate(job(trainer={"env": env}), None, paddle())
        assert [finding.path for finding in verdict.errors] == ["spec.trainer.env[0]", "spec.trainer.env[2]"]

    def test_other_runtimes_get_nothing(self) -> None:
        mine = [{"name": "POD_IP", "value": "mine"}]
        assert values_of(container_of(render(job(trainer={"env": mine}), runtime()))) == {"POD_IP": "mine"}
        assert PIPELINE.validate(job(trainer={"env": mine}), None, runtime()).allowed

    @pytest.mark.parametrize("spec", [{}, {"trainer": {"numNodes": 2, "numProcPerNode": 2}}])
    def test_a_good_trainjob(self, spec: Any) -> None:
        verdict = PIPELINE.validate(job(**spec), None, paddle())
        assert (verdict.errors, verdict.warnings) == ((), ())

    def test_a_runtime_that_trains_nowhere_is_left_alone(self) -> None:
        assert container_of(render(job(), paddle(replicated_job("other"))), "other", "other") == {
            "name": "other",
            "image": "image/other",
        }
