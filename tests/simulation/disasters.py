"""What breaks seldom, and then more than a link or a process.

- `restore`: etcd is restored from a backup of some time ago. The API server is away meanwhile and forgets all since:
  what was deleted is back, what was made is gone, and versions are those of then. The engines are started anew, as
  etcd's documentation asks for; we are not. Others write for an hour between backup and restore: at once, or, if it
  `repeats`, shortly before the restore. Then people annotate the TrainJobs that were written until then as soon as the
  server is back, just when it comes to the versions that they had: it gives these again, for other contents.
- `freeze`: a process is stopped and goes on, as by SIGSTOP and SIGCONT (`process`).
- `full`: etcd has no space left. What is stored can be read, watched and deleted, and nothing is written.
- `jump`: the time of day of a machine jumps, forward or back; its monotonic clock does not.
- `distrust`: the API server does not trust the certificate that a replica's webhooks show.
"""

from __future__ import annotations

import asyncio
import contextvars
from typing import TYPE_CHECKING, NamedTuple

from tests.simulation.apiserver import OTHERS_WRITES, TRAINJOBS
from trainplane.resources import TRAIN_JOBS

if TYPE_CHECKING:
    from tests.simulation.action import Action
    from tests.simulation.apiserver import Backup
    from tests.simulation.judge import Memory
    from tests.simulation.kueue import Workload
    from tests.simulation.machine import World
    from tests.simulation.replica import Replica
    from trainplane.kube.resource import Key
    from trainplane.kube.testing.storage import Tree

SHORTLY = 5.0
"""Seconds before a restore in which mirrors hear how far others have written."""


class Moment(NamedTuple):
    """All that a restore brings back."""

    stored: Backup
    kueue: tuple[dict[str, Workload], dict[str, int]]
    judged: Memory


class Disasters:
    """Does to a world what a history says."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._backups: dict[float, Moment] = {}
        """By how long ago they were made when they are needed, of one restore each."""

    def foresee(self, action: Action) -> None:
        """Make ready what an action will need: a restore its backup, a stopped process a network that goes on."""
        if action.kind == "freeze":
            outside = contextvars.copy_context()
            for one in self._world.replicas:
                one.link.apart = outside
        if action.kind == "restore":
            back, repeats = action.how["back"], action.how.get("repeats", False)
            began = max(0.0, action.at - back) + 1.0
            self._world.loop.call_at(began, self._back_up, back, repeats)
            if repeats:
                self._world.loop.call_at(action.at - SHORTLY, self._pass_hour)

    def _back_up(self, back: float, repeats: bool) -> None:
        world = self._world
        self._backups[back] = Moment(world.server.storage.backup(), world.kueue.backup(), world.judge.memory.copy())
        if not repeats:
            world.server.storage.pass_hour()

    def _pass_hour(self) -> None:
        """Let others write, and whoever watches hear how far the server has come."""
        self._world.server.storage.pass_hour()
        for one in self._world.replicas:
            for stream in sorted(one.link.streams, key=lambda one: one.serial):
                stream.mark()

    def _can_be_told(self, kept: Backup) -> bool:
        """Whether no mirror has come so little further than a backup that the server, set back, may catch up with it.

        Nobody could tell such a server from one that was never set back; an admin is asked to raise its revision.
        """
        running = [one.operator for one in self._world.replicas if one.operator is not None]
        seen = [mirror.store.observed - kept.revision for one in running for mirror in one.reflectors]
        return all(further <= 0 or further >= OTHERS_WRITES for further in seen)

    def _repeat(self, undone: dict[Key, Tree]) -> None:
        """Give TrainJobs the versions again that a restore undid, with a note of people's instead."""
        storage = self._world.server.storage
        for version, key in sorted((int(was["metadata"]["resourceVersion"]), key) for key, was in undone.items()):
            now = storage.objects.get(TRAINJOBS, {}).get(key)
            if now is None or now["metadata"]["uid"] != undone[key]["metadata"]["uid"]:
                continue
            if storage.revision < version < storage.revision + OTHERS_WRITES:
                storage.revision = version - 1
                meta = {**now["metadata"], "annotations": {**now["metadata"]["annotations"], "note": "again"}}
                self._world.server.put(TRAIN_JOBS, {**now, "metadata": meta}, "people")

    async def freeze(self, whom: list[Replica], how: Tree) -> None:
        """Stop processes for a while."""
        stopped = [one.process for one in whom]
        for one in stopped:
            one.stop()
        await asyncio.sleep(how["seconds"])
        for one in stopped:
            one.go_on()

    async def full(self, _: list[Replica], how: Tree) -> None:
        """Leave no space for a while."""
        storage = self._world.server.storage
        storage.is_full = True
        await asyncio.sleep(how["seconds"])
        storage.is_full = False

    async def jump(self, whom: list[Replica], how: Tree) -> None:
        """Set clocks forward or back."""
        for one in whom:
            one.clock.skew += how["by"]

    async def distrust(self, whom: list[Replica], how: Tree) -> None:
        """Let replicas show a certificate that the API server does not know, until it does."""
        for one in whom:
            one.is_distrusted = True
        await asyncio.sleep(how["seconds"])
        for one in whom:
            one.is_distrusted = False

    async def restore(self, _: list[Replica], how: Tree) -> None:
        """Set the cluster back, while nobody reaches it."""
        world, kept = self._world, self._backups.pop(how["back"])
        for one in world.replicas:
            one.link.cut()
        bumped = how["bumped"] or not self._can_be_told(kept.stored)
        undone = world.server.storage.objects.get(TRAINJOBS, {})
        world.server.restore(kept.stored, bumped=bumped)
        world.kueue.restore(kept.kueue)
        world.judge.restored(kept.judged)
        if how.get("repeats") and not bumped:
            self._repeat(undone)
            world.judge.versions_repeat = True
        world.engines.look_again()
        world.trace.update(b"restore")
        await world.cut(world.replicas, how)
