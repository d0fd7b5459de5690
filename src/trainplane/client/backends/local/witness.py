"""What the pods of a local job add to its status, as the operator's witness does on a cluster: by the same functions.

The first fault is read when it happens, with the end of its step's log, and kept: a job that begins anew drops its
pods. So is when each stage was reached.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.client.backends.local.logs import read_end
from trainplane.explain import faults
from trainplane.explain.pods import attempt_of
from trainplane.explain.timeline import read_attempt
from trainplane.lifecycle import timeline
from trainplane.lifecycle.conditions import is_finished

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

    from trainplane.api.trainjob import FirstFault, TrainJob, TrainJobStatus
    from trainplane.api.tree import Tree

LINES: Final = 120
"""Lines of a log that are looked at."""
PER_ATTEMPT: Final = 6
"""Ends that are looked at in one attempt: the first pods to fail tell."""


@dataclass
class Witness:
    """Looks at the pods of one job; remembers which ends it has judged."""

    log: Path
    _judged: dict[tuple[int, str], FirstFault] = field(default_factory=dict)

    def testify(
        self, job: TrainJob, after: TrainJobStatus, pods: Mapping[str, Tree], wanted: int, now: datetime
    ) -> TrainJobStatus:
        """Return the status with what went wrong first and the timeline; `pods` are by step, `wanted` of them train."""
        if is_finished(job.status.conditions):
            return after
        fault = None if job.spec.suspend else self._first(after.first_fault, pods)
        after = msgspec.structs.replace(after, first_fault=fault)
        attempt = read_attempt(list(pods.values()), wanted)
        return msgspec.structs.replace(after, timeline=timeline.extend(after.timeline, job, after, attempt, now))

    def _first(self, kept: FirstFault | None, pods: Mapping[str, Tree]) -> FirstFault | None:
        present = max(map(attempt_of, pods.values()), default=0)
        for step, pod in pods.items():
            fault = faults.fault_of(pod)
            mark = present, "" if fault is None else f"{fault.pod} {fault.time}"
            if fault is None or mark in self._judged or len(self._judged) >= PER_ATTEMPT:
                continue
            self._judged[mark] = faults.fault_of(pod, read_end(self.log, step, LINES)) or fault
        self._judged = {mark: fault for mark, fault in self._judged.items() if mark[0] == present}
        known = [kept] if kept is not None and kept.restart == present else []
        return faults.first([*known, *self._judged.values()]) or kept
