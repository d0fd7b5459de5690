"""The cluster's API server: the fake one's storage and verbs, with what admission and managed fields add.

A write of a TrainJob or a runtime is reviewed by a live replica's own webhooks, in this process. Every change that is
stored is told to `listeners` in the same instant, with who wrote it: models and judges see the truth, replicas only
what their watches bring.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from tests.simulation.jobset import may_become
from trainplane.kube.admission import AdmissionRequest, GroupVersionKind
from trainplane.kube.errors import ConflictError, InternalServerError, InvalidError, error_class
from trainplane.kube.testing.patches import json_patch
from trainplane.kube.testing.storage import Collection, Leaf, Storage, Tree
from trainplane.kube.testing.verbs import Asking, act, collection_of
from trainplane.operator import webhooks
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, JOB_SETS, TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trainplane.kube.resource import Key, Resource
    from trainplane.kube.testing.storage import Change
    from trainplane.kube.testing.verbs import Target

    Listener = Callable[[Change, str], None]
    Reviewer = Callable[[str, AdmissionRequest], Awaitable[Any]]

_Outer = TypeVar("_Outer")
_Inner = TypeVar("_Inner")
_Value = TypeVar("_Value")

JOBSETS = collection_of(JOB_SETS)
TRAINJOBS = collection_of(TRAIN_JOBS)
RUNTIMES = collection_of(CLUSTER_TRAINING_RUNTIMES)

FIXED = frozenset({"runtimeRef", "managedBy", "trainer", "activeDeadlineSeconds"})
"""Fields of a TrainJob that its schema lets nobody change; whether one may come or go is for the webhook."""

REVIEWED = {
    TRAINJOBS: ("TrainJob", (webhooks.MUTATE_TRAIN_JOB, webhooks.VALIDATE_TRAIN_JOB)),
    RUNTIMES: ("ClusterTrainingRuntime", (webhooks.VALIDATE_CLUSTER_TRAINING_RUNTIME,)),
}

PATCH_RETRIES = 5
"""How often the API server itself tries a patch again that met another write between its review and its storing."""


OTHERS_WRITES = 100_000
"""Revisions that the rest of a cluster writes in an hour, between a backup and its restore. So a server that is set
back does not catch up in a history with who has seen it since."""


class Backup(NamedTuple):
    """What a storage held at a moment."""

    revision: int
    objects: dict[Collection, dict[Key, Tree]]
    applied: dict[tuple[Collection, Key], dict[tuple[str, str], dict[Leaf, Any]]]
    owned: dict[str, dict[tuple[Collection, Key], None]]


class Record(Storage):
    """A storage that tells of each change, and keeps managedFields of what was applied to JobSets."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self.listeners: list[Listener] = []
        self.writer = ""
        """Who writes just now."""
        self.owned: dict[str, dict[tuple[Collection, Key], None]] = {}
        """What says that it belongs to an owner, by the owner's uid, the oldest first."""
        self._applying: tuple[str, dict[str, Any]] | None = None
        self._hours = 0
        self.is_full = False
        """Whether etcd has no space left: what is there can be read and deleted, and nothing written."""

    def apply(self, collection: Collection, key: Key, obj: Tree, **options: Any) -> Tree:
        """Apply, and note what is held by whom, as a JobSet's writer looks at it."""
        if collection == JOBSETS and not options.get("subresource"):
            said = {name: value for name, value in obj.items() if name not in {"apiVersion", "kind", "status"}}
            meta = {name: value for name, value in said["metadata"].items() if name in {"labels", "annotations"}}
            owners = said["metadata"].get("ownerReferences") or ()
            fields = _fields({**said, "metadata": meta})
            if owners:
                fields["f:metadata"] = {
                    **fields.get("f:metadata", {}),
                    "f:ownerReferences": {f'k:{{"uid":"{one["uid"]}"}}': {} for one in owners},
                }
            self._applying = options["manager"], fields
        try:
            return super().apply(collection, key, obj, **options)
        finally:
            self._applying = None

    def _store(self, collection: Collection, key: Key, before: Tree | None, after: Tree) -> Tree:
        if self._applying is not None and not _same(before, after):
            manager, fields = self._applying
            entry = {"manager": manager, "operation": "Apply", "time": self._stamp(), "fieldsV1": fields}
            after = {**after, "metadata": {**after["metadata"], "managedFields": [entry]}}
        if self.is_full and not _same(before, after):
            raise InternalServerError("etcdserver: mvcc: database space exceeded", code=500)
        revision = self.revision
        stored = super()._store(collection, key, before, after)
        if self.revision > revision:
            self._tell()
        return stored

    def _remove(self, collection: Collection, key: Key, last: Tree) -> Tree:
        removed = super()._remove(collection, key, last)
        self._tell()
        return removed

    def backup(self) -> Backup:
        """Return all that is stored now."""
        return Backup(self.revision, _copy(self.objects), _copy(self.applied), _copy(self.owned))

    def pass_hour(self) -> None:
        """Let the rest of the cluster write on."""
        self._hours += 1
        self.revision += self._hours * OTHERS_WRITES

    def restore(self, kept: Backup, *, bumped: bool) -> None:
        """Hold what was held then, and no history. `bumped`: revisions go on from a higher one, not back.

        As `etcdutl snapshot restore` does, without and with `--bump-revision` and `--mark-compacted`: either way
        objects have the versions and uids that they had (`tests/integration/kube/test_restored.py`).
        """
        self.objects, self.applied, self.owned = kept.objects, kept.applied, kept.owned
        self.revision = self.revision + OTHERS_WRITES if bumped else kept.revision
        self.era += 1
        self.compact()
        self.history.clear()

    def _tell(self) -> None:
        change = self.history[-1]
        self._note_owners(change)
        for listener in self.listeners:
            listener(change, self.writer)

    def _note_owners(self, change: Change) -> None:
        place, was, now = (change.collection, change.key), _owners(change.before), _owners(change.after)
        for uid in was - now:
            self.owned[uid].pop(place, None)
            if not self.owned[uid]:
                del self.owned[uid]
        for uid in now - was:
            self.owned.setdefault(uid, {})[place] = None


