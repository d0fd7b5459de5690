"""One word for where a TrainJob stands."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.unit.operator.objects import condition, counts, train_job
from trainplane.api import document
from trainplane.api.trainjob import FirstFault, TrainJob
from trainplane.lifecycle.phase import PodCounts, phase_of

QUEUE = {"kueue.x-k8s.io/queue-name": "team"}
DISPATCHED: dict[str, Any] = {"managedBy": "kueue.x-k8s.io/multikueue", "suspend": True}
FAULT = FirstFault(cause="PythonError", step="node")


def phase(
    status: dict[str, Any] | None = None,
    pods: PodCounts | None = None,
    *,
    labels: dict[str, str] | None = None,
    fault: FirstFault | None = None,
    restarts: int = 0,
    **spec: Any,
) -> tuple[str, str]:
    tree = {**train_job(**spec), "status": status or {}}
    tree["metadata"]["labels"] = labels or {}
    job = document.view(tree, TrainJob)
    return phase_of(job, msgspec.structs.replace(job.status, first_fault=fault), pods or PodCounts(), restarts=restarts)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (phase(), ("Pending", "")),
        (phase(suspend=True), ("Suspended", "SpecSuspend")),
        (phase(suspend=True, labels=QUEUE), ("Queued", "WaitsForQuota")),
        (phase(labels=QUEUE), ("Pending", "")),
        (phase(pods=PodCounts(wanted=2, wait="Unschedulable")), ("Pending", "Unschedulable")),
        (phase(pods=PodCounts(wanted=2, ready=1, running=1, wait="Unschedulable")), ("Running", "")),
        (phase({"jobsStatus": [counts(active=1)]}), ("Pending", "")),
        (phase({"jobsStatus": [counts(ready=1)]}), ("Running", "")),
        (phase(restarts=1), ("Restarting", "")),
        (phase(fault=FAULT, pods=PodCounts(wait="CrashLoopBackOff", again=True)), ("Restarting", "CrashLoopBackOff")),
        (phase(fault=FAULT, pods=PodCounts(again=True)), ("Restarting", "PythonError")),
        (phase(fault=FAULT), ("Pending", "PythonError")),
        (phase({"phase": "Running"}, fault=FAULT), ("Running", "PythonError")),
        (phase(fault=FAULT, pods=PodCounts(running=1)), ("Running", "")),
        (phase({"conditions": [condition("Complete", "AllJobsCompleted")]}, suspend=True), ("Succeeded", "")),
        (phase({"conditions": [condition("Failed", "FailedJobs")]}), ("Failed", "FailedJobs")),
        (phase({"conditions": [condition("Failed", "FailedJobs")]}, fault=FAULT), ("Failed", "PythonError")),
        (phase(**DISPATCHED), ("Suspended", "SpecSuspend")),
        (phase(managedBy="kueue.x-k8s.io/multikueue"), ("Pending", "")),
        (phase(labels=QUEUE, **DISPATCHED), ("Queued", "WaitsForQuota")),
        (phase({"jobsStatus": [counts(suspended=1)]}, labels=QUEUE, **DISPATCHED), ("Queued", "WaitsForQuota")),
        (phase({"jobsStatus": [counts(active=1)]}, labels=QUEUE, **DISPATCHED), ("Pending", "")),
        (phase({"jobsStatus": [counts(ready=1)]}, labels=QUEUE, **DISPATCHED), ("Running", "")),
    ],
)
def test_a_trainjob_has_one_phase(found: tuple[str, str], expected: tuple[str, str]) -> None:
    assert tuple(found) == expected


def test_ready_is_shown_of_how_many_there_are() -> None:
    assert PodCounts(wanted=4, ready=3).shown == "3/4"
    assert PodCounts().shown == ""
