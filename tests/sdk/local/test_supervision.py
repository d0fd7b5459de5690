"""Jobs outlive the client that started them, and a supervisor that dies is noticed by all."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from tests.sdk.local.documents import (
    MEET,
    SLEEP,
    printed,
    reasons,
    seen_until_over,
    trainjob,
    until,
    until_printed,
    until_steps,
)
from tests.sdk.local.machine import processes_with, supervisors_of
from trainplane.client.backends.local.processes import MARK
from trainplane.client.backends.process import ProcessBackend
from trainplane.client.errors import InvalidError, RefusedError
from trainplane.client.types.backends import LocalProcessBackendConfig
from trainplane.client.types.jobs import COMPLETE, FAILED

if TYPE_CHECKING:
    from pathlib import Path

    from trainplane.client.backends.local.backend import LocalBackend

SUBMIT = """
import asyncio, json, sys
from contextlib import aclosing
from pathlib import Path
from trainplane.client.backends.process import ProcessBackend
from trainplane.client.types.backends import LocalProcessBackendConfig, TrainingRuntimeSource
state, source, job = sys.argv[1:]
config = LocalProcessBackendConfig(state=Path(state), runtime_source=TrainingRuntimeSource([source]))
asyncio.run(ProcessBackend(config).submit(json.loads(job)))
"""


async def test_a_job_goes_on_without_its_client(
    process: LocalBackend, process_config: LocalProcessBackendConfig
) -> None:
    code = "import time; print('one'); time.sleep(1); print('two')"
    words = [str(process_config.state), process_config.runtime_source.sources[0], json.dumps(trainjob("alone", code))]
    client = await asyncio.create_subprocess_exec(sys.executable, "-c", SUBMIT, *words)
    assert await client.wait() == 0
    assert [job.name for job in await process.list_jobs()] == ["alone"]
    lines = await printed(process, "alone", ["node-1"])
    assert lines == ["[node-1] one", "[node-1] two"]
    assert (await process.get_job("alone")).status == COMPLETE
    assert [job.name for job in await process.list_jobs("torch")] == ["alone"]
    assert await process.list_jobs("other") == []
    with pytest.raises(RefusedError, match="there is a TrainJob alone already"):
        await process.submit(trainjob("alone", code))


async def test_a_supervisor_that_is_killed_is_noticed(backend: LocalBackend, tmp_path: Path) -> None:
    name = await backend.submit(trainjob("orphan", SLEEP))
    await until_printed(backend, name, 2)
    folder = tmp_path / "state" / backend.kind / "jobs" / name
    os.kill(supervisors_of(folder)[-1], signal.SIGKILL)
    assert (await seen_until_over(backend, name))[-1] == FAILED
    job = await backend.get_job(name)
    assert job.cause
    assert job.cause.reason == "SupervisorEnded"
    assert "submit the job again" in job.cause.message
    assert [step.status for step in job.steps] == ["Failed", "Failed"]
    assert (await reasons(backend, name))[-1] == "Failed"
    assert processes_with(f"{MARK}={name}") == []
    assert sorted(await printed(backend, name)) == ["[node-0] begins", "[node-1] begins"]


async def test_a_supervisor_that_is_told_to_stop_stops_its_pods(process: LocalBackend, tmp_path: Path) -> None:
    name = await process.submit(trainjob("told", SLEEP))
    await until_printed(process, name, 2)
    os.kill(supervisors_of(tmp_path / "state/process/jobs" / name)[-1], signal.SIGTERM)
    await seen_until_over(process, name)
    job = await process.get_job(name)
    assert job.status == FAILED
    assert await printed(process, name)  # ends when the supervisor has
    assert processes_with(f"{MARK}={name}") == []


async def test_processes_that_leave_their_group_end_with_the_node(process: LocalBackend) -> None:
    code = """
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print("begins", flush=True)
time.sleep(600 if os.environ["PET_NODE_RANK"] == "0" else 0)
"""
    name = await process.submit(trainjob("leaving", code))
    await until_printed(process, name, 2)
    async with aclosing(process.watch_job(name)) as changes:
        async for job in changes:
            if job.steps and job.steps[-1].status == "Succeeded":
                break
    assert len(processes_with(f"{MARK}={name}")) == 2  # node-0, and what it started; node-1 took its own along
    await process.patch_job(name, {"spec": {"suspend": True}})
    await until_steps(process, name, [])
    assert processes_with(f"{MARK}={name}") == []


async def test_containers_and_jobs_begin_anew_as_often_as_they_may(process: LocalBackend, tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    code = f"""
import sys
with open({str(tries)!r}, "a+") as file:
    file.write("x"); file.seek(0); count = len(file.read())
