"""Objects of the older shape on a cluster without a network: handed down, handed back, never taken over."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.unit.legacy.older.jobs import NAMESPACE, job, on_runtime, runtime
from tests.unit.operator.objects import condition
from tests.unit.operator.objects import runtime as todays_runtime
from tests.unit.operator.objects import train_job as todays_job
from tests.unit.operator.world import Crash, CrashError, MemoryClient
from trainplane.api.legacy import names as legacy_names
from trainplane.kube.clock import SystemClock
from trainplane.kube.controller import DONE, Failed, RequeueAfter, Terminal
from trainplane.kube.errors import ForbiddenError
from trainplane.kube.metrics import Metrics
from trainplane.kube.resource import Key
from trainplane.kube.testing.clock import FakeClock
from trainplane.kube.testing.storage import Storage
from trainplane.kube.testing.verbs import collection_of
from trainplane.operator.apply import Writer
from trainplane.operator.legacy.older.assembly import Older
from trainplane.operator.stores import Stores
from trainplane.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    OLDER_CLUSTER_TRAINING_RUNTIMES,
    OLDER_TRAIN_JOBS,
    OLDER_TRAINING_RUNTIMES,
    TRAIN_JOBS,
    TRAINING_RUNTIMES,
)

if TYPE_CHECKING:
    from trainplane.kube.resource import Resource
    from trainplane.kube.store import Store

Tree = dict[str, Any]

KINDS = (
    legacy_names.V2ALPHA1_TRAIN_JOBS,
    legacy_names.V2ALPHA1_TRAINING_RUNTIMES,
    legacy_names.V2ALPHA1_CLUSTER_TRAINING_RUNTIMES,
)


@dataclass
class World:
    """A storage, and the older shape's part of an operator on it; `settle` works until nothing is left to do."""

    storage: Storage = field(default_factory=Storage)
    kinds: tuple[str, ...] = KINDS

    def __post_init__(self) -> None:
        self.client = MemoryClient(self.storage)
        self.stores = Stores()
        self.seen = 0
        self.older = Older(
            self.kinds,
            self.client,
            Writer(self.client),
            self.stores,
            FakeClock(),
            metrics=Metrics(SystemClock()),
            initializers="initializers:1",
        )
        self.mirrored: dict[Any, Store] = {
            collection_of(store.resource): store
            for store in (*self.stores.all(), *(reflector.store for reflector in self.older.reflectors()))
        }
        self.handlers = {**self.older.handlers()}
        for reflector in self.older.reflectors():
            self.handlers[reflector.store] = list(reflector._handlers)
        self.results: dict[tuple[str, Key], Any] = {}

    def put(self, resource: Resource, obj: Tree) -> Tree:
        return self.storage.put(collection_of(resource), obj)

    def find(self, resource: Resource, name: str, namespace: str = NAMESPACE) -> Tree | None:
        return self.storage.objects.get(collection_of(resource), {}).get(Key(namespace, name))

    def older_job(self, name: str = "job") -> Tree:
        found = self.find(OLDER_TRAIN_JOBS, name)
        assert found is not None
        return found

    def todays_job(self, name: str = "job") -> Tree:
        found = self.find(TRAIN_JOBS, name)
        assert found is not None
        return found

    def edit(self, resource: Resource, name: str = "job", namespace: str = NAMESPACE, **spec: Any) -> None:
        """Change an older object as a user would."""
        found = self.find(resource, name, namespace)
        assert found is not None
        meta = {**found["metadata"], "generation": found["metadata"].get("generation", 1) + 1}
        self.put(resource, {**found, "metadata": meta, "spec": {**found["spec"], **spec}})

    def says(self, **status: Any) -> None:
        """Let the operator report of today's TrainJob."""
        self.put(TRAIN_JOBS, {**self.todays_job(), "status": status})

    def sync(self) -> None:
        for change in self.storage.history[self.seen :]:
            store = self.mirrored.get(change.collection)
            if store is None:
                continue
            obj = change.after if change.after is not None else change.final
            sighting = store.read(msgspec.Raw(msgspec.json.encode(obj)))
            for one in store.put(sighting) if change.after is not None else store.delete(sighting):
                for handle in self.handlers.get(store, ()):
                    handle(one)
        self.seen = len(self.storage.history)
        for store in self.mirrored.values():
            store.observed = self.storage.revision

    async def settle(self) -> World:
        """Work on every key that news names until there is none; the results are of each key's last look."""
        for _ in range(20):
            self.sync()
            busy = False
            for controller in self.older.controllers:
                while len(controller.queue):
                    busy = True
                    key, _ = await controller.queue.get()
                    self.results[controller.name, key] = await controller._reconcile(key)
                    controller.queue.done(key)
            if not busy:
                return self
        raise AssertionError(f"never comes to rest: {self.client.writes}")

    def result(self, name: str = "job") -> Any:
        return self.results["v2alpha1trainjobs_controller", Key(NAMESPACE, name)]


