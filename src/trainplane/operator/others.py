"""What a TrainJob has beside its JobSet: made for its pods, and made again when somebody deletes or changes it.

    snapshot    of the runtime that it began with; kept anew only with the very text (`snapshot`)
    keys        drawn once, made or judged (`keys`)
    others      ConfigMaps, groups, Services: applied

A job that is about to have pods gets them all. Of one that runs, or waits, what was lost is put right: what watches
told of (`lost`), what a first look after a start does not find in the mirrors (`owned`), and keys that pods are about
to mount. What the mirrors have costs no request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from trainplane.kube.resource import Key
from trainplane.operator.keys import KeysBelieved, OnceCreator
from trainplane.operator.lost import GONE, snapshot_of
from trainplane.operator.owned import POD_GROUPS
from trainplane.resources import resource_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trainplane.api.tree import Tree
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.operator.apply import Writer
    from trainplane.operator.lost import Lost, Place
    from trainplane.operator.owned import OwnedMirrors
    from trainplane.operator.situation import Situation
    from trainplane.operator.snapshot import Snapshots
    from trainplane.render.pipeline import Rendering

Prepare: TypeAlias = "Callable[[str], Awaitable[None]]"
"""Sees to what every TrainJob of a namespace needs."""


@dataclass
class Others:
    """See the module's docstring. `prepare` goes before the first pods of a namespace."""

    client: Client
    writer: Writer
    snapshots: Snapshots
    owned: OwnedMirrors
    lost: Lost
    clock: Clock
    prepare: Prepare | None = None

    def __post_init__(self) -> None:
        self._once = OnceCreator(self.client, self.writer)
        self._believed = KeysBelieved(self.clock)

    def forget(self, key: Key) -> None:
        """Forget a TrainJob that is finished or gone."""
        self._believed.forget(key)
        self.lost.forget(key)

    def notice(self, here: Situation, *, is_first: bool) -> None:
        """Write into the situation what is to be put right now, and when to look again if that is not now.

        `is_first`: nobody has looked at this TrainJob and its JobSet since this process began to lead.
        """
        lost = self.lost.of(here.key)
        if wait := self.lost.wait(here.key) if lost else 0.0:
            here.put_off(wait)
        else:
            here.lost = lost
        snapshot = snapshot_of(here.meta.name)
        if is_first and here.digest and self._lacks(here, snapshot):
            here.lost.setdefault(snapshot, GONE)
        if here.mounts:
            left = self._believed.left(here.key, here.meta.uid)
            here.awaits_keys = not left
            if left:
                here.put_off(left)
        if here.lost:
            self.lost.began(here.key)

    async def restore_snapshot(self, here: Situation) -> None:
        """Keep the runtime that a TrainJob began with once more, if its snapshot was deleted and the text is known."""
        place = snapshot_of(here.meta.name)
        if place not in here.lost:
            return
        job = here.job.view
        if here.digest and self._lacks(here, place):
            await self.snapshots.restore(job.metadata, job.spec.runtime_ref, here.digest)
        self.lost.clear(here.key, {place: here.lost.pop(place)})

    async def make(self, here: Situation, rendering: Rendering) -> None:
        """Make all that the JobSet's pods need."""
        if self.prepare is not None:
            await self.prepare(here.key.namespace)
        await self._keep(here, rendering, is_new=here.jobset is None)
        for rendered in rendering.objects[:-1]:
            await self._apply(here, rendered.tree)
        self.lost.clear(here.key, here.lost)

    async def mend(self, here: Situation, rendering: Rendering) -> None:
        """Make again what a TrainJob that runs has lost; a group that somebody only changed is left as it is.

        A scheduler has dealt with a group once its pods run, and so the reference leaves it alone, too.
        """
        if here.awaits_keys:
            await self._keep(here, rendering, again=True)
        for rendered in rendering.objects[:-1]:
            place = resource_of(rendered.tree), rendered.tree["metadata"]["name"]
            is_changed = place in here.lost and place[0] not in POD_GROUPS
            if is_changed or self._lacks(here, place):
                await self._apply(here, rendered.tree)
        self.lost.clear(here.key, here.lost)

    def give_up(self, here: Situation) -> None:
        """Leave what was lost of a TrainJob that runs as it is: nobody knows what it should be any more."""
        self.lost.clear(here.key, here.lost)

    def _lacks(self, here: Situation, place: Place) -> bool:
        resource, name = place
        return self.owned.lacks(resource, Key(here.key.namespace, name), here.meta.uid)

    async def _keep(self, here: Situation, rendering: Rendering, *, is_new: bool = False, again: bool = False) -> None:
        for kept in rendering.kept:
            await self._once.keep(here.meta, kept, is_new=is_new)
        if rendering.kept or again:
            self._believed.note(here.key, here.meta.uid, again=again)

    async def _apply(self, here: Situation, tree: Tree) -> None:
        resource = resource_of(tree)
        written = await self.writer.apply(resource, tree)
        self.lost.note(here.key, (resource, tree["metadata"]["name"]), written.metadata)
