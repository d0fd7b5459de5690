"""What somebody deletes or changes of a TrainJob's objects is there again, and nothing is asked while nobody does."""

from __future__ import annotations

import itertools
from collections import deque
from typing import Any

import pytest

from tests.unit.operator.objects import COMPLETED, NAMESPACE, counts, runtime, train_job
from tests.unit.operator.world import DONE, World
from trainplane.kube.controller import RequeueAfter
from trainplane.kube.errors import TransportError
from trainplane.kube.resource import Key
from trainplane.operator.keys import BELIEVED_SECONDS
from trainplane.operator.lost import CALM_SECONDS, LONGEST_SECONDS
from trainplane.operator.owned import POD_GROUPS
from trainplane.render.errors import RenderError
from trainplane.render.findings import Finding
from trainplane.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIG_MAPS,
    JOB_SETS,
    SECRETS,
    TRAIN_JOBS,
)

SNAPSHOT = "job-runtime-snapshot"
HOSTFILE = "job-mpi-hostfile"
KEYS = "job-mpi-ssh-auth"
VOLCANO = POD_GROUPS[0]


async def mpi_world(**spec: Any) -> World:
    """Return a world with an MPI job in a gang of Volcano's, which runs unless it is suspended."""
    world = World()
    made = runtime("mpi")
    made["spec"]["mlPolicy"] = {"numNodes": 1, "mpi": {"mpiImplementation": "OpenMPI", "sshAuthMountPath": "/ssh"}}
    made["spec"]["podGroupPolicy"] = {"volcano": {}}
    world.put(CLUSTER_TRAINING_RUNTIMES, made)
    world.put(TRAIN_JOBS, train_job(runtime_ref={"name": "mpi"}, **spec))
    await world.settle()
    if not spec.get("suspend"):
        world.pod_says(0)
        world.jobset_says(counts(active=1, ready=1))
    await world.settle()
    world.client.asked.clear()
    return world


def asked(world: World) -> list[str]:
    """Return what was asked since the last call."""
    found = [str(one) for one in world.client.asked]
    world.client.asked.clear()
    return found


def text(world: World) -> str:
    snapshot = world.snapshot()
    assert snapshot is not None
    return str(snapshot["data"]["runtime"])


def starts_pod(world: World, index: int = 1) -> None:
    """Let a pod have its node, and mount its volumes."""
    world.pod_says(index, phase="Pending", ready=False, containerStatuses=[])


@pytest.mark.parametrize("suspend", [False, True])
@pytest.mark.parametrize("changed", [False, True])
async def test_a_snapshot_that_is_deleted_is_there_again_as_it_was(changed: bool, suspend: bool) -> None:
    world = await mpi_world(suspend=suspend)
    before = text(world)
    if changed:
        world.put(CLUSTER_TRAINING_RUNTIMES, runtime("mpi", image="img:2"))
    world.delete(CONFIG_MAPS, SNAPSHOT)
    await world.settle()
    assert text(world) == before
    assert asked(world) == [f"create configmaps {SNAPSHOT}"]
    assert await world.settle() == DONE
    assert asked(world) == []


async def test_a_snapshot_whose_text_nobody_knows_stays_away_and_what_runs_runs_on() -> None:
    world = await mpi_world()
    world.put(CLUSTER_TRAINING_RUNTIMES, runtime("mpi", image="img:2"))
    world.sync()
    world.snapshots._known.clear()
    world.delete(CONFIG_MAPS, SNAPSHOT)
    assert await world.settle() == DONE
    assert asked(world) == []
    assert world.snapshot() is None
    assert world.conditions() == []


async def test_a_snapshot_that_somebody_else_put_there_is_left_to_them() -> None:
    world = await mpi_world()
    world.delete(CONFIG_MAPS, SNAPSHOT)
    world.put(CONFIG_MAPS, {"metadata": {"name": SNAPSHOT, "namespace": NAMESPACE}, "data": {"runtime": "theirs"}})
    assert await world.settle() == DONE
    assert text(world) == "theirs"
    assert world.conditions() == []


