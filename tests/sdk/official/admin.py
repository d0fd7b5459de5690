"""The administrator of a side's cluster, who sees what is really there and does what the SDK cannot."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.processes import wait_for
from tests.fleet.api import Api

if TYPE_CHECKING:
    from collections.abc import Callable

    from lab.cluster import Cluster

Tree = dict[str, Any]

PATIENCE = 180.0
"""Seconds that anything may take on a busy machine of two cores."""
_PAUSE = 0.3
_STEP = "jobset.sigs.k8s.io/replicatedjob-name"


@dataclass(frozen=True)
class Admin:
    """The administrator, at home in a namespace."""

    cluster: Cluster
    namespace: str

    @property
    def api(self) -> Api:
        """The cluster by plain requests, which cost less than kubectl."""
        return Api(self.cluster)

    # -- what they see --------------------------------------------------------------------------------------------

    def get(self, plural: str, name: str) -> Tree:
        found = self.api.get(plural, self.namespace, name)
        assert found is not None, f"{plural} {name} is not there"
        return found

    def names(self, plural: str) -> list[str]:
        return [item["metadata"]["name"] for item in self.api.list(plural, self.namespace)]

    def pods(self, job: str) -> list[Tree]:
        """Return the pods of a TrainJob that are not on their way out."""
        items = self.api.list("pods", self.namespace, labels=f"jobset.sigs.k8s.io/jobset-name={job}")
        return [item for item in items if "deletionTimestamp" not in item["metadata"]]

    def pod_names(self, job: str) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.pods(job)]

    def phases(self, job: str) -> list[str]:
        return sorted(pod["status"]["phase"] for pod in self.pods(job))

    def conditions(self, job: str) -> dict[str, str]:
        """Return the conditions of a TrainJob: type to status."""
        conditions = self.get("trainjobs", job).get("status", {}).get("conditions", [])
        return {condition["type"]: condition["status"] for condition in conditions}

    def counts_ready(self, job: str) -> bool:
        """Return whether a TrainJob's status knows of a step that is ready."""
        return any(step["ready"] for step in self.get("trainjobs", job).get("status", {}).get("jobsStatus", []))

    def is_last(self, job: str, step: str) -> bool:
        """Return whether the pods of a step were made after those of all other steps had ended."""
        pods = self.pods(job)
        later = [pod for pod in pods if pod["metadata"]["labels"][_STEP] == step]
        ended: list[str] = [
            status["state"]["terminated"]["finishedAt"]
            for pod in pods
            if pod not in later
            for status in pod["status"]["containerStatuses"]
        ]
        assert later, f"{job} has no pods of {step}"
        assert ended, f"{job} has no other pods"
        made: list[str] = [pod["metadata"]["creationTimestamp"] for pod in later]
        return max(ended) <= min(made)

    def has_news(self, job: str) -> bool:
        """Return whether anything was recorded about the TrainJob itself, in whichever form."""
        fields = f"involvedObject.name={job},involvedObject.kind=TrainJob"
        return bool(self.api.list("events", self.namespace, fields=fields))

    def has_event(self, job: str, reason: str) -> bool:
        """Return whether a controller has recorded this about a TrainJob or its JobSet, in whichever form."""
        return bool(self.api.list("events", self.namespace, fields=f"involvedObject.name={job},reason={reason}"))

    # -- what they do ---------------------------------------------------------------------------------------------

    def set_suspend(self, job: str, *, suspend: bool) -> None:
        self.api.patch("trainjobs", self.namespace, job, {"spec": {"suspend": suspend}})

    def end(self, *jobs: str) -> None:
        """Delete TrainJobs, without waiting."""
        for job in jobs:
            self.api.delete("trainjobs", self.namespace, job)

    def tell(self, job: str, path: str) -> None:
        """Make a file in every pod of a TrainJob: its training goes on, or fails."""
        for pod in self.pod_names(job):
            self.cluster.touch(self.namespace, pod, path)

    # -- waiting --------------------------------------------------------------------------------------------------

    def wait(self, what: str, holds: Callable[[], bool]) -> None:
        def holds_now() -> bool:
            if holds():
                return True
            time.sleep(_PAUSE)
            return False

        wait_for(f"{what} on {self.cluster.name}", holds_now, seconds=PATIENCE)

    def wait_phases(self, job: str, *phases: str) -> None:
        """Wait until the pods of a TrainJob are in these phases, and no other pods are there."""
        self.wait(f"{job} to be {phases}", lambda: self.phases(job) == sorted(phases))
