from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.client.local.documents import job, plan
from trainplane.api.podindex import PodIndex
from trainplane.api.trainjob import JobStatus
from trainplane.client.backends.local.jobset_policy import PodState, Standing, decide

if TYPE_CHECKING:
    from trainplane.client.backends.local.pods import LocalJobSet


def state(job_name: str, number: int, phase: str, *, ready: bool = False) -> PodState:
    return PodState(PodIndex(job_name, 0, number), phase, ready)


def end(
    made: LocalJobSet, pods: list[PodState], failures: dict[tuple[str, int], int], restarts: int = 0
) -> tuple[str, str]:
    condition = decide(made, pods, failures, restarts).condition
    assert condition
    return condition.type, condition.reason


def test_all_pods_start_at_once() -> None:
    assert decide(plan(), [], {}, 0).start == (PodIndex("node", 0, 0), PodIndex("node", 0, 1))


def test_no_more_pods_than_may_run_at_once() -> None:
    made = plan(job(spec={"parallelism": 1, "completions": 3}))
    assert decide(made, [], {}, 0).start == (PodIndex("node", 0, 0),)
    assert decide(made, [state("node", 0, "Running")], {}, 0).start == ()
    assert decide(made, [state("node", 0, "Succeeded")], {}, 0).start == (PodIndex("node", 0, 1),)


@pytest.mark.parametrize(
    ("status", "phase", "ready", "starts"),
    [
        ("Complete", "Running", True, False),
        ("Complete", "Succeeded", False, True),
        ("Ready", "Running", False, False),
        ("Ready", "Running", True, True),
        ("Ready", "Succeeded", False, True),
    ],
)
def test_a_job_waits_for_another(status: str, phase: str, ready: bool, starts: bool) -> None:
    made = plan(job("data", 1), job("node", 1, dependsOn=[{"name": "data", "status": status}]))
    decision = decide(made, [state("data", 0, phase, ready=ready)], {}, 0)
    assert decision.start == ((PodIndex("node", 0, 0),) if starts else ())


def test_all_that_must_succeed_has() -> None:
    done = [state("node", 0, "Succeeded"), state("node", 1, "Succeeded")]
    assert end(plan(), done, {}) == ("Completed", "AllJobsCompleted")
    launched = plan(job("node"), job("launcher", 1), successPolicy={"targetReplicatedJobs": ["launcher"]})
    pods = [state("node", 0, "Running"), state("launcher", 0, "Succeeded")]
    assert end(launched, pods, {}) == ("Completed", "AllJobsCompleted")
    either = plan(job("a", 1), job("b", 1), successPolicy={"operator": "Any"})
    assert end(either, [state("a", 0, "Succeeded"), state("b", 0, "Running")], {}) == ("Completed", "AllJobsCompleted")


def test_a_job_that_failed_once_too_often_fails_all() -> None:
    retried = plan(job(spec={"backoffLimit": 1}))
    pods = [state("node", 0, "Failed"), state("node", 1, "Running")]
    assert decide(retried, pods, {("node", 0): 1}, 0).start == (PodIndex("node", 0, 0),)
    assert end(retried, pods, {("node", 0): 2}) == ("Failed", "FailedJobs")


def test_restarts_end_at_their_most() -> None:
    made = plan(failurePolicy={"maxRestarts": 1})
    failed = [state("node", 0, "Failed")]
    first = decide(made, failed, {("node", 0): 1}, 0)
    assert (first.restart, first.counts) == (True, True)
    assert end(made, failed, {("node", 0): 1}, 1) == ("Failed", "ReachedMaxRestarts")


@pytest.mark.parametrize(
    ("rule", "restart", "counts"),
    [
        ({"action": "FailJobSet"}, False, True),
        ({"action": "RestartJobSetAndIgnoreMaxRestarts"}, True, False),
        ({"action": "FailJobSet", "targetReplicatedJobs": ["other"]}, True, True),
        ({"action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}, True, True),
    ],
)
def test_rules_of_the_failure_policy(rule: dict[str, object], restart: bool, counts: bool) -> None:
    made = plan(failurePolicy={"maxRestarts": 5, "rules": [rule]})
    decision = decide(made, [state("node", 0, "Failed")], {("node", 0): 1}, 0)
    assert (decision.restart, decision.counts) == (restart, counts)
    assert bool(decision.condition) is not restart


def test_jobs_are_counted_as_jobset_counts_them() -> None:
    (node,) = plan().jobs
    running = [state("node", 0, "Running", ready=True), state("node", 1, "Running", ready=True)]
    assert Standing.of(node, running, {}).status() == JobStatus("node", ready=1, active=1)
    half = [state("node", 0, "Succeeded"), state("node", 1, "Running", ready=True)]
    assert Standing.of(node, half, {}).status().ready == 1
    done = [state("node", 0, "Succeeded"), state("node", 1, "Succeeded")]
    assert Standing.of(node, done, {}).status().succeeded == 1
    assert Standing.of(node, [], {}).status(suspended=True).suspended == 1
