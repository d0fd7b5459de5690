"""What the hub shows of a job: itself with its cluster, its pods, its events. Pure: trees in, trees out.

The job is the hub's own. Pods and events are a worker's, which may send anything: any part of them may have any
type.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.hub.apiserver.discovery import API_VERSION
from trainplane.hub.kinds import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trainplane.api.tree import Tree
    from trainplane.hub.placement import Placement

_COLUMNS: Final = (
    ("Name", "name", "The job's name.", 0),
    ("Cluster", "", "The worker that has it; hub for one that runs here.", 0),
    ("State", "", "Waiting, Starting, Running, Complete, Succeeded or Failed.", 0),
    ("Ready", "", "Pods that are ready, of those there are.", 0),
    ("Age", "", "How long ago it was created.", 0),
    ("Reason", "", "Why it is there.", 1),
)


def summary(
    job: Tree, placement: Placement, pods: Sequence[tuple[str, Tree]], *, kept_bytes: int, problem: str | None
) -> Tree:
    """Return what a job looks like from the hub; `pods` are with their clusters."""
    metadata = {
        key: value
        for key, value in job["metadata"].items()
        if key in {"name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "labels", "resourceVersion"}
    }
    alive = [pod for _, pod in pods if trees.get(pod, "status", "phase") in ("Pending", "Running")]
    ready = sum(is_ready(pod) for pod in alive)
    status: Tree = {
        "cluster": placement.cluster or (names.CLUSTER_HUB if placement.state == "Local" else ""),
        "state": state_of(job, placement, ready),
        "placement": placement.state,
        "reason": placement.reason,
        "readyPods": ready,
        "pods": len(alive),
        "keptLogBytes": kept_bytes,
        **_counts(job),
        "conditions": trees.get(job, "status", "conditions") or [],
    }
    if placement.workload:
        status["workload"] = placement.workload
    if placement.nominated:
        status["nominatedClusters"] = list(placement.nominated)
    if problem:
        status["problem"] = problem
    return {"apiVersion": API_VERSION, "kind": kind_of(job).name, "metadata": metadata, "status": status}


def _counts(job: Tree) -> Tree:
    """Return how many pods of each part of a job there are, by its own word and in its kind's."""
    if kind_of(job).replica_specs:
        return {"replicaStatuses": trees.get(job, "status", "replicaStatuses") or {}}
    return {"jobsStatus": trees.get(job, "status", "jobsStatus") or []}


def state_of(job: Tree, placement: Placement, ready: int) -> str:
    """Return one word for what a job does."""
    kind = kind_of(job)
    end = kind.end(job)
    if end is not None:
        return str(end["type"])
    if kind.is_suspended(job) and placement.state == "Local":
        return names.SUSPENDED
    if placement.state == "Waiting":
        return "Waiting"
    return "Running" if ready else "Starting"


def is_ready(pod: Tree) -> bool:
    """Return whether a pod is ready."""
    return bool(trees.get(pod, "status", "conditions", ("type", "Ready"), "status") == "True")


def listing(kind: str, items: Sequence[Tree], resource_version: str) -> Tree:
    """Return a list of summaries."""
    metadata = {"resourceVersion": resource_version}
    return {"apiVersion": API_VERSION, "kind": f"{kind}List", "metadata": metadata, "items": list(items)}


def table(items: Sequence[Tree], resource_version: str, now: datetime) -> Tree:
    """Return summaries as the table that kubectl prints."""
    columns = [
        {"name": name, "type": "string", "format": form, "description": text, "priority": priority}
        for name, form, text, priority in _COLUMNS
    ]
    return {
        "apiVersion": "meta.k8s.io/v1",
        "kind": "Table",
        "metadata": {"resourceVersion": resource_version},
        "columnDefinitions": columns,
        "rows": [_row(item, now) for item in items],
    }


