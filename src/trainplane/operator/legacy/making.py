"""Carries out what was decided about a job: deletes, makes and applies its objects.

What is there already is no harm: a mirror that is behind shows it a moment later, so a name that is taken is looked up,
and trouble only if another has it. Nothing is made twice, nor missed after a crash at any write, for whatever was not
done is decided again.

    deletes     first, each only as the object that was seen
    once        what draws something random
    apply       what may change, unless it is as it was last applied
    create      Services, then pods, then launchers: a few, then more, so that a quota that is used up is met by one
                request and not by ten thousand
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.api.meta import whole_seconds
from trainplane.kube.errors import AlreadyExistsError, ApiError, ConflictError, NotFoundError
from trainplane.kube.expectations import Expectations
from trainplane.kube.resource import Key
from trainplane.operator.adoption import OwnerKind, check_owner
from trainplane.operator.errors import BehindError, EarlierSelfError, MakingError, OperatorError
from trainplane.operator.keys import OnceCreator
from trainplane.operator.stores import Written
from trainplane.resources import JOBS, PODS, SERVICES, resource_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from typing import Any

    from trainplane.api.legacy.kinds import Kind
    from trainplane.api.meta import ObjectMeta
    from trainplane.api.tree import Tree
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.resource import Resource
    from trainplane.legacy.decision import Decision, Observed, Ref
    from trainplane.operator.apply import Writer
    from trainplane.operator.legacy.mirrors import Mirrors

    Work = Callable[[], Coroutine[Any, Any, None]]

_RANKS: Final = {SERVICES.kind: 0, PODS.kind: 1}

AT_ONCE: Final = 32
"""Writes of one job under way at once."""


@dataclass
class _Memory:
    """What is remembered of a job, so that nothing is done twice."""

    uid: str
    written: set[tuple[Resource, Key]] = field(default_factory=set)
    """Objects whose last write may not have come back yet."""
    deleted: dict[str, str] = field(default_factory=dict)
    """By their uids, when objects were deleted that a mirror may not show as such yet."""
    applied: dict[tuple[str, str], tuple[str, bytes]] = field(default_factory=dict)
    """By kind and name, the uid and text of what was applied last."""
    kept: set[tuple[str, str]] = field(default_factory=set)
    """By kind and name, what was made once."""


class Making:
    """Makes the objects of the jobs of one kind."""

    def __init__(self, kind: Kind, client: Client, writer: Writer, mirrors: Mirrors, clock: Clock) -> None:
        self._of = OwnerKind(kind.api_version, kind.name)
        self._client = client
        self._writer = writer
        self._stores = {store.resource: store for store in mirrors.objects()}
        self._writes = {resource: Expectations(store, clock) for resource, store in self._stores.items()}
        self._once = OnceCreator(client, writer, self._of)
        self._clock = clock
        self._memory: dict[Key, _Memory] = {}

    def forget(self, key: Key) -> bool:
        """Forget a job that is gone; returns whether it was known."""
        return self._memory.pop(key, None) is not None

    def pending(self, key: Key) -> bool:
        """Return whether a mirror has not shown all that was made for a job: do not decide anything yet."""
        memory = self._memory.get(key)
        if memory is None:
            return False
        memory.written = {one for one in memory.written if self._writes[one[0]].pending(one[1])}
        return bool(memory.written)

    def as_left(self, key: Key, uid: str, seen: Observed) -> Observed:
        """Return what there is of a job by what was done to it: objects that were deleted are on their way out."""
        memory, groups = self._remember(key, uid), (seen.pods, seen.services, seen.others)
        there = {tree["metadata"].get("uid") for trees in groups for tree in trees}
        memory.deleted = {uid: since for uid, since in memory.deleted.items() if uid in there}
        if not memory.deleted:
            return seen
        gone = partial(_terminating, memory.deleted)
        pods, services, others = (tuple(map(gone, trees)) for trees in groups)
        return replace(seen, pods=pods, services=services, others=others)

    async def carry_out(self, key: Key, job: ObjectMeta, decision: Decision) -> None:
        """Do what was decided.

        Raises:
            MakingError: the API server refused an object, or somebody else has its name.
            EarlierSelfError, BehindError: something is in the way that goes by itself.
        """
        memory = self._remember(key, job.uid)
        await in_batches([partial(self._delete, key, memory, ref) for ref in decision.delete])
        for kept in decision.once:
            if (kept.kind, kept.name) not in memory.kept or decision.create:
                with _named(kept.kind, kept.name):
                    await self._once.keep(job, kept, is_new=bool(decision.create))
                memory.kept.add((kept.kind, kept.name))
        for tree in decision.apply:
            await self._apply(memory, job, tree, anew=bool(decision.create))
        for _, group in groupby(sorted(decision.create, key=_rank), _rank):
            await in_batches([partial(self._create, memory, job, tree) for tree in group])

    def _remember(self, key: Key, uid: str) -> _Memory:
        """Return what is remembered of a job; nothing, if it is another than before."""
        memory = self._memory.get(key)
        if memory is None or memory.uid != uid:
            memory = self._memory[key] = _Memory(uid)
        return memory

    def _note(self, memory: _Memory, resource: Resource, written: Written) -> None:
        if resource in self._writes:
            key = Key(written.metadata.namespace, written.metadata.name)
            self._writes[resource].note(key, written.metadata.resource_version)
            memory.written.add((resource, key))

    async def _delete(self, key: Key, memory: _Memory, ref: Ref) -> None:
        resource = resource_of({"apiVersion": ref.api_version, "kind": ref.kind})
        with suppress(NotFoundError, ConflictError):  # gone, or another of its name has come
            # A launcher is seen as long as one of its pods is, so that a suspended job is idle when nothing runs.
            await self._writer.delete(resource, Key(key.namespace, ref.name), ref.uid, last=resource == JOBS)
        memory.deleted[ref.uid] = msgspec.to_builtins(whole_seconds(self._clock.now()))
        memory.applied.pop((ref.kind, ref.name), None)

    async def _apply(self, memory: _Memory, job: ObjectMeta, tree: Tree, *, anew: bool) -> None:
        """Apply an object, only to the one that is the job's: a name alone must not take over what another made."""
        resource, name = resource_of(tree), tree["metadata"]["name"]
        text, place = msgspec.json.encode(tree, order="sorted"), (resource.kind, name)
        uid, last = memory.applied.pop(place, ("", b""))
        store = self._stores.get(resource)
        if store is not None and store.uid(Key(job.namespace, name)) != uid:
            uid, last = "", b""  # somebody deleted it
        with _named(resource.kind, name):
            uid = uid or await self._uid(resource, job, name)
            if text != last or anew:
                bound = {**tree, "metadata": {**tree["metadata"], **({"uid": uid} if uid else {})}}
                try:
                    written = await self._writer.apply(resource, bound)
                except (ConflictError, NotFoundError) as error:
                    raise BehindError(f"{resource.kind} {name} is not what it was: {error}") from error
                self._note(memory, resource, written)
                uid = written.metadata.uid
            memory.applied[place] = uid, text

    async def _uid(self, resource: Resource, job: ObjectMeta, name: str) -> str:
        """Return the uid of an object that is there and the job's own; nothing if there is none."""
        try:
            return (await self._find(resource, job, name)).metadata.uid
        except NotFoundError:
            return ""

    async def _create(self, memory: _Memory, job: ObjectMeta, tree: Tree) -> None:
        resource, name = resource_of(tree), tree["metadata"]["name"]
        with _named(resource.kind, name):
            try:
                written = await self._writer.create(resource, tree)
            except AlreadyExistsError:
                written = await self._taken(resource, job, name)
            self._note(memory, resource, written)

    async def _taken(self, resource: Resource, job: ObjectMeta, name: str) -> Written:
        """Return the object that has a name which is wanted, if it is the job's own."""
        try:
            return await self._find(resource, job, name)
        except NotFoundError:
            raise BehindError(f"{resource.kind} {name} came and went just now") from None

    async def _find(self, resource: Resource, job: ObjectMeta, name: str) -> Written:
        """Return an object that is the job's own and stays.

        Raises:
            NotFoundError: there is none.
            ForeignObjectError: it is somebody else's.
            EarlierSelfError, BehindError: it goes by itself.
        """
        found = await self._client.get(resource, name, job.namespace, type_=Written)
        check_owner(resource.kind, found.metadata, job, self._of)
        if found.metadata.deletion_timestamp is not None:
            raise BehindError(f"{resource.kind} {name} is about to be removed")
        return found


def _rank(tree: Tree) -> int:
    """Return when an object is made: names before pods, and what needs pods, as a launcher does, after them."""
    return _RANKS.get(tree["kind"], len(_RANKS))


async def in_batches(work: list[Work]) -> None:
    """Do some work, one piece, then two at once, then four, up to a bound; the first failure is raised and ends it."""
    size = 1
    while work:
        batch, work = work[:size], work[size:]
        outcomes = await asyncio.gather(*(piece() for piece in batch), return_exceptions=True)
        for outcome in outcomes:
            if outcome is not None:
                raise outcome
        size = min(2 * size, AT_ONCE)


def _terminating(deleted: dict[str, str], tree: Tree) -> Tree:
    """Return an object, as one that is on its way out if it was deleted."""
    since = deleted.get(tree["metadata"].get("uid"))
    return tree if since is None else {**tree, "metadata": {"deletionTimestamp": since, **tree["metadata"]}}


@contextmanager
def _named(kind: str, name: str) -> Iterator[None]:
    """Say of an error which object it is about, but of those that pass by themselves."""
    try:
        yield
    except (EarlierSelfError, BehindError):
        raise
    except (ApiError, OperatorError) as error:
        raise MakingError(kind, name, error) from error
