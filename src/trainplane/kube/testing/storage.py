"""What a fake API server stores: objects, a revision that counts writes, and the history that watches replay.

As the real one where controllers can tell: uid, resourceVersion, generation, finalizers, status apart from the rest,
optimistic locking, a write that changes nothing makes no event. Server-side apply is cut down: maps merge, lists are
atomic, ownership is per leaf. Schemas and defaulting are not here.
"""

from __future__ import annotations

import uuid
from bisect import bisect_right
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from trainplane.kube.errors import (
    AlreadyExistsError,
    ConflictError,
    GoneError,
    InvalidError,
    NotFoundError,
)
from trainplane.kube.resource import Key
from trainplane.kube.testing.patches import merge_patch

if TYPE_CHECKING:
    from collections.abc import Callable

Tree = dict[str, Any]
Leaf = tuple[str, ...]

_first, _revision = itemgetter(0), attrgetter("revision")

_SERVER_OWNED = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "managedFields")


class Collection(NamedTuple):
    """A resource as its URL names it."""

    group: str
    version: str
    plural: str


class Change(NamedTuple):
    """One write: `after` is None once the object is gone, `before` is None when it is new.

    `final` is a deleted object as its event shows it: its last state with the deletion's resourceVersion.
    """

    revision: int
    collection: Collection
    key: Key
    before: Tree | None
    after: Tree | None
    final: Tree | None = None


