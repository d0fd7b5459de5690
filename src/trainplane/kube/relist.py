"""Taking in a whole list while the store stays in use.

A list is compared with the store object by object as it arrives, so a second copy of 100,000 objects never exists.
At its end the objects it did not name are the deletes we missed. A list that breaks off halfway has done no harm: what
it brought was newer than what we had, and nothing is deleted before the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.kube.projection import ObjectHeader
    from trainplane.kube.resource import Key
    from trainplane.kube.store import Change, Store


class Relist:
    """One list on its way into a store.

    Lists can be stale: taken from a replica that has not caught up. `floor` is how far the store has seen; an unknown
    object at or below it was deleted before our eyes, or is one whose event we never got. Only the end of the list
    tells which, so such objects are set aside until then.

    With `force` the list is the truth whatever its age: the server's history was set back. A list that is not old and
    names an object at a version from before the one that the store has, or from before its deletion, shows the same by
    itself: etcd was restored and its revision raised (`--bump-revision`), which leaves objects their old versions, or
    has caught up with us since. Then what it names at a version that is known may still say something else
    (`in_doubt`): a list with `compare` looks, at the price of a first one.
    """

    def __init__(self, store: Store, *, initial: bool = False, force: bool = False, compare: bool = False) -> None:
        self._store = store
        self._initial = initial
        self._force = force
        self._compare = compare or force
        self._shows_past = False
        """Whether an object is older than it was known to be."""
        self._floor = store.observed
        # Into an empty store there is nothing to compare: the first list of 100,000 needs no set of 100,000 keys.
        self._named: set[Key] | None = set() if len(store) else None
        self._aside: dict[Key, ObjectHeader] = {}
        self._seen: set[Key] | None = set() if len(store) or store.observed else None
        """Keys that events of this list changed: what comes of them after, out of order, shows nothing. None for a
        store that has seen nothing yet: there nothing shows the past, and a large first list needs no such set."""

    def add(self, header: ObjectHeader) -> tuple[Change, ...]:
        """Take in an object that the list names; returns what that changed."""
        key = header.key
        if not self._store.keeps(header):
            return self._store.put(header, initial=self._initial, force=self._force)  # it may have been kept until now
        if self._named is not None:
            self._named.add(key)
        if not self._force and self._is_past(header):
            held = self._aside.get(key)
            if held is None or held.resource_version < header.resource_version:
                self._aside[key] = self._store.read(header.raw.copy())  # not a view that keeps its whole page alive
            return ()
        self._aside.pop(key, None)
        changes = self._store.put(header, initial=self._initial, force=self._force, compare=self._compare)
        if changes and self._seen is not None:
            self._seen.add(key)
        return changes

    def delete(self, header: ObjectHeader) -> tuple[Change, ...]:
        """Take in a deletion that happened while the list is being sent; returns what that changed."""
        held = self._aside.get(header.key)
        if held is not None and held.resource_version <= header.resource_version:
            del self._aside[header.key]
        if self._seen is not None:
            self._seen.add(header.key)
        return self._store.delete(header)

    def _is_past(self, header: ObjectHeader) -> bool:
        """Whether an object waits for the end: it was deleted, or replaced, before the list began, or is unknown."""
        key = header.key
        if self._store.has_passed(header):
            if self._seen is None or key in self._seen:
                return False
            self._shows_past = True
            return True
        return key not in self._store and header.resource_version <= self._floor

    def is_stale(self, resource_version: int) -> bool:
        """Whether a list as of `resource_version` is older than what the store has seen."""
        return resource_version < self._floor and not self._force

    @property
    def in_doubt(self) -> bool:
        """Whether the server was found out to be restored by this list, which took equal versions for equal objects."""
        return self._shows_past and not self._compare

    def finish(self, resource_version: int) -> Iterator[Change]:
        """Yield what the end reveals: objects set aside, then missed deletes. Not for a stale list."""
        self._force = self._force or self._shows_past
        for header in self._aside.values():
            yield from self._store.put(header, initial=self._initial, force=self._force)
        if self._named is not None:
            for key in [key for key in self._store if key not in self._named]:
                yield from self._store.remove(key, self._deleted_at(key, resource_version))
        if self._force:
            self._store.forget_order()
        self._store.observed = max(self._store.observed, resource_version)

    def _deleted_at(self, key: Key, resource_version: int) -> int:
        return (self._store.resource_version(key) or 0) if self._force else resource_version
