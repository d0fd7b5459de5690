from __future__ import annotations

from typing import Any

import pytest

from tests.unit.render.objects import (
    PIPELINE,
    Runtime,
    container_of,
    in_container,
    in_job,
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

RANK = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}


def jax(*jobs: Any, nodes: int = 1) -> Runtime:
    return runtime(*jobs, policy={"numNodes": nodes, "jax": {}}, name="jax-distributed")


class TestVariables:
    def test_every_node_is_told_of_all(self) -> None:
        said = {"numNodes": 4, "command": ["python", "t.py"], "env": [{"name": "A", "value": "1"}]}
        rendering = render(job(trainer=said), jax(nodes=2))
        container = container_of(rendering)
        assert container["env"] == [
            {"name": "A", "value": "1"},
            {"name": "JAX_NUM_PROCESSES", "value": "4"},
            {"name": "JAX_PROCESS_ID", "valueFrom": RANK},
            {"name": "JAX_COORDINATOR_ADDRESS", "value": "job-node-0-0.job:29500"},
        ]
        assert container["ports"] == [{"containerPort": 29500}]
        assert pods_of(rendering) == (4, 4)
        assert origin(rendering.jobset, *in_container("env", ("name", "JAX_PROCESS_ID"))) == "plugin JAX"
        nodes = in_job("node", "template", "spec", "parallelism")
        assert origin(rendering.jobset, *nodes) == "trainjob spec.trainer.numNodes"

    @pytest.mark.parametrize("spec", [{}, {"trainer": {}}, {"trainer": {"image": "mine"}}])
    def test_also_where_the_trainjob_leaves_it_to_the_runtime(self, spec: Any) -> None:
        rendering = render(job(**spec), jax(nodes=3))
        assert values_of(container_of(rendering))["JAX_NUM_PROCESSES"] == "3"
        assert pods_of(rendering) == (3, 3)

    def test_the_name_of_the_job_and_the_subdomain_are_in_the_address(self) -> None:
        have = jax(replicated_job("host", "trainer")).put(
            "spec", "template", "spec", "network", value={"subdomain": "net"}
        )
        values = values_of(container_of(render(job(), have), job="host"))
        assert values["JAX_COORDINATOR_ADDRESS"] == "job-host-0-0.net:29500"

    def test_what_a_user_sets_stays(self) -> None:
        env = [{"name": "JAX_COORDINATOR_ADDRESS", "value": "elsewhere:1"}]
        values = values_of(container_of(render(job(trainer={"env": env}), jax(nodes=2))))
        assert values["JAX_COORDINATOR_ADDRESS"] == "elsewhere:1"
        assert values["JAX_NUM_PROCESSES"] == "2"

    def test_what_a_runtime_sets_gives_way(self) -> None:
        have = jax(node(env=[{"name": "JAX_NUM_PROCESSES", "value": "9"}, {"name": "Z", "value": "z"}]))
        values = values_of(container_of(render(job(), have)))
        assert values["JAX_NUM_PROCESSES"] == "1"
        assert values["Z"] == "z"


class TestPort:
    def test_the_runtime_may_set_it(self) -> None:
        have = jax().put("metadata", "annotations", value={"trainer.kubeflow.org/port": "1234"})
        container = container_of(render(job(), have))
        assert values_of(container)["JAX_COORDINATOR_ADDRESS"] == "job-node-0-0.job:1234"
        assert container["ports"] == [{"containerPort": 1234}]

    def test_a_port_that_is_none_is_refused_at_admission(self) -> None:
        have = jax().put("metadata", "annotations", value={"trainer.kubeflow.org/port": "http"})
        with pytest.raises(PluginRefusedError, match=r"'http': write a port.*\(plugin JAX\)"):
            render(job(), have)
        (finding,) = PIPELINE.validate(job(), None, have).errors
        assert finding.path == "spec.runtimeRef"

    def test_an_unnamed_port_of_the_runtime_stays(self) -> None:
        container = container_of(render(job(), jax(node(ports=[{"containerPort": 8080}]))))
        assert container["ports"] == [{"containerPort": 8080}, {"containerPort": 29500}]


class TestValidation:
    def test_processes_have_no_effect_and_that_is_said(self) -> None:
        verdict = PIPELINE.validate(job(trainer={"numProcPerNode": 4}), None, jax())
        assert verdict.allowed
        (warning,) = verdict.warnings
        assert warning.startswith("spec.trainer.numProcPerNode: 4 has no effect with JAX")

    @pytest.mark.parametrize("trainer", [{}, {"numProcPerNode": 1}, {"numNodes": 2}])
    def test_a_good_trainjob(self, trainer: Any) -> None:
        verdict = PIPELINE.validate(job(trainer=trainer), None, jax())
        assert (verdict.errors, verdict.warnings) == ((), ())

    def test_a_runtime_that_trains_nowhere_is_left_alone(self) -> None:
        rendering = render(job(trainer={"numNodes": 3}), jax(replicated_job("other")))
        assert container_of(rendering, "other", "other") == {"name": "other", "image": "image/other"}
        assert pods_of(rendering, "other") == (1, 1)

    def test_other_frameworks_get_nothing(self) -> None:
        assert "env" not in container_of(render(job(trainer={"numProcPerNode": 4}), runtime()))
        assert PIPELINE.validate(job(trainer={"numProcPerNode": 4}), None, runtime()).warnings == ()
