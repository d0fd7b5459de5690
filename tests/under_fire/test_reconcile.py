"""What broke the reconcile of a TrainJob under fire: each test is named for what went wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.operator.objects import BROKEN, COMPLETED, counts, runtime, train_job
from tests.unit.operator.world import DONE, Crash, CrashError, World, started
from trainplane.kube.controller import Failed, RequeueAfter
from trainplane.operator.errors import RuntimeMissingError
from trainplane.operator.witness import LATE_SECONDS
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, CONFIG_MAPS, JOB_SETS, TRAIN_JOBS

if TYPE_CHECKING:
    from trainplane.kube.resource import Resource


# -- the TTL of a JobSet ---------------------------------------------------------------------------------------------


RAN_AGAIN = ("runtime", 3, "a finished training ran again when its TTL passed before anybody looked")
OLD_MIRROR = ("runtime", 5, "a new leader with an old mirror suspended running training")
MOVED = ("runtime", 6, "evicted and admitted elsewhere between two looks, a job ran on in the first flavor")
SMALL = ("runtime", 11, "a Retry-After of a day stopped a mirror for a day, and other small things")


async def expiring(seconds: int = 5, **spec: Any) -> World:
    world = World()
    tree = runtime()
    tree["spec"]["template"]["spec"]["ttlSecondsAfterFinished"] = seconds
    world.put(CLUSTER_TRAINING_RUNTIMES, tree)
    world.put(TRAIN_JOBS, train_job(**spec))
    await world.settle()
    return world


def ttl(world: World) -> int | None:
    jobset = world.job_set()
    assert jobset is not None
    found: int | None = jobset["spec"].get("ttlSecondsAfterFinished")
    return found


@pytest.mark.finding(*RAN_AGAIN)
@pytest.mark.parametrize("end", [COMPLETED, BROKEN], ids=["completed", "failed"])
async def test_a_finished_training_ran_again_when_its_ttl_removed_the_jobset_before_anybody_looked(end: Any) -> None:
    world = await expiring()
    assert ttl(world) is None, "JobSet would remove it, told or not"
    world.jobset_says(counts(succeeded=1), conditions=(end,))
    fresh = world.restart()  # which was down for longer than the TTL
    await fresh.settle()
    await fresh.clock.advance(LATE_SECONDS)  # no pod tells why
    assert await fresh.settle() == DONE
    assert fresh.conditions()[0][0] in {"Complete", "Failed"}
    assert ttl(fresh) == 5
    fresh.client.asked.clear()
    assert await fresh.settle() == DONE
    assert fresh.client.asked == []
    fresh.delete(JOB_SETS)
    assert await fresh.settle() == DONE
    assert fresh.job_set() is None


@pytest.mark.finding(*RAN_AGAIN)
async def test_a_crash_between_the_end_and_the_ttl_is_made_good() -> None:
    world = await expiring(0)
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    world.client.asked.clear()
    world.client.crash = Crash(at=1, acted=False)
    with pytest.raises(CrashError):
        await world.settle()
    assert world.conditions() == [("Complete", "True", "AllJobsCompleted")]
    assert ttl(world) is None
    fresh = world.restart()
    assert await fresh.settle() == DONE
    assert ttl(fresh) == 0


@pytest.mark.finding(*RAN_AGAIN)
async def test_the_ttl_that_another_controller_gave_a_queued_jobset_is_taken_when_it_starts() -> None:
    world = await expiring(suspend=True)
    jobset = world.job_set()
    assert jobset is not None
    fields: dict[str, Any] = {"f:spec": {"f:suspend": {}, "f:ttlSecondsAfterFinished": {}}}
    managed = [{"manager": "trainer", "operation": "Apply", "fieldsV1": fields}]
    spec = {**jobset["spec"], "ttlSecondsAfterFinished": 5}
    world.put(JOB_SETS, {**jobset, "metadata": {**jobset["metadata"], "managedFields": managed}, "spec": spec})
    (held,) = (held for (kind, _), held in world.storage.applied.items() if kind.plural == "jobsets")
    held["trainer", ""]["spec", "ttlSecondsAfterFinished"] = 5
    fresh = world.restart()
    assert await fresh.settle() == DONE
    assert fresh.take_writes() == [], "a takeover changes nothing that waits"
    fresh.edit(suspend=False)
    await fresh.settle()
    assert ttl(fresh) is None


# -- no write from an old mirror -------------------------------------------------------------------------------------


def suspended(world: World) -> bool:
    jobset = world.job_set()
    assert jobset is not None
    found: bool = jobset["spec"]["suspend"]
    return found


async def running_since_admitted() -> tuple[World, World]:
    """Return a leader whose queued TrainJob was admitted and runs, and a follower that saw it queued last."""
    leader = await started(suspend=True)
    follower = leader.restart()
    follower.sync()
    leader.edit(suspend=False)
    await leader.settle()
    leader.jobset_says(counts(active=1, ready=1))
    await leader.settle()
    assert not suspended(leader)
    return leader, follower


@pytest.mark.finding(*OLD_MIRROR)
@pytest.mark.parametrize("silent", [(TRAIN_JOBS, JOB_SETS), (TRAIN_JOBS,)], ids=["both watches", "one watch"])
async def test_a_new_leader_with_an_old_mirror_suspended_running_training(silent: tuple[Resource, ...]) -> None:
    leader, follower = await running_since_admitted()
    follower.sync(*silent)
    assert await follower.reconcile() == RequeueAfter(1.0)
    assert not suspended(leader)
    assert follower.news() == []
    follower.seen = 0  # the watches speak again
    assert await follower.settle() == DONE
    assert not suspended(leader)


@pytest.mark.finding(*OLD_MIRROR)
async def test_a_new_leader_with_an_old_mirror_started_evicted_training() -> None:
    leader, _ = await running_since_admitted()
    follower = leader.restart()
    follower.sync()
    leader.edit(suspend=True)  # evicted
    await leader.settle()
    leader.jobset_says(counts(suspended=1))
    await leader.settle()
    assert suspended(leader)
    follower.sync(TRAIN_JOBS)
    assert await follower.reconcile() == RequeueAfter(1.0)
    assert suspended(leader)


@pytest.mark.finding(*OLD_MIRROR)
async def test_a_new_leader_that_had_not_seen_the_jobset_suspended_running_training() -> None:
    leader = World().with_runtime()
    leader.put(TRAIN_JOBS, train_job(suspend=True))
    follower = leader.restart()
    follower.sync()
    await leader.settle()
    leader.edit(suspend=False)
    await leader.settle()
    for silent in ((TRAIN_JOBS, JOB_SETS), (JOB_SETS,)):
        follower.sync(*silent)
        assert await follower.reconcile() == RequeueAfter(1.0)
        assert not suspended(leader)


@pytest.mark.finding(*OLD_MIRROR)
async def test_a_new_leader_with_an_old_mirror_deleted_the_jobset_of_a_trainjob_that_had_been_resumed() -> None:
    leader = await started(activeDeadlineSeconds=60)
    leader.jobset_says(counts(active=1, ready=1))
    await leader.settle()
    follower = leader.restart()
    follower.sync()
    await leader.clock.advance(30)
    leader.edit(suspend=True)
    await leader.settle()
    leader.edit(suspend=False)
    await leader.settle()  # the resume grants the full time anew
    await leader.clock.advance(40)
    await follower.reconcile()
    assert leader.job_set() is not None
    assert "Failed" not in [kind for kind, _, _ in leader.conditions()]


# -- evicted and admitted again --------------------------------------------------------------------------------------


def flavor(pool: str | None, time: str) -> dict[str, Any]:
    """Return Kueue's patch for a flavor; of an evicted TrainJob, the empty one."""
    job = {"name": "node", "template": {"spec": {"template": {"spec": {"nodeSelector": {"pool": pool}}}}}}
    template = {"spec": {"replicatedJobs": [job]}} if pool else {}
    return {"manager": "kueue.x-k8s.io/manager", "time": time, "trainingRuntimeSpec": {"template": template}}


