"""A typo in a function, on the torch runtime that we ship: how long until its user knows, with everything at rest."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from lab import reference
from lab.images import reference as image
from lab.paths import REPOSITORY
from lab.webhooks import documents
from tests.explain.failures import NAMESPACE
from tests.explain.typo import train
from trainplane.client.aio import AsyncTrainerClient
from trainplane.client.errors import JobFailedError
from trainplane.client.types.trainers import CustomTrainer

if TYPE_CHECKING:
    from tests.sdk.kubernetes.stage import Stage
    from tests.suite import SuiteReport

PATIENCE = 240.0


@pytest.mark.timeout(400)
async def test_a_typo_is_told_with_its_line(stages: dict[str, Stage], report: SuiteReport) -> None:
    stage = stages[NAMESPACE]
    (runtime,) = documents(REPOSITORY / "runtimes/torch-distributed.yaml")
    stage.cluster.apply(reference.with_image(runtime, image("torch")))
    client = AsyncTrainerClient(backend=stage.backend)
    began = time.monotonic()
    name = await client.train("torch-distributed", trainer=CustomTrainer(train, num_nodes=2))
    with pytest.raises(JobFailedError) as caught:
        await client.wait_for_job_status(name, timeout=PATIENCE)
    report.figure("user_error_s", time.monotonic() - began)
    assert (caught.value.cause.kind, caught.value.cause.log_tail[-1][-18:]) == ("PythonError", "KeyError: 'lable'")
    stages_ = [(one.stage, one.reason) for one in (await client.get_job(name)).timeline]
    assert [stage for stage, _ in stages_] == ["Scheduled", "Pulled", "Running", "Failed"]
    assert stages_[-1][1].startswith("PythonError in node ")
    await client.delete_job(name)
