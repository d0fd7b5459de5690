from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.unit.operator.objects import condition, train_job
from trainplane.api import document
from trainplane.api.trainjob import TrainJob
from trainplane.lifecycle import deadline
from trainplane.lifecycle.status import observe

NOW = datetime(2026, 1, 1, 0, 10, 0, 123456, tzinfo=UTC)


def view(saying: dict[str, Any] | None = None, **spec: Any) -> TrainJob:
    return document.view({**train_job(**spec), "status": saying or {}}, TrainJob)


def test_the_deadline_counts_from_creation() -> None:
    job = view(activeDeadlineSeconds=900)
    left = deadline.seconds_left(job, [], NOW)
    assert left is not None
    assert round(left, 3) == 299.877


def test_the_deadline_counts_from_the_last_resume() -> None:
    job = view({"conditions": [condition("Suspended", "Resumed", status="False")]}, activeDeadlineSeconds=400)
    left = deadline.seconds_left(job, job.status.conditions, NOW)
    assert left is not None
    assert round(left, 3) == 99.877  # from 00:05:00


def patched(*times: str, **spec: Any) -> TrainJob:
    patches = [{"manager": f"example.com/{number}", "time": time} for number, time in enumerate(times)]
    return view(activeDeadlineSeconds=400, runtimePatches=patches, **spec)


def test_an_admission_that_nobody_saw_grants_the_full_time() -> None:
    """The TrainJob waited in its queue for ten minutes, and no operator was there to see it."""
    left = deadline.seconds_left(patched("2025-12-31T00:00:00Z", "2026-01-01T00:09:50Z"), [], NOW)
    assert left is not None
    assert round(left, 3) == 389.877


def test_a_patch_of_before_the_last_resume_grants_nothing() -> None:
    resumed = [condition("Suspended", "Resumed", status="False")]
    job = patched("2026-01-01T00:01:00Z")
    left = deadline.seconds_left(job, view({"conditions": resumed}).status.conditions, NOW)
    assert left is not None
    assert round(left, 3) == 99.877


def test_a_clock_that_is_a_little_ahead_costs_nothing_and_one_of_next_year_gains_nothing() -> None:
    assert deadline.seconds_left(patched("2026-01-01T00:10:30Z"), [], NOW) == 400
    left = deadline.seconds_left(patched("2027-01-01T00:00:00Z"), [], NOW)
    assert left is not None
    assert left < 0


def test_no_deadline_for_the_suspended_the_finished_and_those_without() -> None:
    assert deadline.seconds_left(view(), [], NOW) is None
    assert deadline.seconds_left(view(suspend=True, activeDeadlineSeconds=1), [], NOW) is None
    done = view({"conditions": [condition("Complete")]}, activeDeadlineSeconds=1)
    assert deadline.seconds_left(done, done.status.conditions, NOW) is None
    unborn = document.view(train_job(meta={"creationTimestamp": None}, activeDeadlineSeconds=1), TrainJob)
    assert deadline.seconds_left(unborn, [], NOW) is None


def test_a_resume_that_is_not_written_yet_counts_from_now() -> None:
    held = view({"conditions": [condition("Suspended")]}, activeDeadlineSeconds=9)
    resumed = observe(held, None, NOW).conditions
    assert deadline.seconds_left(held, resumed, NOW + timedelta(seconds=2)) == 7


def test_the_message_says_how_long_it_was() -> None:
    assert "activeDeadlineSeconds, 9 s" in deadline.message(view(activeDeadlineSeconds=9))
