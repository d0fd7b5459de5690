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

    Deletes that happen while the list is being sent go to the store like any others.

    With `force` the list is the truth whatever its age: the server's history was set back.
    """

    def __init__(self, store: Store, *, initial: bool = False, force: bool = False) -> None:
        self._store = store
        self._initial = initial
        self._force = force
        self._floor = store.observed
        # Into an empty store there is nothing to compare: the first list of 100,000 needs no set of 100,000 keys.
        self._named: set[Key] | None = set() if len(store) else None
        self._aside: dict[Key, ObjectHeader] = {}

    def add(self, header: ObjectHeader) -> tuple[Change, ...]:
        """Take in an object that the list names; returns what that changed."""
        key = header.key
        if self._named is not None:
            self._named.add(key)
        if header.resource_version <= self._floor and not self._force and key not in self._store:
            self._aside[key] = self._store.read(header.raw.copy())  # not a view that keeps its whole page alive
            return ()
        return self._store.put(header, initial=self._initial, force=self._force)

    def is_stale(self, resource_version: int) -> bool:
        """Whether a list as of `resource_version` is older than what the store has seen."""
        return resource_version < self._floor and not self._force

    def finish(self, resource_version: int) -> Iterator[Change]:
        """Yield what the end reveals: objects set aside, then missed deletes. Not for a stale list."""
        for header in self._aside.values():
            yield from self._store.put(header, initial=self._initial)
        if self._named is not None:
            for key in [key for key in self._store if key not in self._named]:
                yield from self._store.remove(key, self._deleted_at(key, resource_version))
        if self._force:
            self._store.forget_order()
        self._store.observed = max(self._store.observed, resource_version)

    def _deleted_at(self, key: Key, resource_version: int) -> int:
        return (self._store.resource_version(key) or 0) if self._force else resource_version
