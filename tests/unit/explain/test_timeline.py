"""The timeline of a TrainJob, from what is known of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.client.reading.documents import at, condition, ended, event, pod, train_job
from trainplane.cli.explain import show_timeline, span
from trainplane.cli.output import Output
from trainplane.explain.explain import explain
from trainplane.explain.facts import Facts
from trainplane.explain.timeline import kept_timeline, spans, timeline_of

QUEUE = {"labels": {"kueue.x-k8s.io/queue-name": "team"}}
NOW = datetime(2026, 11, 15, 5, 30, tzinfo=UTC)


def ready(index: int = 0, second: int = 5, **others: Any) -> Any:
    kinds = (("PodScheduled", second), ("Ready", second + 9))
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": at(when)} for kind, when in kinds]
    return pod(index, made=at(second + 7), status={"conditions": conditions}, **others)


def told(*facts: Any, **others: Any) -> list[tuple[str, str]]:
    return [(one.stage, f"{one.time:%M:%S}") for one in timeline_of(Facts(*facts, **others))]


def test_from_pods_alone() -> None:
    assert told(train_job(nodes=2), [ready(0), ready(1, 20)]) == [
        ("Scheduled", "00:20"), ("Pulled", "00:27"), ("Running", "00:29"),
    ]  # fmt: skip


def test_image_of_a_container_that_could_not_start_has_no_time() -> None:
    broken = ready(state={"terminated": {"exitCode": 128, "reason": "StartError", "startedAt": "1970-01-01T00:00:00Z"}})
    assert "Pulled" not in dict(told(train_job(), [broken]))


def test_what_the_status_keeps_counts_before_what_pods_say() -> None:
    kept = [{"stage": "Running", "time": at(2)}, {"stage": "FirstStep", "time": at(3)}]
    assert told(train_job(status={"timeline": kept}), [ready()]) == [
        ("Scheduled", "00:05"), ("Pulled", "00:12"), ("Running", "00:02"), ("FirstStep", "00:03"),
    ]  # fmt: skip


def test_the_queue_is_told_by_the_workload() -> None:
    workload = {"status": {"conditions": [{"type": "Admitted", "status": "True", "lastTransitionTime": at(40)}]}}
    job = train_job(metadata=QUEUE)
    assert told(job, workload=workload) == [("Queued", "00:00"), ("Admitted", "00:40")]
    assert told(job, workload={"status": {"conditions": "x"}}) == [("Queued", "00:00")]


def test_the_slowest_pull_is_named() -> None:
    one = ready()
    names = [
        ('Successfully pulled image "a" in 350ms (350ms including waiting). Image size: 3 bytes.'),
        ('Successfully pulled image "b" in 1m2.5s (2m0s including waiting). Image size: 3 bytes.'),
        ('Container image "c" already present on machine'),
    ]
    news = [event("Pod", one["metadata"]["name"], "Pulled", text) for text in names]
    news.append(event("Pod", "another", "Pulled", "pulled image in 9m1s"))
    pulled = next(
        entry for entry in timeline_of(Facts(train_job(nodes=1), [one], events=news)) if entry.stage == "Pulled"
    )
    assert pulled.reason == "the slowest image took 1m2.5s"


def test_an_attempt_and_an_end() -> None:
    again = {"jobset.sigs.k8s.io/restart-attempt": "2"}
    former = pod(0, "Failed", state=ended(1), suffix="older")
    job = train_job(conditions=[condition("Failed", "DeadlineExceeded")])
    found = timeline_of(Facts(job, [former, ready(labels=again)]))
    assert [(one.stage, one.number, one.reason) for one in found if one.stage in {"Restarted", "Failed"}] == [
        ("Restarted", 2, ""),
        ("Failed", 0, "DeadlineExceeded"),
    ]


def test_a_dispatched_job_was_queued_on_the_hub_and_ran_on_its_worker() -> None:
    job = train_job(metadata=QUEUE, spec={"managedBy": "kueue.x-k8s.io/multikueue"})
    there = [
        {"stage": stage, "time": at(second)} for stage, second in (("Queued", 30), ("Admitted", 31), ("Running", 45))
    ]
    workload = {"status": {"conditions": [{"type": "Admitted", "status": "True", "lastTransitionTime": at(29)}]}}
    view = {"status": {"timeline": there}}
    assert told(job, view=view, workload=workload) == [
        ("Queued", "00:00"), ("Admitted", "00:29"), ("Running", "00:45"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param("x", id="a text"),
        pytest.param({"stage": "Running"}, id="without a time"),
        pytest.param({"stage": "Running", "time": "yesterday"}, id="a time that is none"),
        pytest.param({"stage": "Running", "time": "2026-01-01T00:00:00"}, id="a time without a zone"),
        pytest.param({"stage": "Running", "time": "9999-12-31T23:59:59-12:00"}, id="the end of all times"),
        pytest.param({"stage": "Hacked", "time": at(1)}, id="a stage that there is not"),
        pytest.param({"stage": "Restarted", "time": at(1), "number": 2**40}, id="a number too large"),
        pytest.param({"stage": "Restarted", "time": at(1), "number": -1}, id="a number too small"),
    ],
)
def test_an_entry_that_is_none_is_left_out(entry: Any) -> None:
    good = {"stage": "Running", "time": at(9)}
    assert [one.stage for one in kept_timeline({"status": {"timeline": [entry, good]}})] == ["Running"]


def test_what_a_worker_writes_is_bounded_and_cleaned() -> None:
    reason = "\x1b[31mtoken=hf_abcdefghijklmnop\x07 " + "x" * 2_000_000
    entries = [{"stage": "Restarted", "time": at(1), "number": number, "reason": reason} for number in range(500)]
    kept = kept_timeline({"status": {"timeline": entries}})
    assert len(kept) <= 16
    for one in kept:
        assert len(one.reason) <= 128
        assert one.reason.isprintable()
        assert "hf_abc" not in one.reason


def test_time_in_a_queue_is_no_slow_start() -> None:
    admitted = [{"stage": "Queued", "time": at(0)}, {"stage": "Admitted", "time": at(30, 29)}]
    job = train_job(metadata=QUEUE, status={"timeline": admitted})
    late = pod(0, "Pending", spec={"nodeName": "a"})
    assert explain(Facts(job, [late]), NOW).cause == ""
    slow = explain(Facts(job, [late]), NOW + timedelta(minutes=5))
    assert (slow.cause, "Admitted was 5 min ago" in slow.summary) == ("SlowStart", True)


def test_it_is_drawn_with_how_long_each_stage_took() -> None:
    lines: list[str] = []

    class Stream:
        def write(self, text: str) -> None:
            lines.append(text)

        def isatty(self) -> bool:
            return False

    kept = [
        {"stage": "Queued", "time": at(0), "reason": "queue team"},
        {"stage": "Admitted", "time": at(0, 20)},
        {"stage": "Restarted", "time": at(0, 25), "number": 3, "reason": "NodeLost in node 1"},
    ]
    job = train_job(status={"timeline": kept})
    show_timeline(spans(kept_timeline(job), job), Output(Stream(), width=120))  # type: ignore[arg-type] # enough of one
    drawn = [" ".join(line.replace("▇", "").split()) for line in lines[1:]]
    assert drawn == [
        "Queued 2026-11-15 05:00:00Z +0s queue team",
        "Admitted 2026-11-15 05:20:00Z +20m00s",
        "Restarted 3 2026-11-15 05:25:00Z +5m00s NodeLost in node 1",
    ]
    assert [line.count("▇") for line in lines[1:]] == [0, 20, 5]


def test_how_long_is_said_as_people_say_it() -> None:
    assert [span(timedelta(seconds=one)) for one in (0, 119, 120, 7199, 7200)] == [
        "+0s", "+119s", "+2m00s", "+119m59s", "+2h00m",
    ]  # fmt: skip


@pytest.mark.parametrize(("asked", "ran"), [({}, True), ({"readinessProbe": {"exec": {}}}, False)])
def test_a_pod_that_broke_was_running_unless_it_had_to_answer_first(asked: Any, ran: bool) -> None:
    state = ended(1)
    state["terminated"]["startedAt"] = at(12)
    broken = pod(0, "Failed", state=state)
    broken["spec"]["containers"][0] |= asked
    stages = [stage for stage, _ in told(train_job(nodes=1), [broken])]
    assert stages == ["Pulled", *["Running"] * ran]
