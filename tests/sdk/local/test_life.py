"""What a job does on both local backends: the same as on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.sdk.local.documents import (
    MEET,
    READ,
    SLEEP,
    printed,
    reasons,
    seen_until_over,
    trainjob,
    until,
    until_over,
    until_steps,
)
from tests.sdk.local.machine import contents, processes_with
from trainplane.client.aio import AsyncTrainerClient
from trainplane.client.errors import InvalidError, JobFailedError, NotFoundError, RefusedError
from trainplane.client.types.jobs import COMPLETE, CREATED, FAILED, RUNNING, SUSPENDED

if TYPE_CHECKING:
    from pathlib import Path

    from trainplane.client.backends.local.backend import LocalBackend


async def test_two_nodes_meet_and_complete(backend: LocalBackend) -> None:
    name = await backend.submit(trainjob("meet", MEET))
    seen = await seen_until_over(backend, name)
    assert seen[-1] == COMPLETE
    assert seen == [status for status in (CREATED, RUNNING, COMPLETE) if status in seen], "each once, in this order"
    assert sorted(await printed(backend, name)) == ["[node-0] met node 1 of 2", "[node-1] called"]
    job = await backend.get_job(name)
    assert [(step.name, step.status, step.exit_code) for step in job.steps] == [
        ("node-0", "Succeeded", 0),
        ("node-1", "Succeeded", 0),
    ]
    assert job.finished
    assert (job.num_nodes, job.cause, job.runtime.name) == (2, None, "torch")
    told = await reasons(backend, name)
    assert [reason for reason in told if reason != "Ignored"] == ["JobSetCreated", "Started", "Completed"]
    assert (await reasons(backend, name, "Pod")).count("Started") == 2


async def test_the_first_fault_is_the_cause(backend: LocalBackend) -> None:
    code = """
import os, sys, time
if os.environ["PET_NODE_RANK"] == "1":
    print("no such column")
    sys.exit(3)
