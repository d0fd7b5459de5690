"""Server-side apply: the writes of the operator, and how those are spared that would change nothing.

    Writer         every write, made only while this process leads
    ApplyCache     TrainJobs whose objects are applied: not rendered again until something was touched
    would_change   whether an apply would change an object, by its managedFields; pure

A leader that was paused may wake when another has taken over. Leadership is therefore asked for right before a write
goes out, each time it does: also when it waited for its turn, and when the server said to come back later.

A TrainJob is reconciled whenever anything about it or its JobSet changes, often a count in a status. Its objects follow
from its spec and its runtime alone, so they are rendered again only when spec, labels or annotations of the TrainJob
changed, or somebody touched the JobSet, or the JobSet makes all its pods anew.

After a restart the cache is empty, and a queue of 100,000 suspended JobSets should not be written anew just to fill it.
Reading is cheap: an object says what it holds and, in `managedFields`, what of it we applied.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.errors import QuantityError
from trainplane.api.quantity import Quantity
from trainplane.kube.client import MERGE_PATCH
from trainplane.kube.lease import LeadershipLostError
from trainplane.operator.stores import Written

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from trainplane.api.meta import ObjectMeta
    from trainplane.api.tree import Tree
    from trainplane.kube.client import Client
    from trainplane.kube.query import Propagation
    from trainplane.kube.resource import Key, Resource
    from trainplane.operator.stores import Meta, SeenJobSet

_IDENTITY = ("apiVersion", "kind")
_AMOUNTS = frozenset({"requests", "limits"})
"""Objects whose values are quantities: webhooks in Go write 500m where we wrote 0.5, and both are the same."""


def always() -> bool:
    """Lead: there is no other replica."""
    return True


class Writer:
    """Writes as field manager `trainer`, or raises LeadershipLostError."""

    def __init__(self, client: Client, leads: Callable[[], bool] = always) -> None:
        self._client = client.permitted(self._check)
        self._leads = leads

    async def create(self, resource: Resource, obj: Tree) -> Written:
        """Create an object; raises AlreadyExistsError."""
        return await self._client.create(resource, obj, field_manager=names.FIELD_MANAGER, type_=Written)

    async def apply(self, resource: Resource, obj: Tree, *, force: bool = True) -> Written:
        """Make an object hold these fields, whoever held them before; without `force`, raises ConflictError then."""
        return await self._client.apply(resource, obj, field_manager=names.FIELD_MANAGER, force=force, type_=Written)

    async def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Tree,
        *,
        content_type: str = MERGE_PATCH,
        subresource: str | None = None,
    ) -> Written:
        """Change an object, or its status."""
        return await self._client.patch(
            resource,
            key.name,
            patch,
            key.namespace or None,
            content_type=content_type,
            subresource=subresource,
            field_manager=names.FIELD_MANAGER,
            type_=Written,
        )

    async def delete(
        self, resource: Resource, key: Key, uid: str, *, last: bool = False, version: str | None = None
    ) -> None:
        """Delete just this object, at this version if one is given, and what it owns, itself `last` or before.

        Raises:
            NotFoundError: it is gone.
            ConflictError: another one of its name exists, or it has another version.
        """
        order: Propagation = "Foreground" if last else "Background"
        await self._client.delete(
            resource,
            key.name,
            key.namespace or None,
            propagation=order,
            preconditions_uid=uid,
            preconditions_version=version,
            type_=bytes,
        )

    def _check(self) -> None:
        if not self._leads():
            raise LeadershipLostError("this process no longer leads: nothing is written")


class Look(msgspec.Struct, frozen=True, gc=False):
    """How a TrainJob and its JobSet looked when the objects were as they should."""

    job_uid: str
    touched: int
    jobset_uid: str
    jobset_touched: int
    restarts: int
    digest: str
    """Of the runtime; its status gets it with the first counts, until then nobody else knows it."""


class ApplyCache:
    """The TrainJobs that are settled, by key. Small: six atoms each, and none for finished ones."""

    def __init__(self) -> None:
        self._looks: dict[Key, Look] = {}

    def __len__(self) -> int:
        return len(self._looks)

    def note(self, key: Key, job: ObjectMeta, jobset: Meta, digest: str, restarts: int = 0) -> None:
        """Remember that the objects of a TrainJob are as they should, with this JobSet, from a runtime of a digest."""
        self._looks[key] = _look(job, jobset, digest, restarts)

    def holds(self, key: Key, job: ObjectMeta, jobset: SeenJobSet | None) -> bool:
        """Return whether nothing was touched since."""
        look = self._looks.get(key)
        if look is None or jobset is None:
            return False
        return look == _look(job, jobset.meta, look.digest, jobset.status.restarts)

    def left(self, key: Key, job: ObjectMeta, jobset: SeenJobSet) -> bool:
        """Return whether a TrainJob's JobSet is as we left it, whatever became of the TrainJob since."""
        look = self._looks.get(key)
        return (
            look is not None
            and look.job_uid == job.uid
            and (look.jobset_uid, look.jobset_touched) == (jobset.meta.uid, _touched(jobset.meta))
        )

    def knows(self, key: Key, job: ObjectMeta) -> bool:
        """Return whether the objects of a TrainJob were ever seen to be as they should."""
        look = self._looks.get(key)
        return look is not None and look.job_uid == job.uid

    def digest(self, key: Key, job: ObjectMeta) -> str:
        """Return the digest of the runtime that a TrainJob was last rendered from; empty if that is not known."""
        look = self._looks.get(key)
        return look.digest if look is not None and look.job_uid == job.uid else ""

    def forget(self, key: Key) -> None:
        """Forget a TrainJob that is finished or gone."""
        self._looks.pop(key, None)


