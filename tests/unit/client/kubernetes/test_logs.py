"""Logs of fake pods whose kubelets restart, break and hand over, and whose API server goes away."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

import pytest

from tests.unit.client.kubernetes.stage import PATIENCE
from tests.unit.client.reading.documents import at, condition, ended, pod, train_job
from trainplane.client.errors import NotFoundError, RefusedError
from trainplane.kube.testing.faults import Refuse
from trainplane.resources import TRAIN_JOBS

if TYPE_CHECKING:
    from tests.unit.client.kubernetes.stage import Stage
    from trainplane.kube.testing.faults import Verb


async def test_what_there_is_merged_by_time(stage: Stage) -> None:
    stage.job()
    zero, one = stage.pod(0), stage.pod(1)
    stage.print(zero, "a")
    stage.print(one, "b")
    stage.print(zero, "c")
    assert await stage.read() == ["[node-0] a", "[node-1] b", "[node-0] c"]
    assert await stage.read("node-1") == ["[node-1] b"]
    stage.print(zero, "d")
    assert await stage.read(tail=1) == ["[node-1] b", "[node-0] d"]


async def test_before_anything_is_printed_there_is_nothing(stage: Stage) -> None:
    stage.job()
    assert await stage.read() == []
    stage.pod(0, "Pending")
    assert await stage.read() == []


async def test_logs_that_are_gone_are_said_to_be(stage: Stage) -> None:
    stage.job(condition("Complete"))
    with pytest.raises(NotFoundError, match="gone"):
        await stage.read()
    with pytest.raises(NotFoundError, match="no TrainJob b"):
        await anext(stage.backend.read_logs("b", None, follow=False))
    with pytest.raises(NotFoundError, match="no TrainJob b"):
        await anext(stage.backend.read_logs("b", None, follow=True))


@pytest.mark.parametrize("step", ["node-9", "node", "nobody", "ps-0"])
async def test_a_step_that_cannot_come(stage: Stage, step: str) -> None:
    stage.job(nodes=2)
    stage.pod(0)
    for follow in (False, True):
        with pytest.raises(NotFoundError, match=f"no step '{step}': there are node-0"):
            await anext(stage.backend.read_logs("a", [step], follow=follow))


async def test_a_former_run_and_a_former_pod_are_read_too(stage: Stage) -> None:
    stage.job()
    old = stage.pod(0, "Failed", state=ended(1), suffix="aaaaa")
    stage.print(old, "first pod")
    log = stage.pod(0, restarts=1, last=ended(3), made=at(30))
    stage.print(log, "first run")
    log.restart()
    stage.print(log, "second run")
    assert await stage.read() == ["[node-0] first pod", "[node-0] first run", "[node-0] second run"]


async def test_followed_from_before_the_pods_to_the_end(stage: Stage) -> None:
    stage.job()
    following = stage.follow()
    await stage.until(lambda: stage.server.asked("watch", "pods"))
    stage.pod(0, "Pending")
    logs = [stage.pod(0), stage.pod(1)]
    for number in range(20):
        stage.print(logs[number % 2], f"line {number}")
    await stage.until(lambda: len(stage.lines) == 20)
    stage.end(logs[0], 0)
    stage.end(logs[1], 1)
    assert not following.done()
    stage.complete()
    await asyncio.wait_for(following, PATIENCE)
    assert stage.shown == [f"[node-{number % 2}] line {number}" for number in range(20)]


async def test_a_pod_of_a_moment_is_not_missed(stage: Stage) -> None:
    """The TrainJob is over before anybody heard that its pod had begun."""
    stage.job()
    following = stage.follow()
    await stage.until(lambda: stage.server.asked("watch", "pods"))
    log = stage.pod(0, "Succeeded")
    stage.print(log, "quick")
    log.end()
    stage.complete()
    await asyncio.wait_for(following, PATIENCE)
    assert stage.shown == ["[node-0] quick"]


@pytest.mark.parametrize("how", ["mid-line", "reset", "clean"])
async def test_a_stream_that_breaks_goes_on_without_gap_or_repeat(
    stage: Stage, how: Literal["mid-line", "reset", "clean"]
) -> None:
    stage.job()
    log = stage.pod(0)
    following = stage.follow()
    for number in range(60):
        stage.print(log, f"line {number}")
        if number % 20 == 10:
            await stage.until(lambda number=number: len(stage.lines) == number + 1)  # type: ignore[misc] # a bound default
            opened = log.opened
            log.breach(how)
            await stage.until(lambda opened=opened: log.opened > opened)  # type: ignore[misc] # as above
    await stage.until(lambda: len(stage.lines) == 60)
    stage.end(log)
    stage.complete()
    await asyncio.wait_for(following, PATIENCE)
    assert [line.text for line in stage.lines] == [f"line {number}" for number in range(60)]


async def test_lines_that_a_kubelet_rotated_away_are_said_to_be_missing(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.job()
    log = stage.pod(0)
    following = stage.follow()
    stage.print(log, "first")
    await stage.until(lambda: stage.lines)
    await stage.server.stop()
    stage.print(log, *(f"line {number}" for number in range(100)))
    log.rotate(keep=1)
    await stage.server.start()
    await stage.until(lambda: len(stage.lines) > 1)
    stage.end(log)
    stage.complete()
    await asyncio.wait_for(following, PATIENCE)
    assert [line.text for line in stage.lines] == ["first", "line 99"]
    assert caplog.messages == [
        f"lines of pod {pod(0)['metadata']['name']} are missing: its log was rotated while it could not be read"
    ]


async def test_a_pod_that_goes_before_its_log_is_read_is_named(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.job()
    stage.print(stage.pod(0), "lost")
    stage.server.add_fault(Refuse(code=404, verb="get", plural="pods", times=None))
    assert await stage.read() == []
    assert caplog.messages == [
        f"lines of pod {pod(0)['metadata']['name']} are missing: it was deleted before its log was read"
    ]


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize(
    ("nodes", "named"),
    [
        (1, "node-0"),
        (3, "node-0, node-2"),
        (2_000_000_000, "node-0, node-2, node-3, node-4, node-5 and 1999999994 more"),
    ],
)
async def test_nodes_whose_pods_were_deleted_as_another_failed_are_named(
    stage: Stage, caplog: pytest.LogCaptureFixture, nodes: int, named: str, *, follow: bool
) -> None:
    stage.job(condition("Failed"), nodes=nodes)
    log = stage.pod(1)
    stage.print(log, "no more")
    stage.end(log, 1)
    lines = [line.text async for line in stage.backend.read_logs("a", None, follow=follow)]
    told = "without a pod there is none. Pods that still run when another fails are deleted"
    assert (lines, caplog.messages) == (["no more"], [f"no log of {named}: {told}"])


async def test_nodes_that_may_still_come_are_not_missed(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.job(nodes=2)
    stage.print(stage.pod(1), "first")
    assert await stage.read() == ["[node-1] first"]
    assert caplog.messages == []


async def test_an_api_server_that_goes_away_is_a_pause(stage: Stage) -> None:
    stage.job()
    logs = [stage.pod(0), stage.pod(1)]
    following = stage.follow()
    for number in range(10):
        stage.print(logs[number % 2], f"line {number}")
    await stage.until(lambda: len(stage.lines) == 10)
    await stage.server.stop()
    for number in range(10, 30):
        stage.print(logs[number % 2], f"line {number}")
    await stage.server.start()
    await stage.until(lambda: len(stage.lines) == 30)
    for index, log in enumerate(logs):
        stage.end(log, index)
    stage.complete()
    await asyncio.wait_for(following, PATIENCE)
    assert stage.shown == [f"[node-{number % 2}] line {number}" for number in range(30)]


async def test_restarts_and_replaced_pods_are_followed(stage: Stage) -> None:
    stage.job()
    log = stage.pod(0)
    following = stage.follow()
    stage.print(log, "first run")
    await stage.until(lambda: len(stage.lines) == 1)
    log.restart()
    stage.print(log, "second run")
    stage.pod(0, restarts=1, last=ended(3))
    await stage.until(lambda: len(stage.lines) == 2)
    stage.end(log, 0, 1, restarts=1)
    other = stage.pod(0, made=at(40), suffix="bbbbb")
    stage.print(other, "second pod")
    await stage.until(lambda: len(stage.lines) == 3)
    stage.end(other, 0, made=at(40), suffix="bbbbb")
    stage.complete()
    await asyncio.wait_for(following, PATIENCE)
    assert [line.text for line in stage.lines] == ["first run", "second run", "second pod"]


async def test_a_run_that_the_status_does_not_know_yet_is_not_read_twice(stage: Stage) -> None:
    stage.job()
    log = stage.pod(0)
    following = stage.follow()
    stage.print(log, "one", "two")
    await stage.until(lambda: len(stage.lines) == 2)
    log.restart()  # the status still says that the first run goes on
    stage.print(log, "three")
    await stage.until(lambda: log.opened >= 2)
    stage.pod(0, restarts=1, last=ended(1))
    await stage.until(lambda: len(stage.lines) == 3)
    stage.end(log, 0, restarts=1)
    stage.complete()
    await asyncio.wait_for(following, PATIENCE)
    assert [line.text for line in stage.lines] == ["one", "two", "three"]


async def test_a_stop_and_a_resume_are_followed(stage: Stage) -> None:
    stage.job()
    log = stage.pod(0)
    following = stage.follow()
    stage.print(log, "before")
    await stage.until(lambda: len(stage.lines) == 1)
    stage.job(spec={"suspend": True})
    log.end()
    stage.remove(0)
    stage.job(spec={"suspend": False})
    log = stage.pod(0, made=at(50), suffix="bbbbb")
    stage.print(log, "after")
    await stage.until(lambda: len(stage.lines) == 2)
    stage.end(log, 0, made=at(50), suffix="bbbbb")
    stage.complete()
    await asyncio.wait_for(following, PATIENCE)
    assert [line.text for line in stage.lines] == ["before", "after"]


async def test_a_deleted_job_ends_it(stage: Stage) -> None:
    stage.job()
    log = stage.pod(0)
    following = stage.follow()
    stage.print(log, "only")
    await stage.until(lambda: len(stage.lines) == 1)
    stage.server.remove(TRAIN_JOBS, "a", "team")
    log.end()
    stage.remove(0)
    await asyncio.wait_for(following, PATIENCE)
    assert stage.shown == ["[node-0] only"]


async def test_tail_begins_near_the_end(stage: Stage) -> None:
    stage.job()
    log = stage.pod(0)
    following = stage.follow("node-0", tail=2)
    await stage.until(lambda: stage.server.asked("get", "log") or log.opened)
    (asked, *_) = [request for request in stage.server.requests if request.path.endswith("/log")]
    assert asked.query["tailLines"] == "2"
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    await stage.until(lambda: log.readers == 0)


@pytest.mark.parametrize(("verb", "words"), [("watch", "cannot be watched"), ("get", "logs of TrainJob a")])
async def test_who_may_not_is_told_and_does_not_wait_for_ever(stage: Stage, verb: Verb, words: str) -> None:
    stage.job()
    stage.pod(0)
    stage.server.add_fault(Refuse(code=403, verb=verb, plural="pods", times=None))
    with pytest.raises(RefusedError, match=f"{words}.*refused on purpose"):
        await anext(stage.backend.read_logs("a", None, follow=True))


async def test_pods_of_an_earlier_job_of_the_name_are_left_out(stage: Stage) -> None:
    stage.server.put(TRAIN_JOBS, train_job())
    stage.print(stage.pod(0, made="2026-11-15T04:00:00Z", suffix="zzzzz"), "old")
    stage.print(stage.pod(0), "new")
    assert await stage.read() == ["[node-0] new"]
