"""Pods, and an archive with some in it, for tests of what is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tests.unit.hub.kubelet import SECOND, START, line
from trainplane.hub.logarchive.pod import parse

if TYPE_CHECKING:
    from trainplane.hub.logarchive.archive import Archive
    from trainplane.hub.logarchive.keptjob import KeptJob, KeptPod
    from trainplane.hub.logarchive.pod import Pod

Tree = dict[str, Any]

NAMESPACE_UID = "ns-1"


def pod(
    name: str = "x-node-0-0-abcde",
    *,
    uid: str = "",
    job: str = "x",
    step: str = "node",
    index: int = 0,
    job_index: int = 0,
    created: str = "2026-11-15T05:00:00Z",
    containers: tuple[str, ...] = ("node",),
    restarts: int = 0,
    state: str = "running",
    annotations: dict[str, str] | None = None,
    owner: Tree | None = None,
) -> Tree:
    labels = {
        "jobset.sigs.k8s.io/jobset-name": job,
        "jobset.sigs.k8s.io/replicatedjob-name": step,
        "jobset.sigs.k8s.io/job-index": str(job_index),
        "batch.kubernetes.io/job-completion-index": str(index),
    }
    ready = {"type": "Ready", "status": "True" if state == "running" else "False"}
    statuses = [{"name": each, "restartCount": restarts, "state": {state: {}}} for each in containers]
    phase = {"running": "Running", "waiting": "Pending", "terminated": "Succeeded"}[state]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": uid or f"uid-{name}",
            "creationTimestamp": created,
            "labels": labels,
            "annotations": annotations or {},
            "ownerReferences": [owner] if owner else [],
        },
        "spec": {"containers": [{"name": each} for each in containers]},
        "status": {"phase": phase, "conditions": [ready], "containerStatuses": statuses},
    }


def parsed(tree: Tree) -> Pod:
    return parse(msgspec.json.encode(tree))


def numbered(count: int, first: int = 0, *, every: int = SECOND // 10, text: str = "line") -> list[bytes]:
    return [line(START + number * every, f"{text} {number}") for number in range(first, first + count)]


def keep(
    archive: Archive, tree: Tree, lines: list[bytes], *, run: int = 0, container: str = "node", uid: str = "job-1"
) -> tuple[KeptJob, KeptPod]:
    """Keep a pod of TrainJob team/x and lines of one of its runs."""
    job = archive.admit(uid, "team", "x", NAMESPACE_UID)
    kept = archive.put_pod(job, "worker1", parsed(tree))
    archive.append(job, kept.journal(container, run), lines)
    return job, kept
