"""What became of the pods of each attempt, by what was stored and by what their kubelets know.

A judge asks. Only TrainJobs that say how their pods behave (`kubelet.PodKind`) are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.simulation import job
from tests.simulation.jobset import JOBSET, attempt_of
from tests.simulation.kubelet import UNKNOWN, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.kubelet import Kubelet
    from tests.simulation.loop import VirtualLoop
    from trainplane.kube.testing.storage import Change, Tree

PEOPLE = frozenset({"user", "admin"})
"""Who deletes and disrupts pods, other than the engines."""

SECOND = 1.0
"""How much earlier one thing has to happen than another for stored times to tell: they are whole seconds."""


@dataclass
class Pod:
    """A pod: when it was created, stopped, ended and gone, in virtual seconds."""

    uid: str
    name: str
    jobset: str
    """The uid of the JobSet."""
    attempt: int
    place: tuple[str, int]
    """Its Job and its index in it."""
    created: float
    stopped: float | None = None
    """When its deletion or a disruption of it was stored first."""
    stopped_by: str = ""
    """Who stored that: `engines` are the Job controller and the garbage collector."""
    is_suspended: bool = False
    """Whether it was stopped by a suspension: its Job let go of it."""
    ended: float | None = None
    """When its container ended, by its kubelet."""
    code: int | None = None
    counts: bool = False
    """Whether its Job counted its end."""
    gone: float | None = None
    was_seen: bool = False
    """Whether the operator could notice its stop and its end before it was gone."""

    @property
    def finished(self) -> bool:
        """Whether it exited with 0, and was not stopped before."""
        return self.code == 0 and self.ended is not None and (self.stopped is None or self.stopped > self.ended)

    @property
    def may_be_interrupted(self) -> bool:
        """Whether it exited with 0 after it was stopped, by stored times: they are whole seconds."""
        if self.stopped is None or self.ended is None:
            return False
        return self.code == 0 and int(self.stopped) <= int(self.ended)

    @property
    def was_interrupted(self) -> bool:
        """Whether it exited with 0 after it was stopped."""
        return self.code == 0 and self.stopped is not None and self.ended is not None and self.stopped < self.ended


class Attempts:
    """The pods of TrainJobs, by the TrainJob's uid."""

    def __init__(self, loop: VirtualLoop, kubelet: Kubelet) -> None:
        self._loop = loop
        self.kubelet = kubelet
        self._pods: dict[str, dict[str, Pod]] = {}
        self._owners: dict[str, str] = {}
        """The TrainJob of each pod, by uid."""

    def note(self, change: Change, writer: str, train_job: Tree | None, *, is_seen: bool) -> None:
        """Take in a change of a pod; `train_job` is the TrainJob whose JobSet it is of, if that is there.

        `is_seen`: the mirror of the operator shows the pod, stopped and ended, and the operator can write.
        """
        tree = change.after if change.after is not None else change.before
        assert tree is not None
        uid = tree["metadata"]["uid"]
        if change.before is None and change.after is not None and train_job is not None and kind_of(train_job):
            owner = self._owners[uid] = train_job["metadata"]["uid"]
            meta = tree["metadata"]
            labels = meta["labels"]
            place = (meta["ownerReferences"][0]["name"], job.index_of(tree))
            jobset, now = labels[f"{JOBSET}/jobset-uid"], self._loop.time()
            pod = Pod(uid, change.key.name, jobset, attempt_of(labels), place, now)
            self._pods.setdefault(owner, {})[uid] = pod
        found = self._pods.get(self._owners.get(uid, ""), {}).get(uid)
        if found is not None:
            self._follow(found, writer, change.after)
            found.was_seen |= is_seen

    def _follow(self, pod: Pod, writer: str, now: Tree | None) -> None:
        if now is None:
            pod.gone = self._loop.time()
            return
        if pod.stopped is None and (job.goes(now) or is_disrupted(now)):
            pod.stopped, pod.stopped_by = self._loop.time(), writer
            pod.is_suspended = job.TRACKED not in (now["metadata"].get("finalizers") or ())
        if pod.ended is None and job.phase(now) in {"Succeeded", "Failed"}:
            end = self.kubelet.ends.get(pod.uid)
            pod.ended, pod.code = (self._loop.time(), UNKNOWN) if end is None else end[:2]
            pod.counts = job.TRACKED in (now["metadata"].get("finalizers") or ())

    def of(self, uid: str, attempt: int | None = None) -> list[Pod]:
        """Return the pods of a TrainJob, of one attempt or of all."""
        return [one for one in self._pods.get(uid, {}).values() if attempt in {None, one.attempt}]

    def is_kept(self, uid: str) -> bool:
        """Return whether pods of a TrainJob are kept."""
        return uid in self._pods

    def named(self, uid: str, name: str) -> Pod | None:
        """Return the newest pod of a TrainJob of a name."""
        return next((one for one in reversed(self.of(uid)) if one.name == name), None)

    def faults(self, uid: str, attempt: int) -> list[Pod]:
        """Return the pods of an attempt that failed before any stop that they could fail for was stored."""
        return [one for one in self.of(uid, attempt) if self.failed_at(one) is not None and not self.is_after_stop(one)]

    def is_faulty(self, uid: str, attempt: int) -> bool:
        """Return whether only faults ended an attempt: pods failed, and none was stopped but for that."""
        pods = self.of(uid, attempt)
        is_stopped = any(one.is_suspended or one.stopped_by in PEOPLE or one.uid in self.kubelet.lost for one in pods)
        return bool(self.faults(uid, attempt)) and not is_stopped

    def has_seen_stop(self, uid: str, attempt: int) -> bool:
        """Return whether the operator could notice a stop of an attempt."""
        return any(one.was_seen and one.stopped is not None for one in self.of(uid, attempt))

    def failed_at(self, pod: Pod) -> float | None:
        """Return when a pod failed, unless it had been stopped before."""
        end = self.kubelet.ends.get(pod.uid)
        if end is None or not end.code or end.cause == "stop":
            return None
        return end.at if pod.stopped is None or pod.stopped >= end.at - SECOND else None

    def is_after_stop(self, pod: Pod) -> bool:
        """Return whether another pod was stopped while this one was there, and before it failed.

        Stored times are whole seconds: only a stop that is a second earlier is known to be earlier.
        """
        failed = self.failed_at(pod)
        others = self.of(self._owners[pod.uid], pod.attempt)
        stops = [one.stopped for one in others if one.stopped is not None and one is not pod]
        return failed is not None and any(pod.created <= stopped < failed - SECOND for stopped in stops)

    def interrupted(self, uid: str, jobset: str, attempt: int) -> Iterator[Pod]:
        """Yield the pods whose success an attempt of a JobSet needed, and that were stopped before."""
        pods = [one for one in self.of(uid, attempt) if one.jobset == jobset]
        done = {one.place for one in pods if one.finished and one.counts}
        yield from (one for one in pods if one.was_interrupted and one.counts and one.place not in done)


def is_disrupted(pod: Tree) -> bool:
    """Return whether a pod has the condition DisruptionTarget."""
    found = (one for one in pod["status"].get("conditions") or () if one["type"] == "DisruptionTarget")
    return any(one["status"] == "True" for one in found)
