"""Logs of real pods: all ranks, from the first line, through restarts and stops."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.shell import WAITING
from tests.sdk.kubernetes.stage import PATIENCE, count_late, runtime, texts, train_job
from trainplane.client.errors import NotFoundError

if TYPE_CHECKING:
    from tests.sdk.kubernetes.stage import Stage
    from trainplane.client.types.jobs import LogLine

COUNT = 200
COUNTING = f"for i in $(seq {COUNT}); do echo line $i; sleep 0.01; done; sleep 1"
FIRST = "touch /shared/again; seq -f 'first %g' 40; sleep 1; exit 3"
FAILS_ONCE = f"if [ ! -e /shared/again ]; then {FIRST}; fi; seq -f 'second %g' 5; {WAITING}"


async def test_both_ranks_from_before_their_pods_to_the_end(stage: Stage) -> None:
    stage.apply(runtime("shell", COUNTING))
    await stage.backend.submit(train_job("two", trainer={"numNodes": 2}))
    followed = await stage.logs("two", follow=True)
    expected = [f"line {number}" for number in range(1, COUNT + 1)]
    assert texts(followed, "node-0") == expected
    assert texts(followed, "node-1") == expected
    assert len(followed) == 2 * COUNT
    assert count_late(followed) == 0, "a line waits for earlier ones of a rank that prints"
    assert (await stage.wait("two", "Complete", "Failed")).status == "Complete"

    whole = await stage.logs("two")
    assert count_late(whole) == 0
    assert sorted(map(str, whole)) == sorted(map(str, followed))
    one = await stage.logs("two", steps=["node-1"])
    assert [line.text for line in one] == expected
    last = await stage.logs("two", tail=2)
    assert texts(last, "node-0") == texts(last, "node-1") == expected[-2:]
    with pytest.raises(NotFoundError, match="node-7"):
        await stage.logs("two", steps=["node-7"])


async def test_a_container_that_restarts_prints_on(stage: Stage) -> None:
    shared: dict[str, Any] = {
        "restartPolicy": "OnFailure",
        "volumes": [{"name": "shared", "emptyDir": {}}],
        "container": {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]},
    }
    stage.apply(runtime("shell", FAILS_ONCE, backoff=3, **shared))
    await stage.backend.submit(train_job("again"))
    expected = [*(f"first {number}" for number in range(1, 41)), *(f"second {number}" for number in range(1, 6))]
    found: list[LogLine] = []
    lines = stage.backend.read_logs("again", ["node-0"], follow=True)
    async with aclosing(lines):
        await stage.until(lines, found, len(expected))
        # The kubelet has the new container's log before it tells the API server of that container.
        await stage.shown("again", "restarted", lambda job: bool(job.steps) and job.steps[0].restarts > 0)
        job = await stage.shown("again", "running", lambda job: (job.status, job.cause) == ("Running", None))
        assert job.steps[0].restarts == 1
        assert [line.text for line in await stage.logs("again")] == expected
        await stage.tell("again")
        async with asyncio.timeout(PATIENCE):
            found += [line async for line in lines]
    assert [line.text for line in found] == expected


async def test_a_job_that_is_stopped_and_resumed_shows_it_and_prints_on(stage: Stage) -> None:
    stage.apply(runtime("shell", f"echo begin; {WAITING}; echo end; sleep 1"))
    seen: list[str] = []
    asked: set[str] = set()
    found: list[LogLine] = []
    begun = asyncio.Event()
    await stage.backend.submit(train_job("held"))

    async def follow() -> None:
        async with aclosing(stage.backend.read_logs("held", None, follow=True)) as lines:
            async for line in lines:
                found.append(line)
                begun.set()

    async def watch() -> None:
        async with aclosing(stage.backend.watch_job("held")) as changes:
            async for job in changes:
                if not seen or seen[-1] != job.status:
                    seen.append(job.status)
                if job.status == "Running" and "suspend" not in asked:
                    asked.add("suspend")
                    await begun.wait()  # a pod may run before it has printed
                    await stage.backend.patch_job("held", {"spec": {"suspend": True}})
                elif job.status == "Suspended" and not job.steps and "resume" not in asked:
                    asked.add("resume")
                    await stage.backend.patch_job("held", {"spec": {"suspend": False}})
                elif job.status == "Running" and "resume" in asked and "go" not in asked:
                    asked.add("go")
                    await stage.tell("held")
                elif job.status in {"Complete", "Failed"}:
                    return

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(follow(), watch())
    assert seen[-1] == "Complete"
    assert [status for status in seen if status != "Created"] == ["Running", "Suspended", "Running", "Complete"]
    assert [line.text for line in found] == ["begin", "begin", "end"]
