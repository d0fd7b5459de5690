"""What recorders and replays of a script have in common: the objects that the script names, and how to select pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.simulation.jobset import JOBSET
from tests.simulation.kueue import COUNTS
from tests.simulation.people import QUEUE_LABEL

if TYPE_CHECKING:
    from trainplane.kube.testing.storage import Tree

NAME: Final = "x"
"""The JobSet of a script."""
QUEUE: Final = "queue"
"""The LocalQueue of a script."""
TRAINER: Final = "trainer.kubeflow.org/v1alpha1"


def jobset_of(namespace: str, told: Tree) -> Tree:
    """Return the JobSet that a script speaks of."""
    spec: Tree = {"replicatedJobs": [_replicated(one) for one in told["jobs"]], "suspend": bool(told.get("suspend"))}
    if "restarts" in told:
        spec["failurePolicy"] = {"maxRestarts": told["restarts"]}
    if "ttl" in told:
        spec["ttlSecondsAfterFinished"] = told["ttl"]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": spec,
    }


def _replicated(told: Tree) -> Tree:
    pods = {"containers": [{"name": "node", "image": "train:1"}], "restartPolicy": "Never"}
    spec = {
        "parallelism": told["pods"],
        "completions": told["pods"],
        "backoffLimit": told.get("backoff", 0),
        "template": {"spec": pods},
    }
    return {"name": told["name"], "replicas": told.get("replicas", 1), "template": {"spec": spec}}


def placed_on(jobset: Tree, flavor: str) -> list[Tree]:
    """Return the replicated jobs of a JobSet with their pods on a flavor."""
    return [_with_pods(job, nodeSelector={"flavor": flavor}) for job in jobset["spec"]["replicatedJobs"]]


def with_image(jobset: Tree, image: str) -> list[Tree]:
    """Return the replicated jobs of a JobSet with another image."""
    containers = [{"name": "node", "image": image}]
    return [_with_pods(job, containers=containers) for job in jobset["spec"]["replicatedJobs"]]


def _with_pods(job: Tree, **changes: Any) -> Tree:
    template = job["template"]["spec"]["template"]
    pods = {**template, "spec": {**template["spec"], **changes}}
    return {**job, "template": {**job["template"], "spec": {**job["template"]["spec"], "template": pods}}}


def matches(pod: Tree, about: Tree) -> bool:
    """Return whether a step means a pod: all pods, or those of a job, or of an index."""
    labels = pod["metadata"]["labels"]
    job = f"{labels[f'{JOBSET}/replicatedjob-name']}-{labels[f'{JOBSET}/job-index']}"
    index = int(labels["batch.kubernetes.io/job-completion-index"])
    return bool(about.get("job", job) == job and about.get("index", index) == index)


def queued(name: str, pods: int) -> Tree:
    """Return a TrainJob of a script's queue as its user sends it; a pod wants one CPU."""
    ref = {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime", "name": "torch"}
    trainer = {"numNodes": pods, "resourcesPerNode": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": TRAINER,
        "kind": "TrainJob",
        "metadata": {"name": name, "labels": {QUEUE_LABEL: QUEUE}},
        "spec": {"runtimeRef": ref, "trainer": trainer},
    }


def counted(active: int) -> Tree:
    """Return what an operator says of a TrainJob with so many active Jobs."""
    return {"jobsStatus": [{**COUNTS, "active": active}]}


def ended(kind: str, now: str) -> Tree:
    """Return what an operator says of a TrainJob that is over."""
    end = {"type": kind, "status": "True", "reason": "Over", "message": "over", "lastTransitionTime": now}
    return {**counted(0), "conditions": [end]}
