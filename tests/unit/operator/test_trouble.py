"""What stands in a TrainJob's way, and how it is told."""

from __future__ import annotations

import contextlib
from collections import deque
from typing import Any

import pytest

from tests.unit.operator.objects import COMPLETED, NAMESPACE, counts, runtime, train_job
from tests.unit.operator.world import DONE, World, started
from trainplane.kube.controller import RequeueAfter, Terminal
from trainplane.kube.errors import ConflictError, InvalidError, KubeError, TransportError
from trainplane.kube.expectations import PATIENCE
from trainplane.kube.lease import LeadershipLostError
from trainplane.operator.errors import ForeignObjectError, RuntimeMissingError
from trainplane.render.errors import RenderError
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, CONFIG_MAPS, JOB_SETS, TRAIN_JOBS


async def test_a_missing_runtime_is_told_and_waited_for() -> None:
    world = World()
    world.put(TRAIN_JOBS, train_job(suspend=True))
    world.sync()
    with pytest.raises(RuntimeMissingError, match="ClusterTrainingRuntime 'torch' does not exist: create it"):
        await world.reconcile()
    assert world.conditions() == [("Suspended", "True", "Suspended")]  # the status is written all the same
    assert world.news() == ["Suspended", "TrainJobResourcesCreationFailed"]
    world.with_runtime()
    assert await world.settle() == DONE
    assert world.job_set() is not None


async def test_an_unsupported_runtime_fails_the_trainjob() -> None:
    world = World()
    world.put(TRAIN_JOBS, train_job(runtime_ref={"kind": "Pipeline", "apiGroup": "example.com"}))
    assert await world.settle() == DONE
    assert world.conditions() == [("Failed", "True", "TrainingRuntimeNotSupported")]
    assert "Pipeline.example.com" in world.train_job()["status"]["conditions"][0]["message"]


async def test_what_the_api_server_refuses_is_told() -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job())
    world.client.refuse["apply jobsets"] = deque([InvalidError("metadata.name: too long")])
    world.sync()
    with pytest.raises(InvalidError):
        await world.reconcile()
    assert world.news() == ["TrainJobResourcesCreationFailed"]
    assert "metadata.name: too long" in world.messages()[0]
    assert await world.settle() == DONE
    assert world.job_set() is not None


async def test_what_cannot_be_rendered_is_told() -> None:
    world = World()
    broken = runtime()
    broken["spec"]["template"]["spec"]["replicatedJobs"] = "none"
    world.put(CLUSTER_TRAINING_RUNTIMES, broken)
    world.put(TRAIN_JOBS, train_job())
    world.sync()
    with pytest.raises(RenderError, match="form of a JobSet"):
        await world.reconcile()
    assert world.news() == ["TrainJobResourcesCreationFailed"]


async def test_a_jobset_of_somebody_else_is_left_alone() -> None:
    world = World().with_runtime()
    theirs = {"metadata": {"name": "job", "namespace": NAMESPACE}, "spec": {"suspend": True}, "status": {}}
    theirs["status"] = {"conditions": [COMPLETED], "replicatedJobsStatus": [counts(succeeded=1)]}
    world.put(JOB_SETS, theirs)
    world.put(TRAIN_JOBS, train_job())
    world.sync()
    with pytest.raises(ForeignObjectError, match="delete it, or give the TrainJob another name"):
        await world.reconcile()
    assert world.take_writes() == ["patch trainjobs/status job"]
    assert world.train_job()["status"] == {"phase": "Pending", "reason": "TrainJobResourcesCreationFailed"}
    assert world.news() == ["TrainJobResourcesCreationFailed"]


@pytest.mark.parametrize("left", ["jobset", "snapshot"])
async def test_an_earlier_self_is_waited_for_without_a_word(left: str) -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job(meta={"uid": "first"}))
    await world.settle()
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    world.delete(TRAIN_JOBS)
    if left == "snapshot":
        world.delete(JOB_SETS)
    await world.settle()
    world.take_writes()
    world.put(TRAIN_JOBS, train_job(meta={"uid": "second"}))
    world.sync()
    assert await world.reconcile() == RequeueAfter(2.0)
    assert world.conditions() == []
    assert world.news() == ["JobSetCreated"]  # the first one's
    if left == "jobset":
        world.delete(JOB_SETS)
    world.delete(CONFIG_MAPS, "job-runtime-snapshot")
    await world.settle()
    assert world.job_set()["metadata"]["ownerReferences"][0]["uid"] == "second"  # type: ignore[index] # it exists


async def test_a_snapshot_of_somebody_else_stops_the_trainjob() -> None:
    world = World().with_runtime()
    world.put(
        CONFIG_MAPS, {"metadata": {"name": "job-runtime-snapshot", "namespace": NAMESPACE}, "data": {"runtime": "x"}}
    )
    world.put(TRAIN_JOBS, train_job())
    world.sync()
    with pytest.raises(ForeignObjectError, match="not controlled by this TrainJob"):
        await world.reconcile()
    assert world.job_set() is None


async def test_who_does_not_lead_writes_nothing() -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job(suspend=True))
    world.leads = False
    world.sync()
    with pytest.raises(LeadershipLostError):
        await world.reconcile()
    assert world.take_writes() == []


async def test_a_trainjob_that_cannot_be_read_is_told_and_not_tried_again() -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job(trainer={"numNodes": "two"}))
    world.sync()
    result = await world.reconcile()
    assert isinstance(result, Terminal)
    assert "spec.trainer.numNodes" in str(result.error)
    assert world.news() == ["TrainJobResourcesCreationFailed"]
    assert world.take_writes() == []


@pytest.mark.parametrize(
    ("is_done", "error", "told"),
    [
        (True, TransportError("the connection broke before the answer"), 1),
        (True, ConflictError("the answer was lost, and it was sent again"), 1),
        (False, ConflictError("somebody else wrote"), 1),
        (True, ConflictError("an earlier leader wrote and told the same"), 0),
    ],
    ids=str,
)
async def test_an_end_is_told_once_though_its_write_failed(
    is_done: bool, error: KubeError, told: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await started()
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    world.sync()
    write = world.client.patch
    error.in_doubt = is_done and told == 1

    async def fail(*arguments: Any, **options: Any) -> Any:
        if is_done:
            await write(*arguments, **options)
        monkeypatch.undo()
        raise error

    monkeypatch.setattr(world.client, "patch", fail)
    with contextlib.suppress(TransportError):
        assert await world.reconcile() == RequeueAfter(1.0)
    await world.reconcile()  # the mirror is as it was
    assert world.news().count("Completed") == (not is_done)
    await world.settle()
    assert world.conditions() == [("Complete", "True", "AllJobsCompleted")]
    assert world.news().count("Completed") == told


async def test_an_end_is_not_told_again_by_a_mirror_that_did_not_hear_of_it() -> None:
    world = await started(activeDeadlineSeconds=30)
    await world.clock.advance(31)
    await world.reconcile()
    assert world.news().count("Failed") == 1
    await world.clock.advance(PATIENCE)
    assert await world.reconcile() == RequeueAfter(1.0)
    await world.settle()
    [note] = [one for one in world.recorder._notes.values() if one.reason == "Failed"]
    assert note.count == 1
