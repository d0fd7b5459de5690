"""The network between a replica and the API server, in memory: each request and each event takes its time, or is lost.

The seam is the one place of the runtime that touches a network, `kube.connection.Connection`: the transport above it,
with its retries, limits and timeouts, is the real one.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from trainplane.kube.config import Config
from trainplane.kube.connection import Connection, ConnectionSettings
from trainplane.kube.errors import ApiError, ConnectError, TransportError, error_class
from trainplane.kube.testing.verbs import Asking, is_metadata_alone, metadata_of, target_of, verb_of
from trainplane.kube.testing.watching import Feed, status_of
from trainplane.kube.transport import Transport

if TYPE_CHECKING:
    import contextvars
    from collections.abc import AsyncIterator, Mapping
    from random import Random

    from tests.simulation.apiserver import ApiServer
    from trainplane.kube import wire
    from trainplane.kube.clock import Clock
    from trainplane.kube.connection import Request
    from trainplane.kube.credentials import Credential
    from trainplane.kube.limiter import LimiterSettings
    from trainplane.kube.testing.faults import Verb
    from trainplane.kube.testing.storage import Tree
    from trainplane.kube.testing.verbs import Target

BOOKMARK_SECONDS = 60.0

LOG = b"RuntimeError: the loss is no number\n"
"""What every pod printed of which nothing else is known."""


@dataclass
class Weather:
    """How requests fare now, as shares of all: each is drawn for itself."""

    refused: float = 0.0
    """429, with a Retry-After of a second or two."""
    broken: float = 0.0
    """500 or 503, before anything was done."""
    lost: float = 0.0
    """Nothing was done and nothing is answered."""
    unanswered: float = 0.0
    """All was done and the answer is lost."""
    hung: float = 0.0
    """Never answered."""
    slow: float = 0.0
    """Up to eight seconds late."""
    stale: float = 0.0
    """Lists and the beginnings of watches are of a moment ago, as from an API server that lags."""


@dataclass
class Link:
    """One replica's way to the API server."""

    server: ApiServer
    name: str
    random: Random
    weather: Weather
    is_cut: bool = False
    """No connection can be made, and those that there were are broken."""
    is_dead: bool = False
    """The process is no more: what it still tries comes nowhere."""
    is_silent: bool = False
    """Watches bring nothing and do not end; those that begin now do neither."""
    leases_are_cut: bool = False
    """Requests for Leases are lost."""
    apart: contextvars.Context | None = None
    """What requests are carried in, if not in the task that sends them: they go on while its process is stopped."""
    lag: float = 0.0
    """Seconds that every event of a watch is late."""
    streams: set[Stream] = field(default_factory=set)
    sent: list[Any] = field(default_factory=list)
    """Called with each write as it is sent."""

    def cut(self) -> None:
        """Break every stream."""
        for stream in sorted(self.streams, key=lambda one: one.serial):
            stream.abort()

    def delay(self) -> float:
        """Return how long one way takes."""
        return self.random.uniform(0.001, 0.03)

    async def send(
        self, method: str, path: str, body: bytes | None, content_type: str | None, accept: str | None = None
    ) -> Answer | Stream:
        """Bring a request to the server and its answer back; raises TransportError where either is lost."""
        verb, plain, query, target = _read(method, path)
        asking = Asking(verb, plain, query, content_type or "", target, body or b"", accept or "")
        if not self.is_dead and verb not in {"get", "list", "watch", "other"}:
            for listener in self.sent:
                listener(self.name, asking)
        way = self._carry(asking, f"{method} {plain}")
        if self.apart is None:
            return await way
        return await asyncio.get_running_loop().create_task(way, context=self.apart)

    async def _carry(self, asking: Asking, what: str) -> Answer | Stream:
        target, verb = asking.target, asking.verb
        await self._way()
        if self.leases_are_cut and target is not None and target.collection.plural == "leases":
            raise TransportError(f"{what}: the connection broke")
        fate = self._fate()
        if fate == "hung":
            await self._never()
        if fate == "lost":
            raise TransportError(f"{what}: the connection broke")
        if fate in {"refused", "broken"}:
            return self._refusal(fate)
        if fate == "slow":
            await asyncio.sleep(self.random.uniform(0.5, 8.0))
            await self._way()
        answer = await self._answer(asking)
        if fate == "unanswered" and verb != "watch":
            raise TransportError(f"{what}: the connection broke before the answer")
        await self._way()
        return answer

    def _fate(self) -> str:
        """Draw what becomes of a request."""
        drawn = self.random.random()
        for fate in ("hung", "lost", "refused", "broken", "slow", "unanswered"):
            drawn -= getattr(self.weather, fate)
            if drawn < 0:
                return fate
        return ""

    def _refusal(self, fate: str) -> Answer:
        if fate == "refused":
            return _failure(error_class(429)("too many requests", code=429, retry_after=self.random.randint(1, 2)))
        code = self.random.choice((500, 503))
        return _failure(error_class(code)("the server is not well", code=code))

    async def _answer(self, asking: Asking) -> Answer | Stream:
        target, storage, stale = asking.target, self.server.storage, None
        if asking.verb in {"list", "watch"} and self.random.random() < self.weather.stale:
            stale = max(storage.compacted, 1, storage.revision - self.random.randint(1, 20))
        try:
            if asking.verb == "watch":
                with self.server.aside():
                    return Stream(self, asking, stale)
            if target is not None and target.subresource == "log":
                uid = storage.get(target.collection, target.key)["metadata"]["uid"]
                return Answer(200, self.server.logs.get(uid, LOG))
            tree = await self.server.answer(asking, self.name, stale=stale)
        except ApiError as error:
            return _failure(error)
        with self.server.aside():
            return Answer(201 if asking.verb == "create" else 200, msgspec.json.encode(tree))

    async def _way(self) -> None:
        if self.is_dead:
            await self._never()
        if self.is_cut:
            raise ConnectError("no connection: the network is cut")
        await asyncio.sleep(self.delay())
        if self.is_dead:
            await self._never()
        if self.is_cut:
            raise TransportError("the connection broke: the network is cut")

    async def _never(self) -> None:
        await asyncio.get_running_loop().create_future()


