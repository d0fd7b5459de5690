"""The journals of one container of a kept pod, as the sink of the follower of its log (`kube.logfollower`).

Each run has a journal, and the journal is the position: a follower goes on where it ends, also after a restart of the
hub. Where lines were lost the journal says so in a line of its own.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.hub.errors import HubError, NotKeptError
from trainplane.hub.logarchive.lines import note
from trainplane.hub.logarchive.pod import parse
from trainplane.kube.errors import ForbiddenError, KubeError, NotFoundError, UnauthorizedError
from trainplane.kube.logfollower import GONE, ContainerState, Sink
from trainplane.kube.resource import PODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainplane.hub.logarchive.archive import Archive
    from trainplane.hub.logarchive.journal import Journal
    from trainplane.hub.logarchive.keptjob import KeptJob, KeptPod
    from trainplane.hub.logarchive.pod import Pod
    from trainplane.kube.client import Client

log = logging.getLogger(__name__)

REFUSED_SECONDS: Final = 30.0
"""Seconds until a worker that does not let MultiKueue's user read logs is asked again."""

_LOST: Final = "lines may be missing here: the log was rotated on the worker while the hub could not read it"


@dataclass
class JournalSink(Sink):
    """Keeps what one container prints."""

    archive: Archive
    job: KeptJob
    pod: KeptPod
    container: str
    gaps: int = 0
    """How often lines were found to be lost."""

    def state(self) -> ContainerState:
        """Return what the mirror last told of the container."""
        return state_of(self.pod.pod, self.container)

    async def look(self, client: Client) -> ContainerState:
        """Return how the container is now, and keep the pod."""
        pod = parse(await client.get(PODS, self.pod.name, self.job.record.namespace, type_=bytes))
        if pod.uid != self.pod.uid:
            raise NotFoundError(f"pod {self.pod.name} is another one now")
        self.archive.put_pod(self.job, self.pod.cluster, pod)
        return state_of(pod, self.container)

    def kept(self, number: int) -> Journal:
        """Return the journal of a run."""
        return self.pod.journal(self.container, number)

    def adopt(self, number: int, first: bytes) -> bool:
        """Give an empty journal what the one before it has, if it is of the same run."""
        return self.archive.adopt(self.job, self.pod, self.container, self.kept(number), first)

    async def put(self, number: int, lines: Sequence[bytes], *, gap: bool) -> None:
        """Keep lines, and before them that others may be lost."""
        self.gaps += gap
        self.archive.append(self.job, self.kept(number), [note(lines[0], _LOST), *lines] if gap else lines)

    def over(self, number: int, reason: str) -> None:
        """Note that a run was read to its end."""
        self.archive.finish(self.job, self.kept(number), reason)

    def failed(self, error: Exception, failures: int) -> float | None:
        """Wait for workers and volumes to be mended, unless the job is no longer kept."""
        if not isinstance(error, KubeError | HubError | OSError):
            raise error
        if isinstance(error, NotKeptError) or self.archive.job(self.job.record.uid) is not self.job:
            return None  # it went by retention, and its worker may never be back
        log.log(
            logging.WARNING if failures == 5 else logging.INFO,
            "log cannot be read now",
            extra={
                "cluster": self.pod.cluster,
                "container": f"{self.job.record.namespace}/{self.pod.name}/{self.container}",
                "error": str(error),
            },
        )
        return REFUSED_SECONDS if isinstance(error, ForbiddenError | UnauthorizedError) else 0.0

    async def close(self, half: tuple[int, bytes] | None) -> None:
        """Finish all journals: what they have is all there will be, with the line that had no newline yet."""
        if half is not None:
            with contextlib.suppress(HubError, OSError):
                self.archive.append(self.job, self.kept(half[0]), [half[1]])
        for (container, _), journal in list(self.pod.runs.items()):
            if container == self.container:
                self.archive.finish(self.job, journal, GONE)
        self.job.news.notify()


def state_of(pod: Pod, container: str) -> ContainerState:
    """Return what a pod's status says of a container."""
    status = pod.status_of(container)
    if status is None:
        return ContainerState(None, is_running=False)
    states = [state for state in (status.state, status.last_state) if state is not None]
    has_begun = any(state.running is not None or state.terminated is not None for state in states)
    is_running = status.state is not None and status.state.running is not None
    return ContainerState(status.restart_count if has_begun else None, is_running)
