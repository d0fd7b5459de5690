from __future__ import annotations

from typing import Any

from tests.unit.operator.objects import condition, counts
from trainplane.api import document
from trainplane.api.trainjob import TrainJobStatus
from trainplane.lifecycle import events


def saying(*conditions: dict[str, Any], jobs: tuple[dict[str, Any], ...] = ()) -> TrainJobStatus:
    return document.view({"conditions": list(conditions), "jobsStatus": list(jobs)}, TrainJobStatus)


def told(before: TrainJobStatus, after: TrainJobStatus) -> list[str]:
    return [news.reason for news in events.of_change(before, after)]


def test_nothing_new_nothing_told() -> None:
    same = saying(condition("Suspended"), condition("Failed"), jobs=(counts(ready=1),))
    assert told(same, same) == []


def test_the_turns_of_suspension() -> None:
    held, lifted = saying(condition("Suspended")), saying(condition("Suspended", status="False"))
    assert told(saying(), held) == ["Suspended"]
    assert told(held, lifted) == ["Resumed"]
    assert told(lifted, held) == ["Suspended"]
    assert told(saying(), lifted) == []
    assert told(held, saying(jobs=(counts(ready=1),))) == ["Resumed", "Started"]
    assert told(lifted, saying(jobs=(counts(ready=1),))) == ["Started"]


def test_a_start_is_the_first_ready_job() -> None:
    assert told(saying(), saying(jobs=(counts(active=1),))) == []
    assert told(saying(), saying(jobs=(counts(ready=1),))) == ["Started"]
    assert told(saying(jobs=(counts(ready=1),)), saying(jobs=(counts(ready=2),))) == []
    assert told(saying(jobs=(counts(ready=1),)), saying(jobs=(counts(),))) == []


def test_so_short_that_nobody_saw_it_ready() -> None:
    assert told(saying(), saying(condition("Complete"), jobs=(counts(succeeded=1),))) == ["Started", "Completed"]


def test_an_end_comes_with_its_cause() -> None:
    (news,) = events.of_change(saying(), saying(condition("Failed", "FailedJobs", "one job failed")))
    assert news == ("Warning", "Failed", "FailedJobs: one job failed")
    (news,) = events.of_change(saying(), saying(condition("Complete", "AllJobsCompleted", "")))
    assert news == ("Normal", "Completed", "AllJobsCompleted")


def test_words_are_countable_and_errors_are_told() -> None:
    assert events.created("job", 1, suspended=False).message == "created JobSet job for 1 pod"
    failed = events.creation_failed(ValueError("why"))
    assert (failed.type, failed.reason) == ("Warning", "TrainJobResourcesCreationFailed")
    assert failed.message.endswith("why")
