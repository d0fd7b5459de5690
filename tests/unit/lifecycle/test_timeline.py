"""When a TrainJob reached each stage of its life."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from trainplane.api.meta import Condition, ObjectMeta
from trainplane.api.trainjob import FirstFault, Milestone, RuntimeRef, TrainJob, TrainJobSpec, TrainJobStatus
from trainplane.lifecycle import timeline
from trainplane.lifecycle.timeline import Attempt, PodTimes

MADE = datetime(2026, 1, 1, tzinfo=UTC)


def after(seconds: int) -> datetime:
    return MADE + timedelta(seconds=seconds)


def stamp(seconds: int) -> str:
    return after(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def job(*, queue: str = "", suspend: bool = False) -> TrainJob:
    labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    spec = TrainJobSpec(runtime_ref=RuntimeRef(name="torch"), suspend=suspend)
    return TrainJob(spec=spec, metadata=ObjectMeta(name="job", creation_timestamp=MADE, labels=labels))


def status(*conditions: Condition, fault: FirstFault | None = None) -> TrainJobStatus:
    return TrainJobStatus(conditions=list(conditions), first_fault=fault)


def condition(kind: str, seconds: int, value: str = "True", reason: str = "Because") -> Condition:
    return Condition(type=kind, status=value, reason=reason, last_transition_time=after(seconds))


def running(*starts: int) -> list[PodTimes]:
    return [PodTimes(stamp(0), stamp(at), stamp(at + 5), stamp(at + 7)) for at in starts]


def told(entries: list[Milestone]) -> list[tuple[str, int]]:
    return [(one.stage, int((one.time - MADE).total_seconds())) for one in entries]


def test_the_life_of_a_job_that_is_queued() -> None:
    kept = timeline.extend((), job(queue="team", suspend=True), status(condition("Suspended", 0)), Attempt(), after(1))
    assert told(kept) == [("Queued", 0)]
    assert kept[0].reason == "queue team"
    resumed = status(condition("Suspended", 60, "False"))
    kept = timeline.extend(kept, job(queue="team"), resumed, Attempt(wanted=2), after(61))
    kept = timeline.extend(kept, job(queue="team"), status(), Attempt(running(62, 65), wanted=2), after(80))
    done = status(condition("Complete", 300))
    kept = timeline.extend(kept, job(queue="team"), done, Attempt(), after(301))
    assert told(kept) == [
        ("Queued", 0), ("Admitted", 60), ("Scheduled", 65), ("Pulled", 70), ("Running", 72), ("Succeeded", 300),
    ]  # fmt: skip


def test_a_job_that_nobody_holds_begins_with_its_pods() -> None:
    assert told(timeline.extend((), job(), status(), Attempt(), after(1))) == []


@pytest.mark.parametrize(
    "pods",
    [
        pytest.param(running(1), id="one is missing"),
        pytest.param([*running(1), PodTimes(stamp(0))], id="one has no node"),
    ],
)
def test_a_stage_is_reached_when_all_pods_have(pods: list[PodTimes]) -> None:
    assert told(timeline.extend((), job(), status(), Attempt(pods, wanted=2), after(9))) == []


def test_a_container_that_waits_for_its_image_is_not_pulled() -> None:
    pods = [PodTimes(stamp(0), stamp(1), stamp(2), waits=True)]
    assert told(timeline.extend((), job(), status(), Attempt(pods, wanted=1), after(9))) == [("Scheduled", 1)]


def test_a_pod_that_was_done_before_anybody_looked_has_run() -> None:
    pods = [PodTimes(stamp(0), stamp(1), stamp(2), done=stamp(3))]
    kept = timeline.extend((), job(), status(), Attempt(pods, wanted=1), after(9))
    assert told(kept) == [("Scheduled", 1), ("Pulled", 2), ("Running", 2)]


def test_initializers_come_before() -> None:
    ready = PodTimes(stamp(0), stamp(1), stamp(2), done=stamp(40))
    kept = timeline.extend((), job(), status(), Attempt(running(41), [ready], wanted=1), after(90))
    assert told(kept)[0] == ("Initialized", 40)
    unready = PodTimes(stamp(0), stamp(1), stamp(2))
    assert told(timeline.extend((), job(), status(), Attempt((), [unready]), after(9))) == []


def test_what_was_told_once_stays() -> None:
    kept = timeline.extend((), job(), status(), Attempt(running(1), wanted=1), after(9))
    assert timeline.extend(kept, job(), status(), Attempt(running(100), wanted=1), after(110)) == kept


def test_restarts_tell_why_and_the_oldest_go() -> None:
    kept: list[Milestone] = []
    for restart in range(1, 30):
        fault = FirstFault(cause=f"Cause{restart}", step="node", index=1, restart=restart - 1)
        attempt = Attempt(restarts=restart, again=True)
        kept = timeline.extend(kept, job(), status(fault=fault), attempt, after(100 * restart))
    shown = [one for one in kept if one.stage == "Restarted"]
    assert (shown[-1].number, shown[-1].reason) == (29, "Cause29 in node 1")
    assert len(kept) == timeline.MOST_AGAIN
    again = timeline.extend(kept, job(), status(), Attempt(restarts=29, again=True), after(9999))
    assert again == kept


def test_a_fault_of_this_attempt_is_not_why_it_began() -> None:
    fault = FirstFault(cause="PythonError", restart=1)
    (kept,) = timeline.extend((), job(), status(fault=fault), Attempt(restarts=1), after(1))
    assert (kept.stage, kept.reason) == ("Restarted", "")


def test_stops_are_told_each_time() -> None:
    kept = timeline.extend((), job(queue="q"), status(condition("Suspended", 5, "False")), Attempt(), after(6))
    for stop in (100, 200):
        held = job(queue="q", suspend=True)
        kept = timeline.extend(kept, held, status(condition("Suspended", stop)), Attempt(), after(stop + 1))
        kept = timeline.extend(kept, held, status(condition("Suspended", stop)), Attempt(), after(stop + 2))
        resumed = status(condition("Suspended", stop + 50, "False"))
        kept = timeline.extend(kept, job(queue="q"), resumed, Attempt(), after(stop + 51))
        kept = timeline.extend(kept, job(queue="q"), status(), Attempt(), after(stop + 60))
    assert [(one.stage, one.number) for one in kept][2:] == [
        ("Suspended", 1), ("Resumed", 1), ("Suspended", 2), ("Resumed", 2),
    ]  # fmt: skip
    assert told(kept)[2:4] == [("Suspended", 100), ("Resumed", 150)]


def test_the_end_says_why() -> None:
    fault = FirstFault(cause="OutOfMemory", step="node", index=3)
    failed = status(condition("Failed", 9, reason="FailedJobs"), fault=fault)
    assert timeline.extend((), job(), failed, Attempt(), after(10))[-1].reason == "OutOfMemory in node 3"
    failed = status(condition("Failed", 9, reason="DeadlineExceeded"))
    assert timeline.extend((), job(), failed, Attempt(), after(10))[-1].reason == "DeadlineExceeded"


def test_clocks_that_differ_do_not_change_the_order() -> None:
    pods = [PodTimes(stamp(0), stamp(30), stamp(20), stamp(21))]  # the kubelet's clock is behind the scheduler's
    kept = timeline.extend((), job(queue="q"), status(), Attempt(pods, wanted=1), after(40))
    assert [one.stage for one in kept] == ["Queued", "Admitted", "Scheduled", "Pulled", "Running"]


def test_it_is_bounded_whatever_happens() -> None:
    long = FirstFault(cause="C" * 63, step="s" * 63, index=2**31 - 1)
    kept: list[Milestone] = []
    for at in range(20):
        held = job(queue="q" * 253, suspend=bool(at % 2))
        pods = Attempt(running(1), [PodTimes(done=stamp(1))], wanted=1, restarts=at, again=True)
        kept = timeline.extend(kept, held, status(fault=long), pods, after(at))
    kept = timeline.extend(kept, job(), status(condition("Failed", 99), fault=long), Attempt(), after(100))
    kept = timeline.merge(kept, timeline.milestone(timeline.FIRST_STEP, MADE))
    assert len(kept) == 16
    assert len(msgspec.json.encode(kept)) < 4096
    assert max(len(one.reason) for one in kept) <= timeline.MOST_REASON


def test_pods_are_asked_until_they_run_and_for_each_attempt_once() -> None:
    assert timeline.lacks((), 0)
    kept = timeline.extend((), job(), status(), Attempt(running(1), wanted=1), after(9))
    assert not timeline.lacks(kept, 0)
    assert timeline.lacks(kept, 1)
    kept = timeline.extend(kept, job(), status(), Attempt(running(20), wanted=1, restarts=1), after(30))
    assert not timeline.lacks(kept, 1)


def test_a_time_at_the_end_of_all_times_is_none() -> None:
    far: Any = datetime.fromisoformat("9999-12-31T23:59:59-12:00")
    assert list(timeline.milestone("Running", far)) == []
