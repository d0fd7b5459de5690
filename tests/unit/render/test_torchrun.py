"""A TrainJob on torch that gives arguments alone, and where processes look that torchrun did not start."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.render.objects import (
    PIPELINE,
    container_of,
    in_container,
    job,
    node,
    origin,
    render,
    replicated_job,
    runtime,
    torch,
    values_of,
)

ARGS = ["train.py", "--epochs=3"]
ELASTIC: Any = {"nodes": None, "elasticPolicy": {"minNodes": 1, "maxNodes": 3}}


class TestCommand:
    """`torchrun`, where nobody else gave one."""

    @pytest.mark.parametrize("policy", [{}, ELASTIC], ids=["static", "elastic"])
    def test_arguments_alone_are_torchruns(self, policy: Any) -> None:
        rendering = render(job(trainer={"args": ARGS}), torch(**policy))
        container = container_of(rendering)
        assert container["command"] == ["torchrun"]
        assert container["args"] == ARGS
        assert origin(rendering.jobset, *in_container("command")) == "plugin Torchrun"

    def test_arguments_take_the_place_of_the_runtimes(self) -> None:
        container = container_of(render(job(trainer={"args": ARGS}), torch(node(args=["other.py"]))))
        assert (container["command"], container["args"]) == (["torchrun"], ARGS)

    @pytest.mark.parametrize(
        ("trainer", "runtimes", "command"),
        [
            ({"command": ["python3"], "args": ARGS}, {}, ["python3"]),
            ({"args": ARGS}, {"command": ["python3", "-u"]}, ["python3", "-u"]),
            ({"command": [], "args": ARGS}, {}, None),
            ({"command": [], "args": ARGS}, {"command": ["python3"]}, None),
            ({"command": ["sleep", "1"]}, {}, ["sleep", "1"]),
            ({"args": []}, {}, None),
            ({"numNodes": 2}, {}, None),
            ({"numNodes": 2}, {"args": ARGS}, None),
            (None, {"args": ARGS}, None),
            (None, {}, None),
        ],
    )
    def test_what_anybody_said_stays(self, trainer: Any, runtimes: Any, command: Any) -> None:
        spec = {} if trainer is None else {"trainer": trainer}
        assert container_of(render(job(**spec), torch(node(**runtimes)))).get("command") == command

    @pytest.mark.parametrize("policy", [None, {"numNodes": 2}, {"jax": {}}, {"xgboost": {}}])
    def test_other_frameworks_have_none(self, policy: Any) -> None:
        container = container_of(render(job(trainer={"args": ARGS}), runtime(policy=policy)))
        assert "command" not in container
        assert "MASTER_ADDR" not in values_of(container)

    def test_a_runtime_that_trains_nowhere_is_left_alone(self) -> None:
        rendering = render(job(), torch(replicated_job("other")))
        assert container_of(rendering, "other", "other") == {"name": "other", "image": "image/other"}

    def test_it_is_allowed(self) -> None:
        assert PIPELINE.validate(job(trainer={"args": ARGS}), None, torch()).allowed


class TestMaster:
    """MASTER_ADDR and MASTER_PORT say what PET_ variables say."""

    def test_they_are_torchs(self) -> None:
        have = torch(replicated_job("worker", "trainer"))
        have = have.put("metadata", "annotations", value={"trainer.kubeflow.org/port": "23456"})
        values = values_of(container_of(render(job(), have), job="worker"))
        assert (values["MASTER_ADDR"], values["MASTER_PORT"]) == ("job-worker-0-0.job", "23456")
        assert (values["PET_MASTER_ADDR"], values["PET_MASTER_PORT"]) == ("job-worker-0-0.job", "23456")

    def test_elastic_nodes_are_told_where_they_meet(self) -> None:
        values = values_of(container_of(render(job(), torch(**ELASTIC))))
        assert f"{values['MASTER_ADDR']}:{values['MASTER_PORT']}" == values["PET_RDZV_ENDPOINT"]

    @pytest.mark.parametrize("who", ["trainjob", "runtime"])
    def test_what_anybody_set_stays(self, who: str) -> None:
        env = [{"name": "MASTER_ADDR", "value": "elsewhere"}]
        said = job(trainer={"env": env} if who == "trainjob" else {})
        have = torch(node(env=env)) if who == "runtime" else torch()
        assert PIPELINE.validate(said, None, have).allowed
        values = values_of(container_of(render(said, have)))
        assert (values["MASTER_ADDR"], values["MASTER_PORT"]) == ("elsewhere", "29500")

    def test_a_source_counts_as_said(self) -> None:
        env = [{"name": "MASTER_PORT", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['port']"}}}]
        container = container_of(render(job(trainer={"env": env}), torch()))
        assert [entry for entry in container["env"] if entry["name"] == "MASTER_PORT"] == env
