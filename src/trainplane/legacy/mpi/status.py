"""What an MPIJob's status says, given its launcher and its workers; and the news in what changed.

The launcher decides: the job succeeds and fails with its Job. Workers only count, but for one that was evicted. Kueue
reads Running, Succeeded, Failed and `active`, people and old clients the last condition, so the order is mpi-operator's
too. News is told when a condition turns, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.api import tree as trees
from trainplane.api.legacy import names
from trainplane.api.legacy.kinds import MPI
from trainplane.legacy.status import RESUMED, written
from trainplane.legacy.tally import phase
from trainplane.lifecycle.events import EventContent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from trainplane.api.tree import Tree
    from trainplane.legacy.mpi.job import MPIJob
    from trainplane.lifecycle.events import EventType

_TRUE: Final = "True"
_FALSE: Final = "False"
_RESUMED: Final = f"{MPI.name}{RESUMED}"
_EVICTED: Final = f"{MPI.name}Evicted"
_BACKOFF: Final = "BackoffLimitExceeded"
_LONGEST: Final = 1024
"""Characters of an Event's message."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What there is of a job's pods, as its status tells of it."""

    launcher: Tree | None
    """The launcher's Job; None before it is made and while the job is suspended."""
    launcher_pods: Sequence[Tree]
    workers: Sequence[Tree]
    """Pods of workers that are wanted."""
    wanted: int
    """How many of them there shall be."""


class Ledger:
    """A job's conditions on their way to the next status, and what is told of them.

    Not those of a job of v1: here one that failed, for a worker was evicted, may yet succeed, and reasons may be the
    launcher's.
    """

    def __init__(self, job: MPIJob, now: datetime) -> None:
        """Begin with what the job says; a job that says nothing is new."""
        self.job = job
        self.now = written(now)
        self.status: Tree = dict(job.status)
        self.events: list[EventContent] = []
        self._conditions = trees.entries(job.status, "conditions")
        if not self._conditions:
            self.turn(names.CREATED, _TRUE, "the job is accepted", tells="Normal")

    @property
    def is_finished(self) -> bool:
        """Whether the job succeeded or failed."""
        return any(self._find(kind).get("status") == _TRUE for kind in (names.SUCCEEDED, names.FAILED))

    def has(self, kind: str) -> bool:
        """Return whether there is a condition of a type, be it True or False."""
        return bool(self._find(kind))

    def turn(self, kind: str, status: str, message: str, *, reason: str = "", tells: EventType | None = None) -> bool:
        """Set a condition, and tell of it; False if nothing turned. The latest stands last."""
        reason = reason or f"{MPI.name}{kind}"
        before = self._find(kind)
        if before.get("status") == status and before.get("reason") == reason:
            return False
        since = before.get("lastTransitionTime") if before.get("status") == status else self.now
        if kind in {names.SUCCEEDED, names.FAILED}:
            over = {names.RUNNING, names.FAILED} - {kind}
            self._conditions = [
                {**one, "status": _FALSE} if one.get("type") in over else one for one in self._conditions
            ]
        self._conditions = [one for one in self._conditions if one.get("type") != kind]
        self.append(kind, status, message, reason=reason, updated=self.now, since=since or self.now)
        if tells:
            self.events.append(EventContent(tells, reason, message))
        return True

    def append(self, kind: str, status: str, message: str, *, reason: str, updated: str, since: str) -> None:
        """Add a condition at the end."""
        times = {"lastUpdateTime": updated, "lastTransitionTime": since}
        self._conditions.append({"type": kind, "status": status, "reason": reason, "message": message, **times})

    def count(self, replica_type: str, *, active: int = 0, succeeded: int = 0, failed: int = 0) -> None:
        """Say how many pods of a type there are; what there is none of goes without saying."""
        said = {"active": active, "succeeded": succeeded, "failed": failed}
        counts = {name: number for name, number in said.items() if number}
        self.status["replicaStatuses"] = {**trees.fields(self.status, "replicaStatuses"), replica_type: counts}

    def close(self) -> Tree | None:
        """Return the next status; None if it is the last one."""
        status = {**self.status, "conditions": self._conditions}
        return None if status == self.job.status else status

    def _find(self, kind: str) -> Tree:
        return next((one for one in self._conditions if one.get("type") == kind), {})


