"""What went wrong first in a TrainJob, read while it can be: pods go, and their logs with them.

As soon as a pod has ended badly, the end of its log is asked for and cut to the telling lines; `explain` names the
cause, and of several pods the one that the others died of. Logs are read few at a time and few per TrainJob, within
seconds, and cannot hold up or fail a reconcile: without one, the exit code and the termination message still tell.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from trainplane.explain import faults
from trainplane.kube.errors import KubeError

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
PER_ATTEMPT: Final = 6
"""Ends that are looked at in one attempt of a TrainJob. The first pods to fail tell; the others fail for their loss."""


@dataclass
class Evidence:
    """Reads and judges how pods ended. Remembers which logs it has read, and nothing else."""

    client: Client
    pods: PodMirror
    clock: Clock
    reads_logs: bool = True
    _free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    _judged: dict[Key, dict[str, FirstFault | None]] = field(default_factory=dict)
    """Of TrainJobs that had faults: what each end was found to be."""

    def forget(self, key: Key) -> None:
        """Forget a TrainJob that is finished or gone."""
        self._judged.pop(key, None)

    async def first_fault(self, key: Key, pods: Sequence[SeenPod], kept: FirstFault | None) -> FirstFault | None:
        """Return what went wrong first among pods of one attempt, and what was kept of it already."""
        damaged = sorted((pod for pod in pods if _counts(pod)), key=_moment)
        if not damaged:
            return kept
        before = self._judged.get(key, {})
        attempt = f"{damaged[0].attempt} "
        judged = {mark: fault for mark, fault in before.items() if mark.startswith(attempt)}
        for pod in damaged:
            mark = attempt + _mark(pod)
            if mark not in judged and len(judged) < PER_ATTEMPT:
                judged[mark] = await self._judge(pod)
        self._judged[key] = judged
        return faults.first([one for one in (kept, *judged.values()) if one is not None])

    async def _judge(self, pod: SeenPod) -> FirstFault | None:
        tree = self.pods.tree(pod)
        if tree is None:
            return None
        fault = faults.fault_of(tree)
        if fault is None or not fault.container or not self.reads_logs:
            return fault
        return faults.fault_of(tree, await self._tail(pod, fault.container)) or fault

    async def _tail(self, pod: SeenPod, container: str) -> list[str]:
        """Return the last lines of a container's run that ended badly; none if they cannot be had."""
        meta = pod.metadata
        kept: deque[bytes] = deque(maxlen=LINES)
        previous = pod.is_run_again(container)
        try:
            async with self._free, self.clock.timeout(SECONDS):
                lines = self.client.logs(
                    meta.namespace, meta.name, container=container, previous=previous, tail_lines=LINES
                )
                async for line in lines:
                    kept.append(line[:LINE_BYTES])
        except (KubeError, TimeoutError) as error:
            log.info("log not read", extra={"pod": f"{meta.namespace}/{meta.name}", "why": str(error)})
        return [line.decode(errors="replace") for line in kept]


def _counts(pod: SeenPod) -> bool:
    """Return whether a pod ended badly by itself: one that is being removed was told to stop.

    Unless it had ended before, or is removed for what happened to its machine.
    """
    if not pod.is_damaged:
        return False
    removed = pod.removed_at
    if removed is None or pod.holds("DisruptionTarget"):
        return True
    return any(end < removed for end in pod.bad_ends)


def _moment(pod: SeenPod) -> tuple[datetime, str]:
    return min(pod.bad_ends, default=_LAST), pod.metadata.name


def _mark(pod: SeenPod) -> str:
    """Return what tells one end of a pod's containers from another."""
    return f"{pod.metadata.uid} {pod.status.phase} {sorted(map(str, pod.bad_ends))[:1]}"
