"""The runtime that a TrainJob began with: which text is believed, and what happens if none can be."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from tests.unit.operator.objects import NAMESPACE, counts, runtime, train_job
from tests.unit.operator.world import DONE, World, started
from trainplane.api import document
from trainplane.api.trainjob import TrainJob
from trainplane.kube.errors import InvalidError
from trainplane.operator import yamltext
from trainplane.operator.errors import SnapshotError
from trainplane.operator.runtimes import digest_of
from trainplane.operator.snapshot import config_map
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, CONFIG_MAPS, JOB_SETS, TRAIN_JOBS

Tree = dict[str, Any]

SNAPSHOT = "job-runtime-snapshot"


def plant(world: World, tree: Tree | str, *, uid: str = "uid-job") -> None:
    """Put a text where the snapshot belongs, with an owner that whoever knows the TrainJob can name."""
    meta = document.view(train_job(meta={"uid": uid}), TrainJob).metadata
    text = tree if isinstance(tree, str) else yamltext.dump(tree)
    world.put(CONFIG_MAPS, config_map(meta, text))


def image(world: World) -> str | None:
    jobset = world.job_set()
    if jobset is None:
        return None
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    found: str = pod["containers"][0]["image"]
    return found


def digest(world: World) -> str:
    found: str = (world.train_job().get("status") or {}).get("runtimeDigest", "")
    return found


def owned_by_us(world: World) -> None:
    """Give the JobSet the managedFields that the fake server leaves out."""
    jobset = world.job_set()
    assert jobset is not None
    managed = [{"manager": "trainer", "operation": "Apply", "fieldsV1": {"f:spec": {"f:suspend": {}}}}]
    world.put(JOB_SETS, {**jobset, "metadata": {**jobset["metadata"], "managedFields": managed}})


async def test_the_digest_goes_with_the_first_status_and_costs_no_write() -> None:
    world = await started()
    assert "status" not in world.train_job()
    world.jobset_says(counts(active=1))
    await world.settle()
    assert world.take_writes() == ["patch trainjobs/status job"]
    snapshot = world.snapshot()
    assert snapshot is not None
    assert digest(world) == digest_of(snapshot["data"]["runtime"])
    queued = await started(suspend=True)
    assert digest(queued) == digest(world)


async def test_what_stands_in_the_way_of_the_jobset_does_not_keep_the_digest_back() -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job())
    world.client.refuse["apply jobsets"] = deque([InvalidError("a quota")])
    world.sync()
    with pytest.raises(InvalidError):
        await world.reconcile()
    assert digest(world)
    world.with_runtime(image="img:2")
    fresh = world.restart()
    await fresh.settle()
    assert image(fresh) == "img:1"


async def test_a_thousand_trainjobs_read_their_runtime_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World().with_runtime()
    names = [f"job{number}" for number in range(5)]
    for name in names:
        world.put(TRAIN_JOBS, train_job(name, suspend=True))
        await world.settle(name)
    world.with_runtime(image="img:2")
    fresh = world.restart()
    loads: list[str] = []
    load = yamltext.load

    def counted(text: str) -> Any:
        loads.append(text)
        return load(text)

    monkeypatch.setattr(yamltext, "load", counted)
    for name in names:
        await fresh.settle(name)
    assert len(loads) == 1
    assert [str(one) for one in fresh.client.asked].count("get configmaps job0-runtime-snapshot") == 1
    assert not [one for one in fresh.client.asked if one.plural == "configmaps" and one.name != "job0-runtime-snapshot"]


# -- a digest is recorded ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_swapped_snapshot_is_not_run(restarted: bool) -> None:
    world = await started(suspend=True)
    plant(world, runtime(image="evil:1"))
    if restarted:
        world = world.restart()
    world.edit(suspend=False)
    assert await world.settle() == DONE
    assert image(world) == "img:1"
    assert world.conditions() == [("Suspended", "False", "Resumed")]


async def test_a_swapped_snapshot_fails_the_trainjob_if_the_runtime_has_changed_too() -> None:
    world = await started(suspend=True)
    plant(world, runtime(image="evil:1"))
    world.with_runtime(image="img:2")
    fresh = world.restart()
    fresh.edit(suspend=False)
    assert await fresh.settle() == DONE
    assert ("Failed", "True", "RuntimeSnapshotChanged") in fresh.conditions()
    message = next(one["message"] for one in fresh.train_job()["status"]["conditions"] if one["type"] == "Failed")
    assert SNAPSHOT in message
    assert "create it anew" in message
    assert fresh.job_set() is None, "its JobSet must not hold what others wait for"


@pytest.mark.parametrize("changed", [False, True])
async def test_a_lost_snapshot_matters_only_if_the_runtime_has_changed(changed: bool) -> None:
    world = await started(suspend=True)
    world.delete(CONFIG_MAPS, SNAPSHOT)
    if changed:
        world.with_runtime(image="img:2")
    fresh = world.restart()
    fresh.edit(suspend=False)
    assert await fresh.settle() == DONE
    if changed:
        assert ("Failed", "True", "RuntimeSnapshotMissing") in fresh.conditions()
    else:
        assert image(fresh) == "img:1"


@pytest.mark.parametrize("act", ["swap", "delete"])
async def test_what_runs_does_not_mind_what_becomes_of_its_snapshot(act: str) -> None:
    world = await started()
    world.jobset_says(counts(active=1, ready=1))
    await world.settle()
    if act == "swap":
        plant(world, runtime(image="evil:1"))
    else:
        world.delete(CONFIG_MAPS, SNAPSHOT)
    world.with_runtime(image="img:2")
    fresh = world.restart()
    fresh.edit(annotations={"touched": "yes"})
    assert await fresh.settle() == DONE
    assert fresh.conditions() == []
    assert fresh.client.asked == []


async def test_a_text_that_has_the_digest_is_believed_whoever_wrote_it() -> None:
    world = await started(suspend=True)
    snapshot = world.snapshot()
    assert snapshot is not None
    world.delete(CONFIG_MAPS, SNAPSHOT)
    world.put(CONFIG_MAPS, {"metadata": {"name": SNAPSHOT, "namespace": NAMESPACE}, "data": snapshot["data"]})
    world.with_runtime(image="img:2")
    fresh = world.restart()
    fresh.edit(suspend=False)
    await fresh.settle()
    assert image(fresh) == "img:1"


# -- no digest is recorded --------------------------------------------------------------------------------------------


async def test_a_snapshot_that_was_there_before_us_is_not_run() -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job())
    plant(world, runtime(image="evil:1"))
    world.sync()
    with pytest.raises(SnapshotError, match="delete it, and the runtime is kept as it is now"):
        await world.reconcile()
    assert world.job_set() is None
    assert digest(world) == ""
    world.delete(CONFIG_MAPS, SNAPSHOT)
    assert await world.settle() == DONE
    assert image(world) == "img:1"


async def test_a_snapshot_that_says_what_the_runtime_says_is_taken() -> None:
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job(suspend=True))
    live = world.find(CLUSTER_TRAINING_RUNTIMES, "torch", "")
    assert live is not None
    as_go_writes = {**live, "metadata": {**live["metadata"], "creationTimestamp": None, "labels": {}}}
    plant(world, as_go_writes)
    assert await world.settle() == DONE
    assert image(world) == "img:1"
    snapshot = world.snapshot()
    assert snapshot is not None
    assert digest(world) == digest_of(snapshot["data"]["runtime"])


async def test_a_crash_before_the_digest_was_recorded_is_made_good_by_the_jobset() -> None:
    world = await started()  # the JobSet is there, its counts and so the digest are not
    owned_by_us(world)
    world.with_runtime(image="img:2")
    fresh = world.restart()
    await fresh.settle()
    fresh.jobset_says(counts(active=1))
    await fresh.settle()
    snapshot = fresh.snapshot()
    assert snapshot is not None
    assert digest(fresh) == digest_of(snapshot["data"]["runtime"])
    fresh.edit(suspend=True)
    await fresh.settle()
    fresh.edit(suspend=False)
    await fresh.settle()
    assert image(fresh) == "img:1"


async def test_a_snapshot_swapped_before_its_digest_was_recorded_does_not_pass_for_what_the_jobset_was_made_from() -> (
    None
):
    world = await started(suspend=True)
    owned_by_us(world)
    job = world.train_job()
    del job["status"]  # as if the write had not come through
    world.put(TRAIN_JOBS, job)
    world.with_runtime(image="img:2")
    plant(world, runtime(image="evil:1"))
    fresh = world.restart()
    fresh.sync()
    with pytest.raises(SnapshotError, match="was not kept by this controller"):
        await fresh.reconcile()
    assert digest(fresh) == ""
    assert image(fresh) == "img:1"


async def test_a_running_trainjob_whose_snapshot_nothing_proves_runs_on() -> None:
    world = await started()
    world.with_runtime(image="img:2")
    plant(world, runtime(image="evil:1"))
    fresh = world.restart()
    assert await fresh.settle() == DONE
    assert digest(fresh) == ""
    assert fresh.take_writes() == []
    fresh.edit(suspend=True)
    fresh.sync()
    with pytest.raises(SnapshotError):
        await fresh.reconcile()


async def test_a_crd_that_drops_the_digest_is_noticed_and_not_written_to_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = await started()
    patch = world.client.patch

    async def prune(*arguments: Any, **options: Any) -> Any:
        arguments[2]["status"].pop("runtimeDigest", None)
        return await patch(*arguments, **options)

    world.client.patch = prune  # type: ignore[method-assign] # a server whose schema does not know the field
    for ready in (0, 1):
        world.jobset_says(counts(active=1, ready=ready))
        await world.settle()
    assert digest(world) == ""
    assert caplog.text.count("does not know status.runtimeDigest") == 1
    world.client.asked.clear()
    world.edit(annotations={"touched": "yes"})
    await world.settle()
    assert world.take_writes() == []