@dataclass
class Storage:
    """All objects of a cluster. Trees handed out are not to be changed."""

    revision: int = 1
    compacted: int = 0
    """Oldest revision whose later changes are still known; a watch from before it gets 410."""
    history: list[Change] = field(default_factory=list)
    objects: dict[Collection, dict[Key, Tree]] = field(default_factory=dict)
    applied: dict[tuple[Collection, Key], dict[tuple[str, str], dict[Leaf, Any]]] = field(default_factory=dict)
    """What is held of an object, by manager and subresource."""
    sorted_lists: dict[Collection, tuple[int, list[tuple[Key, Tree]]]] = field(default_factory=dict)
    """The last list of each collection, and of which revision: the pages of a long one are cut from it."""
    era: int = 0
    """How often it was set back to a backup: revisions are given a second time then, uids, which are drawn, are not."""
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    """What time it is: a simulation has its own."""

    def get(self, collection: Collection, key: Key) -> Tree:
        """Return an object; raises NotFoundError."""
        found = self.objects.get(collection, {}).get(key)
        if found is None:
            raise NotFoundError(f'{collection.plural} "{key.name}" not found', details={"name": key.name})
        return found

    def at(self, collection: Collection, revision: int) -> dict[Key, Tree]:
        """Return the collection as it stood at a revision; raises GoneError if that is forgotten."""
        if revision < self.compacted:
            raise GoneError(f"resource version {revision} is too old, the oldest known is {self.compacted}")
        objects = dict(self.objects.get(collection, {}))
        for change in reversed(self.history):
            if change.revision <= revision:
                break
            if change.collection == collection:
                if change.before is None:
                    del objects[change.key]
                else:
                    objects[change.key] = change.before
        return objects

    def listed(self, collection: Collection, revision: int) -> list[tuple[Key, Tree]]:
        """Return the collection in the order of its keys as it stood at a revision; raises GoneError as `at` does."""
        if revision < self.compacted or self.sorted_lists.get(collection, (0,))[0] != revision:
            self.sorted_lists[collection] = revision, sorted(self.at(collection, revision).items(), key=_first)
        return self.sorted_lists[collection][1]

    def compact(self, revision: int | None = None) -> None:
        """Forget the history up to a revision, else all: watches and continue tokens of before it get 410."""
        self.compacted = self.revision if revision is None else max(self.compacted, revision)
        kept = bisect_right(self.history, self.compacted, key=_revision)
        del self.history[:kept]
        self.sorted_lists.clear()

    def put(self, collection: Collection, obj: Tree) -> Tree:
        """Store an object as it is, status and all, creating or replacing it."""
        key = key_of(obj)
        before = self.objects.get(collection, {}).get(key)
        meta = {"uid": _uid(self.revision + 1, self.era), **obj["metadata"]}
        if before is not None:
            meta["uid"] = obj["metadata"].get("uid", before["metadata"]["uid"])
        return self._store(collection, key, before, {**obj, "metadata": meta})

    def create(self, collection: Collection, namespace: str, obj: Tree, *, dry_run: bool = False) -> Tree:
        """Create an object; raises AlreadyExistsError."""
        meta = dict(obj.get("metadata") or {})
        if meta.get("resourceVersion"):
            raise InvalidError("resourceVersion should not be set on objects to be created")
        if not meta.get("name"):
            if not meta.get("generateName"):
                raise InvalidError("metadata.name: Required value: name or generateName is required")
            meta["name"] = f"{meta['generateName']}{self.revision + 1:05d}"
        if namespace:
            meta["namespace"] = namespace
        key = Key(namespace, meta["name"])
        if key in self.objects.get(collection, {}):
            raise AlreadyExistsError(f'{collection.plural} "{key.name}" already exists')
        meta["uid"] = _uid(self.revision + 1, self.era)
        meta["creationTimestamp"] = self._stamp()
        meta["generation"] = 1
        created = {name: value for name, value in obj.items() if name != "status"} | {"metadata": meta}
        return created if dry_run else self._store(collection, key, None, created)

    def update(
        self, collection: Collection, key: Key, obj: Tree, *, subresource: str = "", dry_run: bool = False
    ) -> Tree:
        """Replace an object or its status; raises NotFoundError, or ConflictError for an old resourceVersion."""
        before = self.get(collection, key)
        wanted = (obj.get("metadata") or {}).get("resourceVersion")
        if wanted and wanted != before["metadata"]["resourceVersion"]:
            raise ConflictError(f'{collection.plural} "{key.name}": the object has been modified, read it again')
        uid = (obj.get("metadata") or {}).get("uid")
        if uid and uid != before["metadata"]["uid"]:
            raise ConflictError(f'{collection.plural} "{key.name}": uid is {before["metadata"]["uid"]}, not {uid}')
        if subresource == "status":
            after = {**before, "status": obj.get("status")}
            if after["status"] is None:
                del after["status"]
        else:
            kept = {name: before["metadata"][name] for name in _SERVER_OWNED if name in before["metadata"]}
            meta = {**obj.get("metadata", {}), **kept, "name": key.name}
            if key.namespace:
                meta["namespace"] = key.namespace
            after = {**obj, "metadata": meta}
            after.pop("status", None)
            if "status" in before:
                after["status"] = before["status"]
            if _without_meta(after) != _without_meta(before):
                meta["generation"] = before["metadata"].get("generation", 1) + 1
        if dry_run:
            return after
        meta = after["metadata"]
        if meta.get("deletionTimestamp") and not meta.get("finalizers"):
            return self._remove(collection, key, after)
        return self._store(collection, key, before, after)

    def apply(
        self,
        collection: Collection,
        key: Key,
        obj: Tree,
        *,
        manager: str,
        force: bool,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Tree:
        """Server-side apply; raises ConflictError where another manager holds a field with another value."""
        content = {name: value for name, value in obj.items() if name not in {"apiVersion", "kind", "status"}}
        if subresource == "status":
            content = {"status": obj.get("status") or {}}
        leaves = {
            leaf: value
            for leaf, value in _leaves(content)
            if leaf not in {("metadata", "name"), ("metadata", "namespace"), ("metadata", "resourceVersion")}
        }
        others = self._held_by_others(collection, key, manager)
        before = self.objects.get(collection, {}).get(key)
        if before is not None and not force:
            _refuse_foreign(before, leaves, others)
        mine = self.applied.get((collection, key), {}).get((manager, subresource), {})
        dropped = [leaf for leaf in mine if leaf not in leaves and leaf not in others]
        if before is None:
            if subresource:
                raise NotFoundError(f'{collection.plural} "{key.name}" not found', details={"name": key.name})
            after = self.create(collection, key.namespace, obj, dry_run=dry_run)
        else:
            merged = merge_patch(before, content)
            for leaf in dropped:
                _drop(merged, leaf)
            version = obj.get("metadata", {}).get("resourceVersion") or before["metadata"]["resourceVersion"]
            merged["metadata"] = {**merged["metadata"], "resourceVersion": version}
            after = self.update(collection, key, merged, subresource=subresource, dry_run=dry_run)
        if not dry_run:
            self.applied.setdefault((collection, key), {})[manager, subresource] = leaves
        return after

    def _held_by_others(self, collection: Collection, key: Key, manager: str) -> dict[Leaf, str]:
        held: dict[Leaf, str] = {}
        for (other, _), leaves in self.applied.get((collection, key), {}).items():
            if other != manager:
                held |= dict.fromkeys(leaves, other)
        return held

    def delete(self, collection: Collection, key: Key, *, uid: str | None = None, version: str | None = None) -> Tree:
        """Delete an object, or mark it where finalizers hold it; raises NotFoundError, or ConflictError."""
        before = self.get(collection, key)
        for name, wanted in (("uid", uid), ("resourceVersion", version)):
            if wanted is not None and wanted != before["metadata"][name]:
                raise ConflictError(f"the {name} in the precondition ({wanted}) is not {before['metadata'][name]}")
        if before["metadata"].get("finalizers"):
            if before["metadata"].get("deletionTimestamp"):
                return before
            meta = {**before["metadata"], "deletionTimestamp": self._stamp()}
            return self._store(collection, key, before, {**before, "metadata": meta})
        return self._remove(collection, key, before)

    def _stamp(self) -> str:
        return self.now().isoformat(timespec="seconds").replace("+00:00", "Z")

    def _store(self, collection: Collection, key: Key, before: Tree | None, after: Tree) -> Tree:
        if before is not None:
            same_meta = {**after["metadata"], "resourceVersion": before["metadata"]["resourceVersion"]}
            if {**after, "metadata": same_meta} == before:
                return before
        self.revision += 1
        after = {**after, "metadata": {**after["metadata"], "resourceVersion": str(self.revision)}}
        self.objects.setdefault(collection, {})[key] = after
        self.history.append(Change(self.revision, collection, key, before, after))
        return after

    def _remove(self, collection: Collection, key: Key, last: Tree) -> Tree:
        self.revision += 1
        before = self.objects[collection].pop(key)
        self.applied.pop((collection, key), None)
        last = {**last, "metadata": {**last["metadata"], "resourceVersion": str(self.revision)}}
        self.history.append(Change(self.revision, collection, key, before, None, last))
        return last


def key_of(obj: Tree) -> Key:
    """Return an object's key."""
    return Key(obj["metadata"].get("namespace") or "", obj["metadata"]["name"])


@lru_cache(maxsize=4096)
def _uid(revision: int, era: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{revision} of {era}" if era else str(revision)))


def _without_meta(obj: Tree) -> Tree:
    return {name: value for name, value in obj.items() if name not in {"metadata", "status"}}


def _leaves(tree: Tree, prefix: Leaf = ()) -> list[tuple[Leaf, Any]]:
    found: list[tuple[Leaf, Any]] = []
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            found += _leaves(value, (*prefix, name))
        else:
            found.append(((*prefix, name), value))
    return found


def _at(tree: Any, leaf: Leaf) -> Any:
    for name in leaf:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


def _refuse_foreign(before: Tree, leaves: dict[Leaf, Any], others: dict[Leaf, str]) -> None:
    foreign = [leaf for leaf, value in leaves.items() if leaf in others and _at(before, leaf) != value]
    if foreign:
        causes = [{"reason": "FieldManagerConflict", "field": "." + ".".join(leaf)} for leaf in foreign]
        text = f"Apply failed with {len(foreign)} conflict: {others[foreign[0]]!r} manages {causes[0]['field']}"
        raise ConflictError(text, details={"causes": causes})


def _drop(tree: Tree, leaf: Leaf) -> None:
    """Remove a leaf, copying the maps on the way: the stored tree shares them."""
    for name in leaf[:-1]:
        if not isinstance(tree.get(name), dict):
            return
        tree[name] = dict(tree[name])
        tree = tree[name]
    tree.pop(leaf[-1], None)
