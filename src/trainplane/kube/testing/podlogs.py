"""Logs of fake containers as a kubelet serves them: a time on each line, runs, rotation, and streams that break.

What is told of real ones holds here too: `sinceTime` counts in whole seconds and leaves lines out by their own time; a
followed stream ends when its run does; `previous` is the run before the last; a rotated log begins in the middle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from aiohttp import web

from trainplane.kube.errors import BadRequestError
from trainplane.kube.notifier import Notifier

if TYPE_CHECKING:
    from collections.abc import Mapping

Breach = Literal["mid-line", "reset", "clean"]
"""How a stream ends before its time: within a line, between two, or as if all had been said."""


@dataclass
class RunLog:
    """What one run of a container has printed: times in nanoseconds since 1970, and texts."""

    lines: list[tuple[int, bytes]] = field(default_factory=list)
    ended: bool = False
    rotated: int = 0
    """So many lines are rotated away: a stream opened from now on begins after them."""


def stamp(moment: int) -> bytes:
    """Return a time as kubelets write it."""
    second = datetime.fromtimestamp(moment // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{second}.{moment % 1_000_000_000:09d}Z".encode()


@dataclass
class ContainerLogs:
    """The runs of one container, and who reads them."""

    runs: list[RunLog] = field(default_factory=lambda: [RunLog()])
    opened: int = 0
    """Streams that were opened so far."""

    def __post_init__(self) -> None:
        self._news = Notifier()
        self._breaches: list[Breach] = []
        self._readers = 0

    @property
    def readers(self) -> int:
        """Streams that are open."""
        return self._readers

    def write(self, moment: int, text: bytes) -> None:
        """Let the container print a line."""
        self.runs[-1].lines.append((moment, text))
        self._news.notify()

    def end(self) -> None:
        """Let the run end."""
        self.runs[-1].ended = True
        self._news.notify()

    def restart(self) -> None:
        """Let the container end and begin anew."""
        self.end()
        self.runs.append(RunLog())

    def rotate(self, keep: int = 0) -> None:
        """Rotate away all lines but the last `keep`."""
        run = self.runs[-1]
        run.rotated = len(run.lines) - keep

    def breach(self, how: Breach) -> None:
        """Break every open stream."""
        self._breaches.append(how)
        self._news.notify()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Answer a request for the log."""
        previous = request.query.get("previous") == "true"
        if previous and len(self.runs) < 2:
            raise BadRequestError("previous terminated container not found")
        run = self.runs[-2 if previous else -1]
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        self.opened += 1
        self._readers += 1
        try:
            await self._send(request, response, run)
        finally:
            self._readers -= 1
        return response

    async def _send(self, request: web.Request, response: web.StreamResponse, run: RunLog) -> None:
        sent = run.rotated
        since = _since(request.query)
        breaches = len(self._breaches)
        while True:
            news = self._news.next
            while sent < len(run.lines):
                moment, text = run.lines[sent]
                sent += 1
                if moment >= since:
                    await response.write(stamp(moment) + b" " + text + b"\n")
            if request.query.get("follow") != "true" or run.ended:
                break
            await news.wait()
            if len(self._breaches) > breaches:
                if self._breaches[-1] == "clean":
                    break
                await _break_off(request, response, half=self._breaches[-1] == "mid-line")
                return
        await response.write_eof()


async def _break_off(request: web.Request, response: web.StreamResponse, *, half: bool) -> None:
    if half:
        await response.write(b"2099-01-01T00:00:00.000000000Z half a li")
    if request.transport is not None:
        request.transport.abort()


def _since(query: Mapping[str, str]) -> int:
    """Return the nanoseconds of `sinceTime`, which the API server passes on without its fraction."""
    if "sinceTime" not in query:
        return 0
    return int(datetime.fromisoformat(query["sinceTime"]).timestamp()) * 1_000_000_000
