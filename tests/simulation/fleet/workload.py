"""Workloads as Kueue v0.19 writes them: what a condition says, and how it is said. Pure: trees in, trees out."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from tests.simulation.jobset import condition, owner
from tests.simulation.people import NAMESPACE, QUEUE_LABEL
from trainplane.api import names
from trainplane.kube.testing.verbs import collection_of
from trainplane.resources import WORKLOADS

if TYPE_CHECKING:
    from trainplane.kube.testing.storage import Tree

COLLECTION = collection_of(WORKLOADS)
ORIGIN = "multikueue"
"""What this hub's copies on workers are marked with."""

CHECK = "training-fleet"
"""The admission check of the hub's queue: MultiKueue's."""

CLUSTER_QUEUE = "training"
"""The ClusterQueue of each cluster that all Workloads are in."""

PENDING, READY, RETRY = "Pending", "Ready", "Retry"
RESERVED, ADMITTED, EVICTED, FINISHED = "QuotaReserved", "Admitted", "Evicted", "Finished"
REQUEUED = "Requeued"
"""False after an eviction, until what evicted it has passed."""
DEACTIVATE = "DeactivationTarget"
"""On a worker: that the hub evicted it."""


TEMPLATE: Tree = {"spec": {"containers": [{"name": "node", "resources": {}}]}}
"""What of a pod's template matters here."""


def made_for(job: Tree) -> Tree:
    """Return the Workload that a hub's Kueue makes of a TrainJob."""
    meta = job["metadata"]
    text = "\n".join(("TrainJob", "trainer.kubeflow.org", meta["name"], meta["uid"]))
    digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:5]
    return {
        "apiVersion": WORKLOADS.api_version,
        "kind": WORKLOADS.kind,
        "metadata": {
            "name": f"trainjob-{meta['name']}-{digest}",
            "namespace": NAMESPACE,
            "labels": {names.LABEL_JOB_UID: meta["uid"]},
            "ownerReferences": [owner(job)],
        },
        "spec": {
            "queueName": meta["labels"][QUEUE_LABEL],
            "active": True,
            "podSets": [{"name": "node", "count": job["spec"]["trainer"]["numNodes"], "template": TEMPLATE}],
        },
        "status": {"admissionChecks": [{"name": CHECK, "state": PENDING, "message": ""}]},
    }


def copied(workload: Tree) -> Tree:
    """Return the copy of a hub's Workload that MultiKueue makes on a worker."""
    labels = {key: value for key, value in workload["metadata"]["labels"].items() if key != names.LABEL_JOB_UID}
    meta = {"name": workload["metadata"]["name"], "namespace": workload["metadata"]["namespace"]}
    return {
        **{key: workload[key] for key in ("apiVersion", "kind", "spec")},
        "metadata": {**meta, "labels": {**labels, names.LABEL_MULTIKUEUE_ORIGIN: ORIGIN}},
        "status": {},
    }


def adopted(workload: Tree, job: Tree) -> Tree:
    """Return a copy on a worker that belongs to its TrainJob from now on."""
    meta = workload["metadata"]
    labels = {**meta["labels"], names.LABEL_JOB_UID: job["metadata"]["uid"]}
    return {**workload, "metadata": {**meta, "labels": labels, "ownerReferences": [owner(job)]}}


def denies(workload: Tree, kind: str) -> bool:
    """Return whether a condition is False; one that is not there is neither."""
    return (condition(workload, kind) or {}).get("status") == "False"


def says(workload: Tree, kind: str) -> bool:
    """Return whether a condition is True."""
    return (condition(workload, kind) or {}).get("status") == "True"


def told(workload: Tree, kind: str, reason: str, message: str, now: str, *, value: bool = True) -> Tree:
    """Return a Workload that says so."""
    status, word = workload.get("status") or {}, "True" if value else "False"
    before = condition(workload, kind)
    since = before["lastTransitionTime"] if before is not None and before["status"] == word else now
    said = {"type": kind, "status": word, "reason": reason, "message": message, "lastTransitionTime": since}
    others = [one for one in status.get("conditions") or () if one["type"] != kind]
    return {**workload, "status": {**status, "conditions": [*others, said]}}


def untold(workload: Tree, kind: str) -> Tree:
    """Return a Workload that says nothing of a kind."""
    conditions = (workload.get("status") or {}).get("conditions") or ()
    return with_status(workload, conditions=[one for one in conditions if one["type"] != kind])


def goes(workload: Tree) -> bool:
    """Return whether a Workload was told to go, and is held by its finalizer until its TrainJob has stopped."""
    return "deletionTimestamp" in workload["metadata"]


def with_status(workload: Tree, **fields: Any) -> Tree:
    """Return a Workload with fields of its status; None takes one away."""
    status = {**(workload.get("status") or {}), **fields}
    return {**workload, "status": {key: value for key, value in status.items() if value is not None}}


def check_of(workload: Tree) -> str:
    """Return what MultiKueue's check of a Workload says; empty where it has none, as on a worker."""
    for one in (workload.get("status") or {}).get("admissionChecks") or ():
        return str(one["state"])
    return ""


def checked(workload: Tree, state: str, message: str = "") -> Tree:
    """Return a Workload with another state of MultiKueue's check."""
    return with_status(workload, admissionChecks=[{"name": CHECK, "state": state, "message": message}])


def cluster_of(workload: Tree) -> str:
    """Return the worker that a hub's Workload is on."""
    return str((workload.get("status") or {}).get("clusterName") or "")


def flavor_in(workload: Tree) -> str:
    """Return the flavor whose quota a Workload has; empty if it has none."""
    for one in ((workload.get("status") or {}).get("admission") or {}).get("podSetAssignments") or ():
        return str(one["flavors"]["pods"])
    return ""


def assigned(flavor: str, pods: int) -> Tree:
    """Return what a Workload's status says of its quota."""
    share = {"name": "node", "count": pods, "flavors": {"pods": flavor}, "resourceUsage": {"pods": str(pods)}}
    return {"clusterQueue": CLUSTER_QUEUE, "podSetAssignments": [share]}


def pods_in(workload: Tree) -> int:
    """Return how many pods a Workload has."""
    return sum(one["count"] for one in workload["spec"]["podSets"])


def prebuilt(job: Tree) -> str:
    """Return the Workload that a copy of a TrainJob names; empty for what is no copy."""
    return str((job["metadata"].get("annotations") or {}).get(names.PREBUILT_WORKLOAD) or "")
