"""`scale_job` loses no TrainJob, whatever ends it halfway, and trains no finished one again (hub-and-sdk 3)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.client.kubernetes.stage import Stage
from tests.unit.client.reading.documents import NAMESPACE, condition, train_job
from trainplane.client.backends.kubernetes import replacing
from trainplane.client.errors import RefusedError, TrainplaneError
from trainplane.kube.clock import SystemClock
from trainplane.kube.errors import InternalServerError
from trainplane.kube.resource import Key
from trainplane.kube.testing.server import FakeServer
from trainplane.resources import TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.finding("hub-and-sdk", 3, "scale_job could lose the TrainJob")
HERE = Key(NAMESPACE, "llm")
CODE = ["<my code>"]


class QuickClock(SystemClock):
    """Time that is not waited for."""

    async def sleep(self, seconds: float) -> None:  # noqa: ARG002 none of them
        await asyncio.sleep(0)


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with FakeServer() as server, server.client() as client:
        stage = Stage(server, client, QuickClock())
        server.put(TRAIN_JOBS, a_job())
        yield stage


def a_job(*conditions: Any, finalizers: tuple[str, ...] = ()) -> dict[str, Any]:
    job = train_job("llm", conditions=conditions)
    job["metadata"] |= {"labels": {"kueue.x-k8s.io/queue-name": "q", "team": "x"}, "finalizers": list(finalizers)}
    job["spec"]["trainer"] = {"numNodes": 2, "args": CODE}
    return job


def jobs(stage: Stage) -> dict[Key, Any]:
    return dict(stage.server.objects(TRAIN_JOBS))


def assert_whole(stage: Stage, nodes: int) -> None:
    """See that there is the one TrainJob, as its user wrote it."""
    (found,) = jobs(stage).items()
    assert found[0] == HERE
    assert found[1]["spec"]["trainer"] == {"numNodes": nodes, "args": CODE}
    assert found[1]["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "q", "team": "x"}
    assert not found[1]["spec"].get("suspend")


def assert_kept(stage: Stage) -> None:
    """See that there is a copy with all of it, which runs nowhere."""
    copies = [job for key, job in jobs(stage).items() if key != HERE]
    assert [job["spec"]["trainer"]["args"] for job in copies] == [CODE]
    assert copies[0]["spec"]["suspend"] is True
    assert "kueue.x-k8s.io/queue-name" not in copies[0]["metadata"]["labels"]


async def test_all_is_as_before_but_the_number(stage: Stage) -> None:
    await stage.backend.scale_job("llm", 4)
    assert_whole(stage, 4)


async def test_ctrl_c_while_the_old_pods_end_loses_nothing(stage: Stage) -> None:
    stage.server.put(TRAIN_JOBS, a_job(finalizers=("foregroundDeletion",)))
    work = asyncio.create_task(stage.backend.scale_job("llm", 4))
    await stage.until(lambda: jobs(stage)[HERE]["metadata"].get("deletionTimestamp"))
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    assert_kept(stage)
    again = asyncio.create_task(stage.backend.scale_job("llm", 3))
    await asyncio.sleep(0.05)
    stage.server.put(TRAIN_JOBS, a_job())  # its pods are gone, and the finalizer with them
    stage.server.remove(TRAIN_JOBS, "llm", NAMESPACE)
    await again
    assert_whole(stage, 3)


async def test_what_is_gone_when_it_is_asked_for_again_comes_back(stage: Stage) -> None:
    stage.server.put(TRAIN_JOBS, a_job(finalizers=("foregroundDeletion",)))
    work = asyncio.create_task(stage.backend.scale_job("llm", 4))
    await stage.until(lambda: jobs(stage)[HERE]["metadata"].get("deletionTimestamp"))
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    stage.server.put(TRAIN_JOBS, a_job())
    stage.server.remove(TRAIN_JOBS, "llm", NAMESPACE)
    assert_kept(stage)
    await stage.backend.scale_job("llm", 3)
    assert_whole(stage, 3)


async def test_a_webhook_that_fails_meanwhile_loses_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    create = stage.backend._create
    fails = 100

    async def failing(job: Any) -> Any:
        nonlocal fails
        fails -= 1
        if fails >= 0:
            raise InternalServerError('failed calling webhook "validator.trainjob": connection refused')
        return await create(job)

    monkeypatch.setattr(stage.backend, "_create", failing)
    with pytest.raises(TrainplaneError, match="Nothing of it is lost: scale it again"):
        await stage.backend.scale_job("llm", 4)
    assert_kept(stage)
    fails = replacing.ATTEMPTS - 1
    await stage.backend.scale_job("llm", 4)
    assert_whole(stage, 4)


@pytest.mark.parametrize("step", range(1, 8))
async def test_ended_at_any_request_nothing_is_lost(stage: Stage, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the process were killed before its n-th request: another one scales it again."""
    request, count = type(stage.client.transport).request, 0

    async def until_killed(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        if count >= step:
            raise asyncio.CancelledError
        return await request(self, *args, **kwargs)

    with monkeypatch.context() as killing:
        killing.setattr(type(stage.client.transport), "request", until_killed)
        await asyncio.gather(stage.backend.scale_job("llm", 4), return_exceptions=True)
    assert any(job["spec"]["trainer"]["args"] == CODE for job in jobs(stage).values())
    await stage.backend.scale_job("llm", 5)
    assert_whole(stage, 5)


@pytest.mark.parametrize("kind", ["Complete", "Failed"])
async def test_what_is_over_is_not_trained_again(stage: Stage, kind: str) -> None:
    stage.server.put(TRAIN_JOBS, a_job(condition(kind)))
    before = jobs(stage)
    with pytest.raises(RefusedError, match="is over and cannot be scaled"):
        await stage.backend.scale_job("llm", 4)
    assert jobs(stage) == before


async def test_what_ends_at_the_last_moment_is_not_trained_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended after it was judged: what is deleted must be what was judged."""
    delete = stage.client.delete

    async def ends_first(*args: Any, **kwargs: Any) -> Any:
        if args[1] == "llm" and not (jobs(stage)[HERE].get("status") or {}).get("conditions"):
            stage.server.put(TRAIN_JOBS, a_job(condition("Complete")))
        return await delete(*args, **kwargs)

    monkeypatch.setattr(stage.client, "delete", ends_first)
    with pytest.raises(RefusedError, match="is over and cannot be scaled"):
        await stage.backend.scale_job("llm", 4)
    (found,) = jobs(stage)
    assert found == HERE