@pytest.mark.parametrize("act", ["delete", "edit", "disown"])
async def test_a_hostfile_is_put_right_in_a_job_that_runs(act: str) -> None:
    world = await mpi_world()
    before = world.find(CONFIG_MAPS, HOSTFILE)
    jobset = world.job_set()
    assert before is not None
    if act == "delete":
        world.delete(CONFIG_MAPS, HOSTFILE)
    elif act == "edit":
        world.put(CONFIG_MAPS, {**before, "data": {**before["data"], "hostfile": "elsewhere slots=1\n"}})
    else:
        world.put(CONFIG_MAPS, {**before, "metadata": {**before["metadata"], "ownerReferences": []}})
    await world.settle()
    after = world.find(CONFIG_MAPS, HOSTFILE)
    assert after is not None
    assert after["data"] == before["data"]
    assert after["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]
    assert asked(world) == [f"apply configmaps {HOSTFILE}"]
    assert world.job_set() == jobset, "what runs is never changed"
    await world.clock.advance(LONGEST_SECONDS)
    assert await world.settle() == DONE
    assert asked(world) == [], "our own write is no reason to look again"


async def test_a_group_that_is_deleted_while_its_job_runs_is_there_again() -> None:
    world = await mpi_world()
    before = world.find(VOLCANO, "job")
    world.delete(VOLCANO, "job")
    await world.settle()
    after = world.find(VOLCANO, "job")
    assert before is not None
    assert after is not None
    assert after["spec"] == before["spec"]
    assert asked(world) == ["apply podgroups job"]


@pytest.mark.parametrize(("suspend", "members"), [(True, 2), (False, 7)])
async def test_a_group_that_is_edited_is_put_right_as_long_as_its_job_waits(suspend: bool, members: int) -> None:
    world = await mpi_world(suspend=suspend)
    group = world.find(VOLCANO, "job")
    assert group is not None
    assert group["spec"]["minMember"] == 2
    meta = {**group["metadata"], "generation": group["metadata"]["generation"] + 1}
    world.put(VOLCANO, {**group, "metadata": meta, "spec": {**group["spec"], "minMember": 7}})
    await world.settle()
    after = world.find(VOLCANO, "job")
    assert after is not None
    assert after["spec"]["minMember"] == members


async def test_a_status_that_a_scheduler_writes_is_no_news() -> None:
    world = await mpi_world()
    group = world.find(VOLCANO, "job")
    assert group is not None
    for phase in ("Pending", "Inqueue", "Running"):
        world.put(VOLCANO, {**group, "status": {"phase": phase}})
        assert await world.settle() == DONE
    assert asked(world) == []


async def test_a_job_that_is_over_does_not_get_its_objects_back() -> None:
    world = await mpi_world()
    world.jobset_says(counts(succeeded=1), conditions=(COMPLETED,))
    await world.settle()
    asked(world)
    for name in (SNAPSHOT, HOSTFILE):
        world.delete(CONFIG_MAPS, name)
    assert await world.settle() == DONE
    assert asked(world) == []
    assert not world.reconciler.lost._marks


async def test_who_keeps_deleting_is_answered_later_each_time_and_at_once_after_a_calm() -> None:
    world = await mpi_world()
    waits = []
    for _ in range(9):
        world.delete(CONFIG_MAPS, HOSTFILE)
        waited = 0.0
        while world.find(CONFIG_MAPS, HOSTFILE) is None:
            world.sync()
            result = await world.reconcile()
            if world.find(CONFIG_MAPS, HOSTFILE) is None:
                assert isinstance(result, RequeueAfter)
                waited += result.seconds
                await world.clock.advance(result.seconds)
        waits.append(waited)
    assert waits == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert asked(world) == [f"apply configmaps {HOSTFILE}"] * 9
    await world.settle()
    await world.clock.advance(CALM_SECONDS)
    world.delete(CONFIG_MAPS, HOSTFILE)
    world.sync()
    await world.reconcile()
    assert world.find(CONFIG_MAPS, HOSTFILE) is not None


async def test_what_could_not_be_put_right_is_tried_again() -> None:
    world = await mpi_world()
    world.delete(CONFIG_MAPS, HOSTFILE)
    world.sync()
    world.client.refuse["apply configmaps"] = deque([TransportError("broken")])
    with pytest.raises(TransportError):
        await world.reconcile()
    assert world.find(CONFIG_MAPS, HOSTFILE) is None
    await world.clock.advance(1.0)
    await world.settle()
    assert world.find(CONFIG_MAPS, HOSTFILE) is not None


async def test_what_is_deleted_while_it_is_put_right_is_not_forgotten() -> None:
    world = await mpi_world()
    world.delete(CONFIG_MAPS, HOSTFILE)
    world.sync()
    lost = world.reconciler.lost.of(Key(NAMESPACE, "job"))
    world.put(CONFIG_MAPS, made := {"metadata": {**_owned("job", HOSTFILE)}, "data": {}})
    world.delete(CONFIG_MAPS, made["metadata"]["name"])
    world.sync()
    world.reconciler.lost.clear(Key(NAMESPACE, "job"), lost)
    assert world.reconciler.lost.of(Key(NAMESPACE, "job"))


# -- after a start


@pytest.mark.parametrize("gone", [SNAPSHOT, HOSTFILE, None])
async def test_a_new_leader_finds_what_went_while_nobody_looked_and_asks_for_nothing_else(gone: str | None) -> None:
    world = await mpi_world()
    if gone is not None:
        world.delete(CONFIG_MAPS, gone)
    fresh = world.restart()
    assert await fresh.settle() == DONE
    verb = "create" if gone == SNAPSHOT else "apply"
    assert asked(fresh) == ([] if gone is None else [f"{verb} configmaps {gone}"])


async def test_a_group_is_found_missing_by_a_new_leader() -> None:
    world = await mpi_world()
    world.delete(VOLCANO, "job")
    fresh = world.restart()
    await fresh.settle()
    assert asked(fresh) == ["apply podgroups job"]


async def test_a_job_that_runs_and_could_not_be_rendered_any_more_is_left_to_run() -> None:
    world = await mpi_world()
    world.delete(CONFIG_MAPS, HOSTFILE)
    fresh = world.restart()

    def refuse(*_: Any, **__: Any) -> Any:
        raise RenderError(Finding("spec", "is not what we take"))

    fresh.reconciler._objects._render = refuse  # type: ignore[method-assign]
    assert await fresh.settle() == DONE
    assert asked(fresh) == []
    assert fresh.conditions() == []
    assert fresh.news() == []


async def test_a_restarted_job_whose_pods_wait_for_long_is_asked_for_its_keys_alone() -> None:
    world = await mpi_world()
    jobset = world.job_set()
    assert jobset is not None
    world.put(JOB_SETS, {**jobset, "status": {**jobset["status"], "restarts": 1}})
    world.pod_says(0, attempt=1, phase="Pending", ready=False, containerStatuses=[])
    await world.settle()
    asked(world)
    await world.clock.advance(BELIEVED_SECONDS)
    await world.settle()
    assert asked(world) == [f"get secrets {KEYS}"]


async def test_nothing_is_missed_of_a_kind_that_is_not_mirrored() -> None:
    world = await mpi_world()
    world.delete(VOLCANO, "job")
    world.delete(CONFIG_MAPS, SNAPSHOT)
    fresh = world.restart()
    fresh.sync(VOLCANO, CONFIG_MAPS)
    await fresh.reconcile()
    assert asked(fresh) == []


# -- keys, which are not watched


async def test_keys_that_went_are_there_again_when_a_pod_is_about_to_mount_them() -> None:
    world = await mpi_world()
    world.delete(SECRETS, KEYS)
    await world.clock.advance(BELIEVED_SECONDS)
    await world.settle()
    assert asked(world) == [], "pods that run do not miss them"
    starts_pod(world)
    await world.settle()
    assert asked(world)[:2] == [f"get secrets {KEYS}", f"create secrets {KEYS}"]


async def test_pods_that_come_soon_after_their_keys_cost_no_look_and_later_ones_fewer_and_fewer() -> None:
    world = await mpi_world(suspend=True)
    world.edit(suspend=False)
    await world.settle()
    asked(world)
    starts_pod(world, 0)
    world.jobset_says(counts(active=1))
    await world.settle()
    assert not [one for one in asked(world) if "secrets" in one]
    looks = []
    for second in range(900):
        world.sync()
        await world.reconcile()
        if [one for one in asked(world) if one == f"get secrets {KEYS}"]:
            looks.append(second)
        await world.clock.advance(1.0)
    assert 0 < looks[0] <= BELIEVED_SECONDS
    assert [later - earlier for earlier, later in itertools.pairwise(looks)] == [120, 240, 480]


async def test_a_pod_that_waits_is_looked_at_again_without_news_of_it() -> None:
    world = await mpi_world()
    starts_pod(world)
    await world.clock.advance(BELIEVED_SECONDS)
    await world.settle()
    world.delete(SECRETS, KEYS)
    world.sync()
    result = await world.reconcile()
    assert isinstance(result, RequeueAfter)
    assert result.seconds <= 2 * BELIEVED_SECONDS
    await world.clock.advance(2 * BELIEVED_SECONDS)
    await world.settle()
    assert world.find(SECRETS, KEYS) is not None


# -- people who mean no good


def _owned(owner: str, name: str, uid: str | None = None) -> dict[str, Any]:
    reference = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "name": owner,
        "uid": uid or f"uid-{owner}",
        "controller": True,
    }
    return {"name": name, "namespace": NAMESPACE, "ownerReferences": [reference]}


