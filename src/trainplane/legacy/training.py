"""What follows from one look at a job of v1: PyTorchJob, TFJob, XGBoostJob, PaddleJob, JAXJob.

A job is over, suspended, stopped by a limit of its run policy, waits for its gang, or runs; each is one method of
`_Look`. Whoever leads decides how a job that runs is doing: it is done when they are, whatever the others do then; it
has failed with the first pod that is not restarted; it restarts while a pod's successor is awaited.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Final

from trainplane.api import tree as trees
from trainplane.api.legacy import names
from trainplane.api.moments import read_moment
from trainplane.legacy import autoscaler, gangs, news, pods
from trainplane.legacy.decision import Decision, Ref
from trainplane.legacy.frameworks import FRAMEWORKS
from trainplane.legacy.job import Job
from trainplane.legacy.rules import MOST_PODS
from trainplane.legacy.status import RESUMED, Status
from trainplane.legacy.tally import Tally, count_pods, is_terminating, phase, restarts
from trainplane.lifecycle.events import EventContent

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from trainplane.api.legacy.kinds import Kind
    from trainplane.api.tree import Tree
    from trainplane.legacy.decision import Observed, Settings
    from trainplane.legacy.tally import Ending

TOO_MANY_PODS: Final = "TooManyPods"
MOST_MADE: Final = 200
"""Pods that one look makes; the next look, which their arrival brings, makes more."""
_ENDED: Final = ("Succeeded", "Failed")
_NAMED: Final = 3
"""Pods that a message names."""


def decide(kind: Kind, seen: Observed, settings: Settings) -> Decision:
    """Return what follows from one look at a job of v1.

    A job of more pods than any may have is not walked through: `kubectl scale` passes no admission.
    """
    job = Job(kind, seen.job)
    if job.total > MOST_PODS:
        message = f"spec.{kind.specs} asks for {job.total} pods, and a job may have {MOST_PODS}: nothing is done until"
        return Decision(events=(EventContent("Warning", TOO_MANY_PODS, f"{message} it asks for no more"),))
    return _Look(job, seen, settings).decide()


class _Look:
    """One look at a job: what there is, and what is to be done."""

    def __init__(self, job: Job, seen: Observed, settings: Settings) -> None:
        self.job, self.seen, self.settings = job, seen, settings
        self.framework = FRAMEWORKS[job.kind.name]
        self.status = Status(job, seen.now)
        self.pods = {_name(pod): pod for pod in seen.pods}
        self.services = {_name(service): service for service in seen.services}
        self.create: list[Tree] = []
        self.apply: list[Tree] = []
        self.delete: list[Ref] = []

    def decide(self) -> Decision:
        self.status.state(names.CREATED, f"{self.job.kind.name} {self.job.name} is known to the operator")
        if self.status.is_finished:
            return self._is_over()
        if self.job.is_suspended:
            return self._is_suspended()
        self._resume()
        broken = self._broken_limit()
        if broken:
            return self._is_stopped(broken)
        wanted = autoscaler.autoscaler(self.job)
        if wanted:
            self.apply.append(wanted)
        if self.settings.gang:
            self.apply.append(gangs.group(self.job, self.seen, self.settings))
            if gangs.is_waiting(self.job, self.seen, self.settings):
                return self._decision(again=self._seconds_left())
        return self._runs()

    # -- the five courses

    def _is_over(self) -> Decision:
        if self.job.policy.get("cleanPodPolicy") == names.CLEAN_ALL:
            self._clean(self.pods.values())
        elif self.job.policy.get("cleanPodPolicy") == names.CLEAN_RUNNING:
            self._clean(pod for pod in self.pods.values() if phase(pod) not in _ENDED)
        self._leave_gang()
        self._stop_scaling()
        if self.status.has(names.SUCCEEDED):
            self.status.stop_counting(as_succeeded=True)
        left = self._seconds_to_live()
        return self._decision(again=left, expired=left is not None and left <= 0)

    def _is_suspended(self) -> Decision:
        self._clean(self.pods.values())
        self._remove(self.services.values())
        self._leave_gang()
        self._stop_scaling()
        self.status.stop_counting(as_succeeded=False)
        message = "runPolicy.suspend is set: pods are stopped or not started"
        if self.status.has(names.RUNNING):
            self.status.deny(names.RUNNING, message, because=names.SUSPENDED)
        self.status.withdraw(names.RESTARTING)
        self.status.state(names.SUSPENDED, message)
        return self._decision()

    def _is_stopped(self, broken: str) -> Decision:
        """Fail the job: what still runs is stopped; what ended is kept for its logs, as far as cleanPodPolicy says."""
        counted = self._count()
        for counts in counted.counts.values():
            counts.active = 0
        self._note(counted)
        self._clean(pod for pod in self.pods.values() if phase(pod) not in _ENDED)
        self._leave_gang()
        self.status.end(names.FAILED, broken)
        return self._decision()

    def _runs(self) -> Decision:
        counted = self._count()
        self._note(counted)
        self.status.begin()
        restarted = [one for one in counted.failed if one.is_restarted]
        final = [one for one in counted.failed if self._is_final(one)]
        if self.framework.is_done(self.job, counted):
            self.status.end(names.SUCCEEDED, self._success(counted))
            return self._decision()
        leading = self.framework.leaders(self.job)
        if any(counted.counts[one].active for one in leading) and (final or not restarted):
            self.status.state(names.RUNNING, f"{' and '.join(leading)} pods run")
        if final:
            self.status.end(names.FAILED, _failure(self.job, final))
            return self._decision()
        self._make()
        self._restart(restarted)
        self.status.events += news.of_pods(self.pods.values())
        return self._decision(again=self._seconds_left())

    # -- their parts

    def _resume(self) -> None:
        if self.status.has(names.SUSPENDED):
            self.status.deny(names.SUSPENDED, "runPolicy.suspend is no longer set: pods may start", because=RESUMED)
            self.status.begin(anew=True)

    def _broken_limit(self) -> str:
        """Return which limit of the run policy is exceeded, and by what; empty if none is."""
        limit = trees.number(self.job.policy, "backoffLimit")
        if limit is not None:
            failed = next((one for one in self._count().failed if phase(one.pod) == "Failed"), None)
            if failed is not None and limit <= 0:
                return f"{failed}, and runPolicy.backoffLimit {limit} allows no restart"
            count = self._restarts()
            if count and count >= limit:
                return f"containers were restarted {count} times, and runPolicy.backoffLimit is {limit}"
        left = self._seconds_left()
        if left is not None and left <= 0:
            seconds = self.job.policy["activeDeadlineSeconds"]
            return f"the job ran longer than runPolicy.activeDeadlineSeconds, {seconds} s: its pods were stopped"
        return ""

    def _restarts(self) -> int:
        """Return how often kubelets restarted containers of pods that run and may be restarted."""
        return sum(
            restarts(pod)
            for member in self.job.members()
            if self.job.replicas[member.type].restart != names.RESTART_NEVER
            and (pod := self.pods.get(self.job.pod_name(*member))) is not None
            and phase(pod) == "Running"
        )

    def _count(self) -> Tally:
        return count_pods(self.job, self.pods, read_moment(self.status.tree.get("startTime")))

    def _note(self, counted: Tally) -> None:
        for one in self.job.replicas:
            labels = self.job.labels_of(one) if self.job.kind.scaled else {}
            selector = ",".join(f"{key}={labels[key]}" for key in sorted(labels))
            self.status.count(one, counted.counts[one], selector)

    def _make(self) -> None:
        """Make what is missing of the job, and delete what it no longer asks for."""
        expected = {self.job.pod_name(*member): member for member in self.job.members()}
        missing = (member for name, member in expected.items() if name not in self.pods)
        self.create += [pods.pod(self.job, member, self.settings) for member in islice(missing, MOST_MADE)]
        missing = (member for name, member in expected.items() if name not in self.services)
        self.create += [pods.service(self.job, member) for member in islice(missing, MOST_MADE)]
        self._remove(pod for name, pod in self.pods.items() if name not in expected)
        self._remove(service for name, service in self.services.items() if name not in expected)

    def _restart(self, failed: list[Ending]) -> None:
        """Delete pods that failed, so that the next look makes their successors under the same names."""
        self._remove(one.pod for one in failed)
        for one in failed:
            self.status.state(names.RESTARTING, f"{one}: another takes its place")

    def _is_final(self, ending: Ending) -> bool:
        return not (ending.is_restarted or self.framework.forgives(self.job, ending.member))

    def _success(self, counted: Tally) -> str:
        leading = self.framework.leaders(self.job)
        done = [self.job.pod_name(*member) for member in sorted(counted.succeeded) if member.type in leading]
        more = f" and {len(done) - _NAMED} more" if len(done) > _NAMED else ""
        return f"succeeded: {', '.join(done[:_NAMED])}{more}" if done else "no pod is asked for: there is nothing to do"

    def _clean(self, doomed: Iterable[Tree]) -> None:
        """Delete pods and the Services of their names."""
        doomed = list(doomed)
        self._remove(doomed)
        self._remove(self.services[name] for name in map(_name, doomed) if name in self.services)

    def _leave_gang(self) -> None:
        if self.settings.gang:
            group = gangs.group_of(self.job, self.seen, self.settings)
            self._remove([group] if group else [])

    def _stop_scaling(self) -> None:
        scaler = autoscaler.autoscaler_of(self.job, self.seen)
        self._remove([scaler] if scaler else [])

    def _remove(self, doomed: Iterable[Tree]) -> None:
        refs = [_ref(one) for one in doomed if not is_terminating(one)]
        self.delete += [ref for ref in refs if ref not in self.delete]

    def _seconds_left(self) -> float | None:
        """Return the seconds until the deadline; None if there is none now."""
        began = read_moment(self.status.tree.get("startTime"))
        return self._until(began, trees.number(self.job.policy, "activeDeadlineSeconds"))

    def _seconds_to_live(self) -> float | None:
        """Return the seconds until a job that is over is deleted; None if it stays, as while it is suspended."""
        ttl = trees.number(self.job.policy, "ttlSecondsAfterFinished")
        return None if self.job.is_suspended else self._until(self.status.ended, ttl)

    def _until(self, moment: datetime | None, seconds: int | None) -> float | None:
        if moment is None or seconds is None:
            return None
        return (moment + timedelta(seconds=seconds) - self.seen.now).total_seconds()

    def _decision(self, *, again: float | None = None, expired: bool = False) -> Decision:
        return Decision(
            create=tuple(self.create),
            apply=tuple(self.apply),
            delete=tuple(self.delete),
            status=self.status.changed,
            events=tuple(self.status.events),
            again=None if again is None else max(0.0, again),
            expired=expired,
        )


def _failure(job: Job, final: list[Ending]) -> str:
    """Return the first of the ends that failed the job, by when its container ended, and how many there are more."""
    path = ("status", "containerStatuses", ("name", job.kind.container), "state", "terminated", "finishedAt")
    first = min(final, key=lambda one: trees.text(one.pod, *path) or "~")
    policy = job.replicas[first.member.type].restart
    more = f"; {len(final) - 1} more failed" if len(final) > 1 else ""
    return f"{first}, and restartPolicy {policy} of {first.member.type} does not restart it{more}"


def _name(obj: Tree) -> str:
    return trees.text(obj, "metadata", "name") or ""


def _ref(obj: Tree) -> Ref:
    return Ref(
        obj.get("apiVersion") or "v1", obj.get("kind") or "", _name(obj), trees.text(obj, "metadata", "uid") or ""
    )
