"""TrainJobs of the page's team: some count aloud on real nodes until they are told to stop, some end as they begin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab import node
from lab.images import reference
from tests.fleet import objects
from tests.fleet.team import true_condition, wait_until

if TYPE_CHECKING:
    from tests.install.fleet.stage import Stage

Tree = dict[str, Any]
TEAM = "vision"
QUEUE = "multikueue-queue"
COUNTING, QUICK = "counting", "quick"

_COUNT = """
import os, time
number = 0
while not os.path.exists("/tmp/stop"):
    print(f"line {number}", flush=True)
    number += 1
    time.sleep(0.05)
print(f"end {number}", flush=True)
time.sleep(1)
"""


def runtimes() -> list[Tree]:
    """Return the runtimes of both sorts: one for the node with pods, one for the simulated ones."""
    counting, quick = objects.runtime(COUNTING, image=reference("python")), objects.runtime(QUICK)
    spec = _pod(counting)
    spec |= {"nodeSelector": {"kubernetes.io/hostname": node.NAME}, "terminationGracePeriodSeconds": 1}
    spec["containers"][0] |= {"imagePullPolicy": "Never", "command": ["python3", "-c", _COUNT]}
    _pod(quick)["nodeSelector"] = {"type": "kwok"}
    return [counting, quick]


def _pod(runtime: Tree) -> Tree:
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    spec: Tree = job["template"]["spec"]["template"]["spec"]
    return spec


@dataclass(frozen=True)
class Jobs:
    """The team's jobs on the stage's hub."""

    stage: Stage

    def add_runtimes(self) -> None:
        """Add the runtimes to all clusters and wait until Kueue on the hub knows them: jobs before that are refused."""
        for cluster in self.stage.fleet.clusters:
            cluster.apply(*runtimes())

    def submit(self, name: str, runtime: str, nodes: int = 1, cpu: str = "50m") -> None:
        job = objects.train_job(name, TEAM, runtime=runtime, queue=QUEUE, nodes=nodes, cpu=cpu)
        self.stage.api().create(job)

    def where(self, name: str) -> str | None:
        """Return the worker that has a job."""
        for workload in self.stage.api().list("workloads", TEAM):
            if workload["metadata"]["ownerReferences"][0]["name"] == name:
                cluster: str | None = (workload.get("status") or {}).get("clusterName")
                return cluster
        return None

    def is_complete(self, name: str) -> bool:
        return true_condition(self.stage.api().get("trainjobs", TEAM, name), "Complete") is not None

    def stop(self, name: str) -> None:
        """Tell the pods of a counting job to stop, and wait until it is complete and its copy gone."""
        cluster = self.where(name)
        assert cluster is not None
        worker = self.stage.worker(cluster)
        for pod in self.stage.api(cluster).list("pods", TEAM, labels=f"jobset.sigs.k8s.io/jobset-name={name}"):
            worker.touch(TEAM, pod["metadata"]["name"], "/tmp/stop")
        wait_until(f"the end of {name}", lambda: self.is_complete(name))
        wait_until(f"the copy of {name} to go", lambda: not self.stage.api(cluster).get("trainjobs", TEAM, name))
        selector = f"jobset.sigs.k8s.io/jobset-name={name}"
        wait_until(f"the pods of {name} to go", lambda: not self.stage.api(cluster).list("pods", TEAM, labels=selector))