async def test_forged_owners_by_the_thousand_take_no_room_and_cause_no_look() -> None:
    world = await mpi_world()
    kept = sum(map(len, world.owned.all()))
    for number in range(2000):
        world.put(CONFIG_MAPS, {"metadata": _owned("job", f"job-forged-{number}")})
    for number in range(2000):
        world.delete(CONFIG_MAPS, f"job-forged-{number}")
    world.sync()
    assert sum(map(len, world.owned.all())) == kept
    assert not any(store._tombstones for store in world.owned.all())
    assert not world.reconciler.lost._marks
    assert await world.settle() == DONE
    assert asked(world) == []


@pytest.mark.parametrize("uid", ["uid-job", "uid-of-another"])
async def test_a_forged_owner_costs_the_trainjob_that_it_names_one_look_at_most(uid: str) -> None:
    world = await mpi_world()
    forged = "job-flux-entrypoint"
    for _ in range(50):
        world.put(CONFIG_MAPS, {"metadata": _owned("job", forged, uid)})
        world.delete(CONFIG_MAPS, forged)
    await world.settle()
    assert asked(world) == [], "the job has no such object, so there is nothing to put right"
    assert world.find(CONFIG_MAPS, forged) is None


async def test_a_replica_that_does_not_lead_forgets_trainjobs_that_are_gone() -> None:
    world = await mpi_world()
    world.delete(CONFIG_MAPS, HOSTFILE)
    world.sync()
    assert world.reconciler.lost._marks
    world.delete(TRAIN_JOBS)
    world.delete(JOB_SETS)
    world.sync()
    assert not world.reconciler.lost._marks