def in_sync(tree: Tree) -> Tree:
    found: Tree = next(one for one in tree["status"]["conditions"] if one["type"] == "InSync")
    return found


async def test_a_job_without_a_runtime_gets_one_and_a_job_of_its_name() -> None:
    world = World()
    world.put(OLDER_TRAIN_JOBS, job())
    await world.settle()
    ref = world.todays_job()["spec"]["runtimeRef"]
    assert (ref["kind"], ref["name"]) == ("TrainingRuntime", "v2alpha1-trainjob.job")
    assert world.find(TRAINING_RUNTIMES, "v2alpha1-trainjob.job") is not None
    assert in_sync(world.older_job())["status"] == "True"


async def test_a_job_is_written_once_and_its_status_when_it_changes() -> None:
    world = World()
    world.put(OLDER_TRAIN_JOBS, job())
    await world.settle()
    written = list(world.client.writes)
    assert written == [
        "apply trainingruntimes v2alpha1-trainjob.job",
        "apply trainjobs job",
        "patch v2alpha1trainjobs/status job",
    ]
    world.says(phase="Pending")
    await world.settle()
    again = await World(world.storage).settle()  # a replica that remembers nothing
    assert (world.client.writes, again.client.writes) == (written, [])


@pytest.mark.parametrize("acted", [False, True])
@pytest.mark.parametrize("at", range(3))
async def test_a_crash_at_any_write_is_made_good(at: int, *, acted: bool) -> None:
    world = World()
    world.put(OLDER_TRAIN_JOBS, job())
    world.client.crash = Crash(at, acted)
    with pytest.raises(CrashError):
        await world.settle()
    again = await World(world.storage).settle()
    assert in_sync(again.older_job())["status"] == "True"
    assert again.todays_job()["spec"]["runtimeRef"]["name"] == "v2alpha1-trainjob.job"


async def test_the_status_comes_back_with_state_conditions_and_metrics() -> None:
    world = World()
    world.put(OLDER_TRAIN_JOBS, job())
    await world.settle()
    metrics = [{"name": "loss", "value": "0.1"}]
    progress = {"metrics": metrics, "lastUpdatedTime": "2026-01-01T00:00:00Z"}
    world.says(phase="Running", trainerStatus=progress)
    await world.settle()
    assert (world.older_job()["status"]["state"], world.older_job()["status"]["metrics"]) == ("RUNNING", metrics)
    world.says(phase="Succeeded", conditions=[condition("Complete")], trainerStatus=progress)
    await world.settle()
    status = world.older_job()["status"]
    assert status["state"] == "SUCCESS"
    assert [one["type"] for one in status["conditions"]] == ["Complete", "InSync"]


@pytest.mark.parametrize("end", ["Complete", "Failed"])
async def test_what_is_over_is_not_made_again(end: str) -> None:
    world = World()
    world.put(OLDER_TRAIN_JOBS, job())
    await world.settle()
    world.says(conditions=[condition(end)])
    await world.settle()
    world.storage.delete(collection_of(TRAIN_JOBS), Key(NAMESPACE, "job"))
    await world.settle()
    assert world.find(TRAIN_JOBS, "job") is None
    assert world.older_job()["status"]["state"] == {"Complete": "SUCCESS", "Failed": "FAILED"}[end]


async def test_what_is_over_does_not_mind_who_has_its_name_later() -> None:
    world = World()
    world.put(OLDER_TRAIN_JOBS, job())
    await world.settle()
    world.says(conditions=[condition("Complete")])
    await world.settle()
    world.storage.delete(collection_of(TRAIN_JOBS), Key(NAMESPACE, "job"))
    world.put(TRAIN_JOBS, todays_job())
    await world.settle()
    assert (world.result(), in_sync(world.older_job())["status"]) == (DONE, "True")


