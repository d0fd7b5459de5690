"""The Job controller of Kubernetes v1.36 as a small model: what a reconcile makes of an indexed Job and its pods.

A pod counts as failed once it has failed or is told to go, unless the Job let go of it: on a suspension it does, and
makes others on a resume though the first have not left. When more failed than `backoffLimit`, all pods are told to go,
and the Job has failed when the last has left. Pure, and compared with the engine (`test_models`).
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.simulation.jobset import finish

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainplane.kube.testing.storage import Tree

TRACKED = "batch.kubernetes.io/job-tracking"
"""The finalizer by which a Job holds its pods until they are counted."""

BACKOFF_SECONDS = 10.0
"""How long a Job waits after a first failure before it makes another pod; twice as long after the next."""


class Verdict(NamedTuple):
    """What a reconcile does: the Job with its status, pods to delete and to let go, indices to make pods for."""

    job: Tree
    drop: Sequence[Tree] = ()
    release: bool = False
    """Whether those that are deleted are let go: they never count."""
    make: Sequence[int] = ()
    wait: float = 0.0
    """Seconds after which to look again, if pods are to be made later."""


def judge(job: Tree, pods: Sequence[Tree], now: str) -> Verdict:
    """Return what a reconcile does to a Job that owns these pods."""
    mine = [one for one in pods if TRACKED in (one["metadata"].get("finalizers") or ())]
    alive = [one for one in mine if phase(one) in {"Pending", "Running"} and not goes(one)]
    counted = _count(job, mine)
    status: Tree = {
        "active": len(alive),
        "ready": sum(map(_ready, alive)),
        "succeeded": len(counted["succeeded"]),
        "failed": len(counted["failed"]),
        "counted": counted,
    }
    still: Tree = {**status, "active": 0, "ready": 0}
    spec = job["spec"]
    if goes(job):
        return Verdict({**job, "status": still}, drop=alive, release=True)
    if len(counted["failed"]) > spec.get("backoffLimit", 6):
        doomed = _count(job, mine, also=alive)
        ended = {**still, "failed": len(doomed["failed"]), "counted": doomed}
        left = [one for one in pods if phase(one) in {"Pending", "Running"}]
        return Verdict({**job, "status": ended if left else _ended(ended, "Failed")}, drop=alive)
    if len(counted["succeeded"]) == spec["completions"]:
        return Verdict({**job, "status": _ended(status, "Complete")})
    if spec.get("suspend"):
        return Verdict({**job, "status": still}, drop=alive, release=True)
    taken = {index_of(one) for one in alive} | set(counted["succeeded"])
    make = [index for index in range(spec["completions"]) if index not in taken]
    wait = _backoff(mine, now) if make else 0.0
    if wait > 0:
        return Verdict({**job, "status": status}, wait=wait)
    return Verdict({**job, "status": {**status, "active": len(alive) + len(make)}}, make=make)


def _count(job: Tree, pods: Sequence[Tree], also: Sequence[Tree] = ()) -> Tree:
    """Return which pods failed and which indices are done, with those that were counted before and are gone."""
    before: Any = (job.get("status") or {}).get("counted") or {"failed": [], "succeeded": []}
    failed = {one["metadata"]["uid"] for one in pods if _failed(one) and not goes(job)}
    failed |= {one["metadata"]["uid"] for one in also}
    done = {index_of(one) for one in pods if phase(one) == "Succeeded"}
    return {"failed": sorted(failed | set(before["failed"])), "succeeded": sorted(done | set(before["succeeded"]))}


def _failed(pod: Tree) -> bool:
    return phase(pod) == "Failed" or (goes(pod) and phase(pod) != "Succeeded")


def _backoff(pods: Sequence[Tree], now: str) -> float:
    """Return how long to wait for the last failure to be over."""
    ends = [
        one["state"]["terminated"]["finishedAt"]
        for pod in pods
        if phase(pod) == "Failed"
        for one in pod["status"].get("containerStatuses") or ()
    ]
    if not ends:
        return 0.0
    since = datetime.fromisoformat(now) - datetime.fromisoformat(max(ends))
    return float(BACKOFF_SECONDS * 2 ** (len(ends) - 1)) - since.total_seconds()


def _ended(status: Tree, kind: str) -> Tree:
    return {**status, "conditions": [{"type": kind, "status": "True"}]}


def is_over(job: Tree) -> bool:
    """Return whether nothing is to be done for a Job."""
    return bool(finish(job)) and not goes(job)


def phase(pod: Tree) -> str:
    """Return the phase of a pod."""
    return str(pod["status"]["phase"])


def goes(obj: Tree) -> bool:
    """Return whether an object was told to go."""
    return "deletionTimestamp" in obj["metadata"]


def index_of(pod: Tree) -> int:
    """Return which of its Job's pods one is."""
    return int(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])


def _ready(pod: Tree) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"]["conditions"])