class ApiServer:
    """Answers requests; `reviewer` asks a replica's webhooks, and raises if none can be asked."""

    def __init__(self, storage: Record) -> None:
        self.storage = storage
        self.reviewer: Reviewer | None = None
        self.logs: dict[str, bytes] = {}
        """What containers logged last, by the uid of their pod, where it is not what every pod prints."""
        self._watchers: dict[Collection, list[asyncio.Event]] = {}
        self._lines: dict[tuple[str, int, Collection, str, str], bytes] = {}
        storage.listeners.append(self._changed)

    def aside(self) -> contextlib.AbstractContextManager[object]:
        """Return what the server's own work is done in where a replica's task does it: whoever measures tells apart."""
        return contextlib.nullcontext()

    # -- watches

    def follow(self, collection: Collection) -> asyncio.Event:
        """Return an event that is set at each change of a collection from now on."""
        news = asyncio.Event()
        self._watchers.setdefault(collection, []).append(news)
        return news

    def leave(self, collection: Collection, news: asyncio.Event) -> None:
        """Follow no more."""
        if news in self._watchers[collection]:
            self._watchers[collection].remove(news)

    def _changed(self, change: Change, _: str) -> None:
        for news in self._watchers.get(change.collection, ()):
            news.set()

    # -- requests

    async def answer(self, asking: Asking, who: str, *, stale: int | None = None) -> Tree:
        """Do what is asked; raises ApiError."""
        target = asking.target
        reviewed = target is not None and target.collection in REVIEWED and not target.subresource
        if target is None or not reviewed or asking.verb not in {"create", "update", "patch", "delete"}:
            return self._act(asking, who, stale)
        for _ in range(PATCH_RETRIES):
            before = self.storage.objects.get(target.collection, {}).get(target.key)
            if asking.verb == "delete":
                await self._review(target, "DELETE", before, None)
                return self._act(asking, who)
            dry = asking._replace(query={**asking.query, "dryRun": "All"})
            after = self._act(dry, who)
            after = await self._review(target, "UPDATE" if before is not None else "CREATE", before, after) or after
            now = self.storage.objects.get(target.collection, {}).get(target.key)
            if now is before or now == before:
                return self._keep(target, before, after, who)
            if asking.verb == "update":
                break
        raise ConflictError(f'{target.collection.plural} "{target.name}": the object has been modified')

    def _act(self, asking: Asking, who: str, stale: int | None = None) -> Tree:
        target = asking.target
        with self.aside():
            self.storage.writer = who
            if target is not None and target.collection == JOBSETS:
                if asking.verb in {"patch", "update"}:
                    self._judge_jobset(asking, target)
                elif asking.verb == "delete" and b'"Foreground"' in asking.body:
                    return self._delete_last(asking, target)
            return act(self.storage, asking, stale=stale)

    def _delete_last(self, asking: Asking, target: Target) -> Tree:
        """Mark a JobSet as deleted in the foreground: the garbage collector removes it after its Jobs and pods."""
        before = self.storage.get(target.collection, target.key)
        for name, wanted in (msgspec.json.decode(asking.body).get("preconditions") or {}).items():
            if wanted not in {None, before["metadata"][name]}:
                raise ConflictError(f"the {name} in the precondition ({wanted}) is not {before['metadata'][name]}")
        if "deletionTimestamp" in before["metadata"]:
            return before
        mark = {"deletionTimestamp": self.storage._stamp(), "finalizers": ["foregroundDeletion"]}
        return self.storage.put(target.collection, {**before, "metadata": {**before["metadata"], **mark}})

    def _keep(self, target: Target, before: Tree | None, after: Tree, who: str) -> Tree:
        """Store what the reviews made of a write."""
        self.storage.writer = who
        if before is None:
            made = {**after, "metadata": {k: v for k, v in after["metadata"].items() if k != "resourceVersion"}}
            return self.storage.create(target.collection, target.namespace, made)
        was, now = before["spec"], after["spec"]
        if target.collection == TRAINJOBS and any(was[one] != now[one] for one in FIXED & was.keys() & now.keys()):
            raise InvalidError("spec: Invalid value: cannot be changed once the TrainJob exists")
        return self.storage.update(target.collection, target.key._replace(name=after["metadata"]["name"]), after)

    async def _review(self, target: Target, operation: Any, before: Tree | None, after: Tree | None) -> Tree | None:
        """Ask the webhooks in their order; returns what they made of it. Raises as the API server does."""
        kind, paths = REVIEWED[target.collection]
        for path in paths:
            if self.reviewer is None:
                continue
            request = AdmissionRequest(
                uid="review",
                operation=operation,
                kind=GroupVersionKind(kind, target.collection.version, target.collection.group),
                name=target.name or ((after or {}).get("metadata") or {}).get("name", ""),
                namespace=target.namespace,
                object=msgspec.Raw(b"" if after is None else msgspec.json.encode(after)),
                old_object=msgspec.Raw(b"" if before is None else msgspec.json.encode(before)),
            )
            verdict = await self.reviewer(path, request)
            if not verdict.allowed:
                raise error_class(verdict.code or 403)(verdict.message or "denied", code=verdict.code or 403)
            if verdict.patch and after is not None:
                after = json_patch(after, list(verdict.patch))
        return after

    def _judge_jobset(self, asking: Asking, target: Target) -> None:
        """Refuse what JobSet's own webhook refuses: other jobs in a JobSet that runs."""
        before = self.storage.objects.get(JOBSETS, {}).get(target.key)
        if before is None or target.subresource:
            return
        after = act(self.storage, asking._replace(query={**asking.query, "dryRun": "All"}))
        if not may_become(before["spec"], after["spec"]):
            raise InvalidError("spec.replicatedJobs: Invalid value: field is immutable")

    def restore(self, kept: Backup, *, bumped: bool) -> None:
        """Go on with what a backup held; whoever watches is to be cut off first."""
        self.storage.restore(kept, bumped=bumped)
        self._lines.clear()

    # -- what models do, at once and without admission

    def put(self, resource: Resource, obj: Tree, who: str) -> Tree:
        """Store an object as it is."""
        self.storage.writer = who
        return self.storage.put(collection_of(resource), obj)

    def find(self, collection: Collection, key: Key) -> Tree | None:
        """Return an object as it is, or None."""
        return self.storage.objects.get(collection, {}).get(key)

    def line(self, kind: str, obj: Tree, collection: Collection) -> bytes:
        """Return a watch event as it goes over the wire; all replicas get the same bytes."""
        if kind in {"BOOKMARK", "ERROR"}:
            return msgspec.json.encode({"type": kind, "object": obj}) + b"\n"
        meta = obj["metadata"]
        key = (kind, int(meta["resourceVersion"]), collection, meta.get("name", ""), obj.get("kind", ""))
        found = self._lines.get(key)
        if found is None:
            found = self._lines[key] = msgspec.json.encode({"type": kind, "object": obj}) + b"\n"
        return found


def _copy(held: dict[_Outer, dict[_Inner, _Value]]) -> dict[_Outer, dict[_Inner, _Value]]:
    return {name: dict(one) for name, one in held.items()}


def _owners(obj: Tree | None) -> set[str]:
    return set() if obj is None else {one["uid"] for one in obj["metadata"].get("ownerReferences") or ()}


def _same(before: Tree | None, after: Tree) -> bool:
    if before is None:
        return False
    skipped = {"resourceVersion", "managedFields"}
    return {**before, "metadata": _but(before["metadata"], skipped)} == {
        **after,
        "metadata": _but(after["metadata"], skipped),
    }


def _but(tree: Tree, names: set[str]) -> Tree:
    return {name: value for name, value in tree.items() if name not in names}


def _fields(tree: Any) -> Tree:
    """Return what managedFields would say of an applied tree, its lists atomic."""
    if not isinstance(tree, dict):
        return {}
    return {f"f:{name}": _fields(value) for name, value in tree.items()}


__all__ = ["JOBSETS", "RUNTIMES", "TRAINJOBS", "ApiServer", "Leaf", "Record"]
