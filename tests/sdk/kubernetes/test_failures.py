"""Why jobs fail or do not start, said with the right step and exit code; and what the cluster refuses."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.shell import WAITING, failing
from tests.sdk.kubernetes.stage import PATIENCE, Stage, runtime, train_job
from trainplane.client.aio import AsyncTrainerClient
from trainplane.client.errors import ForbiddenError, JobStuckError, NotFoundError, RefusedError

if TYPE_CHECKING:
    from trainplane.client.types.jobs import Cause

ONE_FAILS = f'if [ "$JOB_COMPLETION_INDEX" = 1 ]; then {failing("no such dataset")}; fi; sleep 600'
HUNGRY = "python3 -c 'x = bytearray(512 << 20); print(len(x))'"


async def test_causes(stage: Stage) -> None:
    stage.apply(
        runtime("fails", ONE_FAILS),
        runtime("hungry", HUNGRY, container={"resources": {"limits": {"memory": "32Mi"}}}),
        runtime("waits", WAITING),
        runtime("imageless", "true", container={"image": "registry.invalid/none:1", "imagePullPolicy": "IfNotPresent"}),
    )
    submit = stage.backend.submit
    await submit(train_job("fails", "fails", trainer={"numNodes": 2}))
    await submit(train_job("hungry", "hungry"))
    await submit(train_job("late", "waits", activeDeadlineSeconds=5))
    await submit(train_job("imageless", "imageless"))

    async def failure(name: str) -> Cause:
        await stage.wait(name, "Failed")
        cause = (await stage.backend.get_job(name)).cause
        assert cause is not None
        return cause

    async def pulling() -> Cause:
        async with asyncio.timeout(PATIENCE), aclosing(stage.backend.watch_job("imageless")) as changes:
            async for job in changes:
                if job.cause is not None and "ImagePull" in job.cause.reason:
                    assert job.status == "Created"
                    return job.cause
        raise AssertionError

    fails, hungry, late, imageless = await asyncio.gather(
        failure("fails"), failure("hungry"), failure("late"), pulling()
    )
    assert (fails.reason, fails.step, fails.exit_code) == ("Error", "node-1", 3)
    assert (hungry.reason, hungry.step, hungry.exit_code) == ("OOMKilled", "node-0", 137)
    assert "32Mi" in hungry.message
    assert (late.reason, late.step) == ("DeadlineExceeded", None)
    assert "5 s" in late.message
    assert (imageless.step, "registry.invalid/none:1" in imageless.message) == ("node-0", True)

    lines = await stage.logs("fails", steps=["node-1"], tail=10)
    assert [line.text for line in lines] == ["no such dataset"]
    events = await stage.told("fails", ("TrainJob", "Failed"), ("Pod", "Started"), words="created JobSet fails")
    assert [event.event_time for event in events] == sorted(event.event_time for event in events)
    assert not any(event.involved_object_name.startswith("hungry") for event in events)


@pytest.mark.parametrize(
    ("name", "container", "reason"),
    [
        ("nameless", {"image": "No Image"}, "InvalidImageName"),
        (
            "secretless",
            {"env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "none", "key": "token"}}}]},
            "CreateContainerConfigError",
        ),
    ],
)
async def test_what_will_not_come_by_itself_is_given_up(
    stage: Stage, name: str, container: dict[str, Any], reason: str
) -> None:
    stage.apply(runtime(name, "true", container=container))
    await stage.backend.submit(train_job(name, name))
    with pytest.raises(JobStuckError, match=f"{reason} in node-0"):
        await AsyncTrainerClient(backend=stage.backend).wait_for_job_status(name, timeout=PATIENCE, give_up_after=1)


async def test_list_is_two_requests_whatever_the_number(stage: Stage) -> None:
    stage.apply(runtime("shell", WAITING))
    await stage.backend.submit(train_job("job-0"))
    await stage.wait("job-0", "Running")
    jobs = []
    for count in (1, 50):
        have = len(await stage.backend.list_jobs())
        for number in range(have, count):
            await stage.backend.submit(train_job(f"job-{number}", suspend=True))
        stage.requests = 0
        jobs = await stage.backend.list_jobs()
        assert (len(jobs), stage.requests) == (count, 2)
    assert jobs[0].name == "job-0"
    assert [job.status for job in jobs].count("Suspended") == 49
    assert (jobs[0].status, [step.name for step in jobs[0].steps]) == ("Running", ["node-0"])
    assert await stage.backend.list_jobs("other") == []
    await stage.backend.delete_job("job-0")
    with pytest.raises(NotFoundError, match="no TrainJob nobody"):
        await stage.backend.delete_job("nobody")


async def test_a_runtime_by_name_is_the_namespaces_before_the_clusters(stage: Stage) -> None:
    shared, own, wide = (f"{name}-{stage.namespace}" for name in ("both", "own", "wide"))
    stage.apply(*(runtime(name, "echo cluster", kind="ClusterTrainingRuntime") for name in (shared, wide)))
    stage.apply(runtime(shared, "echo namespace"), runtime(own, "true"))
    by_name: dict[str, Any] = {"kind": None, "suspend": True}
    try:
        runtimes = {one.name: one.kind.value for one in await stage.backend.list_runtimes()}
        assert (runtimes[shared], runtimes[own]) == ("TrainingRuntime", "TrainingRuntime")
        stage.requests = 0
        await stage.backend.submit(train_job("a", shared, **by_name))
        await stage.backend.submit(train_job("b", own, **by_name))
        assert stage.requests == 2
        for name in ("a", "b"):
            job = await stage.backend.get_job(name)
            assert job.runtime.kind.value == "TrainingRuntime"
            assert "trainplane.dev/runtime-kind" not in job.annotations
        await stage.backend.submit(train_job("c", wide, **by_name))
        assert (await stage.backend.get_job("c")).runtime.kind.value == "ClusterTrainingRuntime"
        with pytest.raises(RefusedError, match='there is no ClusterTrainingRuntime "nobody"'):
            await stage.backend.submit(train_job("d", "nobody", **by_name))
        with pytest.raises(RefusedError, match="already"):
            await stage.backend.submit(train_job("c", wide, **by_name))
    finally:
        stage.cluster.kubectl("delete", "clustertrainingruntime", shared, wide)


async def test_who_may_not_is_told_what_is_lacking(stage: Stage) -> None:
    kubeconfig = stage.cluster.user("guest", "guest")
    async with Stage(stage.cluster, stage.namespace, kubeconfig) as guest:
        with pytest.raises(ForbiddenError, match="you may not list trainjobs"):
            await guest.backend.list_jobs()
        with pytest.raises(ForbiddenError, match="you may not create trainjobs"):
            await guest.backend.submit(train_job("x"))
        with pytest.raises(ForbiddenError, match="you may not"):
            await guest.wait("x", "Running")
        with pytest.raises(ForbiddenError, match="you may not"):
            await guest.logs("x", follow=True)