async def test_what_is_deleted_before_its_end_is_made_again() -> None:
    world = World()
    world.put(OLDER_TRAIN_JOBS, job())
    await world.settle()
    world.storage.delete(collection_of(TRAIN_JOBS), Key(NAMESPACE, "job"))
    await world.settle()
    assert world.todays_job()["spec"]["trainer"]["image"] == "my/trainer:1"


async def test_suspend_is_passed_on_and_taken_back() -> None:
    world = World()
    world.put(OLDER_TRAIN_JOBS, job(suspend=True))
    await world.settle()
    assert world.todays_job()["spec"]["suspend"] is True
    world.edit(OLDER_TRAIN_JOBS, suspend=False)
    await world.settle()
    assert not world.todays_job()["spec"].get("suspend")


async def test_what_others_change_is_left_to_them() -> None:
    world = World()
    world.put(OLDER_TRAIN_JOBS, job())
    await world.settle()
    found = world.todays_job()
    world.put(TRAIN_JOBS, {**found, "spec": {**found["spec"], "suspend": True}})
    await world.settle()
    assert world.todays_job()["spec"]["suspend"] is True


@pytest.mark.parametrize("owner", [[], [{"kind": "TrainJob", "name": "else", "uid": "u", "controller": True}]])
async def test_a_name_that_is_somebody_elses_is_told_and_never_taken(owner: list[Tree]) -> None:
    world = World()
    theirs = todays_job(meta={"ownerReferences": owner})
    world.put(TRAIN_JOBS, theirs)
    world.put(OLDER_TRAIN_JOBS, job())
    await world.settle()
    told = in_sync(world.older_job())
    assert (told["status"], told["reason"]) == ("False", "NameTaken")
    assert "TrainJob job is not controlled by this TrainJob" in told["message"]
    assert world.todays_job()["spec"] == theirs["spec"]
    assert isinstance(world.result(), Failed)


async def test_a_runtime_of_that_name_is_not_taken_either() -> None:
    world = World()
    theirs = todays_runtime("v2alpha1-trainjob.job", kind="TrainingRuntime")
    world.put(TRAINING_RUNTIMES, theirs)
    world.put(OLDER_TRAIN_JOBS, job())
    await world.settle()
    assert in_sync(world.older_job())["reason"] == "NameTaken"
    assert world.find(TRAIN_JOBS, "job") is None
    found = world.find(TRAINING_RUNTIMES, "v2alpha1-trainjob.job")
    assert found is not None
    assert found["spec"] == theirs["spec"]


async def test_a_name_that_the_mirror_does_not_know_yet_is_asked_for_first() -> None:
    world = World()
    world.put(OLDER_TRAIN_JOBS, on_runtime())
    world.sync()
    world.put(TRAIN_JOBS, todays_job())
    (controller,) = [one for one in world.older.controllers if one.name == "v2alpha1trainjobs_controller"]
    result = await controller._reconcile(Key(NAMESPACE, "job"))
    assert isinstance(result, Failed)
    assert "ownerReferences" not in world.todays_job()["metadata"]


async def test_what_an_earlier_job_of_the_name_left_is_waited_for() -> None:
    world = World()
    owner = {"kind": "TrainJob", "name": "job", "uid": "uid-before", "controller": True}
    world.put(TRAIN_JOBS, todays_job(meta={"ownerReferences": [owner]}))
    world.put(OLDER_TRAIN_JOBS, job())
    await world.settle()
    assert isinstance(world.result(), RequeueAfter)
    assert "status" not in world.older_job()


async def test_what_admission_refuses_is_told_at_a_bounded_length_and_tried_again() -> None:
    world = World()
    refusals = [ForbiddenError("spec.trainer.image: is not allowed " + "x" * 9999) for _ in range(9)]
    world.client.refuse["apply trainjobs"] = deque(refusals)
    world.put(OLDER_TRAIN_JOBS, job())
    await world.settle()
    told = in_sync(world.older_job())
    assert told["reason"] == "Refused"
    assert "spec.trainer.image: is not allowed" in told["message"]
    assert len(told["message"]) <= 1024
    again = await World(world.storage).settle()
    assert in_sync(again.older_job())["status"] == "True"


