"""What is compared of a fleet and its models: TrainJobs and Workloads by cluster. As pure as `simulation.abstract`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.simulation.fleet import workload as wl
from tests.simulation.kueue import flavor_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.kube.testing.storage import Tree

TOLD = (wl.RESERVED, wl.ADMITTED, wl.EVICTED, wl.FINISHED, wl.DEACTIVATE)
"""The conditions of a Workload that somebody goes by."""


def cluster_state(jobs: Iterable[Tree], workloads: Iterable[Tree]) -> Tree:
    """Return how a cluster of a fleet stands."""
    return {
        "jobs": {one["metadata"]["name"]: _job(one) for one in sorted(jobs, key=lambda one: one["metadata"]["name"])},
        "workloads": sorted(map(_workload, workloads), key=json.dumps),
    }


def _job(job: Tree) -> Tree:
    status: Any = job.get("status") or {}
    return {
        "suspend": bool(job["spec"].get("suspend")),
        "managedBy": job["spec"]["managedBy"].rpartition("/")[2],
        "flavor": flavor_of(job),
        "active": sum(one["active"] for one in status.get("jobsStatus") or ()),
        "conditions": sorted(one["type"] for one in status.get("conditions") or () if one["status"] == "True"),
    }


def job_of(workload: Tree) -> str:
    """Return the name of the TrainJob that a Workload was made for."""
    return str(workload["metadata"]["name"]).removeprefix("trainjob-").rpartition("-")[0]


def _workload(workload: Tree) -> Tree:
    """Return how a Workload stands. Who is nominated counts while it has quota: else what is left of it is chance."""
    status: Any = workload.get("status") or {}
    told = {one["type"]: one["reason"] for one in status.get("conditions") or () if one["status"] == "True"}
    return {
        "of": job_of(workload),
        "owned": bool(workload["metadata"].get("ownerReferences")),
        "active": workload["spec"].get("active", True),
        "conditions": {kind: told[kind] for kind in TOLD if kind in told},
        "check": wl.check_of(workload),
        "cluster": wl.cluster_of(workload),
        "nominated": sorted(status.get("nominatedClusterNames") or ()) if wl.RESERVED in told else [],
        "goes": wl.goes(workload),
    }
