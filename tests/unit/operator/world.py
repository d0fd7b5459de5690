"""A cluster without a network: the fake API server's storage, a client straight on it, and the reconciler under test.

`World.settle` lets watches catch up and reconciles until nothing is left to do, as the controller would. A `Crash` ends
the process at a write: before it reaches the server or after, which are the two ways to lose it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from prometheus_client import CollectorRegistry

from tests.unit.operator.objects import NAMESPACE, pod, runtime, train_job
from trainplane.kube.client import APPLY_PATCH, MERGE_PATCH, Client
from trainplane.kube.codec import decode, encode
from trainplane.kube.controller import Done, RequeueAfter
from trainplane.kube.errors import NotFoundError
from trainplane.kube.events import EventRecorder
from trainplane.kube.resource import Key
from trainplane.kube.testing.clock import FakeClock
from trainplane.kube.testing.patches import merge_patch
from trainplane.kube.testing.storage import Storage
from trainplane.kube.testing.verbs import collection_of
from trainplane.operator.apply import Writer
from trainplane.operator.metrics import TrainJobMetrics
from trainplane.operator.owned import OwnedMirrors
from trainplane.operator.runtimes import Runtimes
from trainplane.operator.snapshot import Snapshots
from trainplane.operator.status import UNHURRIED_SECONDS
from trainplane.operator.stores import Stores
from trainplane.operator.trainjob import TrainJobReconciler
from trainplane.render.pipeline import Pipeline
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, CONFIG_MAPS, JOB_SETS, PODS, TRAIN_JOBS

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import AsyncGenerator, Callable

    from trainplane.kube.resource import Resource
    from trainplane.kube.store import Store
    from trainplane.operator.others import Prepare

Tree = dict[str, Any]

PIPELINE = Pipeline.default()


class CrashError(BaseException):
    """The process dies here."""


@dataclass
class Crash:
    """Die at the so-manieth write, before or after the server acted on it."""

    at: int
    acted: bool


@dataclass
class Asked:
    """A request, as tests look at it."""

    verb: str
    plural: str
    name: str
    subresource: str = ""
    body: Any = None

    def __str__(self) -> str:
        place = f"{self.plural}/{self.subresource}" if self.subresource else self.plural
        return f"{self.verb} {place} {self.name}"


class MemoryClient(Client):
    """A `Client` whose requests are calls on a storage. `refuse` holds errors to raise, by `verb plural`."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.asked: list[Asked] = []
        self.refuse: dict[str, deque[Exception]] = {}
        self.printed: dict[str, str] = {}
        """What pods printed, by name; a pod that is not here has no log."""
        self.crash: Crash | None = None
        self._writes_permitted: Callable[[], None] | None = None

    def permitted(self, permit: Callable[[], None]) -> MemoryClient:
        self._writes_permitted = permit
        return self

    @property
    def namespace(self) -> str:
        return "default"

    @property
    def writes(self) -> list[str]:
        """What was written, in order."""
        return [str(one) for one in self.asked if one.verb not in {"get", "list"}]

    async def get(self, resource: Resource, name: str, namespace: str | None = None, **options: Any) -> Any:
        self._note(Asked("get", resource.plural, name))
        found = self.storage.get(collection_of(resource), Key(namespace or "", name))
        return self._answer(found, options)

    async def list_all(
        self, resource: Resource, namespace: str | None = None, *, labels: Any = None, **options: Any
    ) -> list[Any]:
        self._note(Asked("list", resource.plural, ""))
        found = self.storage.objects.get(collection_of(resource), {})
        return [
            self._answer(tree, options)
            for key, tree in found.items()
            if key.namespace == namespace and (labels or {}).items() <= tree["metadata"].get("labels", {}).items()
        ]

    async def create(self, resource: Resource, obj: Any, namespace: str | None = None, **options: Any) -> Any:
        tree = msgspec.json.decode(encode(obj))
        where = tree["metadata"].get("namespace") or namespace or ""
        asked = Asked("create", resource.plural, tree["metadata"]["name"], body=tree)
        return self._record_write(asked, lambda: self.storage.create(collection_of(resource), where, tree), options)

    async def apply(self, resource: Resource, obj: Any, **options: Any) -> Any:
        tree = msgspec.json.decode(encode(obj))
        key = Key(tree["metadata"].get("namespace") or "", tree["metadata"]["name"])
        manager = options["field_manager"]
        sub = options.get("subresource") or ""
        asked = Asked("apply", resource.plural, key.name, sub, body=tree)

        def act() -> Tree:
            return self.storage.apply(
                collection_of(resource), key, tree, manager=manager, force=True, subresource=sub, dry_run=False
            )

        return self._record_write(asked, act, options)

    async def patch(
        self, resource: Resource, name: str, patch: Any, namespace: str | None = None, **options: Any
    ) -> Any:
        assert options["content_type"] in {MERGE_PATCH, APPLY_PATCH}
        key, sub = Key(namespace or "", name), options.get("subresource") or ""
        collection = collection_of(resource)

        def act() -> Tree:
            merged = merge_patch(self.storage.get(collection, key), patch)
            return self.storage.update(collection, key, merged, subresource=sub)

        return self._record_write(Asked("patch", resource.plural, name, sub, patch), act, options)

    async def delete(self, resource: Resource, name: str, namespace: str | None = None, **options: Any) -> Any:
        key = Key(namespace or "", name)
        uid = options.get("preconditions_uid")
        asked = Asked("delete", resource.plural, name)
        return self._record_write(asked, lambda: self.storage.delete(collection_of(resource), key, uid=uid), options)

    async def logs(self, namespace: str, pod: str, **options: Any) -> AsyncGenerator[bytes, None]:
        self._note(Asked("get", "pods", pod, "log", options))
        if pod not in self.printed:
            raise NotFoundError(f"pod {namespace}/{pod} not found")
        for line in self.printed[pod].splitlines()[-options["tail_lines"] :]:
            yield line.encode()

    def _record_write(self, asked: Asked, act: Callable[[], Tree], options: Tree) -> Any:
        if self._writes_permitted is not None:
            self._writes_permitted()
        number = len(self.writes)
        dies = self.crash is not None and self.crash.at == number
        if dies and self.crash is not None and not self.crash.acted:
            raise CrashError
        try:
            self._note(asked)
            return self._answer(act(), options)
        finally:
            if dies:
                raise CrashError

    def _note(self, asked: Asked) -> None:
        waiting = self.refuse.get(f"{asked.verb} {asked.plural}")
        self.asked.append(asked)
        if waiting:
            raise waiting.popleft()

    def _answer(self, tree: Tree, options: Tree) -> Any:
        return decode(encode(tree), options.get("type_", dict))