async def test_a_job_that_says_too_little_is_told_so() -> None:
    world = World()
    world.put(OLDER_TRAIN_JOBS, job(numNodes=None))
    await world.settle()
    assert "spec.numNodes" in in_sync(world.older_job())["message"]
    assert world.find(TRAIN_JOBS, "job") is None


async def test_a_job_that_cannot_be_read_ends_there() -> None:
    world = World()
    world.put(OLDER_TRAIN_JOBS, {**job(), "spec": {"numNodes": "many"}})
    await world.settle()
    assert isinstance(world.result(), Terminal)


async def test_a_job_that_goes_is_left_alone() -> None:
    world = World()
    world.put(OLDER_TRAIN_JOBS, job(meta={"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}))
    await world.settle()
    assert (world.result(), world.client.writes) == (DONE, [])


@pytest.mark.parametrize(
    ("kind", "older", "todays", "namespace"),
    [
        ("TrainingRuntime", OLDER_TRAINING_RUNTIMES, TRAINING_RUNTIMES, NAMESPACE),
        ("ClusterTrainingRuntime", OLDER_CLUSTER_TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, ""),
    ],
)
async def test_a_runtime_is_handed_down_with_its_edits(
    kind: str, older: Resource, todays: Resource, namespace: str
) -> None:
    world = World()
    world.put(older, runtime(kind=kind))
    world.put(OLDER_TRAIN_JOBS, on_runtime(kind=kind))
    await world.settle()
    assert world.todays_job()["spec"]["runtimeRef"]["name"] == "v2alpha1-runtime.torch"
    world.edit(older, "torch", namespace, mlPolicy={"numNodes": 5})
    await world.settle()
    made = world.find(todays, "v2alpha1-runtime.torch", namespace)
    assert made is not None
    assert made["spec"]["mlPolicy"] == {"numNodes": 5}
    before = world.find(older, "torch", namespace)
    assert before is not None
    assert in_sync(before)["observedGeneration"] == 2


async def test_todays_runtime_is_meant_where_there_is_no_older_one() -> None:
    world = World()
    world.put(CLUSTER_TRAINING_RUNTIMES, todays_runtime())
    world.put(OLDER_TRAIN_JOBS, on_runtime())
    await world.settle()
    assert world.todays_job()["spec"]["runtimeRef"]["name"] == "torch"
    world.put(OLDER_CLUSTER_TRAINING_RUNTIMES, runtime())
    world.edit(OLDER_TRAIN_JOBS, suspend=True)
    await world.settle()
    assert world.todays_job()["spec"]["runtimeRef"]["name"] == "torch"  # as it began


async def test_a_job_never_runs_on_what_took_its_runtimes_name() -> None:
    world = World()
    world.put(CLUSTER_TRAINING_RUNTIMES, todays_runtime("v2alpha1-runtime.torch"))
    world.put(OLDER_CLUSTER_TRAINING_RUNTIMES, runtime())
    world.put(OLDER_TRAIN_JOBS, on_runtime())
    await world.settle()
    found = world.find(OLDER_CLUSTER_TRAINING_RUNTIMES, "torch", "")
    assert found is not None
    assert in_sync(found)["reason"] == "NameTaken"
    assert in_sync(world.older_job())["reason"] == "RuntimeNotReady"
    assert world.find(TRAIN_JOBS, "job") is None


async def test_a_runtime_that_is_gone_is_made_again() -> None:
    world = World()
    world.put(OLDER_CLUSTER_TRAINING_RUNTIMES, runtime())
    await world.settle()
    world.storage.delete(collection_of(CLUSTER_TRAINING_RUNTIMES), Key("", "v2alpha1-runtime.torch"))
    await world.settle()
    assert world.find(CLUSTER_TRAINING_RUNTIMES, "v2alpha1-runtime.torch", "") is not None


async def test_nothing_is_watched_that_no_admin_asked_for() -> None:
    assert World(kinds=()).older.reflectors() == []
    assert World(kinds=()).older.controllers == []
    (only,) = World(kinds=KINDS[:1]).older.reflectors()
    assert only.resource is OLDER_TRAIN_JOBS
