from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.hub.check_objects import (
    FakeCluster,
    altered,
    cluster_facts,
    content,
    fleet_facts,
    hub_facts,
    multikueue,
    runtime,
    train_job,
    worker_facts,
)
from tests.unit.hub.fakeworker import serving
from trainplane.hub import runtimes
from trainplane.hub.check.facts import ClusterFacts, Unseen, WorkerFacts
from trainplane.hub.sync import FIELD_MANAGER, LABEL_MADE, SyncReport, compare, sync, users
from trainplane.hub.workers import Workers
from trainplane.kube.errors import ForbiddenError
from trainplane.kube.resource import Key
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, NAMESPACES, TRAIN_JOBS, TRAINING_RUNTIMES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trainplane.kube.client import Client
    from trainplane.kube.testing.faults import Fault
    from trainplane.kube.testing.verbs import Asking

Tree = dict[str, Any]


def made(tree: Tree) -> Tree:
    labels = {**tree["metadata"]["labels"], LABEL_MADE: "true"}
    return {**tree, "metadata": {**tree["metadata"], "labels": labels, "uid": "u-1"}}


def planned(
    cluster: ClusterFacts, *, hub: ClusterFacts | None = None, jobs: tuple[Tree, ...] = (), **how: bool
) -> SyncReport:
    facts = fleet_facts(worker_facts(cluster=cluster), hub=hub)
    return compare(facts, {"worker1": jobs}, **how)


def well() -> ClusterFacts:
    return cluster_facts(content())


def job_using(name: str, **runtime_ref: str) -> Tree:
    return train_job(name, runtimeRef={"name": "torch", **runtime_ref})


def told(found: SyncReport) -> list[tuple[str, str]]:
    return [(step.verb, str(step)) for step in found.steps]


def test_equal_runtimes_need_nothing() -> None:
    found = planned(well())
    assert found.steps == ()
    assert found.equal == {"worker1": 2}
    assert found.settled


def test_a_missing_runtime_is_made_and_marked_as_ours() -> None:
    found = planned(altered(well(), CLUSTER_TRAINING_RUNTIMES))
    assert told(found) == [("create", "ClusterTrainingRuntime torch")]
    (step,) = found.steps
    assert step.body is not None
    assert step.body["metadata"] == {
        "name": "torch",
        "labels": {"trainer.kubeflow.org/framework": "torch", LABEL_MADE: "true"},
    }
    assert step.body["spec"] == runtime()["spec"]
    assert found.equal == {"worker1": 1}
    assert not found.settled


def test_a_different_runtime_is_changed_and_does_not_become_ours() -> None:
    (step,) = planned(altered(well(), CLUSTER_TRAINING_RUNTIMES, runtime(image="old"))).steps
    assert step.verb == "update"
    assert step.body is not None
    assert LABEL_MADE not in step.body["metadata"]["labels"]
    assert "-  image: old" in step.diff


def test_what_we_made_stays_ours_when_it_is_changed() -> None:
    (step,) = planned(altered(well(), CLUSTER_TRAINING_RUNTIMES, made(runtime(image="old")))).steps
    assert step.body is not None
    assert step.body["metadata"]["labels"][LABEL_MADE] == "true"


def test_a_runtime_of_a_namespace_that_is_not_there_is_left_with_the_reason() -> None:
    (step,) = planned(altered(altered(well(), TRAINING_RUNTIMES), NAMESPACES)).steps
    assert (step.verb, str(step)) == ("leave", "TrainingRuntime research/mine")
    assert step.reason == "namespace research does not exist there: create it first"


def test_a_runtime_in_use_is_left_unless_asked() -> None:
    different = altered(well(), CLUSTER_TRAINING_RUNTIMES, runtime(image="old"))
    jobs = tuple(job_using(name) for name in ("a", "b", "c", "d"))
    (step,) = planned(different, jobs=jobs).steps
    assert step.verb == "leave"
    assert "(research/a, research/b, research/c and 1 more)" in step.reason
    assert "--even-in-use" in step.reason
    assert told(planned(different, jobs=jobs, even_in_use=True)) == [("update", "ClusterTrainingRuntime torch")]