def _look(job: ObjectMeta, jobset: Meta, digest: str, restarts: int) -> Look:
    return Look(job.uid, _touched(job), jobset.uid, _touched(jobset), restarts, digest)


def _touched(meta: ObjectMeta | Meta) -> int:
    """Return a number that changes with what a person may change: spec, labels and annotations, not status."""
    return hash((meta.generation, *sorted(meta.annotations.items()), "", *sorted(meta.labels.items())))


def would_change(live: Tree, body: Tree, manager: str) -> bool:
    """Return whether applying `body` as `manager` could change `live`, which was read with its managedFields.

    May err on the side of yes, since an apply that changes nothing does no harm; never on the side of no.
    """
    ours = _applied(live, manager)
    if ours is None:
        return True
    wanted = {key: value for key, value in body.items() if key not in _IDENTITY}
    return _loses(ours.get("fieldsV1") or {}, wanted) or not _holds(live, wanted)


def applied_at(live: Tree, manager: str) -> datetime | None:
    """Return when a manager last changed an object by an apply; None if it does not say."""
    time = (_applied(live, manager) or {}).get("time")
    return datetime.fromisoformat(time) if time else None


def _applied(live: Tree, manager: str) -> Tree | None:
    """Return what managedFields says of a manager's last apply; None if it never applied."""
    for entry in live.get("metadata", {}).get("managedFields") or ():
        if (entry.get("manager"), entry.get("operation")) == (manager, "Apply") and not entry.get("subresource"):
            found: Tree = entry
            return found
    return None


def _loses(fields: Tree, wanted: Any) -> bool:
    """Return whether we applied a field before that we do not want now: an apply would remove it."""
    entries = _Entries(wanted) if isinstance(wanted, list) else None
    for name, below in fields.items():
        if name == ".":
            continue
        kind, _, rest = name.partition(":")
        if kind == "f":
            part = wanted.get(rest) if isinstance(wanted, dict) else None
        else:
            part = None if entries is None else entries.find(kind, msgspec.json.decode(rest))
        if part is None or (below and _loses(below, part)):
            return True
    return False


class _Entries:
    """The entries of a list, found by what managedFields calls them: a whole value, or some of its fields."""

    def __init__(self, entries: list[Any]) -> None:
        self._entries = entries
        self._values: set[Hashable] | None = None
        self._keyed: dict[tuple[str, ...], dict[tuple[str, ...], dict[Hashable, Any]]] = {}

    def find(self, kind: str, value: Any) -> Any:
        """Return the first entry of a name, or None."""
        if kind == "v":
            if self._values is None:
                self._values = set(map(trees.hashable, self._entries))
            return value if trees.hashable(value) in self._values else None
        if kind != "k":
            return None
        names = tuple(value)
        if names not in self._keyed:
            self._keyed[names] = self._by(names)
        found = (
            group.get(tuple(trees.hashable(value[name]) for name in present))
            for present, group in self._keyed[names].items()
        )
        return next((entry for entry in found if entry is not None), None)

    def _by(self, names: tuple[str, ...]) -> dict[tuple[str, ...], dict[Hashable, Any]]:
        """Return the entries by their keys; a key that an entry leaves out has a default that we do not know."""
        groups: dict[tuple[str, ...], dict[Hashable, Any]] = {}
        for entry in self._entries:
            if isinstance(entry, dict):
                present = tuple(name for name in names if name in entry)
                keys = tuple(trees.hashable(entry[name]) for name in present)
                groups.setdefault(present, {}).setdefault(keys, entry)
        return groups


def _holds(live: Any, wanted: Any) -> bool:
    """Return whether `live` has all that is wanted; it may have more fields, but no more entries of a list."""
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(
            name in live and (_same_amounts if name in _AMOUNTS else _holds)(live[name], value)
            for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(live, list)
            and len(live) == len(wanted)
            and all(_holds(here, there) for here, there in zip(live, wanted, strict=True))
        )
    return bool(live == wanted)


def _same_amounts(live: Any, wanted: Any) -> bool:
    if not isinstance(live, dict) or not isinstance(wanted, dict):
        return _holds(live, wanted)
    try:
        return all(name in live and Quantity.of(live[name]) == Quantity.of(amount) for name, amount in wanted.items())
    except QuantityError:
        return _holds(live, wanted)
