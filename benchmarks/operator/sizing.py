"""What so many TrainJobs cost the operator at rest and at a start: `python benchmarks/operator/sizing.py 0 1000 5000`.

A cluster with JobSet's CRD and no controller of it; TrainJobs of four nodes are made up to each size, then the operator
is killed and started again over them. Prints a line of JSON for each size: memory after making them, memory, CPU and
time of the start until it is ready, and its CPU over some quiet seconds. docs/operations.md has a run of it.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import TYPE_CHECKING, Any

from lab import jobset, trainplane
from lab.cluster import Cluster
from lab.engines import manifests
from lab.processes import wait_for
from lab.webhooks import documents

if TYPE_CHECKING:
    from lab.processes import Process

NAMESPACE = "sizing"
_PATH = "/apis/{}/namespaces/" + NAMESPACE + "/{}"
TRAINJOBS = _PATH.format("trainer.kubeflow.org/v1alpha1", "trainjobs")
JOBSETS = _PATH.format("jobset.x-k8s.io/v1alpha2", "jobsets")
QUIET_SECONDS = 20
SETTLE_SECONDS = 15


def trainjob(number: int) -> str:
    """Return a TrainJob of four nodes."""
    trainer = {"numNodes": 4, "image": "registry.example.test/team/image:1", "command": ["torchrun", "train.py"]}
    trainer |= {"resourcesPerNode": {"requests": {"cpu": "4", "memory": "16Gi"}}}
    tree: dict[str, Any] = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}
    tree["metadata"] = {"name": f"job-{number}"}
    return json.dumps({**tree, "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer}})


def count(cluster: Cluster, path: str) -> int:
    """Return how many objects there are, without reading them."""
    with cluster.connection() as connection:
        page = json.loads(connection.send("GET", f"{path}?limit=1"))
    return len(page["items"]) + int(page["metadata"].get("remainingItemCount") or 0)


def measure(cluster: Cluster, operator: Process, begin: int, end: int) -> tuple[dict[str, float], Process]:
    """Make TrainJobs up to a number, start the operator again, and return what that cost; and the new process."""
    with cluster.connection() as connection:
        for number in range(begin, end):
            connection.send("POST", TRAINJOBS, trainjob(number))
    wait_for("JobSets", lambda: count(cluster, JOBSETS) == end, seconds=900, log=cluster.log(trainplane.ENGINE))
    time.sleep(SETTLE_SECONDS)
    made = operator.rss_mb()
    cluster.kill(trainplane.ENGINE)
    started = time.monotonic()
    operator = cluster.revive(trainplane.ENGINE)
    trainplane.wait_ready(cluster)
    ready = time.monotonic() - started
    time.sleep(SETTLE_SECONDS)
    spent = operator.cpu_seconds()
    time.sleep(QUIET_SECONDS)
    idle = (operator.cpu_seconds() - spent) / QUIET_SECONDS
    figures = {"trainjobs": end, "made_mb": made, "started_mb": operator.rss_mb(), "ready_s": ready}
    figures |= {"start_cpu_s": spent, "idle_cores": idle}
    return {name: round(value, 3) for name, value in figures.items()}, operator


def main() -> None:
    """Measure each size in turn, on one cluster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", type=int, nargs="+")
    sizes = sorted(parser.parse_args().sizes)
    cluster = Cluster.up(f"sizing-{os.getpid()}", owned=True)
    try:
        jobset.install_crd(cluster)
        operator = trainplane.install(cluster)
        (runtime,) = documents(manifests("trainer") / "manifests/base/runtimes/torch_distributed.yaml")
        cluster.apply(runtime, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for begin, end in zip([0, *sizes], sizes, strict=False):
            figures, operator = measure(cluster, operator, begin, end)
            print(json.dumps(figures), flush=True)
    finally:
        cluster.down()


if __name__ == "__main__":
    main()
