from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from tests.unit.operator.objects import condition, counts, train_job
from trainplane.api import document
from trainplane.api.trainjob import TrainJob
from trainplane.lifecycle.status import JobSetStatus, observe
from trainplane.operator import status

NOW = datetime(2026, 1, 1, 0, 10, 0, 123456, tzinfo=UTC)
STAMP = "2026-01-01T00:10:00Z"


def view(saying: dict[str, Any] | None = None, **spec: Any) -> TrainJob:
    tree = {**train_job(**spec), "status": saying or {}}
    tree["metadata"]["resourceVersion"] = "7"
    return document.view(tree, TrainJob)


def jobset(*jobs: dict[str, Any], conditions: tuple[dict[str, Any], ...] = ()) -> JobSetStatus:
    return msgspec.convert({"conditions": list(conditions), "replicatedJobsStatus": list(jobs)}, JobSetStatus)


def patch(job: TrainJob, seen: JobSetStatus | None = None) -> Any:
    return status.merge_patch(job, observe(job, seen, NOW))


def test_nothing_to_say_is_nothing_to_write() -> None:
    assert patch(view()) is None
    assert patch(view(), jobset()) is None
    said = {"conditions": [condition("Suspended", "Suspended")], "jobsStatus": [counts(active=1)]}
    assert patch(view(said, suspend=True), jobset(counts(active=1))) is None


def test_the_patch_names_what_changed_and_the_version_it_is_for() -> None:
    body = patch(view(), jobset(counts(ready=1)))
    assert body == {"metadata": {"resourceVersion": "7"}, "status": {"jobsStatus": [counts(ready=1)]}}


def test_suspended_is_true_since_now_with_whole_seconds() -> None:
    body = patch(view(suspend=True))
    (written,) = body["status"]["conditions"]
    assert (written["type"], written["status"], written["reason"]) == ("Suspended", "True", "Suspended")
    assert written["message"]
    assert written["lastTransitionTime"] == STAMP


def test_a_trainjob_never_suspended_has_no_suspended_condition() -> None:
    assert observe(view(), None, NOW).conditions == []


def test_resumed_keeps_its_place() -> None:
    said = {"conditions": [condition("Suspended", "Suspended"), condition("example.com/Other")]}
    body = patch(view(said))
    assert [(one["type"], one["status"]) for one in body["status"]["conditions"]] == [
        ("Suspended", "False"),
        ("example.com/Other", "True"),
    ]
    assert body["status"]["conditions"][0]["lastTransitionTime"] == STAMP


RESUMED = condition("Suspended", "Resumed", status="False")


def test_resumed_goes_when_pods_run() -> None:
    said: dict[str, Any] = {"conditions": [RESUMED], "jobsStatus": [counts(active=1)]}
    assert patch(view(said), jobset(counts(active=1))) is None
    assert patch(view(said), jobset(counts(active=1, ready=1)))["status"] == {
        "conditions": None,
        "jobsStatus": [counts(active=1, ready=1)],
    }
    said["conditions"].append(condition("example.com/Other"))
    body = patch(view(said), jobset(counts(active=1, ready=1)))
    assert [one["type"] for one in body["status"]["conditions"]] == ["example.com/Other"]


def test_resumed_goes_although_an_earlier_step_was_done_before() -> None:
    done = counts("dataset-initializer", succeeded=1)
    said = {"conditions": [RESUMED], "jobsStatus": [done, counts(active=1)]}
    assert patch(view(said), jobset(done, counts(active=1, ready=1)))["status"]["conditions"] is None


def test_resumed_and_running_at_once() -> None:
    said = {"conditions": [condition("Suspended", "Suspended")], "jobsStatus": [counts(suspended=1)]}
    assert observe(view(said), jobset(counts(active=1, ready=1)), NOW).conditions == []
    still_asked = observe(view(said, suspend=True), jobset(counts(active=1, ready=1)), NOW).conditions
    assert [(one.type, one.status) for one in still_asked] == [("Suspended", "True")]


def test_resumed_stays_where_a_deadline_counts_from_it() -> None:
    said = {"conditions": [RESUMED], "jobsStatus": [counts(active=1)]}
    after = observe(view(said, activeDeadlineSeconds=60), jobset(counts(active=1, ready=1)), NOW)
    assert [(one.type, one.status) for one in after.conditions] == [("Suspended", "False")]


def test_resumed_stays_where_it_was_found_running_or_is_over() -> None:
    said = {"conditions": [RESUMED], "jobsStatus": [counts(active=1, ready=1)]}
    assert patch(view(said), jobset(counts(active=1, ready=1))) is None  # a takeover writes nothing
    said["jobsStatus"] = [counts(active=1)]
    body = patch(view(said), jobset(counts(succeeded=1), conditions=(condition("Completed"),)))
    assert [one["type"] for one in body["status"]["conditions"]] == ["Suspended", "Complete"]


def test_the_wording_of_the_reference_is_left_as_it_is() -> None:
    said = {"conditions": [condition("Suspended", "Suspended", "TrainJob is suspended")]}
    assert patch(view(said, suspend=True)) is None
    said = {"conditions": [condition("Suspended", "Resumed", "TrainJob is resumed", status="False")]}
    assert patch(view(said)) is None


def test_the_end_is_copied_whole() -> None:
    theirs = {**condition("Completed", "AllJobsCompleted", "done"), "observedGeneration": 3}
    body = patch(view(), jobset(conditions=(theirs,)))
    assert body["status"]["conditions"] == [{**theirs, "type": "Complete"}]


def test_a_condition_that_is_not_true_is_not_copied() -> None:
    assert patch(view(), jobset(conditions=(condition("Completed", status="False"), condition("Suspended")))) is None


def test_one_end_only() -> None:
    body = patch(view(), jobset(conditions=(condition("Failed"), condition("Completed"))))
    assert [one["type"] for one in body["status"]["conditions"]] == ["Complete"]


def test_counts_with_nothing_left_empty_the_list_or_the_status() -> None:
    said: dict[str, Any] = {"jobsStatus": [counts(active=1)]}
    assert patch(view(said), jobset())["status"] is None
    said["conditions"] = [condition("Suspended", "Suspended")]
    assert patch(view(said, suspend=True), jobset())["status"] == {"jobsStatus": None}
    said = {"jobsStatus": [counts()], "trainerStatus": {"lastUpdatedTime": STAMP}}
    assert patch(view(said), jobset())["status"] == {"jobsStatus": None}


def test_empty_words_are_written_as_the_schema_requires() -> None:
    said = {"conditions": [{**condition("example.com/Odd"), "message": "", "reason": "Odd"}]}
    body = patch(view(said, suspend=True))
    assert body["status"]["conditions"][0] == {**condition("example.com/Odd"), "message": "", "reason": "Odd"}


def test_times_are_written_as_kubernetes_writes_them() -> None:
    theirs = {**condition("Completed"), "lastTransitionTime": "2026-01-02T14:00:00.5+02:00"}
    body = patch(view(), jobset(conditions=(theirs,)))
    assert body["status"]["conditions"][0]["lastTransitionTime"] == "2026-01-02T12:00:00Z"
