"""Faults of the runtime below the operator: leadership, mirrors, queues and retries."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from tests.simulation.planting import Planted, around, clings, later, returns
from trainplane.kube import (
    backoff,
    controller,
    election,
    expectations,
    lease,
    limiter,
    queue,
    reflector,
    relist,
    store,
)
from trainplane.kube.errors import GoneError, InternalServerError
from trainplane.operator import apply
from trainplane.operator import main as root

if TYPE_CHECKING:
    from collections.abc import Iterator


def _only_once(original: Any, self: Any, key: Any, *, backlog: bool = False) -> None:
    if key not in self.working:
        original(self, key, backlog=backlog)


def _forgetful(self: Any, key: Any, error: Exception) -> str:
    return "failed"


def _without_deletes(self: Any, resource_version: int) -> Iterator[Any]:
    for header in self._aside.values():
        yield from self._store.put(header, initial=self._initial)
    self._store.observed = max(self._store.observed, resource_version)


def _silent_error(original: Any, self: Any, error: Any) -> float:
    original(self, error)
    return 1e6


def _leak(original: Any, self: Any, ticket: int, *, pushed_back: bool = False) -> None:
    if not pushed_back:
        original(self, ticket)


def _for_life(original: Any, self: Any, claim: Any, lease_: Any, now: float) -> None:
    original(self, claim, lease_, now)
    self.deadline = float("inf")


def _greedy(original: Any, self: Any, now: float, wall: Any) -> Any:
    self._held_until = float("-inf")
    return original(self, now, wall)


def _by_its_own_clock(original: Any, self: Any, now: float, wall: datetime) -> Any:
    """Take a Lease whose time has passed by this machine's time of day."""
    renewed = ((self._lease or {}).get("spec") or {}).get("renewTime")
    if renewed and (wall - datetime.fromisoformat(renewed)).total_seconds() > self.settings.lease_duration:
        self._held_until = float("-inf")
    return original(self, now, wall)


def _gives_up(original: Any, self: Any, key: Any, error: Exception) -> str:
    """Try nothing again that the API server was unable to do."""
    return "failed" if isinstance(error, InternalServerError) else str(original(self, key, error))


def _resumes_for_ever(original: Any, self: Any, error: Any) -> float:
    """Ask again for a version that is gone, after waits that grow: without these a history costs a minute."""
    resume = self._may_resume
    if isinstance(error, GoneError):
        self._may_resume = False
    wait = original(self, error)
    self._may_resume = resume
    return float(wait)


def _deaf(original: Any, self: Any) -> Any:
    made = original(self)
    for one in made:
        if one.resource.plural == "jobsets":
            one._handlers.clear()
    return made


def _deaf_to_jobs(original: Any, self: Any) -> Any:
    made = original(self)
    for one in made:
        if one.resource.plural == "trainjobs":
            one._handlers.clear()
    return made


def _deaf_to_deletes(original: Any, self: Any, event: Any) -> None:
    if event.type != "DELETED":
        original(self, event)


def _skips_ahead(original: Any, self: Any) -> Any:
    """Resume a watch a little later than it was cut."""
    return original(self) + 3


def _doubts(*arguments: Any, initial: bool, force: bool, compare: bool) -> Any:
    """Take no list for true that is older than what was seen."""
    return relist.Relist(*arguments, initial=initial, compare=compare)


def _by_version(original: Any, self: Any, header: Any, **options: Any) -> Any:
    """Take an equal version for an equal object, also from a server that gives versions twice."""
    known = self.entry(header.key)
    if known is not None and (known.resource_version, known.uid) == (header.resource_version, header.uid):
        return ()
    return original(self, header, **options)


def _sure(original: Any, self: Any, listing: Any, event: Any) -> None:
    """Take nothing of a list that comes as a stream but its end."""


RUNTIME = (
    # -- leadership
    Planted(
        "a leader leads for ever",
        election.ElectionRules,
        "wrote",
        around(election.ElectionRules.wrote, _for_life),
        theme="lost lease",
    ),
    Planted(
        "a candidate does not wait",
        election.ElectionRules,
        "claim",
        around(election.ElectionRules.claim, _greedy),
        theme="lost lease",
    ),
    Planted(
        "a candidate goes by its own time of day",
        election.ElectionRules,
        "claim",
        around(election.ElectionRules.claim, _by_its_own_clock),
        theme="jump",
    ),
    Planted("runtime 11: a write asks for no leadership", apply.Writer, "_check", returns(None), theme="freeze"),
    Planted("a leader does not renew", lease.LeaderElector, "keep", clings),
    # -- mirrors
    Planted("missed deletes are not found", relist.Relist, "finish", _without_deletes, theme="forgotten"),
    Planted("silence is not noticed", reflector.Reflector, "_wait_for_silence", clings),
    Planted(
        "a forgotten version is asked for again",
        reflector.Reflector,
        "_recover",
        around(reflector.Reflector._recover, _resumes_for_ever),
        theme="forgotten",
    ),
    Planted(
        "a failed watch is not begun again",
        reflector.Reflector,
        "_recover",
        around(reflector.Reflector._recover, _silent_error),
    ),
    Planted("a cut ends a mirror", reflector.Reflector, "_watch", clings),
    Planted(
        "a deletion is not heard",
        reflector.Reflector,
        "_apply",
        around(reflector.Reflector._apply, _deaf_to_deletes),
    ),
    Planted(
        "a watch is resumed too late",
        reflector.Reflector,
        "_resume_at",
        around(reflector.Reflector._resume_at, _skips_ahead),
    ),
    Planted(
        "runtime 8: a server that is set back is not noticed",
        reflector.Reflector,
        "_check_history",
        later(None),
        theme="restore",
    ),
    Planted(
        "a server that is set back and raised is not noticed",
        store.Store,
        "has_passed",
        returns(False),
        theme="restore",
    ),
    Planted("a server that is set back is never believed", reflector, "Relist", _doubts, theme="restore"),
    Planted(
        "a version that is given twice is taken for what it was",
        store.Store,
        "put",
        around(store.Store.put, _by_version),
        theme="restore",
    ),
    Planted("a streamed list is empty", reflector.Reflector, "_apply_to", around(None, _sure)),
    Planted("an own write is waited for always", expectations.Expectations, "pending", returns(True)),
    Planted("news of JobSets is nobody's", root.Operator, "_reflectors", around(root.Operator._reflectors, _deaf)),
    Planted(
        "news of TrainJobs is nobody's", root.Operator, "_reflectors", around(root.Operator._reflectors, _deaf_to_jobs)
    ),
    # -- the queue
    Planted(
        "news of a key that is worked on is lost",
        queue.WorkQueue,
        "add",
        around(queue.WorkQueue.add, _only_once),
        theme="storm",
    ),
    Planted("nothing is looked at later", queue.WorkQueue, "add_after", returns(None)),
    Planted("a failure is not tried again", controller.Controller, "_retry", _forgetful, theme="storm"),
    Planted(
        "what the API server could not do is not tried again",
        controller.Controller,
        "_retry",
        around(controller.Controller._retry, _gives_up),
        theme="full",
    ),
    Planted("a failure waits for ever", backoff.Backoff, "delay", returns(1e6), theme="storm"),
    Planted(
        "a place is kept by whoever was pushed back",
        limiter.Limiter,
        "release",
        around(limiter.Limiter.release, _leak),
        theme="storm",
    ),
    Planted("nobody works", controller.Controller, "run", clings),
)
