"""A server in memory, with a history, that serves lists and watches well or badly.

It is the model that a reflector's store is compared with, and, as `Cluster`, what the reflector talks to.
"""

# A double has the signature of what it stands for.
# ruff: noqa: ARG002
from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.unit.kube.loop.objects import raw, tree
from trainplane.kube.codec import Page, WatchEvent
from trainplane.kube.errors import GoneError, InvalidError, KubeError, StreamError
from trainplane.kube.reflector import INITIAL_EVENTS_END
from trainplane.kube.resource import Key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from trainplane.kube.resource import Resource


@dataclass
class Behaviour:
    """How the next watch or list is served; the default is well."""

    error: KubeError | None = None
    """Raised instead of an answer."""
    cut_after: int | None = None
    """Events after which the stream is cut."""
    copies: int = 1
    """How often each event is sent."""
    swap: bool = False
    """Send each pair of live events the wrong way round."""
    replay: int = 0
    """How many old events of the history are sent again before live ones."""
    behind: int = 0
    """How many changes a list is older than the truth."""
    late_bookmark: int = 0
    """Send a bookmark that is so much older than the stream."""
    silent: bool = False
    """Send nothing and never end."""


@dataclass
class ModelCluster:
    """The truth, and ways to tell it."""

    streams_lists: bool = True
    ignores_initial_events: bool = False
    objects: dict[Key, dict[str, Any]] = field(default_factory=dict)
    history: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    behaviours: list[Behaviour] = field(default_factory=list)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    revision: int = 100
    compacted: int = 0
    watchers: int = 0

    def __post_init__(self) -> None:
        self._news = asyncio.Event()
        self._cuts = 0
        self._bookmarks = 0
        self._uids = itertools.count(1)

    # What happens on the server.

    def put(self, name: str, value: int = 0) -> None:
        """Create or update an object."""
        key = Key("default", name)
        self.revision += 1
        known = self.objects.get(key)
        uid = known["metadata"]["uid"] if known else f"uid-{next(self._uids)}"
        self.objects[key] = tree(name, self.revision, uid=uid, spec={"value": value})
        self._record("MODIFIED" if known else "ADDED", self.objects[key])

    def delete(self, name: str) -> None:
        """Delete an object if it is there; its last event carries the deletion's version."""
        last = self.objects.pop(Key("default", name), None)
        if last is not None:
            self.revision += 1
            uid = last["metadata"]["uid"]
            self._record("DELETED", tree(name, self.revision, uid=uid, spec=last["spec"]))

    def compact(self) -> None:
        """Forget the history."""
        self.compacted = self.revision

    def cut_watches(self) -> None:
        """Cut all streams."""
        self._cuts += 1
        self._wake()

    def send_bookmarks(self) -> None:
        """Tell all watchers how far they are."""
        self._bookmarks += 1
        self._wake()

    def restore(self, objects: Mapping[Key, dict[str, Any]], revision: int) -> None:
        """Go back to a backup: another history begins."""
        self.objects = dict(objects)
        self.revision = revision
        self.history.clear()
        self.compacted = 0
        self.cut_watches()

    def at(self, revision: int) -> dict[Key, dict[str, Any]]:
        """Return the objects as they were."""
        state: dict[Key, dict[str, Any]] = {}
        for version, kind, obj in self.history:
            if version > revision:
                break
            key = Key(obj["metadata"]["namespace"], obj["metadata"]["name"])
            if kind == "DELETED":
                state.pop(key, None)
            else:
                state[key] = obj
        return state

    def _record(self, kind: str, obj: dict[str, Any]) -> None:
        self.history.append((self.revision, kind, obj))
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    # What a client sees.

    async def list_pages(self, resource: Resource, namespace: str | None = None, **query: Any) -> AsyncIterator[Page]:
        """Serve a list in pages; one object says only how far the server is, and always truly."""
        if query["limit"] == 1:
            self.asked.append(("probe", None))
            yield Page([], str(self.revision))
            return
        self.asked.append(("list", None))
        how = self._behave()
        revision, state = self._listed(how)
        items = [raw(obj) for obj in state.values()]
        size = query["limit"]
        for start in range(0, max(1, len(items)), size):
            await asyncio.sleep(0)
            if how.cut_after is not None and start >= how.cut_after:
                raise GoneError("the continue token expired")
            yield Page(items[start : start + size], str(revision))

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str | None = None,
        initial_events: bool = False,
        **query: Any,
    ) -> AsyncIterator[WatchEvent]:
        """Serve a watch."""
        self.asked.append(("stream" if initial_events else "watch", resource_version))
        self.watchers += 1
        try:
            sent = 0
            how = self._behave()
            async for event in self._events(how, resource_version, initial_events):
                if how.cut_after is not None and sent >= how.cut_after:
                    raise StreamError("cut")
                sent += 1
                yield event
        finally:
            self.watchers -= 1

    def _behave(self) -> Behaviour:
        how = self.behaviours.pop(0) if self.behaviours else Behaviour()
        if how.error is not None:
            raise how.error
        return how

    def _listed(self, how: Behaviour) -> tuple[int, dict[Key, dict[str, Any]]]:
        if not how.behind:
            return self.revision, dict(self.objects)
        revision = max(100, self.revision - how.behind)
        return revision, self.at(revision)

    async def _events(self, how: Behaviour, since: str | None, initial_events: bool) -> AsyncIterator[WatchEvent]:
        cuts, bookmarks = self._cuts, self._bookmarks
        if how.silent:
            await asyncio.Event().wait()
        position, beginning = self._begin(how, None if initial_events else int(since or 0))
        for event in beginning:
            yield event
        while True:
            news = self._news
            for event in self._live(how, position):
                yield event
            position = max(position, self.revision)
            if bookmarks != self._bookmarks:
                bookmarks = self._bookmarks
                yield bookmark(position)
            if cuts != self._cuts:
                raise StreamError("cut")
            if news is self._news:
                await news.wait()

    def _begin(self, how: Behaviour, since: int | None) -> tuple[int, list[WatchEvent]]:
        """Return where the live events begin and what is sent before them; without `since` that is a list."""
        events: list[WatchEvent] = []
        if since is None:
            if not self.streams_lists:
                raise InvalidError("sendInitialEvents is forbidden here")
            since, state = self._listed(how)
            events += [WatchEvent("ADDED", raw(obj)) for obj in state.values()]
            if not self.ignores_initial_events:
                events.append(bookmark(since, {INITIAL_EVENTS_END: "true"}))
        elif since < self.compacted:
            raise GoneError("too old resource version")
        if how.replay:
            events += [WatchEvent(kind, raw(obj)) for _, kind, obj in self.history[-how.replay :]]
        if how.late_bookmark:
            events.append(bookmark(max(1, since - how.late_bookmark)))
        return since, events

    def _live(self, how: Behaviour, position: int) -> Iterator[WatchEvent]:
        events = [WatchEvent(kind, raw(obj)) for version, kind, obj in self.history if version > position]
        if how.swap:
            events = [event for first in range(0, len(events), 2) for event in reversed(events[first : first + 2])]
        for event in events:
            for _ in range(how.copies):
                yield event


def bookmark(revision: int, annotations: dict[str, str] | None = None) -> WatchEvent:
    """Return a BOOKMARK event."""
    metadata = {"resourceVersion": str(revision), "annotations": annotations or {}}
    return WatchEvent("BOOKMARK", raw({"kind": "Thing", "metadata": metadata}))
