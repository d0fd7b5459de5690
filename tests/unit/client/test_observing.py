"""Observing: every part as it comes, one that cannot be read does not hide the others, and an end."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.client.backend import CREATED_AT, FakeBackend, a_job, failed
from tests.unit.client.reading.documents import pod, train_job
from trainplane.client.errors import ForbiddenError, NotFoundError, TrainplaneError, UnreachableError
from trainplane.client.observing import (
    MOST_LINES,
    MOST_METRICS,
    MOST_POINTS,
    Pace,
    joined,
    observe,
    thinned,
    with_report,
    worth_reading,
)
from trainplane.client.types.jobs import LogLine, Milestone, Progress, Step, TrainJob
from trainplane.explain.facts import Facts

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from trainplane.client.types.observation import Observation

FAST = Pace(lines=0.001, details=0.001, queue=0.0, quiet=0.0)


def minute(number: int) -> Any:
    return CREATED_AT + timedelta(minutes=number)


def reporting(percent: int, **metrics: str) -> TrainJob:
    return a_job("Running", progress=Progress(percent, None, metrics, minute(percent)))


async def every(backend: FakeBackend) -> list[Observation]:
    async with asyncio.timeout(60):
        return [seen async for seen in observe(backend, "job", FAST)]


async def test_the_last_observation_has_everything_and_the_watch_is_closed() -> None:
    done = a_job("Complete", progress=Progress(100, None, {"loss": "0.1"}, minute(100)))
    done.metrics_history = {"loss": ((minute(0), 3.0), (minute(50), 9.9))}
    done.timeline = (Milestone("Running", CREATED_AT),)
    backend = FakeBackend(reporting(50, loss="0.5"), done, lines=[LogLine("node-0", "epoch 3")])
    last = (await every(backend))[-1]
    assert last.job.status == "Complete"
    assert last.metrics == {"loss": ((minute(0), 3.0), (minute(50), 0.5), (minute(100), 0.1))}
    assert last.lines == {"node-0": "epoch 3"}
    assert last.timeline == done.timeline
    assert last.explanation is None
    assert backend.open_watches == 0


async def test_a_failure_is_explained() -> None:
    backend = FakeBackend(a_job("Running"), failed())
    backend.facts = Facts(train_job(conditions=[{"type": "Failed", "status": "True", "reason": "FailedJobs"}]), [])
    last = (await every(backend))[-1]
    assert last.explanation is not None
    assert last.explanation.state == "Failed"


async def test_a_job_that_is_deleted_ends_as_last_seen() -> None:
    last = (await every(FakeBackend(a_job("Running"), deleted=True)))[-1]
    assert last.is_deleted
    assert last.job.status == "Running"


async def test_a_job_that_is_held_says_why_while_it_is() -> None:
    backend = FakeBackend(a_job("Suspended"))
    backend.answer = {"summary": "It needs 8 gpu.", "position": 2, "pending": 5}
    async with asyncio.timeout(60), aclosing(observe(backend, "job", FAST)) as stream:
        async for seen in stream:
            if seen.queue is not None:
                assert (seen.queue.summary, seen.queue.position) == ("It needs 8 gpu.", 2)
                return
    pytest.fail("it never said why")


async def test_a_job_that_is_quiet_is_explained_only_if_something_is_wrong() -> None:
    backend = FakeBackend(a_job("Running"))
    backend.facts = Facts(train_job(nodes=1), [pod(0, "Running")])
    async with asyncio.timeout(60), aclosing(observe(backend, "job", FAST)) as stream:
        async for seen in stream:
            assert seen.explanation is None or seen.explanation.cause
            if ("collect", "job") in backend.calls:
                break


class Refusing(FakeBackend):
    """Refuses logs and details."""

    async def read_logs(
        self, name: str, steps: Sequence[str] | None, *, follow: bool, tail: int | None = None, **others: Any
    ) -> AsyncGenerator[LogLine, None]:
        if steps is None or not follow:
            raise ForbiddenError("you may not get pods/log")
        yield LogLine(name, f"{tail} {others}")

    async def get_job(self, name: str) -> TrainJob:
        raise UnreachableError(f"{name}: no answer")

    async def collect(self, name: str) -> Facts:
        raise UnreachableError(f"{name}: no answer")


async def test_parts_that_cannot_be_read_are_named_and_the_others_go_on() -> None:
    last = (await every(Refusing(reporting(50, loss="0.5"), failed())))[-1]
    assert last.unread == {
        "logs": "you may not get pods/log",
        "details": "job: no answer",
        "explanation": "job: no answer",
    }
    assert last.job.status == "Failed"
    assert last.metrics["loss"] == ((minute(50), 0.5),)


async def test_a_job_that_is_not_there_is_an_error() -> None:
    with pytest.raises(NotFoundError):
        await every(FakeBackend())


class Broken(FakeBackend):
    """Loses its watch."""

    async def watch_job(self, name: str) -> AsyncGenerator[TrainJob, None]:
        yield a_job("Running", name=name)
        raise ForbiddenError("you may not watch trainjobs any more")


async def test_a_watch_that_breaks_is_told() -> None:
    with pytest.raises(TrainplaneError, match="any more"):
        await every(Broken(a_job("Running")))


class Hesitant(FakeBackend):
    """Refuses its logs once."""

    refused = False

    async def read_logs(
        self, name: str, steps: Sequence[str] | None, *, follow: bool, tail: int | None = None, **others: Any
    ) -> AsyncGenerator[LogLine, None]:
        if not self.refused:
            self.refused = True
            raise UnreachableError("no answer")
        async for line in super().read_logs(name, steps, follow=follow, tail=tail, **others):
            yield line


async def test_a_part_that_can_be_read_again_is_no_longer_named() -> None:
    backend = Hesitant(a_job("Running"), lines=[LogLine("node-0", "epoch 3")])
    unread = []
    async with asyncio.timeout(60), aclosing(observe(backend, "job", Pace(0.001, 60, 60, 60))) as stream:
        async for seen in stream:
            unread.append(dict(seen.unread))
            if seen.lines:
                break
    assert {"logs": "no answer"} in unread
    assert unread[-1] == {}


def test_lines_are_asked_of_those_that_failed_then_started_again_then_the_first() -> None:
    steps = [Step(f"node-{n}", "Running", "") for n in range(300)]
    steps[200].status, steps[100].restarts, steps[0].status = "Failed", 1, "Pending"
    assert worth_reading(steps)[:3] == ["node-200", "node-100", "node-1"]
    assert len(worth_reading(steps)) == MOST_LINES


@pytest.mark.parametrize("value", ["NaN", "inf", "-Infinity", "many", "", "1e999", "\x1b[2J"])
def test_what_is_no_number_is_no_point(value: str) -> None:
    assert with_report({}, Progress(metrics={"loss": value}, updated=CREATED_AT)) == {}


def test_a_report_counts_once_and_never_before_the_last() -> None:
    report = Progress(metrics={"loss": "1"}, updated=minute(5))
    points = with_report({}, report)
    assert with_report(points, report) == points
    assert with_report(points, Progress(metrics={"loss": "2"}, updated=minute(4))) == points
    assert with_report(points, Progress(metrics={"loss": "2"})) == points


def test_metrics_and_points_are_bounded() -> None:
    points: dict[str, Any] = {}
    for number in range(3 * MOST_POINTS):
        points = with_report(points, Progress(metrics={"loss": str(number)}, updated=minute(number)))
    assert len(points["loss"]) <= MOST_POINTS
    assert points["loss"][0][1] == 0
    assert points["loss"][-1][1] == 3 * MOST_POINTS - 1
    for number in range(100):
        points = with_report(points, Progress(metrics={f"m{number}": "1"}, updated=minute(9999)))
    assert len(points) == MOST_METRICS
    assert len(joined({f"k{n}": points["m99"] for n in range(100)}, points)) == MOST_METRICS
    assert thinned(()) == ()
