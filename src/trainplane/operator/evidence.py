"""What went wrong first in a TrainJob, read while it can be: pods go, and their logs with them.

As soon as a pod has ended badly, the end of its log is asked for and cut to the telling lines; `explain` names the
cause, and of several pods the one that the others died of. Logs are read few at a time and few per TrainJob, within
seconds, and cannot hold up or fail a reconcile: without one, the exit code and the termination message still tell.

A kubelet may tell of a container's end before the runtime wrote its last lines, or be too busy to be read from. So a
log that explains nothing is read again with the next reconcile, for a moment after the end was first seen; until then
the judgement is not settled.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from trainplane.explain import faults
from trainplane.kube.errors import ForbiddenError, KubeError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainplane.api.trainjob import FirstFault
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.resource import Key
    from trainplane.operator.pods import PodMirror, SeenPod

log = logging.getLogger(__name__)

_LAST: Final = datetime.max.replace(tzinfo=UTC)

LINES: Final = 120
"""Lines asked for of a log: a launcher's report of some dozens, and the error before it."""
LINE_BYTES: Final = 2048
"""Bytes kept of a line."""
SECONDS: Final = 3.0
"""How long a log may take: a kubelet that is lost does not answer at all."""
AT_ONCE: Final = 8
"""Logs that are read at a time: a rack that fails brings hundreds of faults in a second."""
LAST_LINES_SECONDS: Final = 2.0
"""How long after an end was first seen its log may still grow: containerd copies a container's output by itself, on a
machine that the other containers of a failed training may keep busy."""
SURVIVED: Final = timedelta(minutes=1)
"""How long after a fault a deletion cannot follow from it any more: the Job controller deletes pods within seconds."""
PER_ATTEMPT: Final = 6
"""Ends that are looked at in one attempt of a TrainJob. The first pods to fail tell; the others fail for their loss."""


@dataclass(frozen=True, slots=True)
class _Judgement:
    """What an end was found to be."""

    fault: FirstFault | None
    since: float
    """When the end was first looked at, by the monotonic clock."""
    is_settled: bool
    """Whether its log would tell no more if it were read again."""


@dataclass
class Evidence:
    """Reads and judges how pods ended. Remembers what it found, and nothing else."""

    client: Client
    pods: PodMirror
    clock: Clock
    reads_logs: bool = True
    _free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    _judged: dict[Key, dict[str, _Judgement]] = field(default_factory=dict)
    """Of TrainJobs that had faults: by what tells one end from another."""

    def forget(self, key: Key) -> None:
        """Forget a TrainJob that is finished or gone."""
        self._judged.pop(key, None)

    async def first_fault(
        self, key: Key, pods: Sequence[SeenPod], stopped: Sequence[SeenPod], kept: FirstFault | None
    ) -> FirstFault | None:
        """Return what went wrong first among pods of one attempt, and what was kept of it already.

        A pod that was stopped counts by its stop, and never by how its containers ended. A deletion soon after another
        fault follows from that.
        """
        stops = self._stops(stopped, kept)
        damaged = sorted((pod for pod in pods if _counts(pod)), key=_moment)
        if not damaged and not stops:
            return kept
        before = self._judged.get(key, {})
        attempt = f"{(damaged or stopped)[0].attempt} "
        judged = {mark: one for mark, one in before.items() if mark.startswith(attempt)}
        for pod in damaged:
            mark = attempt + _mark(pod)
            earlier = judged.get(mark)
            if (earlier is None and len(judged) < PER_ATTEMPT) or (earlier is not None and not earlier.is_settled):
                judged[mark] = await self._judge(pod, earlier)
        self._judged[key] = judged
        found = [*stops, *(one.fault for one in judged.values())]
        if kept is not None and not any(one is not None and _is_same_end(one, kept) for one in found):
            found.append(kept)
        stop = min((one.time for one in stops if one.time is not None), default=None)
        return faults.first([one for one in found if one is not None and not _was_survived(one, stop)])

    def _stops(self, stopped: Sequence[SeenPod], kept: FirstFault | None) -> list[FirstFault]:
        """Return the stops of pods that can be the first fault."""
        first = None if kept is None or faults.is_stop(kept) else kept
        stopping = [
            pod
            for pod in stopped
            if first is None or pod.disrupted_at is not None or _was_survived(first, pod.removed_at)
        ]
        found = (faults.stop_of(tree) for pod in stopping[:PER_ATTEMPT] if (tree := self.pods.tree(pod)) is not None)
        return [fault for fault in found if fault is not None]

    def is_settled(self, key: Key) -> bool:
        """Return whether nothing that was judged of a TrainJob would be judged better a moment later."""
        return all(one.is_settled for one in self._judged.get(key, {}).values())

    async def _judge(self, pod: SeenPod, earlier: _Judgement | None) -> _Judgement:
        now = self.clock.monotonic()
        since = now if earlier is None else earlier.since
        tree = self.pods.tree(pod)
        bare = None if tree is None else faults.fault_of(tree)
        if tree is None or bare is None or not bare.container or not self.reads_logs:
            return _Judgement(bare, since, is_settled=True)
        lines, is_last_word = await self._tail(pod, bare.container)
        fault = faults.fault_of(tree, lines) or bare
        explained = fault.cause != bare.cause or faults.is_sure(fault)
        is_late = now - since >= LAST_LINES_SECONDS
        return _Judgement(fault, since, is_settled=explained or is_last_word or is_late)

    async def _tail(self, pod: SeenPod, container: str) -> tuple[list[str], bool]:
        """Return the last lines of a container's run that ended badly, and whether another read would bring no more."""
        meta = pod.metadata
        kept: deque[bytes] = deque(maxlen=LINES)
        previous = pod.is_run_again(container)
        is_last_word = False
        try:
            async with self._free, self.clock.timeout(SECONDS):
                lines = self.client.logs(
                    meta.namespace, meta.name, container=container, previous=previous, tail_lines=LINES
                )
                async for line in lines:
                    kept.append(line[:LINE_BYTES])
        except (KubeError, TimeoutError) as error:
            log.info("log not read", extra={"pod": f"{meta.namespace}/{meta.name}", "why": str(error)})
            is_last_word = isinstance(error, ForbiddenError | NotFoundError)
        return [line.decode(errors="replace") for line in kept], is_last_word


def _is_same_end(one: FirstFault, other: FirstFault) -> bool:
    return (one.pod, one.container, one.restart, one.time) == (other.pod, other.container, other.restart, other.time)


def _was_survived(fault: FirstFault, stop: datetime | None) -> bool:
    """Return whether the attempt continued after a fault, in restarted containers or pods, until a pod was stopped."""
    if stop is None or fault.time is None or faults.is_stop(fault):
        return False
    return stop - fault.time > SURVIVED


def _counts(pod: SeenPod) -> bool:
    """Return whether a pod ended badly by itself, and not because it was stopped."""
    return pod.is_damaged and not pod.is_stopped


def _moment(pod: SeenPod) -> tuple[datetime, str]:
    return min(pod.bad_ends, default=_LAST), pod.metadata.name


def _mark(pod: SeenPod) -> str:
    """Return what tells one end of a pod's containers from another."""
    return f"{pod.metadata.uid} {pod.status.phase} {sorted(map(str, pod.bad_ends))[:1]}"
