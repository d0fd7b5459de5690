"""The hub server's way to a cluster: as any link, with logs of pods that print as they run, and one token that counts.

A container prints a line when it begins and every `PRINT_SECONDS`; its kubelet has them while the pod is there.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from tests.simulation.job import phase
from tests.simulation.loop import START
from tests.simulation.wire import Answer, Link, Stream
from trainplane.kube.errors import NotFoundError, UnauthorizedError
from trainplane.kube.testing.podlogs import stamp
from trainplane.kube.testing.verbs import collection_of
from trainplane.kube.testing.watching import status_of
from trainplane.resources import PODS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.simulation.apiserver import ApiServer
    from tests.simulation.loop import VirtualLoop
    from trainplane.kube.testing.storage import Change
    from trainplane.kube.testing.verbs import Asking

_PODS = collection_of(PODS)
PRINT_SECONDS = 7.0
_EPOCH = int(START.timestamp())


class Prints:
    """What the containers of a cluster print, by the pods' uids: from when, until when."""

    def __init__(self, server: ApiServer, loop: VirtualLoop) -> None:
        self._loop = loop
        self.began: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        self.readers: dict[str, set[asyncio.Event]] = {}
        """Who follows a pod's log, and is woken at its end."""
        server.storage.listeners.append(self._changed)

    def _changed(self, change: Change, _: str) -> None:
        pod = change.after or change.before
        if change.collection != _PODS or pod is None:
            return
        uid = pod["metadata"]["uid"]
        if phase(pod) == "Running":
            self.began.setdefault(uid, self._loop.time())
        if change.after is None or phase(pod) in {"Succeeded", "Failed"}:
            self.ended.setdefault(uid, self._loop.time())
            for news in self.readers.pop(uid, ()):
                news.set()

    def lines(self, uid: str) -> list[bytes]:
        """Return what a pod printed so far, with times, one more at its end."""
        began = self.began.get(uid)
        if began is None:
            return []
        ended = self.ended.get(uid)
        until = self._loop.time() if ended is None else ended
        moments = [began + PRINT_SECONDS * turn for turn in range(int((until - began) / PRINT_SECONDS) + 1)]
        return [_line(moment, turn) for turn, moment in enumerate([*moments, *([] if ended is None else [ended])])]

    def is_over(self, uid: str) -> bool:
        """Return whether a pod prints no more."""
        return uid in self.ended


def _line(moment: float, turn: int) -> bytes:
    return stamp(_EPOCH * 1_000_000_000 + round(moment * 1_000_000_000)) + b" line %d\n" % turn


@dataclass
class HubLink(Link):
    """See the module's docstring."""

    prints: Prints = field(kw_only=True)
    is_revoked: bool = field(default=False, kw_only=True)
    """Whether the token that it came with counts no more."""

    async def _answer(self, asking: Asking) -> Answer | Stream:
        if self.is_revoked:
            error = UnauthorizedError("Unauthorized", code=401)
            return Answer(401, msgspec.json.encode(status_of(error)))
        if asking.target is None or asking.target.subresource != "log":
            return await super()._answer(asking)
        pod = self.server.find(_PODS, asking.target.key)
        if pod is None:
            missing = NotFoundError(f'pods "{asking.target.name}" not found', code=404)
            return Answer(404, msgspec.json.encode(status_of(missing)))
        log = LogStream(self, pod["metadata"]["uid"], asking.query.get("sinceTime", ""))
        if asking.query.get("follow") != "true":
            return Answer(200, log.take())
        self.streams.add(log)
        return log


class LogStream(Stream):
    """A log that is followed until its container has ended, or its pod is gone."""

    def __init__(self, link: HubLink, uid: str, since: str) -> None:
        Stream._serials += 1
        self.serial = Stream._serials
        self.headers = {}
        self._link = link
        self._prints = link.prints
        self._uid = uid
        self._since = since
        self._sent = 0
        self._news = asyncio.Event()
        self._error: Exception | None = None
        self._is_closed = False
        self._is_silent = link.is_silent
        link.prints.readers.setdefault(uid, set()).add(self._news)

    def take(self) -> bytes:
        """Return what was printed and not taken yet."""
        lines = self._prints.lines(self._uid)
        since = datetime.fromisoformat(self._since).timestamp() if self._since else 0.0
        new, self._sent = lines[self._sent :], len(lines)
        return b"".join(line for line in new if _moment(line) >= since)

    async def iter_any(self) -> AsyncIterator[bytes]:
        """Yield what is printed, each time after the network's delay."""
        while True:
            await asyncio.sleep(self._link.delay() + self._link.lag)
            self._check()
            if self._mute():
                await self._news.wait()
                self._news.clear()
                continue
            over = self._prints.is_over(self._uid)
            text = self.take()
            if text:
                yield text
            if over or self._is_closed:
                return
            await self._next()

    async def _next(self) -> None:
        """Wait until something may have been printed, or the connection broke."""
        began = self._prints.began.get(self._uid, 0.0)
        now = asyncio.get_running_loop().time()
        wait = PRINT_SECONDS - (now - began) % PRINT_SECONDS + 0.01
        try:
            async with asyncio.timeout(wait):
                await self._news.wait()
            self._news.clear()
        except TimeoutError:
            return

    def close(self) -> None:
        """Leave the kubelet."""
        self._is_closed = True
        self._news.set()
        self._prints.readers.get(self._uid, set()).discard(self._news)
        self._link.streams.discard(self)


def _moment(line: bytes) -> float:
    return datetime.fromisoformat(line.split(b" ", 1)[0].decode()).timestamp()
