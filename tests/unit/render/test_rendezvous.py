"""Where nodes meet: what the frameworks share."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.render.objects import (
    Runtime,
    container_of,
    job,
    node,
    origin,
    render,
    replicated_job,
    runtime,
    values_of,
)
from trainplane.api.tree import get
from trainplane.render.plan import Container, FieldWriter
from trainplane.render.plugin import RefusalError
from trainplane.render.provenance import Origin
from trainplane.render.rendezvous import append_env, open_port, port_of, port_said, rank, rendezvous_of
from trainplane.render.resolve import resolve

PORT = "trainer.kubeflow.org/port"


def container(**fields: Any) -> Container:
    writer = FieldWriter()
    writer.origin = Origin("plugin", "Ours")
    return Container({"name": "node", **fields}, writer)


class TestPlace:
    def test_it_is_the_first_node_of_the_job_that_trains(self) -> None:
        have = runtime(replicated_job("data"), replicated_job("worker", "trainer"), policy={"numNodes": 3})
        found = rendezvous_of(resolve(job(), have))
        assert found is not None
        assert (found.host, found.address, found.nodes) == ("job-worker-0-0.job", "job-worker-0-0.job:29500", 3)
        assert found.pods.name == "worker"
        assert found.container.name == "node"

    def test_in_the_subdomain_of_its_pods(self) -> None:
        have = runtime().put("spec", "template", "spec", "network", value={"subdomain": "net"})
        found = rendezvous_of(resolve(job(), have))
        assert found is not None
        assert found.address == "job-node-0-0.net:29500"

    @pytest.mark.parametrize("jobs", [replicated_job("other"), replicated_job("node", "trainer", containers=[])])
    def test_nobody_meets_where_nobody_trains(self, jobs: Any) -> None:
        assert rendezvous_of(resolve(job(), runtime(jobs))) is None


class TestPort:
    def said(self, text: str) -> Runtime:
        return runtime().put("metadata", "annotations", value={PORT: text})

    def test_a_framework_has_its_own(self) -> None:
        found = rendezvous_of(resolve(job(), runtime()), port=8050)
        assert found is not None
        assert found.port == 8050

    @pytest.mark.parametrize("text", ["1", "23456", "65535"])
    def test_a_runtime_may_say_another(self, text: str) -> None:
        found = rendezvous_of(resolve(job(), self.said(text)), port=8050)
        assert found is not None
        assert found.port == int(text)

    @pytest.mark.parametrize("text", ["", "0", "65536", "-1", "http", "29500.0", " 80", "1e3"])
    def test_what_is_no_port_is_refused(self, text: str) -> None:
        with pytest.raises(RefusalError, match="from 1 to 65535") as caught:
            rendezvous_of(resolve(job(), self.said(text)))
        assert caught.value.path == "spec.runtimeRef"
        assert PORT in caught.value.problem

    def test_it_is_known_where_nobody_trains_too(self) -> None:
        nobody = runtime(replicated_job("other"))
        assert port_of(resolve(job(), nobody)) == 29500
        assert port_of(resolve(job(), nobody), default=8050) == 8050
        assert port_of(resolve(job(), nobody.put("metadata", "annotations", value={PORT: "1234"}))) == 1234

    def test_other_annotations_say_nothing(self) -> None:
        assert port_said({}) is None
        assert port_said({"example.com/port": "80"}) is None

    def test_a_port_is_added_beside_those_that_are_there(self) -> None:
        have = container(ports=[{"containerPort": 8080}, {"containerPort": 9090, "name": "metrics"}])
        open_port(have, 29500)
        assert have.tree["ports"] == [
            {"containerPort": 8080},
            {"containerPort": 9090, "name": "metrics"},
            {"containerPort": 29500},
        ]

    def test_one_that_is_there_already_keeps_its_name(self) -> None:
        have = container(ports=[{"containerPort": 29500, "name": "mine", "protocol": "TCP"}])
        open_port(have, 29500)
        assert have.tree["ports"] == [{"containerPort": 29500, "name": "mine", "protocol": "TCP"}]


class TestVariables:
    def test_a_rank_is_the_pods_own(self) -> None:
        path = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
        assert rank("R") == {"name": "R", "valueFrom": {"fieldRef": {"fieldPath": path}}}

    def test_those_that_refer_to_each_other_stand_at_the_end_in_their_order(self) -> None:
        have = container(env=[{"name": "B", "value": "old"}, {"name": "Z", "value": "kept"}, {"name": "A"}])
        append_env(have, {"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"})
        assert have.env == [
            {"name": "Z", "value": "kept"},
            {"name": "A", "value": "1"},
            {"name": "B", "value": "$(A)"},
        ]

    def test_a_container_without_variables_gets_them_too(self) -> None:
        have = container()
        append_env(have, {"name": "A", "value": "1"})
        assert have.env == [{"name": "A", "value": "1"}]

    def test_where_a_variable_came_from_is_still_known(self) -> None:
        have = runtime(node(env=[{"name": "TF_CONFIG", "value": "{}"}, {"name": "ZONE", "value": "a"}]))
        labelled = have.put("metadata", "labels", value={"trainer.kubeflow.org/framework": "tensorflow"})
        rendering = render(job(trainer={"env": [{"name": "MINE", "value": "1"}]}), labelled)
        assert list(values_of(container_of(rendering))) == ["ZONE", "MINE", "TF_TASK_INDEX", "TF_CONFIG"]
        env = ("spec", "replicatedJobs", 0, "template", "spec", "template", "spec", "containers", 0, "env")
        assert get(rendering.jobset.tree, *env, 0, "name") == "ZONE"
        assert [origin(rendering.jobset, *env, index, "value") for index in (0, 1, 3)] == [
            "runtime",
            "trainjob spec.trainer.env",
            "plugin TensorFlow",
        ]