def pool(world: World) -> str | None:
    jobset = world.job_set()
    assert jobset is not None
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    found: str | None = pod.get("nodeSelector", {}).get("pool")
    return found


FIRST, THEN, LAST = (f"2100-01-01T0{hour}:00:00Z" for hour in range(3))


async def admitted() -> World:
    world = await started(suspend=True, runtimePatches=[flavor(None, FIRST)])
    world.edit(suspend=False, runtimePatches=[flavor("cheap", FIRST)])
    await world.settle()
    world.jobset_says(counts(active=1, ready=1))
    await world.settle()
    assert (pool(world), suspended(world)) == ("cheap", False)
    return world


@pytest.mark.finding(*MOVED)
@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("wanted", ["dear", None], ids=["another flavor", "one without a selector"])
async def test_kueue_evicted_and_readmitted_between_two_looks_and_the_first_flavor_ran_on(
    restarted: bool, wanted: str | None
) -> None:
    world = await admitted()
    world.edit(suspend=True, runtimePatches=[flavor(None, THEN)])
    world.edit(suspend=False, runtimePatches=[flavor(wanted, LAST)])
    if restarted:
        world = world.restart()
    await world.settle()
    assert suspended(world), "its pods must go before others come"
    assert "Moved" in world.news()
    world.jobset_says(counts(suspended=1))
    assert await world.settle() == DONE
    assert (pool(world), suspended(world)) == (wanted, False)
    world.client.asked.clear()
    world.jobset_says(counts(active=1, ready=1))
    await world.settle()
    assert [str(one) for one in world.client.asked] == ["patch trainjobs/status job"]


