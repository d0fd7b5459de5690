"""Deadlines, as the story keeps them."""

from __future__ import annotations

from collections import deque

import pytest

from tests.unit.operator.objects import COMPLETED, NAMESPACE, counts, train_job
from tests.unit.operator.world import DONE, World, started
from trainplane.kube.controller import RequeueAfter
from trainplane.kube.errors import ForbiddenError, TransportError
from trainplane.operator.status import UNHURRIED_SECONDS
from trainplane.resources import JOB_SETS, TRAIN_JOBS


async def test_a_deadline_asks_for_another_look_and_then_ends_the_trainjob() -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job(activeDeadlineSeconds=60))
    await world.settle()
    world.jobset_says(counts(active=1))
    assert await world.settle() == RequeueAfter(60 - UNHURRIED_SECONDS)
    await world.clock.advance(45 - UNHURRIED_SECONDS)
    assert await world.settle() == RequeueAfter(15)
    await world.clock.advance(16)
    assert await world.settle() == DONE
    assert world.conditions() == [("Failed", "True", "DeadlineExceeded")]
    assert world.job_set() is None
    assert world.news()[-1] == "Failed"
    assert "60 s" in world.messages()[-1]


async def test_a_delete_that_fails_is_tried_again() -> None:
    world = await started(activeDeadlineSeconds=60)
    await world.clock.advance(61)
    world.client.refuse["delete jobsets"] = deque([ForbiddenError("no"), TransportError("cut")])
    for error in (ForbiddenError, TransportError):
        with pytest.raises(error):
            await world.settle()
        assert world.conditions() == [("Failed", "True", "DeadlineExceeded")]
        assert world.job_set() is not None
    assert await world.settle() == DONE
    assert world.job_set() is None
    assert world.news().count("Failed") == 1


async def test_past_the_deadline_nothing_is_created() -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job(activeDeadlineSeconds=60))
    await world.clock.advance(100)
    await world.settle()
    assert world.take_writes() == ["patch trainjobs/status job"]
    assert world.conditions() == [("Failed", "True", "DeadlineExceeded")]


async def test_a_jobset_that_its_mirror_does_not_show_goes_too() -> None:
    """As after a restore, which has it again before the mirror shows that."""
    world = await started(activeDeadlineSeconds=60)
    follower = world.restart()
    follower.sync(JOB_SETS)
    await world.clock.advance(61)
    assert await follower.reconcile() == DONE
    assert follower.take_writes() == ["patch trainjobs/status job", "delete jobsets job"]
    assert world.job_set() is None


@pytest.mark.parametrize("owner", ["another", None])
async def test_one_that_is_not_the_trainjobs_own_stays(owner: str | None) -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job(activeDeadlineSeconds=60))
    references = [{"kind": "TrainJob", "name": "job", "uid": owner, "controller": True}] if owner else []
    meta = {"name": "job", "namespace": NAMESPACE, "ownerReferences": references}
    world.put(JOB_SETS, {"apiVersion": JOB_SETS.api_version, "kind": JOB_SETS.kind, "metadata": meta, "spec": {}})
    world.sync(JOB_SETS)
    await world.clock.advance(61)
    assert await world.reconcile() == DONE
    assert world.conditions() == [("Failed", "True", "DeadlineExceeded")]
    assert world.job_set() is not None


async def test_a_jobset_that_completes_in_time_wins_over_the_deadline() -> None:
    world = await started(activeDeadlineSeconds=60)
    await world.clock.advance(61)
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    await world.settle()
    assert world.conditions() == [("Complete", "True", "AllJobsCompleted")]
    assert world.job_set() is not None


async def test_after_the_deadline_a_late_completion_changes_nothing() -> None:
    world = await started(activeDeadlineSeconds=60)
    await world.clock.advance(61)
    world.client.refuse["delete jobsets"] = deque([TransportError("cut")])
    with pytest.raises(TransportError):
        await world.settle()
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    await world.settle()
    assert world.conditions() == [("Failed", "True", "DeadlineExceeded")]


async def test_a_resume_grants_the_full_time_anew() -> None:
    world = await started(activeDeadlineSeconds=60, suspend=True)
    await world.clock.advance(1000)
    assert await world.settle() == DONE
    world.edit(suspend=False)
    assert await world.settle() == RequeueAfter(60)
    await world.clock.advance(61)
    await world.settle()
    assert world.conditions() == [("Suspended", "False", "Resumed"), ("Failed", "True", "DeadlineExceeded")]


async def test_a_jobset_that_was_replaced_is_not_deleted() -> None:
    world = await started(activeDeadlineSeconds=60)
    await world.clock.advance(61)
    world.sync()
    world.delete(JOB_SETS)
    world.put(JOB_SETS, {"metadata": {"name": "job", "namespace": NAMESPACE, "uid": "another"}})
    assert await world.reconcile() == DONE
    assert world.job_set() is not None
