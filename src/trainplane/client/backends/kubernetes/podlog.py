"""The log of one pod's container, read into a source of the merger: the sink of its follower (`kube.logfollower`).

What was read is remembered only as far as it comes again when a stream is resumed: the lines of the last second. Lines
that are known to be missing are told of by a warning: among the lines themselves a word of ours would be the pod's.
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass, field, replace
from datetime import UTC
from typing import TYPE_CHECKING, Final

from trainplane.api import tree as trees
from trainplane.client.backends.kubernetes.wanted import ALL
from trainplane.explain.pods import ENDED, container_name, container_status, name_of, phase_of
from trainplane.kube.backoff import Backoff
from trainplane.kube.containerlogs import nanoseconds, resumed_from
from trainplane.kube.errors import ForbiddenError, KubeError, NotFoundError, UnauthorizedError
from trainplane.kube.logfollower import ContainerState, Follower, Sink
from trainplane.kube.resource import PODS, Key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainplane.api.tree import Tree
    from trainplane.client.backends.kubernetes.merging import LogStream
    from trainplane.client.backends.kubernetes.wanted import Wanted
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock

_log = logging.getLogger(__name__)

BACKOFF: Final = Backoff(base=0.1, cap=3.0)
TRIES: Final = 5
"""How often a log that is not followed is asked for."""


@dataclass
class Run:
    """What was read of one run of a container."""

    ended: str | None = None
    end: int = 0
    """Lines that were read."""
    first: bytes = b""
    _newest: int = 0
    _recent: deque[bytes] = field(default_factory=deque)

    def newest(self) -> int | None:
        """Return the time of the last line, in nanoseconds; None if there is none."""
        return self._newest if self.end else None

    def since(self, moment: int) -> list[bytes]:
        """Return the lines that come again when the stream is resumed: by each one's own time."""
        return [line for line in self._recent if (nanoseconds(line) or 0) >= moment]

    def keep(self, lines: Sequence[bytes]) -> None:
        """Take note of lines that were read."""
        self.first = self.first or lines[0]
        self.end += len(lines)
        self._newest = max(self._newest, *(nanoseconds(line) or 0 for line in lines))
        self._recent.extend(lines)
        oldest = resumed_from(self._newest)
        while self._recent and (nanoseconds(self._recent[0]) or 0) < oldest:
            self._recent.popleft()


class PodLog(Sink):
    """Reads one pod into a source; `update` and `finish` tell it what becomes of the pod and its TrainJob."""

    def __init__(
        self, client: Client, pod: Tree, source: LogStream, clock: Clock, *, follow: bool, wanted: Wanted = ALL
    ) -> None:
        self._pod = pod
        self._source = source
        self._key = Key(str(trees.get(pod, "metadata", "namespace")), name_of(pod))
        self._container = container_name(pod)
        self._runs: dict[int, Run] = {}
        self._former = wanted.previous
        self._follower = Follower(
            self,
            self._key,
            self._container,
            lambda: client,
            clock,
            follow=follow,
            tail=wanted.tail,
            since=f"{wanted.since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if wanted.since else None,
            backoff=BACKOFF,
        )

    def update(self, pod: Tree) -> None:
        """The pod has changed."""
        self._pod = pod
        self._follower.update()

    def finish(self) -> None:
        """The TrainJob is over, or the pod is deleted: what is printed now is all there will be."""
        self._follower.finish()

    async def run(self) -> None:
        """Read until nothing more can come. Raises ForbiddenError and UnauthorizedError; without `follow`, all."""
        try:
            await (self._follower.run_former() if self._former else self._follower.run())
        finally:
            self._source.end()

    def state(self) -> ContainerState:
        """Return what the mirror last told of the container, or we saw."""
        status = container_status(self._pod, self._container)
        now = status.get("state") or {}
        has_begun = {"running", "terminated"} & {*now, *(status.get("lastState") or {})}
        run = int(status.get("restartCount") or 0) if has_begun else None
        return ContainerState(run, is_running="running" in now, is_last=phase_of(self._pod) in ENDED)

    async def look(self, client: Client) -> ContainerState:
        """Return how the container is now."""
        pod = await client.get(PODS, self._key.name, self._key.namespace)
        if trees.get(pod, "metadata", "uid") != trees.get(self._pod, "metadata", "uid"):
            raise NotFoundError(f"pod {self._key.name} is another one now")
        self._pod = pod
        return self.state()

    def kept(self, number: int) -> Run:
        """Return what was read of a run."""
        return self._runs.setdefault(number, Run())

    def adopt(self, number: int, first: bytes) -> bool:
        """Take over what was read as the run before it and turned out to be this one's."""
        former = self._runs.get(number - 1)
        if former is None or former.first != first:
            return False
        self._runs[number] = replace(former, ended=None)
        return True

    async def put(self, number: int, lines: Sequence[bytes], *, gap: bool) -> None:
        """Give the merger lines; waits while too many of them wait."""
        if gap:
            _log.warning("lines of pod %s are missing: its log was rotated while it could not be read", self._key.name)
        self.kept(number).keep(lines)
        await self._source.put(lines)

    def over(self, number: int, reason: str) -> None:
        """Note that a run was read to its end."""
        self.kept(number).ended = reason

    def failed(self, error: Exception, failures: int) -> float | None:
        """Wait for a cluster that is away, a few times only where nothing is followed; raise all else."""
        may_wait = isinstance(error, KubeError) and not isinstance(error, ForbiddenError | UnauthorizedError)
        if not may_wait or (not self._follower.follow and failures >= TRIES):
            raise error
        return 0.0

    async def close(self, half: tuple[int, bytes] | None) -> None:
        """Give the merger the line that will not get its newline; tell of a log that was gone before it was read.

        Of a pod that is followed nobody can say so: its stream ends as its container does, whether the end was seen or
        not.
        """
        if half is not None:
            await self._source.put([half[1]])
        number = self.state().run
        if not self._follower.follow and number is not None and self.kept(number).ended is None:
            _log.warning("lines of pod %s are missing: it was deleted before its log was read", self._key.name)

    def connecting(self) -> None:
        """Let other sources wait."""
        self._source.connect()

    def connected(self) -> None:
        """Lines come from now on."""
        self._source.connected()