@pytest.mark.finding(*MOVED)
async def test_kueue_evicted_and_readmitted_between_two_looks_where_it_was_and_nothing_is_stopped() -> None:
    world = await admitted()
    world.edit(suspend=True, runtimePatches=[flavor(None, THEN)])
    world.edit(suspend=False, runtimePatches=[flavor("cheap", LAST)])
    assert await world.settle() == DONE
    assert (pool(world), suspended(world)) == ("cheap", False)


@pytest.mark.finding(*MOVED)
async def test_another_release_that_renders_otherwise_stops_nothing_that_runs() -> None:
    world = await admitted()
    jobset = world.job_set()
    assert jobset is not None
    applied = {"manager": "trainer", "operation": "Apply", "time": FIRST, "fieldsV1": {}}  # as it was admitted
    world.put(JOB_SETS, {**jobset, "metadata": {**jobset["metadata"], "managedFields": [applied]}})
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    pod.setdefault("metadata", {})["labels"] = {"as": "an older release made it"}
    fresh = world.restart()
    assert await fresh.settle() == DONE
    assert fresh.take_writes() == []


# -- the deadline ----------------------------------------------------------------------------------------------------


@pytest.mark.finding(*SMALL)
async def test_a_reconcile_in_trouble_dropped_its_deadline_timer() -> None:
    world = World()  # no runtime: the TrainJob cannot be made to run
    world.put(TRAIN_JOBS, train_job(activeDeadlineSeconds=60))
    await world.clock.advance(20)
    world.sync()
    result = await world.reconcile()
    assert isinstance(result, Failed), "an error alone is retried after up to five minutes"
    assert isinstance(result.error, RuntimeMissingError)
    assert result.within == 40
    assert world.news() == ["TrainJobResourcesCreationFailed"]
    await world.clock.advance(40)
    await world.settle()
    assert world.conditions() == [("Failed", "True", "DeadlineExceeded")]


@pytest.mark.finding(*SMALL)
async def test_a_deadline_came_late_while_an_earlier_trainjob_was_waited_for() -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job(meta={"uid": "first"}))
    await world.settle()
    world.delete(TRAIN_JOBS)
    world.put(TRAIN_JOBS, train_job(meta={"uid": "second"}, activeDeadlineSeconds=1))
    world.sync()
    assert await world.reconcile() == RequeueAfter(1.0)


@pytest.mark.finding(*SMALL)
async def test_trouble_without_a_deadline_is_raised_as_ever() -> None:
    world = World()
    world.put(TRAIN_JOBS, train_job())
    world.sync()
    with pytest.raises(RuntimeMissingError):
        await world.reconcile()
    assert world.find(CONFIG_MAPS, "job-runtime-snapshot") is None