print("try", count)
sys.exit(count < 2)
"""
    for name, runtime in (("again", "retried"), ("anew", "restarted")):
        tries.unlink(missing_ok=True)
        await process.submit(trainjob(name, code, nodes=1, runtime=runtime))
        await until(process, name, COMPLETE)
        assert await printed(process, name) == ["[node-0] try 1", "[node-0] try 2"]
    assert [(await process.get_job(name)).steps[0].restarts for name in ("again", "anew")] == [1, 0]
    assert "Restarting" in await reasons(process, "anew")
    assert "BackOff" in await reasons(process, "again", "Pod")


async def test_a_job_that_fails_too_often_fails(process: LocalBackend) -> None:
    name = await process.submit(trainjob("never", "print('no'); raise SystemExit(9)", nodes=1, runtime="restarted"))
    await seen_until_over(process, name)
    job = await process.get_job(name)
    assert job.cause
    assert (job.status, job.cause.exit_code) == (FAILED, 9)
    assert await printed(process, name) == ["[node-0] no"] * 2
    told = [event.message for event in await process.list_events(name) if event.reason == "Failed"]
    assert told == ["ReachedMaxRestarts: Job never-node-0 failed after 1 restart, as many as there may be"]


async def test_processors_are_limited_and_places_ignored(process: LocalBackend) -> None:
    limits = {"resourcesPerNode": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}}
    code = "import os; print(len(os.sched_getaffinity(0)), os.environ['PET_NPROC_PER_NODE'])"
    name = await process.submit(trainjob("bound", code, runtime="placed", trainer=limits))
    await until(process, name, COMPLETE)
    assert sorted(await printed(process, name)) == ["[node-0] 1 1", "[node-1] 1 1"]
    ignored = [event.message for event in await process.list_events(name) if event.reason == "Ignored"]
    assert any(message.startswith("nodeSelector of job node has no effect here") for message in ignored)
    assert any(message.startswith("priorityClassName of job node") for message in ignored)


@pytest.mark.parametrize("said", [{}, {"numProcPerNode": 100}])
async def test_a_hundred_processors_are_not_a_hundred_processes_unless_somebody_says_so(
    process: LocalBackend, said: dict[str, int]
) -> None:
    there, limits = len(os.sched_getaffinity(0)), {"resourcesPerNode": {"limits": {"cpu": "100"}}}
    code = "import os; print(os.environ['PET_NPROC_PER_NODE'])"
    name = await process.submit(trainjob("wide", code, nodes=1, trainer={**limits, **said}))
    await until(process, name, COMPLETE)
    assert await printed(process, name) == ["[node-0] 100" if said else f"[node-0] {there}"]
    told = [event.message for event in await process.list_events(name) if event.reason == "FewerProcesses"]
    assert told == [] if said else f"each node runs {there} processes" in told[0]


async def test_only_an_image_that_the_trainjob_asks_for_is_said_to_have_no_effect(process: LocalBackend) -> None:
    for trainer, count in (({}, 0), ({"image": "mine:1"}, 1)):
        name = await process.submit(trainjob(f"imaged-{count}", "", nodes=1, trainer=trainer))
        await until(process, name, COMPLETE)
        told = [event.message for event in await process.list_events(name)]
        assert sum(message.startswith("image ") for message in told) == count


async def test_two_jobs_at_once_do_not_meet_each_other(process: LocalBackend) -> None:
    names = [await process.submit(trainjob(name, MEET)) for name in ("first", "second")]
    for name in names:
        await until(process, name, COMPLETE)
        assert sorted(await printed(process, name)) == ["[node-0] met node 1 of 2", "[node-1] called"]


async def test_a_program_that_is_not_there_is_named(process: LocalBackend) -> None:
    trainer = {"command": ["no-such-program"]}
    name = await process.submit(trainjob("lost", "", nodes=1, trainer=trainer))
    await seen_until_over(process, name)
    job = await process.get_job(name)
    assert job.cause
    assert "'no-such-program', which is not on this machine" in job.cause.message


async def test_a_missing_interpreter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="python: there is no interpreter"):
        ProcessBackend(LocalProcessBackendConfig(python=str(tmp_path / "python"), state=tmp_path))