def test_a_runtime_that_only_others_or_finished_jobs_name_is_not_in_use() -> None:
    done = {**job_using("done"), "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    other = job_using("other", kind="TrainingRuntime")
    unqueued = train_job("unqueued", queue=None)
    different = altered(well(), CLUSTER_TRAINING_RUNTIMES, runtime(image="old"))
    assert told(planned(different, jobs=(done, other, unqueued))) == [("update", "ClusterTrainingRuntime torch")]
    assert users([done, other, unqueued, job_using("here")]) == {
        ("TrainingRuntime", Key("research", "torch")): ["research/other"],
        ("ClusterTrainingRuntime", Key("", "torch")): ["research/here"],
    }


def test_a_change_that_kueue_does_not_see_is_made_in_use_too() -> None:
    different = altered(well(), CLUSTER_TRAINING_RUNTIMES, runtime(nodeSelector={"zone": "a"}))
    assert told(planned(different, jobs=(job_using("a"),))) == [("update", "ClusterTrainingRuntime torch")]


def test_a_missing_runtime_is_made_even_if_jobs_wait_for_it() -> None:
    assert told(planned(altered(well(), CLUSTER_TRAINING_RUNTIMES), jobs=(job_using("a"),)))[0][0] == "create"


def test_only_what_a_sync_made_and_the_hub_has_no_longer_is_pruned_and_only_if_asked() -> None:
    worker = altered(well(), CLUSTER_TRAINING_RUNTIMES, runtime(), made(runtime("old")), runtime("local"))
    assert planned(worker).steps == ()
    (step,) = planned(worker, prune=True).steps
    assert (step.verb, str(step), step.uid) == ("delete", "ClusterTrainingRuntime old", "u-1")
    assert step.diff
    kept = planned(worker, prune=True, jobs=(job_using("a") | {"spec": {"runtimeRef": {"name": "old"}}},))
    assert told(kept) == [("leave", "ClusterTrainingRuntime old")]


def test_nothing_is_pruned_when_the_hub_does_not_show_its_runtimes() -> None:
    worker = altered(well(), CLUSTER_TRAINING_RUNTIMES, made(runtime()))
    hub = altered(hub_facts(), CLUSTER_TRAINING_RUNTIMES, Unseen("failed", "reset"))
    assert planned(worker, hub=hub, prune=True).steps == ()


def test_workers_that_cannot_be_judged_are_named_and_nothing_is_settled() -> None:
    silent = WorkerFacts(name="worker1", trouble="no route")
    found = compare(fleet_facts(silent), {})
    assert found.unreachable == {"worker1": "no route"}
    assert not found.settled
    blind = altered(well(), TRAINING_RUNTIMES, Unseen("forbidden", "403 may not list"))
    assert planned(blind).unreachable == {"worker1": "403 may not list"}


# -- against clusters


@dataclass
class Fleet:
    hub: FakeCluster
    worker: FakeCluster
    client: Client
    workers: Workers

    async def sync(self, **how: Any) -> SyncReport:
        return await sync(self.client, self.workers, **how)

    @property
    def runtimes(self) -> dict[Key, Tree]:
        return self.worker.objects(CLUSTER_TRAINING_RUNTIMES)


@pytest.fixture
async def fleet() -> AsyncIterator[Fleet]:
    """A hub with one worker that has neither of its runtimes."""
    async with FakeCluster() as hub, FakeCluster(tokens={"t"}, tls=serving()) as worker, hub.client() as client:
        hub.fill({**content(checks=("mk",)), **multikueue("worker1")})
        hub.put_worker("worker1", worker)
        worker.fill({**content(), CLUSTER_TRAINING_RUNTIMES: [], TRAINING_RUNTIMES: []})
        async with Workers(client) as workers:
            yield Fleet(hub, worker, client, workers)


async def test_without_apply_the_worker_is_asked_and_nothing_changes(fleet: Fleet) -> None:
    found = await fleet.sync()
    assert [step.verb for step in found.steps] == ["create", "create"]
    assert not found.settled
    assert fleet.runtimes == {}
    writes = [one for one in fleet.worker.requests if one.method == "PATCH"]
    assert len(writes) == 2
    assert all(one.query["dryRun"] == "All" for one in writes)


async def test_with_apply_the_runtimes_are_there_by_our_manager_and_a_second_sync_has_nothing_to_do(
    fleet: Fleet,
) -> None:
    assert (await fleet.sync(apply=True)).settled
    assert runtimes.equal(fleet.runtimes[Key("", "torch")], runtime())
    assert {one.query["fieldManager"] for one in fleet.worker.requests if one.method == "PATCH"} == {FIELD_MANAGER}
    again = await fleet.sync()
    assert (again.steps, again.equal) == ((), {"worker1": 2})


async def test_what_others_wrote_into_a_runtime_gives_way_to_the_hubs(fleet: Fleet) -> None:
    other = runtime(image="old")
    other["spec"]["template"]["spec"]["ttlSecondsAfterFinished"] = 5
    other["metadata"]["labels"]["trainer.kubeflow.org/support"] = "deprecated"
    fleet.worker.put(CLUSTER_TRAINING_RUNTIMES, other)
    assert (await fleet.sync(apply=True)).settled
    there = fleet.runtimes[Key("", "torch")]
    assert runtimes.equal(there, runtime())
    assert there["metadata"]["labels"]["team"] == "platform"
    assert (await fleet.sync()).settled


async def test_settings_in_annotations_go_along_and_others_stay(fleet: Fleet) -> None:
    port, mpi, own = "trainer.kubeflow.org/port", "trainer.kubeflow.org/mpi-implementation", "example.com/owner"
    there, here = runtime(), runtime()
    there["metadata"]["annotations"] = {own: "east", mpi: "Intel"}
    here["metadata"]["annotations"] = {own: "hub", port: "29611"}
    fleet.worker.put(CLUSTER_TRAINING_RUNTIMES, there)
    fleet.hub.put(CLUSTER_TRAINING_RUNTIMES, here)
    found = await fleet.sync(apply=True)
    assert f"{port}: '29611'" in "".join(f"{step.diff}\n" for step in found.steps)
    assert fleet.runtimes[Key("", "torch")]["metadata"]["annotations"] == {own: "east", port: "29611"}


async def test_a_runtime_in_use_on_the_worker_is_seen(fleet: Fleet) -> None:
    fleet.worker.put(CLUSTER_TRAINING_RUNTIMES, runtime(image="old"))
    fleet.worker.put(TRAIN_JOBS, job_using("running"))
    found = await fleet.sync(apply=True)
    assert [(step.verb, step.done) for step in found.steps] == [("leave", False), ("create", True)]
    assert "research/running" in found.steps[0].reason
    assert not found.settled
    assert (await fleet.sync(apply=True, even_in_use=True)).settled


async def test_a_worker_that_refuses_is_told_and_the_rest_is_done(fleet: Fleet) -> None:
    class Refusing(FakeCluster):
        def act(self, asking: Asking, fault: Fault | None) -> Tree:
            if asking.verb == "patch" and asking.target and asking.target.collection.plural == "trainingruntimes":
                raise ForbiddenError("may not patch trainingruntimes")
            return super().act(asking, fault)

    async with Refusing(tokens={"t"}, tls=serving()) as worker:
        worker.fill({**content(), CLUSTER_TRAINING_RUNTIMES: [], TRAINING_RUNTIMES: []})
        fleet.hub.put_worker("worker1", worker)
        found = await fleet.sync(apply=True)
    assert [(step.verb, step.done) for step in found.steps] == [("create", True), ("leave", False)]
    assert "the worker refuses it: 403 Forbidden: may not patch trainingruntimes" in found.steps[1].reason


async def test_prune_deletes_what_a_sync_made(fleet: Fleet) -> None:
    await fleet.sync(apply=True)
    fleet.worker.put(CLUSTER_TRAINING_RUNTIMES, runtime("local"))
    fleet.hub.remove(CLUSTER_TRAINING_RUNTIMES, "torch")
    rehearsal = await fleet.sync(prune=True)
    assert told(rehearsal) == [("delete", "ClusterTrainingRuntime torch")]
    assert Key("", "torch") in fleet.runtimes
    assert (await fleet.sync(apply=True, prune=True)).settled
    assert set(fleet.runtimes) == {Key("", "local")}


async def test_own_eyes_write_where_multikueue_may_not(fleet: Fleet) -> None:
    async with FakeCluster() as other, other.client() as admin_client:
        other.fill({**content(), CLUSTER_TRAINING_RUNTIMES: []})
        assert (await fleet.sync(apply=True, admin_clients={"worker1": admin_client})).settled
        assert Key("", "torch") in other.objects(CLUSTER_TRAINING_RUNTIMES)
    assert fleet.runtimes == {}
