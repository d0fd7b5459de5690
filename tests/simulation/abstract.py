"""What is compared of an engine and its model: states without names, times and words that chance or a release chooses.

One form for objects of a real API server and of the simulated one, so that a recorded history and a replayed one are
equal exactly if the model does what the engine did. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulation.jobset import COUNTED, JOBSET, finish
from tests.simulation.kueue import flavor_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trainplane.kube.testing.storage import Tree


def jobset_state(jobset: Tree | None, jobs: Iterable[Tree], pods: Iterable[Tree]) -> Tree:
    """Return how a JobSet stands, with the Jobs and pods that are there."""
    return {
        "jobset": None if jobset is None else _jobset(jobset),
        "jobs": {_short(one): _job(one) for one in sorted(jobs, key=_short)},
        "pods": sorted(map(_pod, pods)),
    }


def _jobset(jobset: Tree) -> Tree:
    status: Any = jobset.get("status") or {}
    conditions = {one["type"]: f"{one['status']} {one['reason']}" for one in status.get("conditions") or ()}
    counts = {
        one["name"]: {name: one.get(name, 0) for name in (*COUNTED, "suspended")}
        for one in status.get("replicatedJobsStatus") or ()
    }
    return {
        "suspend": bool(jobset["spec"].get("suspend")),
        "conditions": dict(sorted(conditions.items())),
        "counts": counts,
        "restarts": [status.get("restarts", 0), status.get("restartsCountTowardsMax", 0)],
        "terminalState": status.get("terminalState", ""),
        "goes": "deletionTimestamp" in jobset["metadata"],
    }


def _short(job: Tree) -> str:
    labels = job["metadata"]["labels"]
    return f"{labels[f'{JOBSET}/replicatedjob-name']}-{labels[f'{JOBSET}/job-index']}"


def _job(job: Tree) -> Tree:
    status: Any = job.get("status") or {}
    return {
        "attempt": int(job["metadata"]["labels"][f"{JOBSET}/restart-attempt"]),
        "suspend": bool(job["spec"].get("suspend")),
        "counts": [status.get(name, 0) for name in ("active", "ready", "succeeded", "failed")],
        "end": finish(job),
        "goes": "deletionTimestamp" in job["metadata"],
    }


def _pod(pod: Tree) -> str:
    labels = pod["metadata"]["labels"]
    place = (pod["spec"].get("nodeSelector") or {}).get("flavor", "")
    words = (
        f"{_short(pod)}-{labels['batch.kubernetes.io/job-completion-index']}",
        f"attempt {labels[f'{JOBSET}/restart-attempt']}",
        str(pod["status"]["phase"]),
        f"on {place}" if place else "",
        "goes" if "deletionTimestamp" in pod["metadata"] else "",
    )
    return " ".join(word for word in words if word)


def queue_state(jobs: Iterable[Tree], workloads: Mapping[str, Tree], used: Mapping[str, int]) -> Tree:
    """Return how TrainJobs of a queue stand; `workloads` by the TrainJob's name, `used` pods of quota by flavor."""
    return {
        "jobs": {
            one["metadata"]["name"]: {
                "suspend": bool(one["spec"].get("suspend")),
                "flavor": flavor_of(one),
                **workloads[one["metadata"]["name"]],
            }
            for one in sorted(jobs, key=lambda one: str(one["metadata"]["name"]))
        },
        "used": dict(sorted(used.items())),
    }


def workload(*, reserved: str, stopping: bool, over: bool) -> Tree:
    """Return how a Workload stands: the flavor of its quota, whether it is being stopped, whether it is over."""
    return {"reserved": reserved, "stopping": stopping, "over": over}
