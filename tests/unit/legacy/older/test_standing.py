"""How a TrainJob of the older shape is doing follows from today's, and stays when that is gone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from trainplane.api.legacy.v2alpha1 import RuntimeStatus, TrainJobStatus
from trainplane.legacy.older.standing import in_sync, is_over, out_of_sync, runtime_status, train_job_status

Tree = dict[str, Any]

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)
TIME = "2026-01-01T00:05:00Z"
IN_SYNC = in_sync(1)


def condition(kind: str, status: str = "True") -> Tree:
    return {"type": kind, "status": status, "reason": "Because", "message": "so", "lastTransitionTime": TIME}


def counts(**numbers: int) -> Tree:
    return {"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0, **numbers}


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({}, ""),
        ({"phase": "Pending"}, ""),
        ({"phase": "Queued", "conditions": [condition("Suspended")]}, ""),
        ({"phase": "Suspended", "jobsStatus": [counts(ready=1)]}, ""),
        ({"phase": "Running"}, "RUNNING"),
        ({"phase": "Restarting"}, "RUNNING"),
        ({"jobsStatus": [counts(ready=1)]}, "RUNNING"),
        ({"phase": "Succeeded", "conditions": [condition("Complete")]}, "SUCCESS"),
        ({"conditions": [condition("Complete")]}, "SUCCESS"),
        ({"conditions": [condition("Failed")]}, "FAILED"),
        ({"phase": "Running", "conditions": [condition("Failed", "False")]}, "RUNNING"),
    ],
)
def test_the_state_is_one_of_three_words_or_none(status: Tree, state: str) -> None:
    after = train_job_status(TrainJobStatus(), {"status": status}, IN_SYNC, NOW)
    assert after.state == state
    assert is_over(after) is (state in {"SUCCESS", "FAILED"})


def test_conditions_counts_and_metrics_are_todays() -> None:
    progress = {"progressPercentage": 40, "metrics": [{"name": "loss", "value": "0.5"}], "lastUpdatedTime": TIME}
    status = {"conditions": [condition("Complete")], "jobsStatus": [counts(succeeded=1)], "trainerStatus": progress}
    after = train_job_status(TrainJobStatus(), {"status": status}, IN_SYNC, NOW)
    assert [one.type for one in after.conditions] == ["Complete", "InSync"]
    assert after.jobs_status[0].succeeded == 1
    assert [(one.name, one.value) for one in after.metrics] == [("loss", "0.5")]
    assert after.progress_percentage == 40


def test_what_is_over_stays_so_without_todays_job() -> None:
    over = train_job_status(TrainJobStatus(), {"status": {"conditions": [condition("Complete")]}}, IN_SYNC, NOW)
    assert train_job_status(over, None, IN_SYNC, LATER) == over


def test_a_status_that_cannot_be_read_changes_nothing() -> None:
    before = train_job_status(TrainJobStatus(), {"status": {"phase": "Running"}}, IN_SYNC, NOW)
    assert train_job_status(before, {"status": {"conditions": "many"}}, IN_SYNC, LATER) == before


def test_since_when_it_is_in_sync_is_kept_until_that_changes() -> None:
    first = train_job_status(TrainJobStatus(), {}, IN_SYNC, NOW)
    second = train_job_status(first, {"status": {"phase": "Running"}}, in_sync(2), LATER)
    third = train_job_status(second, None, out_of_sync("Refused", "no", 2), LATER)
    assert [one.conditions[-1].last_transition_time for one in (first, second, third)] == [NOW, NOW, LATER]
    assert third.conditions[-1].status == "False"
    assert len(third.conditions) == 1


def test_a_runtime_says_whether_it_is_in_sync() -> None:
    status = runtime_status(RuntimeStatus(), out_of_sync("NameTaken", "no", 1), NOW)
    status = runtime_status(status, IN_SYNC, LATER)
    assert [(one.type, one.status) for one in status.conditions] == [("InSync", "True")]
