"""How a TrainJob of the older shape is doing, by what today's TrainJob says of itself. Pure.

Its state is RUNNING, SUCCESS or FAILED, and nothing before pods run: one that waits in a queue does not run. Its
conditions, counts and figures are today's. One condition is its own: `InSync` says whether today's objects are as this
one asks, and if not, why and what to do.

What is over stays so, also when today's TrainJob is deleted: it is not made again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.api import document, names
from trainplane.api.errors import DecodeError
from trainplane.api.legacy.v2alpha1 import FAILED, IN_SYNC, RUNNING, SUCCESS, RuntimeStatus, TrainJobStatus
from trainplane.api.meta import Condition, find, upsert
from trainplane.api.trainjob import TrainJobStatus as TodaysStatus
from trainplane.lifecycle import phase
from trainplane.lifecycle.conditions import finish
from trainplane.lifecycle.status import ready_jobs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from trainplane.api.tree import Tree

_RUNS: Final = frozenset({phase.RUNNING, phase.RESTARTING})
_ENDS: Final = {names.COMPLETE: SUCCESS, names.FAILED: FAILED}


def in_sync(generation: int) -> Condition:
    """Return the condition of an object that was lowered as it stands."""
    return Condition(IN_SYNC, "True", "Lowered", "today's objects are as this one says", observed_generation=generation)


def out_of_sync(reason: str, message: str, generation: int) -> Condition:
    """Return the condition of an object that cannot be lowered as it stands."""
    return Condition(IN_SYNC, "False", reason, message, observed_generation=generation)


def is_over(status: TrainJobStatus) -> bool:
    """Return whether a TrainJob has come to its end."""
    return status.state in _ENDS.values()


def train_job_status(before: TrainJobStatus, today: Tree | None, sync: Condition, now: datetime) -> TrainJobStatus:
    """Return the status that a TrainJob has now; without today's TrainJob, what was last seen of it stays."""
    known = None if today is None else _read(today)
    if known is None:
        return msgspec.structs.replace(before, conditions=_with(before.conditions, before.conditions, sync, now))
    progress = known.trainer_status
    return TrainJobStatus(
        state=_state(known),
        conditions=_with(known.conditions, before.conditions, sync, now),
        jobs_status=known.jobs_status,
        progress_percentage=None if progress is None else progress.progress_percentage,
        metrics=[] if progress is None else progress.metrics,
    )


def runtime_status(before: RuntimeStatus, sync: Condition, now: datetime) -> RuntimeStatus:
    """Return the status that a runtime has now."""
    return RuntimeStatus(conditions=upsert(before.conditions, sync, now))


def _read(job: Tree) -> TodaysStatus | None:
    """Return the status of today's TrainJob; None of one that cannot be read, of which its own conditions tell."""
    try:
        return document.view(job.get("status") or {}, TodaysStatus)
    except DecodeError:
        return None


def _state(status: TodaysStatus) -> str:
    end = finish(status.conditions)
    if end is not None:
        return _ENDS[end.type]
    runs = status.phase in _RUNS or (not status.phase and ready_jobs(status.jobs_status) > 0)
    return RUNNING if runs else ""


def _with(theirs: Sequence[Condition], before: Sequence[Condition], sync: Condition, now: datetime) -> list[Condition]:
    """Return conditions with our own behind them, since when it has been so."""
    ours = find(before, IN_SYNC)
    others = [condition for condition in theirs if condition.type != IN_SYNC]
    return [*others, *upsert([] if ours is None else [ours], sync, now)]
