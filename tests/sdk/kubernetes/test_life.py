"""What the client does to a TrainJob that exists, and what it remembers of one whose pods are gone."""

from __future__ import annotations

import asyncio
import json
import random
from typing import TYPE_CHECKING

import pytest

from tests.e2e.shell import WAITING
from tests.sdk.kubernetes.stage import PATIENCE, runtime, train_job
from trainplane.client.aio import AsyncTrainerClient
from trainplane.client.errors import JobFailedError, RefusedError
from trainplane.client.options import Name
from trainplane.client.types.runtimes import Runtime
from trainplane.client.types.trainers import ScriptTrainer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sdk.kubernetes.stage import Stage


async def test_a_job_goes_on_with_another_number_of_nodes(stage: Stage) -> None:
    stage.apply(runtime("waits", f"echo begins; {WAITING}"))
    client = AsyncTrainerClient(backend=stage.backend)
    await stage.backend.submit(train_job("grows", "waits"))
    before = await stage.wait("grows", "Running")
    with pytest.raises(RefusedError, match="cannot be scaled to 5000000000"):
        await client.scale_job("grows", 5_000_000_000)
    assert (await stage.backend.get_job("grows")).steps[0].pod_name == before.steps[0].pod_name, "it was not touched"
    async with asyncio.timeout(PATIENCE):
        await client.scale_job("grows", 2)
    after = await stage.wait("grows", "Running")
    assert (after.num_nodes, [step.name for step in after.steps]) == (2, ["node-0", "node-1"])
    assert after.creation_timestamp >= before.creation_timestamp
    await stage.tell("grows")
    assert (await client.wait_for_job_status("grows", timeout=PATIENCE)).status == "Complete"


async def test_the_name_of_a_runtime_is_enough(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    named = Runtime(name="plain")
    stage.apply(runtime("plain", "echo as it came"))
    client = AsyncTrainerClient(backend=stage.backend)
    name = await client.train(runtime=named)
    job = await client.wait_for_job_status(name, timeout=PATIENCE)
    assert "Unknown" not in (job.runtime.kind.value, job.runtime.trainer.image)
    assert [one.name for one in await client.list_jobs(runtime=named)] == [name]
    await client.get_runtime_packages(named)
    assert "Python" in capsys.readouterr().out


async def test_large_code_is_there_once_and_goes_with_its_job(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "blob.bin").write_bytes(random.Random(1).randbytes(500_000))  # noqa: S311 no secret
    program = "import time\nprint('has', len(open('blob.bin', 'rb').read()), flush=True)\ntime.sleep(1)\n"
    (tmp_path / "train.py").write_text(program)
    stage.apply(runtime("plain", "true"))
    client = AsyncTrainerClient(backend=stage.backend)
    trainer = ScriptTrainer("train.py", workspace=tmp_path, num_nodes=2)
    await client.train("plain", trainer=trainer, options=[Name("large")])
    assert (await client.wait_for_job_status("large", timeout=PATIENCE)).status == "Complete"
    lines = [line.text for line in await stage.logs("large")]
    assert lines == ["has 500000"] * 2
    in_namespace = f"--namespace={stage.backend.namespace}"
    pods = stage.cluster.get("pods", in_namespace)["items"]
    assert max(len(json.dumps(pod)) for pod in pods) < 60_000
    (code,) = [entry for entry in stage.cluster.get("configmaps", in_namespace)["items"] if "binaryData" in entry]
    assert code["immutable"] is True
    await client.delete_job("large")
    name = code["metadata"]["name"]
    async with asyncio.timeout(PATIENCE):
        while not stage.cluster.kubectl("get", "configmap", name, in_namespace, check=False).code:  # noqa: ASYNC110 the collector tells nobody
            await asyncio.sleep(0.5)


async def test_a_fault_is_told_when_the_pods_that_had_it_are_gone(stage: Stage) -> None:
    stage.apply(runtime("crashes", "echo the disk is full; sleep 1; exit 7", backoff=2, restartPolicy="OnFailure"))
    client = AsyncTrainerClient(backend=stage.backend)
    await stage.backend.submit(train_job("crashes", "crashes"))
    with pytest.raises(JobFailedError) as caught:
        await client.wait_for_job_status("crashes", timeout=PATIENCE)
    cause = caught.value.cause
    assert (cause.step, cause.exit_code, cause.log_tail) == ("node-0", 7, ("the disk is full",)), str(cause)
