"""The status of local jobs, held against the operator's own rules and words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trainplane.api.document import view
from trainplane.api.meta import Condition
from trainplane.api.trainjob import JobStatus, TrainJob, TrainJobStatus
from trainplane.client.backends.local import events as local_events
from trainplane.client.backends.local import status
from trainplane.client.backends.local.moments import stamp
from trainplane.operator import deadline, events
from trainplane.operator import status as operators

NOW = datetime(2026, 11, 15, 5, tzinfo=UTC)


def job(*, suspend: bool = False, seconds: int = 0) -> dict[str, Any]:
    spec: dict[str, Any] = {"runtimeRef": {"name": "r"}, "suspend": suspend}
    if seconds:
        spec["activeDeadlineSeconds"] = seconds
    return {"metadata": {"name": "a", "creationTimestamp": stamp(NOW)}, "spec": spec}


def entry(ready: int = 0, succeeded: int = 0) -> dict[str, Any]:
    return {"name": "node", "ready": ready, "succeeded": succeeded, "failed": 0, "active": 0, "suspended": 0}


HELD = {"suspend": True}
WALKS = [
    [({}, 0), ({}, 1), ({}, 0)],
    [(HELD, 0), ({}, 0), ({}, 1)],
    [({}, 1), (HELD, 0), ({}, 0), ({}, 1), (HELD, 0)],
    [({**HELD, "seconds": 9}, 0), ({"seconds": 9}, 0), ({"seconds": 9}, 1)],
]


@pytest.mark.parametrize("walk", WALKS)
def test_conditions_and_news_are_the_operators(walk: list[tuple[dict[str, Any], int]]) -> None:
    ours: dict[str, Any] = {}
    theirs = TrainJobStatus()
    for fields, ready in walk:
        after = status.observe(job(**fields), ours, [entry(ready)], NOW)
        told = [(one.type, one.reason, one.message) for one in status.changes(ours, after)]
        seen = view({**job(**fields), "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}, TrainJob)
        seen = TrainJob(spec=seen.spec, metadata=seen.metadata, status=theirs)
        expected = _observe(seen, ready)
        assert [tuple(one) for one in events.of_change(theirs, expected)] == told
        assert [(one["type"], one["status"], one["reason"], one["message"]) for one in after["conditions"]] == [
            (one.type, one.status, one.reason, one.message) for one in expected.conditions
        ]
        ours, theirs = after, expected


def _observe(job: TrainJob, ready: int) -> TrainJobStatus:
    """Ask the operator, with the JobSet's counts as the last that it saw."""

    class Seen:
        class status:  # noqa: N801 as SeenJobSet has it
            conditions: tuple[Condition, ...] = ()
            replicated_jobs_status = (JobStatus("node", ready=ready),)

    return operators.observe(job, Seen, NOW)  # type: ignore[arg-type]


def test_words_of_ends_and_beginnings_are_the_operators() -> None:
    assert tuple(local_events.created("a", 2, suspended=True)) == tuple(events.created("a", 2, suspended=True))
    assert tuple(local_events.created("a", 1, suspended=False)) == tuple(events.created("a", 1, suspended=False))
    late = job(seconds=9)
    assert status.too_late(late)["message"] == deadline.message(view(late, TrainJob))
    failed = Condition("Failed", "True", "Why", "because")
    (expected,) = events.of_change(TrainJobStatus(), TrainJobStatus(conditions=[failed]))
    assert tuple(local_events.over(status.failed("Why", "because"))) == tuple(expected)


def test_a_job_that_is_over_stays_so() -> None:
    over = status.observe(job(), {}, [], NOW, status.failed("Why", "because"))
    assert status.is_finished(over)
    later = status.observe(job(suspend=True), over, [entry()], NOW, status.failed("Other", "no"))
    assert later["conditions"] == over["conditions"]


def test_time_counts_from_creation_or_from_the_last_resume() -> None:
    assert status.expires(job(), {}) is None
    assert status.expires(job(seconds=9), {}) == NOW + timedelta(seconds=9)
    assert status.expires(job(seconds=9, suspend=True), {}) is None
    later = NOW + timedelta(hours=1)
    held = status.observe(job(seconds=9, suspend=True), {}, [], NOW)
    resumed = status.observe(job(seconds=9), held, [], later)
    assert status.expires(job(seconds=9), resumed) == later + timedelta(seconds=9)
    over = status.observe(job(seconds=9), {}, [], NOW, status.too_late(job(seconds=9)))
    assert status.expires(job(seconds=9), over) is None


def test_restarts_are_counted_in_words() -> None:
    assert [local_events.restarted(n).message.split()[-2] for n in (1, 2, 3, 4, 11, 22)] == [
        "1st",
        "2nd",
        "3rd",
        "4th",
        "11th",
        "22nd",
    ]
