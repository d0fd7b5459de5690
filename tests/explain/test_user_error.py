"""A typo in a function, on the torch runtime that we ship: how long until its user knows, with everything at rest."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from lab import reference
from lab.images import reference as image
from lab.paths import REPOSITORY
from lab.webhooks import documents
from tests.explain.failures import NAMESPACE
from tests.explain.typo import train
from trainplane.api import tree as trees
from trainplane.api.moments import read_moment
from trainplane.client.aio import AsyncTrainerClient
from trainplane.client.errors import JobFailedError
from trainplane.client.types.trainers import CustomTrainer
from trainplane.explain.pods import created

if TYPE_CHECKING:
    from tests.sdk.kubernetes.stage import Stage
    from tests.suite import SuiteReport
    from trainplane.explain.facts import Facts

PATIENCE = 240.0


def _stages(facts: Facts, asked: datetime) -> dict[str, float]:
    """Return how many seconds after it was asked for each stage of the failure was, of the pod that was first.

    What the cluster writes is of whole seconds.
    """
    ends = [state for pod in facts.pods for state in _terminated(pod)]
    said = [line.time for lines in facts.logs.values() for line in lines if line.time and "KeyError" in line.text]
    moments = {
        "pods_made": min(map(created, facts.pods), default=None),
        "containers_started": min((read_moment(one["startedAt"]) or asked for one in ends), default=None),
        "raised": min(said, default=None),
        "containers_ended": min((read_moment(one["finishedAt"]) or asked for one in ends), default=None),
        "job_failed": min((_failed(job) or asked for job in facts.jobs if _failed(job)), default=None),
        "jobset_failed": _failed(facts.jobset),
        "trainjob_failed": _failed(facts.job),
    }
    return {stage: round((moment - asked).total_seconds(), 1) for stage, moment in moments.items() if moment}


def _failed(document: trees.Tree | None) -> datetime | None:
    return read_moment(trees.get(document, "status", "conditions", ("type", "Failed"), "lastTransitionTime"))


def _terminated(pod: trees.Tree) -> list[trees.Tree]:
    statuses = trees.entries(pod, "status", "containerStatuses")
    return [end for status in statuses if (end := trees.fields(status, "state", "terminated"))]


@pytest.mark.timeout(400)
async def test_a_typo_is_told_with_its_line(stages: dict[str, Stage], report: SuiteReport) -> None:
    stage = stages[NAMESPACE]
    (runtime,) = documents(REPOSITORY / "runtimes/torch-distributed.yaml")
    stage.cluster.apply(reference.with_image(runtime, image("torch")))
    client = AsyncTrainerClient(backend=stage.backend)
    began, asked = time.monotonic(), datetime.now(UTC)
    name = await client.train("torch-distributed", trainer=CustomTrainer(train, num_nodes=2))
    with pytest.raises(JobFailedError) as caught:
        await client.wait_for_job_status(name, timeout=PATIENCE)
    report.figure("user_error_s", time.monotonic() - began)
    report.row(user_error=_stages(await stage.backend.collect(name), asked))
    assert (caught.value.cause.kind, caught.value.cause.log_tail[-1][-18:]) == ("PythonError", "KeyError: 'lable'")
    stages_ = [(one.stage, one.reason) for one in (await client.get_job(name)).timeline]
    assert [stage for stage, _ in stages_] == ["Scheduled", "Pulled", "Running", "Failed"]
    assert stages_[-1][1].startswith("PythonError in node ")
    await client.delete_job(name)
