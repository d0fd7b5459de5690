"""Writes what an object of the older shape became, and never takes over what is somebody else's.

Today's object is written once for each time that the older one says something else; what others change of it meanwhile
(Kueue, admission, people) is theirs. Before one is made, the API server is asked, and then it is applied without force:
what somebody makes of that name in between has other fields, and the API server says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import document
from trainplane.api import tree as trees
from trainplane.kube.errors import BadRequestError, ConflictError, ForbiddenError, InvalidError, NotFoundError
from trainplane.kube.expectations import Expectations
from trainplane.kube.resource import Key
from trainplane.legacy.older.lowering import digest_of
from trainplane.operator.adoption import check_owner
from trainplane.operator.errors import BehindError, EarlierSelfError, LoweringError
from trainplane.operator.stores import Written

if TYPE_CHECKING:
    from trainplane.api.meta import ObjectMeta
    from trainplane.api.tree import Tree
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.store import Store
    from trainplane.operator.adoption import OwnerKind
    from trainplane.operator.apply import Writer


class Handing:
    """Writes today's objects of one kind, for older ones of one kind."""

    def __init__(self, client: Client, writer: Writer, store: Store, clock: Clock, of: OwnerKind) -> None:
        self._client = client
        self._writer = writer
        self._store = store
        self._writes = Expectations(store, clock)
        self._of = of

    def pending(self, key: Key) -> bool:
        """Return whether the mirror does not show our last write yet."""
        return self._writes.pending(key)

    def mirrored(self, key: Key, by: ObjectMeta) -> Tree | None:
        """Return what an object became, if that is there and its own."""
        entry = self._store.entry(key)
        if entry is None:
            return None
        check_owner(self._store.resource.kind, entry.decode(Written).metadata, by, self._of)
        tree: Tree = document.decode_tree(entry.data)
        return tree

    async def ensure(self, by: ObjectMeta, wanted: Tree, *, once: bool = False) -> None:
        """See that today's object is as wanted; `once` says that it never changes.

        Raises:
            ForeignObjectError: somebody else's has its name.
            EarlierSelfError, BehindError: what is in the way goes by itself.
            LoweringError: it is refused.
        """
        resource, meta = self._store.resource, wanted["metadata"]
        key = Key(meta.get("namespace", ""), meta["name"])
        found = self.mirrored(key, by) or await self._live(key, by)
        if found is not None:
            if trees.get(found, "metadata", "deletionTimestamp"):
                raise EarlierSelfError(f"{resource.kind} {key.name} is about to be removed")
            if once or digest_of(found) == digest_of(wanted):
                return
            bound = {name: found["metadata"][name] for name in ("uid", "resourceVersion")}
            wanted = {**wanted, "metadata": {**meta, **bound}}
        try:
            done = await self._writer.apply(resource, wanted, force=found is not None)
        except ConflictError as error:
            raise BehindError(f"{resource.kind} {key.name} is not as it was: {error}") from error
        except (InvalidError, ForbiddenError, BadRequestError) as error:
            raise LoweringError("Refused", f"{resource.kind} {key.name} is refused: {error}") from error
        self._writes.note(key, done.metadata.resource_version)

    async def _live(self, key: Key, by: ObjectMeta) -> Tree | None:
        """Return the object that the API server has, which the mirror does not: before it is made."""
        try:
            found = await self._client.get(self._store.resource, key.name, key.namespace or None)
        except NotFoundError:
            return None
        check_owner(self._store.resource.kind, document.view(found, Written).metadata, by, self._of)
        return found
