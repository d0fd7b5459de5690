from __future__ import annotations

import pytest

from tests.unit.legacy.jobs import job
from trainplane.api.legacy.kinds import JAX, PADDLE, PYTORCH, TENSORFLOW, XGBOOST, Kind
from trainplane.legacy.defaults import defaulted


@pytest.mark.parametrize("kind", [PYTORCH, TENSORFLOW, XGBOOST, PADDLE, JAX])
def test_what_is_left_out_is_filled_in_once(kind: Kind) -> None:
    template = job(kind, {"Worker": 1})["spec"][kind.specs]["Worker"]["template"]
    found = defaulted(kind, {"spec": {kind.specs: {"worker": {"template": template}}}})
    worker = found["spec"][kind.specs]["Worker"]
    assert (worker["replicas"], worker["restartPolicy"]) == (1, kind.restart)
    ports = worker["template"]["spec"]["containers"][0]["ports"]
    assert ports == [{"name": kind.port_name, "containerPort": kind.port}]
    assert found["spec"]["runPolicy"]["cleanPodPolicy"] == "None"
    assert defaulted(kind, found) == found


def test_a_type_that_is_spelled_twice_is_the_one_that_is_spelled_right() -> None:
    specs = {"WORKER": {"replicas": 5}, "Worker": {"replicas": 2}}
    found = defaulted(JAX, {"spec": {"jaxReplicaSpecs": specs}})
    assert found["spec"]["jaxReplicaSpecs"]["Worker"]["replicas"] == 2


@pytest.mark.parametrize(
    ("policy", "bounds"), [({}, (2, 2)), ({"minReplicas": 1}, (1, 1)), ({"maxReplicas": 4}, (4, 4))]
)
def test_bounds_of_elastic_workers_follow_from_each_other(policy: dict[str, int], bounds: tuple[int, int]) -> None:
    found = defaulted(PYTORCH, job(PYTORCH, {"Worker": 2}, elasticPolicy=policy))["spec"]["elasticPolicy"]
    assert (found["minReplicas"], found["maxReplicas"]) == bounds
