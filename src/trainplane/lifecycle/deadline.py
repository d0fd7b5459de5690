"""How much longer a TrainJob may run. Pure.

The time counts from creation, or from the last resume: each resume grants the full time anew. A suspended TrainJob has
no deadline, nor has a finished one.

A resume that nobody saw is told by a patch: patches change only while a TrainJob is held back, and Kueue writes one as
it admits. Without it, a TrainJob that waited in its queue while no operator looked would fail before it ever began.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api.meta import find
from trainplane.lifecycle.conditions import is_finished

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from trainplane.api.meta import Condition
    from trainplane.api.trainjob import TrainJob

LEEWAY: Final = timedelta(minutes=1)
"""How far ahead the clock that stamped a patch may be. Who writes a later time grants themselves nothing by it."""


def seconds_left(job: TrainJob, conditions: Sequence[Condition], now: datetime) -> float | None:
    """Return the seconds until the deadline, none left if 0 or less; None if there is no deadline now.

    `conditions` are those that the TrainJob is about to have: a resume that is being written counts from `now`.
    """
    allowed = job.spec.active_deadline_seconds
    if not allowed or job.spec.suspend or is_finished(conditions):
        return None
    suspended = find(conditions, names.SUSPENDED)
    began = job.metadata.creation_timestamp
    if suspended is not None and suspended.status == "False" and suspended.last_transition_time is not None:
        began = suspended.last_transition_time
    if began is None:
        return None
    times = (patch.time for patch in job.spec.runtime_patches if patch.time is not None)
    began = max([began, *(min(time, now) for time in times if time <= now + LEEWAY)])
    return allowed - (now - began).total_seconds()


def message(job: TrainJob) -> str:
    """Return what happened, for the Failed condition."""
    return (
        f"the TrainJob ran longer than spec.activeDeadlineSeconds, {job.spec.active_deadline_seconds} s: "
        "its pods were stopped"
    )
