"""Events: short news about an object, for people, as `kubectl describe` and the SDK show them.

core/v1 Events with `firstTimestamp`, `lastTimestamp` and `count`, because the official SDK drops what has no
`firstTimestamp`, and the newer events.k8s.io form forbids it.

`record` never waits and never fails: it notes the event and a background task writes it. News that repeats becomes a
higher count of the Event that is there. What is too much is dropped and counted: Events are a courtesy and must never
slow a reconcile, fill the memory or flood etcd. While `busy` says that there is work to do, news waits its turn, but no
longer than `hold_seconds`, and not where so much waits that some would be dropped: then more is written at once.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
import uuid
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from trainplane.kube.errors import AlreadyExistsError, KubeError, NotFoundError, TransportError
from trainplane.kube.resource import EVENTS, Resource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from trainplane.kube.clock import Clock

log = logging.getLogger(__name__)


MESSAGE_LIMIT = 1024
"""Bytes of a message as UTF-8, which is also at most that many characters: what the newer form's validation allows."""

_CUT = " ..."
_FORBIDDEN_IN_NAMES = re.compile(r"[^a-z0-9.-]")

EventType = Literal["Normal", "Warning"]
Tree = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """The object that an Event is about; `namespace` is empty for a cluster-scoped one."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> ObjectReference:
        """Return the reference to an object given as a tree."""
        meta = obj["metadata"]
        return cls(obj["apiVersion"], obj["kind"], meta["name"], meta.get("namespace") or "", meta.get("uid") or "")

    def tree(self) -> Tree:
        """Return the form that `involvedObject` has."""
        tree = {"apiVersion": self.api_version, "kind": self.kind, "name": self.name}
        if self.namespace:
            tree["namespace"] = self.namespace
        if self.uid:
            tree["uid"] = self.uid
        return tree


@dataclass(frozen=True, slots=True)
class EventSettings:
    """How much news is too much.

    Attributes:
        burst: writes that one object may cause at once; 25 covers the whole life of an ordinary job.
        refill_seconds: time after which an object may cause one more; 300, so that one that fails all day costs
            12 writes an hour.
        remembered: Events kept in memory to count repeats, and objects kept to limit them; 4,096 of each is about
            4 MB, and forgetting only means that a repeat starts a new Event.
        waiting: Events that may wait to be written; 1,024 is a few seconds of a busy API server.
        writers: writes under way at once; 4 keeps one slow write from holding up the rest.
        crowd_writers: the same while more than half of `waiting` waits; 16 are as fast as news comes in, also where
            an API server that is busy takes a tenth of a second for each (measured with 5,000 new objects).
        attempts: tries of one write that an API server answers before it is dropped.
        retry_seconds: wait before the second try, doubled with each up to ten of them.
        outage_seconds: how long a write is tried that gets no answer; 180 is longer than an API server restarts,
            and holds up only what would get none either.
        hold_seconds: how long an Event may wait for a busy time to pass; 15 is a pause that a person bears, and it
            spares a burst of a thousand new objects a quarter of its writes.
        forget_seconds: age without news after which a repeat starts a new Event; 10 minutes reads better than one
            line spanning a day, and is well below the hour after which the API server deletes Events.
    """

    burst: int = 25
    refill_seconds: float = 300.0
    remembered: int = 4096
    waiting: int = 1024
    writers: int = 4
    crowd_writers: int = 16
    attempts: int = 5
    retry_seconds: float = 1.0
    outage_seconds: float = 180.0
    hold_seconds: float = 15.0
    forget_seconds: float = 600.0


HOLD_STEP_SECONDS = 0.2
"""How often a held Event looks whether the busy time is over."""


def _never() -> bool:
    return False


def _unheard() -> None:
    return


class EventClient(Protocol):
    """What writing Events needs of `Client`."""

    async def create(self, resource: Resource, obj: Tree, namespace: str | None = None) -> Any:
        """Create an object."""

    async def patch(self, resource: Resource, name: str, patch: Any, namespace: str | None = None) -> Any:
        """Merge-patch an object."""


@dataclass(slots=True)
class _Note:
    """One Event, perhaps seen many times.

    `written` is the count that the API server knows; 0 before it is created. `since` is when it began to wait.
    """

    regarding: ObjectReference
    type: EventType
    reason: str
    message: str
    action: str
    name: str
    first: datetime
    last: datetime
    seen_at: float
    since: float = 0.0
    count: int = 1
    written: int = 0
    waiting: bool = False


@dataclass(slots=True)
class _Budget:
    """A token bucket: how many writes an object may still cause."""

    tokens: float
    at: float


@dataclass(slots=True)
class EventRecorder:
    """Records Events about objects on behalf of one component.

    `component` says who reports ("trainer-trainjob-controller"), `instance` which of its processes. `dropped` counts
    news that was never written, and `on_dropped` hears of each; repeats that wait for the next allowed write are not
    lost and not counted. `busy` says whether something more urgent is going on.
    """

    client: EventClient
    clock: Clock
    component: str
    instance: str = ""
    settings: EventSettings = field(default_factory=EventSettings)
    busy: Callable[[], bool] = _never
    on_dropped: Callable[[], None] = _unheard
    dropped: int = 0
    _ending: bool = False
    _crowd: asyncio.Event = field(default_factory=asyncio.Event)
    _notes: OrderedDict[tuple[object, ...], _Note] = field(default_factory=OrderedDict)
    _budgets: OrderedDict[ObjectReference, _Budget] = field(default_factory=OrderedDict)
    _queue: asyncio.Queue[_Note] = field(default_factory=asyncio.Queue)

    def record(
        self,
        regarding: ObjectReference,
        type_: EventType,
        reason: str,
        message: str,
        *,
        action: str = "",
        since: datetime | None = None,
    ) -> None:
        """Note that something happened to an object. Returns at once; callable from the event loop's thread only.

        `reason` is a word in CamelCase for machines, `message` a sentence for people, `action` what was being done,
        `since` when it began, if that was not now.
        """
        message = cut(message)
        now = self.clock.monotonic()
        key = (regarding, type_, reason, message, action)
        note = self._notes.get(key)
        if note is not None and now - note.seen_at < self.settings.forget_seconds:
            note.count += 1
            note.last, note.seen_at = self.clock.now(), now
            self._notes.move_to_end(key)
            if not note.waiting and self._afford(regarding, now):
                self._put(note)
            return
        if not self._afford(regarding, now) or self._queue.qsize() >= self.settings.waiting:
            self._drop()
            return
        wall = self.clock.now()
        note = _Note(regarding, type_, reason, message, action, _event_name(regarding), since or wall, wall, now)
        self._notes[key] = note
        self._notes.move_to_end(key)
        if len(self._notes) > self.settings.remembered:
            self._notes.popitem(last=False)
        self._put(note)

    async def run(self) -> None:
        """Write what was recorded, until cancelled."""
        async with asyncio.TaskGroup() as writers:
            for number in range(max(self.settings.writers, self.settings.crowd_writers)):
                usual = number < self.settings.writers
                writers.create_task(self._write_all(usual=usual), name=f"events {self.component} {number}")

    async def drain(self) -> None:
        """Return when everything recorded so far was written or given up, for a last word before a stop."""
        self._ending = True
        await self._queue.join()

    def _put(self, note: _Note) -> None:
        if self._queue.qsize() >= self.settings.waiting:
            return  # only a repeat comes here with a full queue: its count goes out with the next one
        note.waiting, note.since = True, self.clock.monotonic()
        self._queue.put_nowait(note)
        if self._is_crowded():
            self._crowd.set()

    def _is_crowded(self) -> bool:
        return 2 * self._queue.qsize() > self.settings.waiting

    def _drop(self) -> None:
        self.dropped += 1
        self.on_dropped()

    def _afford(self, regarding: ObjectReference, now: float) -> bool:
        """Take one write from an object's budget, if there is one left."""
        budget = self._budgets.get(regarding)
        if budget is None:
            budget = self._budgets[regarding] = _Budget(self.settings.burst, now)
            if len(self._budgets) > self.settings.remembered:
                self._budgets.popitem(last=False)
        self._budgets.move_to_end(regarding)
        earned = (now - budget.at) / self.settings.refill_seconds
        budget.tokens, budget.at = min(self.settings.burst, budget.tokens + earned), now
        if budget.tokens < 1:
            return False
        budget.tokens -= 1
        return True

    async def _next(self, *, usual: bool) -> _Note:
        """Return the next note to write; one who is not a usual writer takes some only from a crowd."""
        while not (usual or self._is_crowded()):
            self._crowd.clear()
            await self._crowd.wait()
        return await self._queue.get()

    async def _write_all(self, *, usual: bool) -> None:
        while True:
            note = await self._next(usual=usual)
            try:
                await self._hold(note)
                await self._write(note)
                note.waiting = False
                repeated = note.count > note.written
                if repeated and self._afford(note.regarding, self.clock.monotonic()):
                    self._put(note)
            except Exception as error:  # noqa: BLE001 news is a courtesy: nothing about it may end the task
                note.waiting = False
                self._drop()
                keys = {"reason": note.reason, "object": note.regarding.name, "error": repr(error)}
                log.warning("event dropped", extra=keys)
            finally:
                self._queue.task_done()

    async def _hold(self, note: _Note) -> None:
        """Wait while there is something more urgent, within limits; what is recorded meanwhile waits behind."""
        until = note.since + self.settings.hold_seconds
        while not (self._ending or self._is_crowded()) and self.busy() and self.clock.monotonic() < until:
            await self.clock.sleep(HOLD_STEP_SECONDS)

    async def _write(self, note: _Note) -> None:
        """Send one note, again while the error says that this can help.

        An answer may be about this object alone, and others wait behind it: so only a few are asked for. No answer is
        everybody's.
        """
        settings, began, answers = self.settings, self.clock.monotonic(), 0
        for attempt in itertools.count():
            try:
                note.written = await self._send(note)
            except KubeError as error:
                pause = settings.retry_seconds * min(2**attempt, 10)
                if isinstance(error, TransportError):
                    gives_up = self.clock.monotonic() + pause - began > settings.outage_seconds
                else:
                    answers += 1
                    gives_up = answers >= settings.attempts
                if gives_up or not error.retryable:
                    raise
                await self.clock.sleep(pause)
            else:
                return

    async def _send(self, note: _Note) -> int:
        """Create or update the Event; return the count that the API server then knows."""
        namespace, count = note.regarding.namespace or "default", note.count
        if note.written:
            try:
                await self.client.patch(
                    EVENTS, note.name, {"count": count, "lastTimestamp": _stamp(note.last)}, namespace
                )
            except NotFoundError:  # it outlived the API server's memory of Events: tell it as new
                note.name, note.written = _event_name(note.regarding), 0
            else:
                return count
        try:
            await self.client.create(EVENTS, self._tree(note, namespace), namespace)
        except AlreadyExistsError:  # the name is ours alone: an earlier try did succeed, perhaps with a lower count
            return 1
        return count

    def _tree(self, note: _Note, namespace: str) -> Tree:
        tree: Tree = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": note.name, "namespace": namespace},
            "involvedObject": note.regarding.tree(),
            "type": note.type,
            "reason": note.reason,
            "message": note.message,
            "firstTimestamp": _stamp(note.first),
            "lastTimestamp": _stamp(note.last),
            "count": note.count,
            "source": {"component": self.component},
            "reportingComponent": self.component,
            "reportingInstance": self.instance,
        }
        if note.action:
            tree["action"] = note.action
        return tree


def cut(message: str, limit: int = MESSAGE_LIMIT) -> str:
    """Return the message, shortened to `limit` bytes of UTF-8 with a mark at its end if it was longer."""
    encoded = message.encode("utf-8", "replace")
    if len(encoded) <= limit:
        return message
    return encoded[: limit - len(_CUT)].decode("utf-8", "ignore") + _CUT


def _event_name(regarding: ObjectReference) -> str:
    stem = _FORBIDDEN_IN_NAMES.sub("-", regarding.name.lower())[:200].strip(".-") or "event"
    return f"{stem}.{uuid.uuid4().hex[:16]}"


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
