"""Evidence of what ran: every pod that ever was on a worker stays until it has been counted.

The pods carry a finalizer of ours. When Kueue takes a finished copy away, its TrainJob, JobSet and Job go as always;
its pods are marked as deleted and stay. Nothing can run unseen then, whatever was killed meanwhile: a watch would have
gaps, and a list shows only what is there at the moment.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.fleet.api import Api

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lab.cluster import Cluster

Tree = dict[str, Any]

FINALIZER = "lab.trainplane.dev/counted"
_NAME = "jobset.sigs.k8s.io/jobset-name"
_UID = "jobset.sigs.k8s.io/jobset-uid"
_INDEX = "batch.kubernetes.io/job-completion-index"


@dataclass
class Evidence:
    """What is known of the jobs that were sent."""

    runs: dict[str, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))
    """Job → the runs of it: a worker and the uid of a JobSet there. A JobSet is one attempt at a whole job."""
    done: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Job → node → how many pods of that node succeeded."""
    pods: int = 0

    @classmethod
    def gather(cls, workers: dict[str, Iterable[Tree]]) -> Evidence:
        """Count pods, by worker."""
        evidence = cls()
        for worker, pods in workers.items():
            for pod in pods:
                labels = pod["metadata"]["labels"]
                evidence.pods += 1
                evidence.runs[labels[_NAME]].add((worker, labels[_UID]))
                if pod["status"]["phase"] == "Succeeded":
                    evidence.done[labels[_NAME]][labels[_INDEX]] += 1
        return evidence

    def lost(self, jobs: Iterable[str], *, nodes: int) -> list[str]:
        """Return the jobs of which some node never got to its end."""
        wanted = {str(index) for index in range(nodes)}
        return [job for job in jobs if not wanted <= self.done[job].keys()]

    def twice(self, jobs: Iterable[str]) -> list[str]:
        """Return the jobs that were begun more than once, here or there."""
        return [job for job in jobs if len(self.runs[job]) > 1]

    def workers(self) -> Counter[str]:
        """Return how many jobs each worker ran."""
        return Counter(worker for runs in self.runs.values() for worker, _ in runs)


def counted(runtime: Tree) -> Tree:
    """Return a runtime whose pods stay until they are let go."""
    for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        job["template"]["spec"]["template"].setdefault("metadata", {})["finalizers"] = [FINALIZER]
    return runtime


def let_go(cluster: Cluster, namespace: str) -> None:
    """Let the counted pods of a namespace go."""
    pods = [pod["metadata"] for pod in Api(cluster).list("pods", namespace)]
    names = [pod["name"] for pod in pods if FINALIZER in pod.get("finalizers", ())]  # others may be gone any moment
    with cluster.connection() as connection:
        for name in names:
            path = f"/api/v1/namespaces/{namespace}/pods/{name}"
            patch = json.dumps({"metadata": {"finalizers": None}})
            connection.send("PATCH", path, patch, "application/merge-patch+json")
