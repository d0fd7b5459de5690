"""The Job controller of Kubernetes v1.36 as a small model: what a reconcile makes of an indexed Job and its pods.

A pod counts as failed once it has failed or is told to go, unless the Job let go of it: on a suspension it does, and
makes others on a resume though the first have not left. When more failed than `backoffLimit`, all pods are told to go,
and the Job has failed when the last has left. Pure, and compared with the engine (`test_models`).

A Job with a `podFailurePolicy` is different in three ways, taken from the source of v1.36 (`syncJob`, `isPodFailed`,
`onlyReplaceFailedPods`):

- It fails as soon as a failed pod matches a rule. All pods that it owns are looked at, with or without the finalizer,
  also while the Job is suspended. Rules here are about conditions of pods, with the action `FailJob`.
- A pod counts as failed only when its phase is Failed.
- A pod that is being deleted is replaced only when it has left or ended, also after a resume.
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
    left = [one for one in pods if phase(one) in {"Pending", "Running"}]
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
    cause = (job.get("status") or {}).get("cause") or _failure(job, pods, counted)
    if cause is not None:
        doomed = _count(job, mine, also=alive)
        ended = {**still, "failed": len(doomed["failed"]), "counted": doomed, "cause": cause}
        return Verdict({**job, "status": ended if left else _ended(ended, "Failed", now, **cause)}, drop=alive)
    if len(counted["succeeded"]) == spec["completions"]:
        return Verdict({**job, "status": _ended(status, "Complete", now)})
    if spec.get("suspend"):
        return Verdict({**job, "status": still}, drop=alive, release=True)
    taken = {index_of(one) for one in alive} | set(counted["succeeded"])
    if "podFailurePolicy" in spec:
        taken |= {index_of(one) for one in left}
    make = [index for index in range(spec["completions"]) if index not in taken]
    wait = _backoff(mine, now) if make else 0.0
    if wait > 0:
        return Verdict({**job, "status": status}, wait=wait)
    return Verdict({**job, "status": {**status, "active": len(alive) + len(make)}}, make=make)


def _failure(job: Tree, pods: Sequence[Tree], counted: Tree) -> Tree | None:
    """Return the reason and the message of a failure that begins now; None if there is no cause for one."""
    spec = job["spec"]
    for pod in pods if "podFailurePolicy" in spec else ():
        if phase(pod) == "Failed" and (message := _matches(spec["podFailurePolicy"], pod)):
            return {"reason": "PodFailurePolicy", "message": message}
    if len(counted["failed"]) > spec.get("backoffLimit", 6):
        return {"reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}
    return None


def _matches(policy: Tree, pod: Tree) -> str:
    """Return what the first rule that a failed pod matches says of it; empty if it matches none."""
    for number, rule in enumerate(policy["rules"]):
        for pattern in rule["onPodConditions"]:
            for one in pod["status"].get("conditions") or ():
                if (one["type"], one["status"]) == (pattern["type"], pattern["status"]):
                    name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
                    return f"Pod {name} has condition {one['type']} matching {rule['action']} rule at index {number}"
    return ""


def _count(job: Tree, pods: Sequence[Tree], also: Sequence[Tree] = ()) -> Tree:
    """Return which pods failed and which indices are done, with those that were counted before and are gone."""
    before: Any = (job.get("status") or {}).get("counted") or {"failed": [], "succeeded": []}
    failed = {one["metadata"]["uid"] for one in pods if _failed(job, one) and not goes(job)}
    failed |= {one["metadata"]["uid"] for one in also}
    done = {index_of(one) for one in pods if phase(one) == "Succeeded"}
    return {"failed": sorted(failed | set(before["failed"])), "succeeded": sorted(done | set(before["succeeded"]))}


def _failed(job: Tree, pod: Tree) -> bool:
    if phase(pod) == "Failed" or "podFailurePolicy" in job["spec"]:
        return phase(pod) == "Failed"
    return goes(pod) and phase(pod) != "Succeeded"


def _backoff(pods: Sequence[Tree], now: str) -> float:
    """Return how long to wait for the last failure to be over."""
    ends = [
        one["state"]["terminated"]["finishedAt"]
        for pod in pods
        if phase(pod) == "Failed"
        for one in pod["status"].get("containerStatuses") or ()
        if (one["state"].get("terminated") or {}).get("finishedAt")
    ]
    if not ends:
        return 0.0
    since = datetime.fromisoformat(now) - datetime.fromisoformat(max(ends))
    return float(BACKOFF_SECONDS * 2 ** (len(ends) - 1)) - since.total_seconds()


def _ended(status: Tree, kind: str, now: str, **why: str) -> Tree:
    return {**status, "conditions": [{"type": kind, "status": "True", "lastTransitionTime": now, **why}]}


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
