"""The watch half of the fake API server: replays history, follows changes, and misbehaves as its faults say."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from trainplane.kube.errors import ApiError, GoneError
from trainplane.kube.testing.faults import Cut, Dribble, Expire, Fault, Garble, Pad, Reorder, Repeat, Silence
from trainplane.kube.testing.selectors import matches
from trainplane.kube.testing.verbs import is_metadata_alone, metadata_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainplane.kube.testing.storage import Change, Collection, Storage, Tree

Event = tuple[str, "Tree"]

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Watching:
    """All open watches of a server."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._watches: set[_Watch] = set()

    @property
    def count(self) -> int:
        """How many watches are open."""
        return len(self._watches)

    def wake(self) -> None:
        """Let every watch send what is new."""
        for watch in self._watches:
            watch.news.set()

    def send_bookmarks(self) -> None:
        """Let every watch say which revision it has reached."""
        for watch in self._watches:
            watch.owes_bookmark = True
            watch.news.set()

    def end(self) -> None:
        """End every watch cleanly after what is pending, as their timeouts would."""
        for watch in self._watches:
            watch.is_ending = True
            watch.news.set()

    def cut(self) -> None:
        """Break every watch's connection."""
        for watch in list(self._watches):
            watch.abort()

    async def serve(
        self, request: web.Request, collection: Collection, namespace: str, fault: Fault | None
    ) -> web.StreamResponse:
        """Answer a watch request until it ends; raises GoneError for a revision that is forgotten."""
        watch = _Watch(self._storage, request, collection, namespace, fault)
        watch.begin()
        self._watches.add(watch)
        try:
            return await watch.run()
        except (ConnectionError, _CutError):
            watch.abort()
            return web.Response()
        finally:
            self._watches.discard(watch)


class _CutError(Exception):
    """This watch breaks here, on purpose."""


class Feed:
    """What one watch has to tell: the state at its beginning or what came after a revision, then each change."""

    def __init__(self, storage: Storage, query: Mapping[str, str], collection: Collection, namespace: str) -> None:
        self._storage = storage
        self._query = query
        self._collection = collection
        self._namespace = namespace
        self._revision = 0
        self.pending: list[Event] = []
        """Events of the beginning that nobody took yet."""
        self.is_over = False
        """Whether the last event was an error, after which there is nothing."""

    def begin(self, stale: int | None = None) -> None:
        """Settle where to start: the state as ADDED events, or the changes after a revision; raises GoneError.

        `stale` shows the state of an older revision first, as a server that lags does.
        """
        wanted = self._query.get("resourceVersion") or "0"
        initial = self._query.get("sendInitialEvents") == "true"
        if not initial and wanted != "0":
            self._revision = int(wanted)
            if self._revision < self._storage.compacted:
                raise GoneError(f"too old resource version: {wanted} ({self._storage.compacted})")
            return
        self._revision = self._storage.revision if stale is None else stale
        for key, obj in self._storage.listed(self._collection, self._revision):
            if self._namespace in {"", key.namespace} and matches(obj, self._query):
                self.pending.append(("ADDED", obj))
        if initial:
            self.pending.append(self.bookmark(annotations={INITIAL_EVENTS_END: "true"}))

    def changes(self) -> Iterator[Event]:
        """Yield what happened since the last call."""
        if self._revision < self._storage.compacted:
            self.is_over = True
            error = GoneError(f"too old resource version: {self._revision} ({self._storage.compacted})")
            yield ("ERROR", status_of(error))
            return
        history = self._storage.history
        start = len(history)
        while start and history[start - 1].revision > self._revision:
            start -= 1
        for change in history[start:]:
            self._revision = change.revision
            if change.collection == self._collection and self._namespace in {"", change.key.namespace}:
                yield from self._seen(change)
        self._revision = max(self._revision, self._storage.revision)

    def _seen(self, change: Change) -> Iterator[Event]:
        """Return a change as this watch's selectors see it."""
        was = change.before is not None and matches(change.before, self._query)
        now = change.after is not None and matches(change.after, self._query)
        if now and change.after is not None:
            yield ("MODIFIED" if was else "ADDED", change.after)
        elif was and change.final is not None:
            yield ("DELETED", change.final)
        elif was and change.before is not None:
            meta = {**change.before["metadata"], "resourceVersion": str(change.revision)}
            yield ("DELETED", {**change.before, "metadata": meta})

    @property
    def is_ahead(self) -> bool:
        """Whether it was begun at a revision that the server has not come to: a real one sends no bookmark then."""
        return self._revision > self._storage.revision

    def bookmark(self, annotations: dict[str, str] | None = None) -> Event:
        """Return the event that says how far this watch has come."""
        meta: Tree = {"resourceVersion": str(self._revision), "creationTimestamp": None}
        if annotations:
            meta["annotations"] = annotations
        return "BOOKMARK", {"kind": "", "apiVersion": "", "metadata": meta}


