"""MPI and Flux jobs whose keys belonged to an earlier job of the same name, or went while they ran."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.operator.objects import counts, runtime, train_job
from tests.unit.operator.world import DONE, World
from trainplane.kube.controller import RequeueAfter
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, CONFIG_MAPS, JOB_SETS, SECRETS, TRAIN_JOBS

OLD_KEYS = ("runtime", 4, "an MPI job deleted and made again took the old job's keys, which then went")
SAME_NAME = ("semantics", 7, "an MPI or Flux job deleted and made again could hang on the old one's keys")
KEYS = "job-mpi-ssh-auth"


def mpi_runtime() -> dict[str, Any]:
    found = runtime("mpi")
    found["spec"]["mlPolicy"] = {
        "numNodes": 1,
        "mpi": {"mpiImplementation": "OpenMPI", "sshAuthMountPath": "/root/.ssh"},
    }
    return found


async def mpi_world() -> World:
    world = World()
    world.put(CLUSTER_TRAINING_RUNTIMES, mpi_runtime())
    world.put(TRAIN_JOBS, train_job(runtime_ref={"name": "mpi"}))
    assert await world.settle() == DONE
    return world


def owner_of_keys(world: World) -> str | None:
    found = world.find(SECRETS, KEYS)
    return None if found is None else found["metadata"]["ownerReferences"][0]["uid"]


@pytest.mark.finding(*SAME_NAME)
@pytest.mark.finding(*OLD_KEYS)
async def test_an_mpi_job_deleted_and_made_again_waits_for_the_old_keys_to_go_and_gets_its_own() -> None:
    world = await mpi_world()
    assert owner_of_keys(world) == "uid-job"
    for resource, name in ((TRAIN_JOBS, "job"), (JOB_SETS, "job")):
        world.delete(resource, name)
    for name in ("job-runtime-snapshot", "job-mpi-hostfile"):
        world.delete(CONFIG_MAPS, name)
    world.put(TRAIN_JOBS, train_job(runtime_ref={"name": "mpi"}, meta={"uid": "uid-second"}))
    assert await world.settle() == RequeueAfter(2.0)
    assert world.job_set() is None, "pods would mount keys that are about to go"
    world.delete(SECRETS, KEYS)  # the garbage collector arrives
    assert await world.settle() == DONE
    assert owner_of_keys(world) == "uid-second"
    assert world.job_set() is not None


@pytest.mark.finding(*SAME_NAME)
@pytest.mark.finding(*OLD_KEYS)
async def test_keys_that_went_while_the_job_ran_are_there_again_when_it_restarts() -> None:
    world = await mpi_world()
    world.jobset_says(counts(active=1, ready=1))
    await world.settle()
    world.delete(SECRETS, KEYS)
    world.delete(CONFIG_MAPS, "job-mpi-hostfile")
    before = world.job_set()
    assert before is not None
    world.put(JOB_SETS, {**before, "status": {**before["status"], "restarts": 1}})
    assert await world.settle() == DONE
    assert owner_of_keys(world) == "uid-job"
    assert world.find(CONFIG_MAPS, "job-mpi-hostfile") is not None
    after = world.job_set()
    assert after is not None
    assert after["spec"] == before["spec"], "what runs is never changed"
    world.client.asked.clear()
    world.jobset_says(counts(active=1))
    await world.settle()
    assert [str(one) for one in world.client.asked] == ["patch trainjobs/status job"]