@dataclass
class World:
    """See the module's docstring."""

    storage: Storage = field(default_factory=Storage)
    clock: FakeClock = field(default_factory=FakeClock)
    leads: bool = True
    pipeline: Pipeline = PIPELINE
    prepare: Prepare | None = None

    def __post_init__(self) -> None:
        self.client = MemoryClient(self.storage)
        self.stores = Stores()
        self.owned = OwnedMirrors()
        self.seen = 0
        self.registry = CollectorRegistry()
        self.metrics = TrainJobMetrics(self.registry)
        self.recorder = EventRecorder(self.client, self.clock, "test")
        self.writer = Writer(self.client, lambda: self.leads)
        self.runtimes = Runtimes(self.client, self.stores)
        self.snapshots = Snapshots(self.client, self.writer, self.runtimes)
        self.reconciler = TrainJobReconciler(
            self.client,
            self.writer,
            self.stores,
            self.snapshots,
            self.pipeline,
            self.recorder,
            self.metrics,
            self.clock,
            self.owned,
            prepare=self.prepare,
        )

    def restart(self) -> World:
        """Return the same cluster with a fresh operator that remembers nothing."""
        return World(self.storage, self.clock, pipeline=self.pipeline)

    # -- the cluster

    def put(self, resource: Resource, obj: Tree) -> Tree:
        return self.storage.put(collection_of(resource), obj)

    def with_runtime(self, **changes: Any) -> World:
        self.put(CLUSTER_TRAINING_RUNTIMES, runtime(**changes))
        return self

    def find(self, resource: Resource, name: str, namespace: str = NAMESPACE) -> Tree | None:
        return self.storage.objects.get(collection_of(resource), {}).get(Key(namespace, name))

    def train_job(self, name: str = "job") -> Tree:
        found = self.find(TRAIN_JOBS, name)
        assert found is not None
        return found

    def job_set(self, name: str = "job") -> Tree | None:
        return self.find(JOB_SETS, name)

    def snapshot(self, name: str = "job") -> Tree | None:
        return self.find(CONFIG_MAPS, f"{name}-runtime-snapshot")

    def edit(self, name: str = "job", *, annotations: Tree | None = None, **spec: Any) -> None:
        """Change a TrainJob as a user would."""
        job = self.train_job(name)
        meta = {**job["metadata"]}
        if spec:
            meta["generation"] = meta.get("generation", 1) + 1
        if annotations:
            meta["annotations"] = annotations
        self.put(TRAIN_JOBS, {**job, "metadata": meta, "spec": {**job["spec"], **spec}})

    def jobset_says(self, *jobs: Tree, conditions: tuple[Tree, ...] = (), name: str = "job") -> None:
        """Write the status of a JobSet as its controller does; the count of its restarts stays."""
        jobset = self.job_set(name)
        assert jobset is not None
        restarts = jobset.get("status", {}).get("restarts", 0)
        status = {"restarts": restarts, "replicatedJobsStatus": list(jobs), "conditions": list(conditions)}
        self.put(JOB_SETS, {**jobset, "status": status})

    def pod_says(self, index: int = 0, *, attempt: int = 0, uid: str | None = None, **changes: Any) -> str:
        """Let the kubelet report of a pod of the JobSet `job`; returns its name."""
        jobset = self.job_set()
        assert jobset is not None
        made = pod(index, attempt=attempt, jobset_uid=uid or jobset["metadata"]["uid"], **changes)
        self.put(PODS, made)
        return str(made["metadata"]["name"])

    def delete(self, resource: Resource, name: str = "job", namespace: str = NAMESPACE) -> None:
        self.storage.delete(collection_of(resource), Key(namespace, name))

    # -- the operator

    def sync(self, *silent: Resource) -> None:
        """Let the watches bring all that happened, but for some that are silent."""
        mirrors = (*self.stores.all(), *self.owned.all())
        seen = {collection_of(store.resource): store for store in mirrors if store.resource not in silent}
        stores: dict[Any, Store] = seen
        is_list = not self.seen
        for change in self.storage.history[self.seen :]:
            store = stores.get(change.collection)
            if store is None:
                continue
            obj = change.after if change.after is not None else change.final
            sighting = store.read(msgspec.Raw(msgspec.json.encode(obj)))
            changes = store.put(sighting) if change.after is not None else store.delete(sighting)
            for one in changes:
                if store in self.owned.all() and not is_list:
                    self.reconciler.lost.changed(store, one)
                if store is self.stores.train_jobs:
                    self.metrics.changed(one)
                    self.reconciler.chronicle.changed(one)
                    self.reconciler.lost.train_job_changed(one)
        self.seen = len(self.storage.history)
        for store in stores.values():
            store.observed = self.storage.revision

    def hear(self) -> None:
        """Let the watches bring all, just now."""
        self.sync()
        for store in self.stores.all():
            store.heard_at = self.clock.monotonic()

    async def reconcile(self, name: str = "job") -> Any:
        """Look at one TrainJob, with the mirrors as they are."""
        return await self.reconciler.reconcile(Key(NAMESPACE, name))

    def _is_unhurried(self, name: str) -> bool:
        """Whether all that waits is what nobody waits for, before the JobSet has said anything."""
        patience, _ = self.reconciler._waits.get(Key(NAMESPACE, name), (0.0, 0.0))
        return patience == UNHURRIED_SECONDS and not (self.job_set(name) or {}).get("status")

    @property
    def waits(self) -> bool:
        """Whether something was put off."""
        return bool(self.reconciler._waits or self.reconciler._objects._edited)

    async def settle(self, name: str = "job") -> Any:
        """Reconcile until a look brings no write, and return what the last look said.

        What waits for more to come waits in vain once the JobSet has said anything: its time passes here.
        """
        for _ in range(20):
            self.sync()
            before = self.storage.revision
            result = await self.reconcile(name)
            if self.storage.revision == before:
                if not self.waits:
                    return result
                if self._is_unhurried(name):
                    return DONE if result == RequeueAfter(UNHURRIED_SECONDS) else result
                assert isinstance(result, RequeueAfter)
                await self.clock.advance(result.seconds)
        raise AssertionError(f"never comes to rest: {self.client.writes}")

    # -- what tests ask

    def conditions(self, name: str = "job") -> list[tuple[str, str, str]]:
        status = self.train_job(name).get("status") or {}
        return [(one["type"], one["status"], one["reason"]) for one in status.get("conditions") or []]

    def news(self) -> list[str]:
        """Return the reasons of the events recorded, in order."""
        return [note.reason for note in self.recorder._notes.values()]

    def messages(self) -> list[str]:
        return [note.message for note in self.recorder._notes.values()]

    def take_writes(self) -> list[str]:
        """Return what was written since the last call."""
        writes = self.client.writes
        self.client.asked.clear()
        return writes


DONE = Done()


async def started(**spec: Any) -> World:
    """Return a world in which a TrainJob has become a JobSet, and nothing was asked yet."""
    world = World().with_runtime()
    world.put(TRAIN_JOBS, train_job(**spec))
    await world.settle()
    world.client.asked.clear()
    return world
