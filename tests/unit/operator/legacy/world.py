"""A cluster without a network for jobs of older kinds: a storage, and the reconciler of PyTorchJobs on it.

What is decided is scripted here, or `legacy`'s own: `decide` is a part of the world.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from prometheus_client import CollectorRegistry

from tests.unit.operator.objects import CREATED, NAMESPACE
from tests.unit.operator.world import MemoryClient
from trainplane.api.legacy.kinds import MPI, PYTORCH
from trainplane.kube.events import EventRecorder
from trainplane.kube.resource import Key
from trainplane.kube.testing.clock import FakeClock
from trainplane.kube.testing.storage import Storage
from trainplane.kube.testing.verbs import collection_of
from trainplane.legacy.decision import Decision, Observed, Settings
from trainplane.operator.apply import Writer
from trainplane.operator.legacy.jobs import LegacyJobReconciler
from trainplane.operator.legacy.metrics import JobMetrics
from trainplane.operator.legacy.mirrors import Mirrors
from trainplane.resources import LEGACY_JOBS, PODS

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.api.legacy.kinds import Kind
    from trainplane.kube.resource import Resource

Tree = dict[str, Any]

JOBS = LEGACY_JOBS[PYTORCH.name]
KEY = Key(NAMESPACE, "job")


def job(name: str = "job", *, uid: str = "uid-job", status: Tree | None = None, **run_policy: Any) -> Tree:
    """Return a PyTorchJob."""
    return {
        "apiVersion": PYTORCH.api_version,
        "kind": PYTORCH.name,
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": uid, "creationTimestamp": CREATED},
        "spec": {"runPolicy": run_policy, "pytorchReplicaSpecs": {}},
        **({"status": status} if status else {}),
    }


def controlled(resource: Resource, name: str, *, uid: str = "uid-job", by: str = "job", **changes: Any) -> Tree:
    """Return an object that a PyTorchJob controls."""
    owner = {"apiVersion": PYTORCH.api_version, "kind": PYTORCH.name, "name": by, "uid": uid, "controller": True}
    meta = {"name": name, "namespace": NAMESPACE, "ownerReferences": [owner], "labels": {"a": "b"}}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **changes}


def pods(count: int, **changes: Any) -> tuple[Tree, ...]:
    """Return pods of the job, to be made."""
    return tuple(controlled(PODS, f"job-worker-{index}", **changes) for index in range(count))


def nothing(seen: Observed) -> Decision:
    """Decide nothing."""
    del seen
    return Decision()


@dataclass
class World:
    """See the module's docstring."""

    decide: Callable[[Observed], Decision] = nothing
    storage: Storage = field(default_factory=Storage)
    clock: FakeClock = field(default_factory=FakeClock)
    leads: bool = True

    def __post_init__(self) -> None:
        self.client = MemoryClient(self.storage)
        self.mirrors = Mirrors((PYTORCH, MPI))
        self.seen = 0
        self.registry = CollectorRegistry()
        self.recorder = EventRecorder(self.client, self.clock, "test")
        self.looks: list[Observed] = []
        self.reconciler = LegacyJobReconciler(
            PYTORCH,
            self.mirrors,
            self.client,
            Writer(self.client, lambda: self.leads),
            self.recorder,
            JobMetrics(self.registry),
            self.clock,
            Settings(),
            self._decide,
        )

    def _decide(self, kind: Kind, seen: Observed, settings: Settings) -> Decision:
        assert (kind, settings) == (PYTORCH, Settings())
        self.looks.append(seen)
        return self.decide(seen)

    def restart(self) -> World:
        """Return the same cluster with a fresh operator that remembers nothing."""
        return World(self.decide, self.storage, self.clock)

    def put(self, resource: Resource, obj: Tree) -> Tree:
        return self.storage.put(collection_of(resource), obj)

    def delete(self, resource: Resource, name: str = "job") -> None:
        self.storage.delete(collection_of(resource), Key(NAMESPACE, name))

    def find(self, resource: Resource, name: str) -> Tree | None:
        return self.storage.objects.get(collection_of(resource), {}).get(Key(NAMESPACE, name))

    def names(self, resource: Resource) -> list[str]:
        return sorted(key.name for key in self.storage.objects.get(collection_of(resource), {}))

    def sync(self, *silent: Resource) -> None:
        """Let the watches bring all that happened, but for some that are silent."""
        stores = {collection_of(one.resource): one for one in self.mirrors.all() if one.resource not in silent}
        for change in self.storage.history[self.seen :]:
            store = stores.get(change.collection)
            if store is None:
                continue
            header = store.read(msgspec.Raw(msgspec.json.encode(change.after or change.final)))
            if change.after is not None:
                store.put(header)
            else:
                store.delete(header)
        if not silent:
            self.seen = len(self.storage.history)
        for store in stores.values():
            store.observed = self.storage.revision

    async def look(self, *silent: Resource) -> Any:
        """Let the watches catch up and reconcile once."""
        self.sync(*silent)
        return await self.reconciler.reconcile(KEY)

    async def settle(self) -> Any:
        """Reconcile until a look brings no write."""
        for _ in range(20):
            self.sync()
            before = self.storage.revision
            result = await self.reconciler.reconcile(KEY)
            if self.storage.revision == before:
                return result
        raise AssertionError(f"never comes to rest: {self.client.writes}")

    @property
    def news(self) -> list[tuple[str, str]]:
        """The reasons and messages of what was told, in order."""
        return [(note.reason, note.message) for note in self.recorder._notes.values()]

    def count(self, event: str) -> float:
        labels = {"job_namespace": NAMESPACE, "framework": "pytorch"}
        return self.registry.get_sample_value(f"training_operator_jobs_{event}_total", labels) or 0.0