time.sleep(600)
"""
    name = await backend.submit(trainjob("fault", code))
    with pytest.raises(JobFailedError) as caught:
        await AsyncTrainerClient(backend=backend).wait_for_job_status(name, timeout=180)
    cause = caught.value.cause
    assert (cause.reason, cause.step, cause.exit_code, cause.log_tail) == ("Error", "node-1", 3, ("no such column",))
    assert await printed(backend, name, ["node-0"]) == []  # returns when all has ended
    assert [step.status for step in (await backend.get_job(name)).steps] == ["Failed", "Failed"]
    assert "Failed" in await reasons(backend, name)
    kept = (await backend.collect(name)).job["status"]["firstFault"]
    assert (kept["step"], kept["index"], kept["exitCode"], kept["log"]) == ("node", 1, 3, ["no such column"])
    timeline = (await backend.get_job(name)).timeline
    assert [one.stage for one in timeline] == ["Scheduled", "Pulled", "Running", "Failed"]
    assert timeline[-1].reason == f"{kept['cause']} in node 1"


async def test_memory_above_the_limit_ends_a_node(backend: LocalBackend) -> None:
    code = "import time; print('begins'); data = bytearray(400 << 20); time.sleep(600)"
    limits = {"resourcesPerNode": {"limits": {"memory": "150Mi"}, "requests": {"memory": "150Mi"}}}
    name = await backend.submit(trainjob("large", code, nodes=1, trainer=limits))
    job = await until_over(backend, name)
    assert job.status == FAILED
    assert job.cause
    assert (job.cause.reason, job.cause.step, job.cause.exit_code) == ("OOMKilled", "node-0", 137)
    assert "150Mi" in job.cause.message


async def test_suspend_scale_and_resume(backend: LocalBackend, tmp_path: Path) -> None:
    code = "import os, time; n = os.environ['PET_NNODES']; print('of', n); time.sleep(600 if n == '2' else 0)"
    name = await backend.submit(trainjob("held", code))
    await until(backend, name, RUNNING)
    with pytest.raises(RefusedError, match=r"spec\.trainer\.numNodes: cannot be changed once the TrainJob exists"):
        await backend.patch_job(name, {"spec": {"trainer": {"numNodes": 1}}})
    await backend.patch_job(name, {"spec": {"suspend": True}})
    job = await until(backend, name, SUSPENDED)
    job = await until_steps(backend, name, [])
    assert job.cause
    assert job.cause.reason == "Suspended"
    await backend.scale_job(name, 1)
    await backend.patch_job(name, {"spec": {"suspend": False}})
    await until(backend, name, COMPLETE)
    lines = await printed(backend, name)
    assert lines[-1] == "[node-0] of 1"
    assert {"Suspended", "Resumed", "Completed"} <= set(await reasons(backend, name))
    with pytest.raises(RefusedError, match="is over and cannot be scaled"):
        await backend.scale_job(name, 3)


async def test_a_job_that_runs_is_scaled(process: LocalBackend) -> None:
    code = "import os, time; n = os.environ['PET_NNODES']; print('of', n); time.sleep(600 if n == '1' else 0)"
    name = await process.submit(trainjob("scaled", code, nodes=1))
    await until(process, name, RUNNING)
    await process.scale_job(name, 2)
    job = await until(process, name, COMPLETE)
    assert job.num_nodes == 2
    assert sorted((await printed(process, name))[-2:]) == ["[node-0] of 2", "[node-1] of 2"]


@pytest.mark.parametrize("nodes", [1, None])
async def test_scaling_to_the_number_that_it_has_starts_nothing_again(process: LocalBackend, nodes: int | None) -> None:
    job = trainjob("same", SLEEP, nodes=1)
    if nodes is None:
        job["spec"]["trainer"].pop("numNodes")  # the runtime says one
    name = await process.submit(job)
    before = await until(process, name, RUNNING)
    await process.scale_job(name, 1)
    assert (await process.get_job(name)).steps == before.steps
    await process.scale_job(name, 2)
    assert (await until(process, name, RUNNING)).num_nodes == 2


async def test_what_is_over_is_tried_again_beside_it_and_in_its_place(process: LocalBackend) -> None:
    client = AsyncTrainerClient(backend=process)
    name = await process.submit(trainjob("once", "print('again')"))
    await until_over(process, name)
    first = await process.get_document(name)
    assert await client.retry_job(name) == f"{name}-2"
    assert await client.retry_job(name, replace=True) == name
    for one in (name, f"{name}-2"):
        await until_over(process, one)
        assert set(await printed(process, one)) >= {"[node-0] again"}
    second = await process.get_document(name)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert second["spec"] == first["spec"]


async def test_what_would_not_be_taken_again_is_not_deleted(process: LocalBackend) -> None:
    name = await process.submit(trainjob("runs", SLEEP))
    with pytest.raises(RefusedError, match="is not over and cannot be retried"):
        await process.restart_job(name)
    assert (await process.get_job(name)).name == name
    await process.delete_job(name)


async def test_a_job_that_takes_too_long_fails(backend: LocalBackend) -> None:
    seconds = {"process": 10, "container": 15}[backend.kind]  # enough to begin, on a busy machine too
    name = await backend.submit(trainjob("late", SLEEP, nodes=1, activeDeadlineSeconds=seconds))
    job = await until_over(backend, name)
    assert job.cause
    assert (job.status, job.cause.reason) == (FAILED, "DeadlineExceeded")
    assert await printed(backend, name) == ["[node-0] begins"]


async def test_what_waits_for_data_starts_when_it_is_there(backend: LocalBackend) -> None:
    spec = {"initializer": {"dataset": {"storageUri": "hf://a/b"}}}
    name = await backend.submit(trainjob("data", READ, nodes=1, runtime="fetched", **spec))
    await until(backend, name, COMPLETE)
    job = await backend.get_job(name)
    assert [(step.name, step.status) for step in job.steps] == [
        ("dataset-initializer", "Succeeded"),
        ("node-0", "Succeeded"),
    ]
    assert await printed(backend, name, ["node-0"]) == ["[node-0] dataset: rows"]


async def test_secrets_reach_the_node_and_no_file(backend: LocalBackend, tmp_path: Path) -> None:
    code = "import os; print(os.environ['TOKEN'][:6], len(os.environ['TOKEN']))"
    env = [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}]
    name = await backend.submit(trainjob("secret", code, nodes=1, trainer={"env": env}))
    await until(backend, name, COMPLETE)
    assert await printed(backend, name) == ["[node-0] s3cret 18"]
    written = contents(tmp_path)
    assert any(b"secretKeyRef" in content for content in written)
    assert not any(b"s3cret-of-the-test" in content for content in written)


async def test_deleting_a_running_job_leaves_nothing(backend: LocalBackend, tmp_path: Path) -> None:
    name = await backend.submit(trainjob("gone", SLEEP))
    await until(backend, name, RUNNING)
    await backend.delete_job(name)
    with pytest.raises(NotFoundError):
        await backend.get_job(name)
    assert processes_with(f"{tmp_path}/") == []
    assert list((tmp_path / "state" / backend.kind / "jobs").iterdir()) == []


async def test_what_a_machine_cannot_give_is_refused(backend: LocalBackend) -> None:
    with pytest.raises(InvalidError, match=r"volumes\[name=data\]: persistentVolumeClaim .* hostPath"):
        await backend.submit(trainjob("pvc", SLEEP, runtime="claimed"))
    env = [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "unknown", "key": "token"}}}]
    with pytest.raises(InvalidError, match=r"env\[name=KEY\].*no Secret unknown .* secrets="):
        await backend.submit(trainjob("secretless", SLEEP, trainer={"env": env}))
    gpus = {"resourcesPerNode": {"limits": {"nvidia.com/gpu": 4}, "requests": {"nvidia.com/gpu": 4}}}
    with pytest.raises(InvalidError, match="ask for 8 GPUs; this machine has"):
        await backend.submit(trainjob("gpus", SLEEP, trainer=gpus))
    with pytest.raises(NotFoundError, match="there is no runtime 'nowhere'"):
        await backend.submit(trainjob("lost", SLEEP, runtime="nowhere"))
    with pytest.raises(RefusedError, match="PET_NNODES"):
        await backend.submit(trainjob("reserved", SLEEP, trainer={"env": [{"name": "PET_NNODES", "value": "9"}]}))
    for name in ("../up", "Upper", "a" * 64):
        with pytest.raises(RefusedError, match=r"metadata\.name"):
            await backend.submit(trainjob(name, SLEEP))
    assert await backend.list_jobs() == []
