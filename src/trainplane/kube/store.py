"""A local copy of one resource.

Text per key, plus small dicts to find keys by. Nothing is decoded until somebody asks, and then only for them: a cache
of built objects costs three times the memory and forty times the garbage collection.

Order is the store's own business. Every write says which resourceVersion it brings, and versions of one resource are
numbers that compare (KEP-5504), so a repeated, delayed or stale write is recognised and ignored here, whoever sends it:

- an object is replaced only by a newer version, deleted only at its own version or later;
- what was deleted stays deleted: versions up to the deletion's do not bring it back (bounded, see `TOMBSTONES`).

A server that is restored from a backup gives versions a second time, and what it gives one to may say something else
than before. So who suspects a restore has contents compared where versions are equal; else nobody pays for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from trainplane.kube.projection import WHOLE, Entry, Index, Projection, Projector
from trainplane.kube.resource import Key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainplane.kube.projection import ObjectHeader
    from trainplane.kube.resource import Resource

T = TypeVar("T")

Place = tuple[str, str]

TOMBSTONES = 4096
"""How many deletions are remembered. Only events that arrive out of order need them, and those come close together."""

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]


class Change(msgspec.Struct, frozen=True, gc=False):
    """What a write did to the store: `old` is None for ADDED, `new` for DELETED.

    `initial` marks what was there when we first looked, as opposed to news. An object that was deleted and made again
    under its name is two changes, even if only its new self was ever reported.
    """

    type: ChangeType
    key: Key
    old: Entry | None
    new: Entry | None
    initial: bool = False


class Store:
    """The objects of one resource, as last seen. Written by one reflector, read by everyone on its event loop."""

    def __init__(
        self, resource: Resource, projection: Projection = WHOLE, indexes: Mapping[str, Index[Any]] | None = None
    ) -> None:
        indexes = indexes or {}
        self.resource = resource
        self.observed = 0
        """Every change up to this resourceVersion has been seen. Moved on by the reflector."""
        self.heard_at = float("-inf")
        """When the server last said anything, by the reflector's monotonic clock: what came by then is in here."""
        self._projector = Projector(resource, projection, indexes.values())
        # Plain tuples as keys: the garbage collector leaves a tuple of strings alone, but not a NamedTuple.
        self._entries: dict[Place, Entry] = {}
        self._index_names = tuple(indexes)
        # A value found once holds the key itself: 100,000 owners need no 100,000 sets.
        self._indexes: dict[str, dict[str, Place | set[Place]]] = {name: {} for name in indexes}
        self._tombstones: dict[Key, int] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[Key]:
        return map(Key._make, self._entries)

    def keys(self) -> list[Key]:
        """Return the keys of now, in the order in which they were first seen."""
        return list(self)

    def entry(self, key: Key) -> Entry | None:
        """Return text, resourceVersion and uid together, None for an unknown key."""
        return self._entries.get(key)

    def get(self, key: Key) -> bytes | None:
        """Return the object's projected JSON, None for an unknown key."""
        entry = self._entries.get(key)
        return None if entry is None else entry.data

    def decode(self, key: Key, type_: type[T]) -> T | None:
        """Return the object as `type_`, None for an unknown key; the result is the caller's to change."""
        entry = self._entries.get(key)
        return None if entry is None else entry.decode(type_)

    def resource_version(self, key: Key) -> int | None:
        """Return the object's resourceVersion as the number it is, None for an unknown key."""
        entry = self._entries.get(key)
        return None if entry is None else entry.resource_version

    def uid(self, key: Key) -> str | None:
        """Return the object's uid, None for an unknown key."""
        entry = self._entries.get(key)
        return None if entry is None else entry.uid

    def by_index(self, name: str, value: str) -> frozenset[Key]:
        """Return the keys of the objects that the index `name` finds under `value`."""
        found = self._indexes[name].get(value)
        if found is None:
            return frozenset()
        return frozenset(map(Key._make, found if isinstance(found, set) else (found,)))

    def read(self, raw: msgspec.Raw) -> ObjectHeader:
        """Return who an object is, to `put` or `delete` it; raises StreamError for what is no Kubernetes object."""
        return self._projector.read(raw)

    def keeps(self, header: ObjectHeader) -> bool:
        """Return whether an object is one that this store is for (`Projection.keeps`)."""
        return self._projector.keeps(header)

    def has_passed(self, header: ObjectHeader) -> bool:
        """Return whether a later version of an object, or its deletion, was seen already."""
        old = self._entries.get(header.key)
        if old is None:
            return header.resource_version <= self._tombstones.get(header.key, -1)
        return header.resource_version < old.resource_version

    def put(
        self, header: ObjectHeader, *, initial: bool = False, force: bool = False, compare: bool = False
    ) -> tuple[Change, ...]:
        """Store an object; returns what that changed: nothing for a version not newer than the one known.

        One that is not kept goes from the store, if it was in it. Where a server was restored from a backup, `force`
        takes any version, and `compare` one that is known if what is kept of it differs: it was given a second time.
        """
        key = header.key
        old = self._entries.get(key)
        if not (force or self._is_news(old, header, compare=compare)):
            return ()
        if not self._projector.keeps(header):
            return () if old is None else self.remove(key, max(header.resource_version, old.resource_version))
        new = self._projector.project(header)
        if new == old:
            return ()
        self._tombstones.pop(key, None)
        place = (key.namespace, key.name)
        self._entries[place] = new
        self._reindex(place, old, new)
        if old is None:
            return (Change("ADDED", key, None, new, initial),)
        if old.uid == new.uid:
            return (Change("MODIFIED", key, old, new, initial),)
        return Change("DELETED", key, old, None, initial), Change("ADDED", key, None, new, initial)

    def delete(self, header: ObjectHeader) -> tuple[Change, ...]:
        """Delete an object as of the version the server deleted it at; returns what that changed."""
        if header.key not in self._entries and not self._projector.keeps(header):
            return ()  # what is never kept must not push out of memory which of the others were deleted
        return self.remove(header.key, header.resource_version)

    def remove(self, key: Key, resource_version: int) -> tuple[Change, ...]:
        """Delete what stands at `key`, unless it is newer than `resource_version`; returns what that changed."""
        old = self._entries.get(key)
        if old is not None and old.resource_version > resource_version:
            return ()
        self._bury(key, resource_version)
        if old is None:
            return ()
        del self._entries[key]
        self._reindex((key.namespace, key.name), old, None)
        return (Change("DELETED", key, old, None),)

    def forget_order(self) -> None:
        """Forget deletions and `observed`: the server's history was set back, its numbers begin anew."""
        self._tombstones.clear()
        self.observed = 0

    def _is_news(self, old: Entry | None, header: ObjectHeader, *, compare: bool) -> bool:
        if old is None:
            return header.resource_version > self._tombstones.get(header.key, -1)
        version = old.resource_version
        return header.resource_version > version or (compare and header.resource_version == version)

    def _bury(self, key: Key, resource_version: int) -> None:
        earlier = self._tombstones.pop(key, -1)
        self._tombstones[key] = max(earlier, resource_version)
        if len(self._tombstones) > TOMBSTONES:
            del self._tombstones[next(iter(self._tombstones))]

    def _reindex(self, place: Place, old: Entry | None, new: Entry | None) -> None:
        for position, name in enumerate(self._index_names):
            before = old.indexed[position] if old else ()
            after = new.indexed[position] if new else ()
            if before == after:
                continue
            index = self._indexes[name]
            for value in before:
                if value not in after:
                    _unlink(index, value, place)
            for value in after:
                if value not in before:
                    _link(index, value, place)


def _link(index: dict[str, Place | set[Place]], value: str, place: Place) -> None:
    found = index.get(value)
    if found is None:
        index[value] = place
    elif isinstance(found, set):
        found.add(place)
    else:
        index[value] = {found, place}


def _unlink(index: dict[str, Place | set[Place]], value: str, place: Place) -> None:
    found = index.get(value)
    if isinstance(found, set):
        found.discard(place)
        if not found:
            del index[value]
    else:
        del index[value]
