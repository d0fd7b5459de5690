from __future__ import annotations

import json
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
from trainplane.render.errors import PluginRefusedError

LABEL = "trainer.kubeflow.org/framework"


def tensorflow(*jobs: Any, nodes: int = 1) -> Runtime:
    have = runtime(*jobs, policy={"numNodes": nodes}, name="tensorflow-distributed")
    return have.put("metadata", "labels", value={LABEL: "tensorflow"})


def task(name: str, count: int = 1, **fields: Any) -> Any:
    made = replicated_job(name, **fields)
    made["template"]["spec"]["parallelism"] = count
    return made


def config(rendering: Any, index: int, *, of: str = "node", container: str = "node") -> Any:
    """Return TF_CONFIG as the program of one pod reads it."""
    return json.loads(environment(container_of(rendering, container, of), index)["TF_CONFIG"])


class TestWorkers:
    @pytest.mark.parametrize("index", [0, 1])
    def test_each_knows_all_and_itself(self, index: int) -> None:
        rendering = render(job(trainer={"numNodes": 2}), tensorflow())
        assert config(rendering, index) == {
            "cluster": {"worker": ["job-node-0-0.job:29500", "job-node-0-1.job:29500"]},
            "task": {"type": "worker", "index": index},
        }
        assert container_of(rendering)["ports"] == [{"containerPort": 29500}]
        assert pods_of(rendering) == (2, 2)
        assert origin(rendering.jobset, *in_container("env", ("name", "TF_CONFIG"))) == "plugin TensorFlow"

    def test_also_without_a_trainer(self) -> None:
        assert len(config(render(job(), tensorflow(nodes=3)), 2)["cluster"]["worker"]) == 3

    def test_one_is_a_cluster_too(self) -> None:
        assert config(render(job(), tensorflow()), 0)["cluster"] == {"worker": ["job-node-0-0.job:29500"]}

    def test_the_name_of_the_job_the_subdomain_and_the_port_are_respected(self) -> None:
        have = (
            tensorflow(replicated_job("w", "trainer"))
            .put("metadata", "annotations", value={"trainer.kubeflow.org/port": "2222"})
            .put("spec", "template", "spec", "network", value={"subdomain": "net"})
        )
        rendering = render(job(), have)
        assert config(rendering, 0, of="w")["cluster"] == {"worker": ["job-w-0-0.net:2222"]}
        assert container_of(rendering, job="w")["ports"] == [{"containerPort": 2222}]

    def test_a_variable_of_the_runtimes_gives_way_wherever_it_stood(self) -> None:
        env = [{"name": "TF_CONFIG", "value": "{}"}, {"name": "A", "value": "a"}]
        rendering = render(job(), tensorflow(node(env=env, ports=[{"containerPort": 8080}])))
        assert config(rendering, 1)["task"] == {"type": "worker", "index": 1}
        assert values_of(container_of(rendering))["A"] == "a"
        assert container_of(rendering)["ports"] == [{"containerPort": 8080}, {"containerPort": 29500}]


class TestOtherTasks:
    """Jobs of the runtime that are named after a task of TensorFlow."""

    have = (task("chief"), task("ps", 2), node(), task("evaluator"), task("tensorboard"))

    def test_all_are_in_one_cluster(self) -> None:
        rendering = render(job(trainer={"numNodes": 2}), tensorflow(*self.have))
        cluster = {
            "chief": ["job-chief-0-0.job:29500"],
            "ps": ["job-ps-0-0.job:29500", "job-ps-0-1.job:29500"],
            "worker": ["job-node-0-0.job:29500", "job-node-0-1.job:29500"],
        }
        for name, container, kind, index in (
            ("chief", "chief", "chief", 0),
            ("ps", "ps", "ps", 1),
            ("node", "node", "worker", 1),
            ("evaluator", "evaluator", "evaluator", 0),
        ):
            seen = config(rendering, index, of=name, container=container)
            assert seen == {"cluster": cluster, "task": {"type": kind, "index": index}}
            assert container_of(rendering, container, name)["ports"] == [{"containerPort": 29500}]
        assert "env" not in container_of(rendering, "tensorboard", "tensorboard")

    def test_their_container_may_be_named_node(self) -> None:
        ps = task("ps", containers=[{"name": "sidecar"}, {"name": "node"}])
        rendering = render(job(), tensorflow(ps, node()))
        assert config(rendering, 0, of="ps")["task"]["type"] == "ps"
        assert "env" not in container_of(rendering, "sidecar", "ps")

    def test_one_whose_container_is_not_known_is_listed_all_the_same(self) -> None:
        rendering = render(job(), tensorflow(task("ps", containers=[{"name": "other"}]), node()))
        assert config(rendering, 0)["cluster"]["ps"] == ["job-ps-0-0.job:29500"]
        assert "env" not in container_of(rendering, "other", "ps")

    @pytest.mark.parametrize("name", ["chief", "worker"])
    def test_the_job_that_trains_may_have_such_a_name(self, name: str) -> None:
        have = tensorflow(replicated_job(name, "trainer"))
        assert config(render(job(), have), 0, of=name)["task"] == {"type": name, "index": 0}

    def test_two_jobs_cannot_be_one_task(self) -> None:
        have = tensorflow(node(), task("worker"))
        with pytest.raises(PluginRefusedError, match=r"jobs node and worker are both TensorFlow's task worker"):
            render(job(), have)
        (finding,) = PIPELINE.validate(job(), None, have).errors
        assert finding.path == "spec.runtimeRef"

    def test_a_task_is_one_job(self) -> None:
        ps = {**task("ps"), "replicas": 2}
        with pytest.raises(PluginRefusedError, match=r"job ps has 2 replicas: write 1, and parallelism"):
            render(job(), tensorflow(node(), ps))


class TestLimits:
    def test_more_nodes_than_a_variable_can_list_are_refused(self) -> None:
        have = tensorflow()
        fits = render(job(trainer={"numNodes": 4000}), have)
        assert len(config(fits, 3999)["cluster"]["worker"]) == 4000
        verdict = PIPELINE.validate(job(trainer={"numNodes": 6000}), None, have)
        (finding,) = verdict.errors
        assert finding.path == "spec.trainer.numNodes"
        assert "of which Linux takes 131072" in finding.problem

    def test_its_own_variables_are_refused(self) -> None:
        env = [{"name": "A", "value": "1"}, {"name": "TF_CONFIG", "value": "{}"}]
        (finding,) = PIPELINE.validate(job(trainer={"env": env}), None, tensorflow()).errors
        assert str(finding) == "spec.trainer.env[1]: TF_CONFIG: set by the TensorFlow plugin, leave out"
        assert finding.cause == "Forbidden"

    @pytest.mark.parametrize("label", ["", "torch", "TensorFlow"])
    def test_other_runtimes_get_nothing(self, label: str) -> None:
        have = runtime().put("metadata", "labels", value={LABEL: label})
        mine = [{"name": "TF_CONFIG", "value": "mine"}]
        assert values_of(container_of(render(job(trainer={"env": mine}), have))) == {"TF_CONFIG": "mine"}
        assert PIPELINE.validate(job(trainer={"env": mine}), None, have).allowed

    def test_a_runtime_that_trains_nowhere_is_left_alone(self) -> None:
        rendering = render(job(), tensorflow(task("ps")))
        assert container_of(rendering, "ps", "ps") == {"name": "ps", "image": "image/ps"}
