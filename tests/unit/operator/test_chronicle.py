"""The timeline in a TrainJob's status: what it tells, and that it costs no write of its own."""

from __future__ import annotations

from typing import Any

from tests.unit.operator.objects import COMPLETED, counts, train_job
from tests.unit.operator.test_witness import TRACEBACK, failed
from tests.unit.operator.world import World, started
from trainplane.kube.resource import Key
from trainplane.operator.status import ADDED
from trainplane.resources import TRAIN_JOBS

KEY = Key("team", "job")


def at(minute: int) -> str:
    return f"2026-01-01T00:{minute:02}:00Z"


def got_on(minute: int, **changes: Any) -> dict[str, Any]:
    """Return what the kubelet and the scheduler say of a pod that is ready since a minute."""
    kinds = ("PodScheduled", "Ready")
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": at(minute)} for kind in kinds]
    return {"conditions": conditions, **changes}


def shown(world: World) -> list[tuple[str, str]]:
    entries = (world.train_job().get("status") or {}).get("timeline") or []
    return [(one["stage"], one["time"]) for one in entries]


async def test_the_timeline_goes_with_what_is_written_anyway() -> None:
    world = await started()
    for index, minute in enumerate((2, 3)):
        world.pod_says(index, **got_on(minute))
    world.jobset_says(counts(ready=2))
    await world.settle()
    assert world.take_writes() == ["patch trainjobs/status job"]
    assert shown(world) == [("Scheduled", at(3)), ("Pulled", at(0)), ("Running", at(3))]
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    await world.settle()
    assert world.take_writes() == ["patch trainjobs/status job"]
    assert shown(world)[-1] == ("Succeeded", at(5))


async def test_news_of_the_timeline_alone_is_not_written_and_not_lost() -> None:
    world = await started()
    world.jobset_says(counts(ready=2))
    for index in (0, 1):
        world.pod_says(index, conditions=[{"type": "Ready", "status": "True"}])  # without times
    await world.settle()
    world.take_writes()
    assert shown(world) == [("Pulled", at(0))]
    for index in (0, 1):
        world.pod_says(index, **got_on(4))
    await world.settle()
    assert world.take_writes() == []
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    await world.settle()
    assert [stage for stage, _ in shown(world)] == ["Scheduled", "Pulled", "Running", "Succeeded"]


async def test_the_first_report_is_told_with_the_end() -> None:
    world = await started()
    world.jobset_says(counts(ready=2))
    await world.settle()
    job = world.train_job()
    world.put(TRAIN_JOBS, {**job, "status": {**job["status"], "trainerStatus": {"lastUpdatedTime": at(3)}}})
    world.sync()
    first = world.clock.now()
    await world.clock.advance(60)
    job = world.train_job()
    world.put(TRAIN_JOBS, {**job, "status": {**job["status"], "trainerStatus": {"lastUpdatedTime": at(4)}}})
    world.sync()
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    await world.settle()
    told = dict(shown(world))
    assert told["FirstStep"] == first.strftime("%Y-%m-%dT%H:%M:%SZ")


async def test_a_failure_and_a_restart_say_why() -> None:
    world = await started()
    world.client.printed[world.pod_says(1, phase="Failed", exit_code=1)] = TRACEBACK
    await world.settle()
    world.jobset_says(counts(active=2))
    jobset = world.job_set()
    assert jobset is not None
    jobset["status"]["restarts"] = 1
    for index in (0, 1):
        world.pod_says(index, attempt=1, **got_on(4))
    await world.settle()
    failed(world, restarts=1)
    world.client.printed[world.pod_says(0, attempt=1, phase="Failed", exit_code=1)] = TRACEBACK
    await world.settle()
    entries = world.train_job()["status"]["timeline"]
    restarted = next(one for one in entries if one["stage"] == "Restarted")
    assert (restarted["number"], restarted["reason"]) == (1, "PythonError in node 1")
    assert (entries[-1]["stage"], entries[-1]["reason"]) == ("Failed", "PythonError in node 0")


async def test_what_was_written_counts_after_a_restart_of_the_operator() -> None:
    world = await started()
    for index in (0, 1):
        world.pod_says(index, **got_on(2))
    world.jobset_says(counts(ready=2))
    await world.settle()
    before = shown(world)
    again = world.restart()
    for index in (0, 1):
        again.pod_says(index, **got_on(9))
    again.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    await again.settle()
    assert shown(again)[: len(before)] == before


async def test_what_another_leader_wrote_meanwhile_is_not_lost() -> None:
    world = await started()
    world.jobset_says(counts(ready=2))
    await world.settle()
    job = world.train_job()
    theirs = [{"stage": "Running", "time": at(1)}, {"stage": "FirstStep", "time": at(2)}]
    world.put(TRAIN_JOBS, {**job, "status": {**job["status"], "timeline": theirs}})
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    await world.settle()
    assert shown(world) == [("Running", at(1)), ("FirstStep", at(2)), ("Succeeded", at(5))]


async def test_one_that_is_gone_is_forgotten() -> None:
    world = await started()
    assert KEY in world.reconciler.chronicle._known
    world.delete(TRAIN_JOBS)
    await world.settle()
    assert not world.reconciler.chronicle._known


async def test_the_timeline_of_another_of_the_same_name_is_not_taken() -> None:
    world = await started()
    for index in (0, 1):
        world.pod_says(index, **got_on(2))
    world.sync()
    await world.reconcile()
    world.delete(TRAIN_JOBS)
    world.put(TRAIN_JOBS, train_job(meta={"uid": "another"}))
    await world.settle()
    assert shown(world) == []


def test_the_reference_does_not_know_it() -> None:
    assert "timeline" in ADDED