def report(ledger: Ledger, seen: Seen) -> None:
    """Say how a job stands that is not over yet, or has just ended."""
    if ledger.status.get("startTime") is None and not ledger.job.suspended:
        ledger.status["startTime"] = ledger.now
    _suspension(ledger)
    running = sum(phase(pod) == "Running" for pod in seen.launcher_pods)
    if seen.launcher is None:
        ledger.count(names.LAUNCHER, active=running)
    else:
        _launcher(ledger, seen.launcher, seen.launcher_pods, running)
    phases = [phase(pod) for pod in seen.workers]
    active, succeeded, failed = (phases.count(one) for one in ("Running", "Succeeded", "Failed"))
    ledger.count(names.WORKER, active=active, succeeded=succeeded, failed=failed)
    evicted = sum(phase(pod) == "Failed" and trees.get(pod, "status", "reason") == "Evicted" for pod in seen.workers)
    if evicted:
        told = f"{evicted} of {seen.wanted} workers were evicted from their nodes"
        ledger.turn(names.FAILED, _TRUE, told, reason=_EVICTED, tells="Warning")
    if ledger.job.suspended:
        ledger.turn(names.RUNNING, _FALSE, "the job is suspended", reason=f"{MPI.name}{names.SUSPENDED}")
    elif ledger.is_finished:
        if not ledger.has(names.RUNNING):  # who measures how long it ran looks for this
            ended = ledger.status.get("completionTime") or ledger.now
            told = "the job ended before it was seen to run"
            reason = f"{MPI.name}{names.RUNNING}"
            ledger.append(names.RUNNING, _FALSE, told, reason=reason, updated=ended, since=ended)
    elif seen.launcher is not None and running and active == seen.wanted:
        ledger.turn(names.RUNNING, _TRUE, "the launcher and all workers run", tells="Normal")


def has_ended(launcher: Tree) -> bool:
    """Return whether a launcher's Job is complete or has failed."""
    return _job_condition(launcher, "Complete") is not None or _job_condition(launcher, "Failed") is not None


def shortened(message: str) -> str:
    """Return a message that an Event can hold."""
    return message if len(message) <= _LONGEST else f"{message[: _LONGEST - 3]}..."


def _suspension(ledger: Ledger) -> None:
    if ledger.job.suspended:
        ledger.turn(names.SUSPENDED, _TRUE, "suspended: pods are stopped or not started", tells="Normal")
    elif ledger.has(names.SUSPENDED) and ledger.turn(
        names.SUSPENDED, _FALSE, "resumed: pods may start", reason=_RESUMED, tells="Normal"
    ):
        ledger.status["startTime"] = ledger.now


def _launcher(ledger: Ledger, launcher: Tree, pods: Iterable[Tree], running: int) -> None:
    failed = trees.number(launcher, "status", "failed") or 0
    if _job_condition(launcher, "Complete"):
        ledger.count(names.LAUNCHER, succeeded=1, failed=failed)
        ledger.status.setdefault("completionTime", trees.text(launcher, "status", "completionTime") or ledger.now)
        ledger.turn(names.SUCCEEDED, _TRUE, "the launcher succeeded", tells="Normal")
    elif failure := _job_condition(launcher, "Failed"):
        ledger.count(names.LAUNCHER, failed=failed)
        ledger.status.setdefault("completionTime", ledger.now)
        reason, message = _failure(failure, pods)
        ledger.turn(names.FAILED, _TRUE, message, reason=reason, tells="Warning")
    else:
        ledger.count(names.LAUNCHER, active=running, failed=failed)


def _failure(failure: Tree, pods: Iterable[Tree]) -> tuple[str, str]:
    """Return why the launcher failed: the Job's words and, if it gave up trying, those of the last pod that failed."""
    reason = trees.text(failure, "reason") or f"{MPI.name}{names.FAILED}"
    message = trees.text(failure, "message") or "the launcher failed"
    failed = [pod for pod in pods if phase(pod) == "Failed"]
    if reason == _BACKOFF and failed:
        last = max(failed, key=lambda pod: trees.text(pod, "metadata", "creationTimestamp") or "")
        reason = f"{reason}/{trees.text(last, 'status', 'reason') or ''}"
        message = f"{message}: {trees.text(last, 'status', 'message') or ''}"
    return reason, shortened(message)


def _job_condition(launcher: Tree, kind: str) -> Tree | None:
    found = trees.entries(launcher, "status", "conditions")
    return next((one for one in found if one.get("type") == kind and one.get("status") == _TRUE), None)