def _row(item: Tree, now: datetime) -> Tree:
    metadata, status = item["metadata"], item["status"]
    partial = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata}
    cells = [
        metadata["name"],
        status["cluster"] or "<none>",
        status["state"],
        f"{status['readyPods']}/{status['pods']}",
        age(metadata.get("creationTimestamp"), now),
        status["reason"],
    ]
    return {"cells": cells, "object": partial}


def age(created: str | None, now: datetime) -> str:
    """Return how long ago something was created, as kubectl writes it: 45s, 5m, 3h, 12d."""
    moment = parse_time(created)
    if moment is None:
        return "<unknown>"
    seconds = max(0, int((now - moment).total_seconds()))
    for unit, size, most in (("s", 1, 120), ("m", 60, 120), ("h", 3600, 48)):
        if seconds < most * size:
            return f"{seconds // size}{unit}"
    return f"{seconds // 86400}d"


def parse_time(text: Any) -> datetime | None:
    """Return a time as the API server writes it; None for what is none."""
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None


def marked(tree: Tree, cluster: str) -> Tree:
    """Return an object with the cluster it is from."""
    mark = {names.ANNOTATION_CLUSTER: cluster or names.CLUSTER_HUB}
    annotations = {**trees.fields(tree, "metadata", "annotations"), **mark}
    return {**tree, "metadata": {**trees.fields(tree, "metadata"), "annotations": annotations}}


def pod_list(pods: Iterable[tuple[str, Tree]]) -> Tree:
    """Return pods as a list of the core API, each with its cluster."""
    items = [marked(pod, cluster) for cluster, pod in pods]
    return {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": items}


def event_list(events: Iterable[tuple[str, Tree]]) -> Tree:
    """Return events of several clusters as one list of the core API, in the order of time, each with its cluster."""
    found = [(event_time(event), cluster, event) for cluster, event in events]
    found.sort(key=lambda entry: (entry[0], entry[1], trees.text(entry[2], "metadata", "name") or ""))
    return {
        "apiVersion": "v1",
        "kind": "EventList",
        "metadata": {},
        "items": [marked(event, cluster) for _, cluster, event in found],
    }


def event_time(event: Tree) -> str:
    """Return when an event last happened, to compare by: whichever of an event's many times is the latest."""
    times = (
        trees.text(event, "series", "lastObservedTime"),
        trees.text(event, "lastTimestamp"),
        trees.text(event, "eventTime"),
        trees.text(event, "firstTimestamp"),
        trees.text(event, "metadata", "creationTimestamp"),
    )
    return max((_fixed(time) for time in times if time), default="")


def _fixed(time: str) -> str:
    """Return a time in UTC with its fraction written out, so that times compare as texts."""
    whole, _, fraction = time.rstrip("Z").partition(".")
    return f"{whole}.{fraction.ljust(9, '0')}"


def concerns(event: Tree, job: Tree, *, workload: str | None, pods: frozenset[str]) -> bool:
    """Return whether an event of a job's namespace is about it, or about what was made for it."""
    own, job_name = kind_of(job).name, job["metadata"]["name"]
    kind = trees.get(event, "involvedObject", "kind")
    name = trees.text(event, "involvedObject", "name") or ""
    if kind == own or (kind == names.JOBSET and own == names.TRAIN_JOB):
        return bool(name == job_name)
    if kind == "Workload":
        return name == workload
    if kind == "Pod":
        return name in pods
    return kind == "Job" and _is_job_of(name, job)


def _is_job_of(name: str, job: Tree) -> bool:
    """Return whether a Job was made for a job, by its name."""
    job_name = job["metadata"]["name"]
    if kind_of(job).replica_specs:
        return bool(name == f"{job_name}-{names.JOB_LAUNCHER}")
    # JobSet names a Job after itself, the replicated job and a number.
    head, _, index = name.rpartition("-")
    steps = {entry["name"] for entry in trees.get(job, "status", "jobsStatus") or ()}
    return index.isdigit() and head.startswith(f"{job_name}-") and head.removeprefix(f"{job_name}-") in steps