class Answer:
    """An answer as aiohttp would give it, as far as the transport looks."""

    def __init__(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.status = status
        self.headers = headers or {}
        self._body = body

    async def read(self) -> bytes:
        """Return the body."""
        return self._body

    @property
    def content(self) -> Answer:
        """The body, where it is read as it comes."""
        return self

    async def iter_any(self) -> AsyncIterator[bytes]:
        """Yield the body."""
        yield self._body

    def set_exception(self, error: Exception) -> None:
        """Nothing: all of it is there."""

    def close(self) -> None:
        """Nothing to close."""


class Stream:
    """A watch: raises ApiError where the server refuses it."""

    status = 200
    _serials = 0

    def __init__(self, link: Link, asking: Asking, stale: int | None) -> None:
        assert asking.target is not None
        self._link = link
        self._collection = asking.target.collection
        self._is_cut_down = is_metadata_alone(asking.accept)
        self._feed = Feed(link.server.storage, asking.query, asking.target.collection, asking.target.namespace)
        self._feed.begin(stale)
        loop = asyncio.get_running_loop()
        self._ends = loop.time() + float(asking.query.get("timeoutSeconds") or 3600)
        self._timer = loop.call_at(min(self._ends, loop.time() + BOOKMARK_SECONDS), self._tick)
        self._owes_bookmark = False
        self._news = link.server.follow(self._collection)
        self._news.set()
        self._error: Exception | None = None
        self._is_closed = False
        self._is_silent = link.is_silent
        self.headers: dict[str, str] = {}
        Stream._serials += 1
        self.serial = Stream._serials
        link.streams.add(self)

    @property
    def content(self) -> Stream:
        """The body, read as it comes."""
        return self

    async def iter_any(self) -> AsyncIterator[bytes]:
        """Yield what happened, each time after the network's delay."""
        link = self._link
        while True:
            await self._news.wait()
            self._news.clear()
            self._check()
            if self._mute():
                continue
            if self._is_closed:
                return
            await asyncio.sleep(link.delay() + link.lag)
            self._check()
            if self._mute():
                continue
            with link.server.aside():
                events = self._take()
            for kind, obj in events:
                with link.server.aside():
                    shown = metadata_of(obj) if self._is_cut_down and kind != "ERROR" else obj
                    line = link.server.line(kind, shown, self._collection)
                yield line
                if kind == "ERROR":
                    return
                self._check()

    def _take(self) -> list[tuple[str, Tree]]:
        """Return what there is to send, and the bookmark that is owed."""
        feed = self._feed
        feed.pending += feed.changes()
        if self._owes_bookmark and not feed.is_ahead:
            self._owes_bookmark = False
            feed.pending.append(feed.bookmark())
        events, feed.pending = feed.pending, []
        return events

    def _tick(self) -> None:
        """Owe a bookmark about each minute, and end when it is time."""
        loop = asyncio.get_running_loop()
        self._owes_bookmark = True
        self._is_closed = self._is_closed or loop.time() >= self._ends
        self._news.set()
        if not self._is_closed:
            self._timer = loop.call_at(min(self._ends, loop.time() + BOOKMARK_SECONDS), self._tick)

    def _mute(self) -> bool:
        return self._link.is_dead or self._is_silent

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def mark(self) -> None:
        """Bring a bookmark before its time."""
        self._owes_bookmark = True
        self._news.set()

    def silence(self) -> None:
        """Bring nothing any more, and never end."""
        self._is_silent = True

    def abort(self) -> None:
        """Break the connection."""
        self.set_exception(ConnectionResetError("the connection was cut"))

    def end(self) -> None:
        """End cleanly, and early, as an API server that goes away does."""
        self._is_closed = True
        self._news.set()

    def set_exception(self, error: Exception) -> None:
        """Let whoever reads hear an error."""
        self._error = error
        self._news.set()

    def close(self) -> None:
        """Leave the server."""
        self._is_closed = True
        self._timer.cancel()
        self._link.server.leave(self._collection, self._news)
        self._link.streams.discard(self)


class MemoryConnection(Connection):
    """A connection over a `Link`."""

    def __init__(self, config: Config, clock: Clock, link: Link) -> None:
        super().__init__(config, ConnectionSettings(), clock, connections=1)
        self._link = link

    async def exchange(self, request: Request, credential: Credential) -> wire.Answer:
        """Return the whole answer; raises TransportError as the real one does."""
        return await self._exchange_apart(request, credential)

    async def send(self, request: Request, credential: Credential) -> Answer | Stream:  # type: ignore[override]
        """Return the answer; raises TransportError as the real one does."""
        try:
            async with asyncio.timeout(request.seconds):
                method, path, body, content_type, accept, _ = request
                return await self._link.send(method, path, body, content_type, accept)
        except TimeoutError:
            raise TransportError(f"{request.what}: no answer in time", timed_out=True) from None

    async def close(self) -> None:
        """Nothing is kept."""


class MemoryTransport(Transport):
    """The real transport over a link; what is apart from it goes over the same link."""

    def __init__(self, link: Link, clock: Clock, **options: Any) -> None:
        super().__init__(Config(server="http://api"), clock=clock, **options)
        self._link = link
        self._connection = MemoryConnection(self.config, clock, link)

    def apart(self, limiter: LimiterSettings | None = None, *, streams: int | None = None) -> Transport:
        """Return another over the same link."""
        made = super().apart(limiter, streams=streams)
        return MemoryTransport(self._link, self._clock, settings=made.settings, jitter=self._jitter)


@lru_cache(maxsize=4096)
def _read(method: str, path: str) -> tuple[Verb, str, Mapping[str, str], Target | None]:
    """Return what is asked by a method and a path: the verb, the path alone, its query, and what it addresses."""
    split = urlsplit(path)
    query = dict(parse_qsl(split.query, keep_blank_values=True))
    target = target_of(unquote(split.path))
    return verb_of(method, query, target), split.path, query, target


def _failure(error: ApiError) -> Answer:
    headers = {} if error.retry_after is None else {"Retry-After": f"{error.retry_after:.0f}"}
    return Answer(error.code, msgspec.json.encode(status_of(error)), headers)
