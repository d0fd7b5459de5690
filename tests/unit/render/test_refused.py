"""What the API server would refuse in a Job is told of the field that said it. `refused_cases` has the cases."""

from __future__ import annotations

from typing import Any

import pytest

from tests.refused_cases import ALLOWED, REFUSED, Case
from tests.unit.render.objects import PIPELINE, job, node, patch, replicated_job, runtime, torch
from trainplane.api.document import read
from trainplane.api.runtime import ClusterTrainingRuntime
from trainplane.api.trainjob import TrainJob
from trainplane.render.refused import faults

NO_POD = ("semantics", 5, "pods that Kubernetes refuses passed admission")


def errors(case: Case) -> list[tuple[str, str]]:
    have = read(case.runtime(), ClusterTrainingRuntime)
    verdict = PIPELINE.validate(read(case.job(), TrainJob), None, have)
    return [(finding.path, finding.problem) for finding in verdict.errors]


@pytest.mark.finding(*NO_POD)
@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_what_cannot_be_is_refused_with_the_field(case: Case) -> None:
    found = errors(case)
    assert len(found) == 1, found
    assert found[0][0].endswith(case.place)


@pytest.mark.parametrize("case", ALLOWED, ids=str)
def test_what_can_be_is_allowed(case: Case) -> None:
    assert errors(case) == []


def test_a_fault_of_the_runtimes_is_told_of_the_runtime() -> None:
    odd = node(volumeMounts=[{"name": "ghost", "mountPath": "/x"}])
    (finding,) = PIPELINE.validate(job(), None, torch(odd)).errors
    assert finding.path == "spec.runtimeRef"
    path = "replicatedJobs[name=node].template.spec.template.spec.containers[name=node].volumeMounts[name=ghost].name"
    assert finding.problem == f"the runtime's spec.template.spec.{path}: the pods of job node have no volume ghost"


def ruled(*rules: dict[str, Any]) -> list[str]:
    """Return what is told of a runtime with these rules."""
    tree = {"spec": {"failurePolicy": {"rules": list(rules)}, "replicatedJobs": []}}
    return [f"{'.'.join(map(str, path[3:]))}: {problem}" for path, problem in faults(tree)]


def test_rules_that_jobset_refuses_are_told() -> None:
    good = {"name": "a_b,c:d", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy", "FailedIndexes"]}
    assert ruled(good, {"action": "RestartJobSet"}, {"action": "FailJobSet"}, {"name": "x" * 128}) == []
    (told,) = ruled(good, {"onJobFailureReasons": ["BackoffLimitExceeded", "OOMKilled"]})
    assert told.startswith("1.onJobFailureReasons.1: no Job fails for the reason 'OOMKilled': write BackoffLimitExceed")
    for name in ("1st", "a-b", "a:", "x" * 129, "a\n"):
        (told,) = ruled({"name": name})
        assert told.startswith(f"0.name: {name!r} is no name: ")
    assert ruled(good, good) == ["1.name: a_b,c:d is there twice"]
    assert ruled({}, {"name": "failurePolicyRule0"}) == ["1.name: failurePolicyRule0 is there twice"]


def test_a_volume_that_the_trainjob_brings_is_there() -> None:
    needs = torch(node(volumeMounts=[{"name": "data", "mountPath": "/data"}]))
    assert not PIPELINE.validate(job(), None, needs).allowed
    assert PIPELINE.validate(job(patch(volumes=[{"name": "data", "emptyDir": {}}])), None, needs).allowed


def test_an_update_is_judged_for_what_it_changes() -> None:
    wrong: dict[str, Any] = {"metadata": {"labels": {"a": "not a value"}}}
    stored = job(patch(**wrong))
    assert not PIPELINE.validate(stored, None, runtime()).allowed
    more = job(patch(**wrong), patch("kueue.x-k8s.io/manager", nodeSelector={"a": "b"}))
    assert PIPELINE.validate(more, stored, runtime()).allowed
    worse = job(patch(metadata={"labels": {"a": "not a value", "b": "nor this"}}))
    assert len(PIPELINE.validate(worse, stored, runtime()).errors) == 1


@pytest.mark.finding(*NO_POD)
def test_a_policy_that_names_no_job() -> None:
    have = runtime(replicated_job("node", "trainer"))
    have = have.put("spec", "template", "spec", "successPolicy", value={"targetReplicatedJobs": ["ghost"]})
    (finding,) = PIPELINE.validate(job(), None, have).errors
    assert finding.path == "spec.runtimeRef"
    assert "successPolicy.targetReplicatedJobs[0]: there is no job ghost" in finding.problem


@pytest.mark.parametrize(
    ("coordinator", "told"),
    [
        ({"replicatedJob": "node"}, ""),
        ({"replicatedJob": "node", "podIndex": 0, "jobIndex": 0}, ""),
        ({"replicatedJob": "ghost"}, "coordinator.replicatedJob: there is no job ghost"),
        ({"replicatedJob": "node", "jobIndex": 1}, "coordinator.jobIndex: there is no such job of node: write 0 to 0"),
        ({"replicatedJob": "node", "podIndex": 7}, "coordinator.podIndex: there is no such pod of node"),
        ({"replicatedJob": "node", "podIndex": -1}, "coordinator.podIndex: there is no such pod of node"),
    ],
)
def test_a_coordinator_that_is_no_pod(coordinator: dict[str, Any], told: str) -> None:
    have = runtime(replicated_job("node", "trainer"))
    have = have.put("spec", "template", "spec", "coordinator", value=coordinator)
    found = [finding.problem for finding in PIPELINE.validate(job(), None, have).errors]
    assert len(found) == bool(told)
    assert told in "".join(found)
