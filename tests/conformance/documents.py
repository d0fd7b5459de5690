"""Documents that cases are made of: runtimes, TrainJobs, patches, JobSet statuses."""

from __future__ import annotations

from typing import Any

from tests.conformance.cases import Change, Create, Report, Step, Tree

API = "trainer.kubeflow.org/v1alpha1"
ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
HARNESS = "conformance.trainplane.dev/harness"
"""Who manages the JobSets of cases: not the JobSet controller, whose webhooks alone take part, but the harness, so that
a JobSet's status is what the case says and nothing else."""
LONG_AGO = "2001-01-01T00:00:00Z"
RESUME = Change({"spec": {"suspend": False}})


def env(**values: str) -> list[Tree]:
    """Return variables."""
    return [{"name": name, "value": value} for name, value in values.items()]


def container(name: str = "node", **fields: Any) -> Tree:
    """Return a container."""
    return {"name": name, "image": "test:runtime", **fields}


def replicated_job(
    name: str = "node", *, ancestor: str | None = "trainer", job: Tree | None = None, **pod: Any
) -> Tree:
    """Return a replicated job; `job` adds to its Job's spec, the rest to its pod's."""
    pod.setdefault("containers", [container()])
    labels = {"metadata": {"labels": {ANCESTOR: ancestor}}} if ancestor else {}
    return {"name": name, "template": {**labels, "spec": {**(job or {}), "template": {"spec": pod}}}}


def initializer_job(which: str, *paths: str) -> Tree:
    """Return an initializer's replicated job as the reference's own fixtures have it."""
    mounts = [{"name": "initializer", "mountPath": f"/workspace/{path}"} for path in paths]
    return replicated_job(
        f"{which}-initializer",
        ancestor=f"{which}-initializer",
        containers=[container(f"{which}-initializer", volumeMounts=mounts)],
        volumes=[_CLAIM],
    )


_CLAIM = {"name": "initializer", "persistentVolumeClaim": {"claimName": "initializer"}}


def steps_jobs(**node: Any) -> list[Tree]:
    """Return the three replicated jobs of the reference's base fixture."""
    mounts = [{"name": "initializer", "mountPath": f"/workspace/{path}"} for path in ("dataset", "model")]
    node.setdefault("containers", [container(volumeMounts=mounts)])
    return [
        initializer_job("dataset", "dataset"),
        initializer_job("model", "model"),
        replicated_job(**{"volumes": [_CLAIM], **node}),
    ]


def runtime(
    *jobs: Tree,
    kind: str = "TrainingRuntime",
    name: str = "runtime",
    policy: Tree | None = None,
    metadata: Tree | None = None,
    template: Tree | None = None,
    **spec: Any,
) -> Tree:
    """Return a runtime: `spec` adds to its JobSet's spec, `template` is the JobSet's metadata."""
    jobset = {"managedBy": HARNESS, "replicatedJobs": list(jobs) or [replicated_job()], **spec}
    body: Tree = {"template": {"spec": jobset}}
    if template:
        body["template"]["metadata"] = template
    if policy is not None:
        body["mlPolicy"] = policy
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, **(metadata or {})}, "spec": body}


def torch(*jobs: Tree, nodes: int | None = None, **fields: Any) -> Tree:
    """Return a runtime with the torch policy."""
    policy: Tree = {"torch": {}}
    if nodes is not None:
        policy["numNodes"] = nodes
    return runtime(*jobs, policy=policy, **fields)


def train_job(name: str = "job", *, runtime_name: str = "runtime", metadata: Tree | None = None, **spec: Any) -> Tree:
    """Return a TrainJob on the TrainingRuntime of its namespace."""
    spec.setdefault("runtimeRef", {"kind": "TrainingRuntime", "name": runtime_name})
    return {"apiVersion": API, "kind": "TrainJob", "metadata": {"name": name, **(metadata or {})}, "spec": spec}


def patch_job(
    name: str = "node", *, metadata: Tree | None = None, pod_metadata: Tree | None = None, **pod: Any
) -> Tree:
    """Return what a patch says of one replicated job."""
    pod_template: Tree = {}
    if pod_metadata:
        pod_template["metadata"] = pod_metadata
    if pod:
        pod_template["spec"] = pod
    template: Tree = {"spec": {"template": pod_template}} if pod_template else {}
    if metadata:
        template["metadata"] = metadata
    return {"name": name, "template": template}


def patch(manager: str, *jobs: Tree, metadata: Tree | None = None, time: str | None = None) -> Tree:
    """Return one entry of runtimePatches."""
    template: Tree = {"spec": {"replicatedJobs": list(jobs)}} if jobs else {}
    if metadata:
        template["metadata"] = metadata
    entry: Tree = {"manager": manager, "trainingRuntimeSpec": {"template": template}}
    if time:
        entry["time"] = time
    return entry


def counts(name: str = "node", **numbers: int) -> Tree:
    """Return one entry of a JobSet's replicatedJobsStatus."""
    zero = dict.fromkeys(("ready", "succeeded", "failed", "active", "suspended"), 0)
    return {"name": name, **zero, **numbers}


def condition(kind: str, reason: str, message: str) -> Tree:
    """Return a condition of a JobSet, at a time that tells that it was copied."""
    return {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": LONG_AGO}


COMPLETED = condition("Completed", "AllJobsCompleted", "jobset completed successfully")
FAILED = condition("Failed", "FailedJobs", "jobset failed due to one or more job failures")


def reported(*jobs: Tree, conditions: tuple[Tree, ...] = ()) -> Report:
    """Return the step that writes a JobSet's status."""
    status: Tree = {"replicatedJobsStatus": list(jobs)}
    if conditions:
        status["conditions"] = list(conditions)
    return Report(status)


def resumed_until(report: Report, **trainer: Any) -> tuple[Step, ...]:
    """Return the life of a TrainJob that is created suspended, resumed, and ends as its JobSet reports."""
    return (Create(train_job(suspend=True, trainer=trainer)), RESUME, report)
