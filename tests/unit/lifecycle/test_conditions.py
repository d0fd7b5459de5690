"""The same questions of structs and of trees."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.unit.operator.objects import condition, train_job
from trainplane.api import document
from trainplane.api.meta import Condition
from trainplane.api.trainjob import TrainJob
from trainplane.lifecycle.conditions import conditions_of, finish, is_finished, is_stopped
from trainplane.lifecycle.status import JobSetStatus, fail, observe

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("conditions", "end"),
    [
        ([], None),
        ([condition("Suspended")], None),
        ([condition("Complete", status="False"), condition("Failed", status="Unknown")], None),
        ([condition("Suspended"), condition("Complete")], "Complete"),
        ([condition("Failed")], "Failed"),
        ([condition("Failed"), condition("Complete")], "Complete"),
    ],
)
def test_an_end_is_complete_or_failed_and_true(conditions: list[dict[str, Any]], end: str | None) -> None:
    told = finish(conditions_of({"status": {"conditions": conditions}}))
    assert (told and told["type"]) == end
    assert is_finished(conditions) is (end is not None)
    typed = msgspec.convert(conditions, list[Condition])
    found = finish(typed)
    assert (found and found.type) == end
    assert is_finished(typed) is (end is not None)


@pytest.mark.parametrize("status", [None, "x", {}, {"conditions": None}, {"conditions": [None, 1, {}, {"type": 1}]}])
def test_a_document_of_any_form_has_conditions_or_none(status: Any) -> None:
    assert not is_finished(conditions_of({"status": status}))


def test_a_trainjob_that_is_over_stays_so() -> None:
    job = document.view(train_job(), TrainJob)
    over = fail(job.status, "Why", "because", NOW)
    assert is_finished(over.conditions)
    later = document.view(train_job(suspend=True), TrainJob)
    ended = JobSetStatus(conditions=[Condition("Completed", "True")])
    assert observe(msgspec.structs.replace(later, status=over), ended, NOW).conditions == over.conditions


def test_stopped_is_failed_by_us() -> None:
    def failed(reason: str, status: str = "True") -> list[Condition]:
        return [Condition("Failed", status, reason)]

    assert is_stopped(failed("DeadlineExceeded"))
    assert not is_stopped(failed("DeadlineExceeded", "False"))
    assert not is_stopped(failed("FailedJobs"))
    assert not is_stopped([])