class _Watch:
    def __init__(
        self, storage: Storage, request: web.Request, collection: Collection, namespace: str, fault: Fault | None
    ) -> None:
        self._feed = Feed(storage, request.query, collection, namespace)
        self._request = request
        self._fault = fault
        self._sent = 0
        self._response = web.StreamResponse(headers={"Content-Type": "application/json"})
        self.news = asyncio.Event()
        self.owes_bookmark = False
        self.is_over = False
        self.is_ending = False

    def begin(self) -> None:
        self._feed.begin()

    async def run(self) -> web.StreamResponse:
        await self._response.prepare(self._request)
        # Headers go out at once, as the real server's do.
        if isinstance(self._fault, Silence):
            await asyncio.Event().wait()
        seconds = float(self._request.query.get("timeoutSeconds") or 3600)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._send_pending()
                while not (self.is_over or self.is_ending):
                    await self.news.wait()
                    await self._send_pending()
        await self._response.write_eof()
        return self._response

    def abort(self) -> None:
        if self._request.transport is not None:
            self._request.transport.abort()

    async def _send_pending(self) -> None:
        self.news.clear()
        feed = self._feed
        feed.pending += feed.changes()
        self.is_over = feed.is_over
        if self.owes_bookmark and not feed.is_ahead:
            self.owes_bookmark = False
            feed.pending.append(feed.bookmark())
        events, feed.pending = feed.pending, []
        for event in self._disordered(events):
            await self._send(event)
            if self.is_over:
                return

    def _disordered(self, events: list[Event]) -> Iterator[Event]:
        fault = self._fault
        if isinstance(fault, Repeat):
            for event in events:
                yield from [event] * fault.copies
        elif isinstance(fault, Reorder):
            group: list[Event] = []
            for event in events:
                if event[0] == "BOOKMARK":
                    yield from reversed(group)
                    yield event
                    group = []
                else:
                    group.append(event)
                    if len(group) == fault.window:
                        yield from reversed(group)
                        group = []
            yield from reversed(group)
        else:
            yield from events

    async def _send(self, event: Event) -> None:
        type_, obj = event
        fault = self._fault
        if isinstance(fault, Pad) and type_ not in {"BOOKMARK", "ERROR"}:
            obj = padded(obj, fault.size)
        if type_ != "ERROR" and is_metadata_alone(self._request.headers.get("Accept", "")):
            obj = metadata_of(obj)
        line = msgspec.json.encode({"type": type_, "object": obj}) + b"\n"
        if isinstance(fault, Cut) and self._sent == fault.after:
            if fault.mid_line:
                await self._write(line[: len(line) // 2])
            await asyncio.sleep(0)
            raise _CutError
        if isinstance(fault, Garble) and self._sent == fault.after:
            line, self.is_over = b'{"type":"ADDED","object":{"half\n', True
        if isinstance(fault, Expire) and self._sent == fault.after:
            expired = status_of(GoneError("The resourceVersion for the provided watch is too old."))
            line, self.is_over = msgspec.json.encode({"type": "ERROR", "object": expired}) + b"\n", True
        await self._write(line)
        self._sent += 1

    async def _write(self, data: bytes) -> None:
        if isinstance(self._fault, Dribble):
            for start in range(0, len(data), self._fault.chunk):
                await self._response.write(data[start : start + self._fault.chunk])
                await asyncio.sleep(0)
        else:
            await self._response.write(data)


def padded(obj: Tree, size: int) -> Tree:
    """Return an object with an annotation of `size` bytes more."""
    meta = obj["metadata"]
    annotations = {**(meta.get("annotations") or {}), "fake/padding": "x" * size}
    return {**obj, "metadata": {**meta, "annotations": annotations}}


def status_of(error: ApiError) -> dict[str, Any]:
    """Return the Status that the API server sends for an error."""
    details: dict[str, Any] = dict(error.details)
    if error.retry_after is not None:
        details["retryAfterSeconds"] = int(error.retry_after)
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": error.message,
        "reason": error.reason,
        "details": details,
        "code": error.code,
    }
