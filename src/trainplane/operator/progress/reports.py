"""Reports on their way into statuses: the newest of each TrainJob, written at most every ten seconds.

Where more than 2,000 TrainJobs report, the turns get longer: all of them together are some 200 writes a second at most.

The first one is written at once, later ones wait for their time and replace each other; the last is never lost, for it
is written when its time comes, at once when the TrainJob ends, and when this process does.

**Several replicas, no traffic between them.** Each sees in its mirror when anybody wrote a TrainJob's progress, and
waits from then. Should two write in the same moment, the API server lets one through: a write holds only for the
version of the TrainJob that was looked at, and who comes second looks again. Of two reports that wait on two replicas
the one that is older, by the job's own clock, gives way.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.api import names
from trainplane.kube.controller import DONE, Controller, ControllerSettings, RequeueAfter
from trainplane.kube.errors import ConflictError, DecodeError, InvalidError, NotFoundError
from trainplane.kube.resource import Key
from trainplane.lifecycle.conditions import is_finished
from trainplane.operator.progress.report import as_written
from trainplane.operator.stores import Written
from trainplane.resources import TRAIN_JOBS

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.controller import Result
    from trainplane.kube.observer import Observer
    from trainplane.kube.projection import Entry
    from trainplane.kube.store import Change, Store
    from trainplane.operator.progress.report import Report

log = logging.getLogger(__name__)

INTERVAL: Final = 10.0
"""Seconds from one write of a TrainJob's progress to the next, whoever makes them."""
WRITES_PER_SECOND: Final = 200
"""Writes of progress of all TrainJobs together: what an API server of two cores takes beside its other work."""
CATCH_UP_SECONDS: Final = 5.0
"""When to look again if the mirror is behind what the API server has; its next news of the TrainJob comes sooner."""
YIELD: Final = (0.75, 1.75)
"""Seconds that a replica waits longer where another wrote last, which goes first if it has a report: of two that write
at once, one asks in vain. So long it takes on a busy machine until a write is seen everywhere."""
WRITERS: Final = 16
"""Writes at once: progress gives way to work, and 16 bring 2,000 TrainJobs' reports in some seconds."""
CONTROLLER: Final = "progress_controller"
"""What the metrics of its queue are called by."""


_NONE: Final = msgspec.Raw(b"null")


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class _SeenStatus(msgspec.Struct, frozen=True, rename="camel"):
    trainer_status: msgspec.Raw = _NONE
    conditions: list[_Condition] | None = None


class _Seen(msgspec.Struct, frozen=True):
    status: _SeenStatus | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """A report that waits for its time."""

    uid: str
    """Of its TrainJob: a later one of the same name is another."""
    report: Report
    taken: float
    """When it came, on the monotonic clock."""


class Reports:
    """Keeps reports until they are written. Started by `run`; each replica has one."""

    def __init__(self, client: Client, train_jobs: Store, clock: Clock, observer: Observer | None = None) -> None:
        self._client = client
        self._train_jobs = train_jobs
        self._clock = clock
        self._held: dict[Key, Held] = {}
        self._written: dict[Key, float] = {}
        """When a TrainJob's progress was last written, by anybody; forgotten when that no longer matters."""
        self._sent: dict[Key, Tree] = {}
        """What we wrote last, by which our own writes are known in the mirror."""
        self._by_others: dict[Key, float] = {}
        """When another replica was seen to have written."""
        self._behind: dict[Key, int] = {}
        """The version that the mirror showed when the API server had a newer one."""
        self._pruned = 0.0
        self._random = Random()  # noqa: S311 jitter is no secret
        self._closing = False
        settings = ControllerSettings(workers=WRITERS)
        self.controller = Controller[Key](CONTROLLER, self.write, clock, settings=settings, observer=observer)

    def __len__(self) -> int:
        return len(self._held)

    @property
    def interval(self) -> float:
        """Seconds between two writes of one TrainJob, by how many were written of late."""
        return max(INTERVAL, len(self._written) / WRITES_PER_SECOND)

    def take(self, key: Key, uid: str, report: Report) -> None:
        """Keep a report in place of the one before."""
        is_first = key not in self._held
        self._held[key] = Held(uid, report, self._clock.monotonic())
        if is_first:  # else the key has its time already
            self.controller.queue.add(key)

    def changed(self, change: Change) -> None:
        """Take in a change of the TrainJob store: see who wrote progress, and which TrainJobs end."""
        key, new = change.key, change.new
        if new is None:
            for known in (self._held, self._written, self._sent, self._by_others, self._behind):
                known.pop(key, None)
            return
        before, after = _status_of(change.old), _status_of(new)
        is_over = is_finished(after.conditions or ())
        if not is_over and bytes(after.trainer_status) not in (bytes(before.trainer_status), bytes(_NONE)):
            self._note_write(key, after.trainer_status)
        caught_up = self._behind.pop(key, None) is not None
        if key in self._held and (caught_up or is_over):
            self.controller.queue.add(key)

    def _note_write(self, key: Key, status: msgspec.Raw) -> None:
        """Note that progress was written: our own, of which we know when, or another replica's, seen now."""
        now = self._clock.monotonic()
        if msgspec.json.decode(status) != self._sent.get(key):
            self._written[key] = self._by_others[key] = now
        elif self._written.get(key, -math.inf) + self.interval <= now:
            self._written[key] = now  # its answer was lost

    async def run(self) -> None:
        """Write until cancelled."""
        await self.controller.run()

    async def flush(self, seconds: float) -> None:
        """Write what is left, at the end of this process, in so many seconds at most."""
        self._closing = True
        for key in self._held:
            self.controller.queue.add(key)
        try:
            async with self._clock.timeout(seconds):
                await self.controller.queue.quiet()
        except TimeoutError:
            log.warning("reports of progress were not written", extra={"reports": len(self._held)})

    async def write(self, key: Key) -> Result:
        """Write a TrainJob's report if its time has come."""
        held, entry = self._held.get(key), self._train_jobs.entry(key)
        if held is None:
            return DONE
        if entry is None or entry.uid != held.uid:
            del self._held[key]
            return DONE
        seen = _status_of(entry)
        now = self._clock.monotonic()
        interval = self.interval
        left = self._written.get(key, now - interval) + interval - now
        if left > 0 and not (self._closing or is_finished(seen.conditions or ())):
            another_was_last = self._by_others.get(key) == self._written[key]
            return RequeueAfter(left + self._random.uniform(*YIELD) if another_was_last else left)
        if self._behind.get(key) == entry.resource_version:
            return RequeueAfter(CATCH_UP_SECONDS)
        if self._gives_way(key, held, seen):
            del self._held[key]
            return DONE
        return await self._write(key, held, entry)

    async def _write(self, key: Key, held: Held, entry: Entry) -> Result:
        before, mine = self._written.get(key), self._clock.monotonic()
        self._written[key] = mine
        self._sent[key] = held.report.status
        tree = {
            "apiVersion": TRAIN_JOBS.api_version,
            "kind": TRAIN_JOBS.kind,
            "metadata": {**key._asdict(), "uid": held.uid, "resourceVersion": str(entry.resource_version)},
            "status": {"trainerStatus": held.report.status},
        }
        try:
            await self._client.apply_status(
                TRAIN_JOBS, tree, field_manager=names.STATUS_FIELD_MANAGER, force=True, type_=Written
            )
        except ConflictError:
            self._behind[key] = entry.resource_version
            self._restore(key, before, mine)
            return RequeueAfter(CATCH_UP_SECONDS)
        except NotFoundError:
            pass  # deleted meanwhile
        except InvalidError as error:  # the CRD that is installed knows rules that ours does not
            log.warning("progress was refused", extra={"trainjob": str(key), "error": str(error)})
        except BaseException:
            self._restore(key, before, mine)
            raise
        self._written[key] = self._clock.monotonic()  # it may have waited for its turn
        self._prune()
        if self._held.get(key) is held:
            del self._held[key]
            return DONE
        return RequeueAfter(self.interval)

    def _restore(self, key: Key, written: float | None, mine: float) -> None:
        """Take back that we wrote, unless the mirror has shown another's write meanwhile: that one counts."""
        if self._written.get(key) is not mine:
            return
        if written is None:
            del self._written[key]
        else:
            self._written[key] = written

    def _gives_way(self, key: Key, held: Held, seen: _SeenStatus) -> bool:
        """Return whether another replica has written a newer report while this one waited."""
        if self._by_others.get(key, held.taken) <= held.taken:
            return False
        other = _moment_of(seen.trainer_status)
        mine: str = held.report.status["lastUpdatedTime"]
        return mine < other <= as_written(self._clock.now())

    def _prune(self) -> None:
        """Forget, now and then, when TrainJobs were written that may be written again and of which nothing waits."""
        now = self._clock.monotonic()
        if now < self._pruned + INTERVAL:
            return
        self._pruned = now
        interval = self.interval
        over = (key for key, written in self._written.items() if written + interval <= now)
        for key in [key for key in over if key not in self._held]:
            for known in (self._written, self._sent, self._by_others, self._behind):
                known.pop(key, None)


def is_progress_alone(change: Change) -> bool:
    """Return whether nothing of a TrainJob changed but its progress: the story of the TrainJob is the same."""
    if change.old is None or change.new is None:
        return False
    try:
        before, after = (entry.decode(_Parts) for entry in (change.old, change.new))
    except DecodeError:
        return False
    for parts in (before, after):
        parts.metadata.pop("resourceVersion", None)
        parts.status.pop("trainerStatus", None)
    return _texts(before) == _texts(after)


def _texts(parts: _Parts) -> tuple[object, ...]:
    return (
        bytes(parts.spec),
        *(sorted((name, bytes(text)) for name, text in part.items()) for part in (parts.metadata, parts.status)),
    )


class _Parts(msgspec.Struct):
    metadata: dict[str, msgspec.Raw] = {}
    spec: msgspec.Raw = _NONE
    status: dict[str, msgspec.Raw] = {}


def _status_of(entry: Entry | None) -> _SeenStatus:
    """Return what a TrainJob's status says here; nothing, if it is stored in a form that we do not know."""
    try:
        seen = None if entry is None else entry.decode(_Seen).status
    except DecodeError:
        seen = None
    return seen or _SeenStatus()


def _moment_of(status: msgspec.Raw) -> str:
    """Return the time that a stored status carries, as it is written; empty if it has none."""
    try:
        return msgspec.json.decode(status, type=_Moment).last_updated_time
    except msgspec.MsgspecError:
        return ""


class _Moment(msgspec.Struct, frozen=True, rename="camel"):
    last_updated_time: str = ""
