"""Runtimes and TrainJobs to render: small ones, changed by what a test is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainplane.api import names
from trainplane.api.document import Document, read
from trainplane.api.runtime import ClusterTrainingRuntime
from trainplane.api.trainjob import TrainJob
from trainplane.api.tree import Step, Tree, get
from trainplane.render.pipeline import COMMON, FRAMEWORKS, Pipeline, Rendering

if TYPE_CHECKING:
    from trainplane.render.provenance import Rendered

PIPELINE = Pipeline(plugin() for plugin in (*FRAMEWORKS, *COMMON))
"""The built-in plugins: what happens to be installed must not change a test."""

Job = Document[TrainJob]
Runtime = Document[ClusterTrainingRuntime]


def replicated_job(name: str, ancestor: str | None = None, **pod: Any) -> Tree:
    """Return a replicated job with one container of the name that its ancestor asks for."""
    container = names.CONTAINER_OF_ANCESTOR.get(ancestor or "", name)
    metadata = {"metadata": {"labels": {names.LABEL_ANCESTOR: ancestor}}} if ancestor else {}
    pod.setdefault("containers", [{"name": container, "image": f"image/{name}"}])
    return {
        "name": name,
        "groupName": "default",
        "replicas": 1,
        "template": {**metadata, "spec": {"template": {"spec": pod}}},
    }


def node(**container: Any) -> Tree:
    """Return the replicated job that trains; fields of its container."""
    return replicated_job("node", "trainer", containers=[{"name": "node", "image": "torch", **container}])


def runtime(*jobs: Tree, policy: Any = None, name: str = "torch-distributed", **template: Any) -> Runtime:
    """Return a runtime of some replicated jobs, by default of one that trains."""
    spec: Tree = {"template": {**template, "spec": {"replicatedJobs": list(jobs) or [node()]}}}
    if policy is not None:
        spec["mlPolicy"] = policy
    return read(
        {
            "apiVersion": names.API_VERSION,
            "kind": names.CLUSTER_TRAINING_RUNTIME,
            "metadata": {"name": name},
            "spec": spec,
        },
        ClusterTrainingRuntime,
    )


def torch(*jobs: Tree, name: str = "torch-distributed", nodes: int | None = 1, **policy: Any) -> Runtime:
    """Return a runtime for torch; fields of its policy."""
    return runtime(*jobs, policy={"torch": policy, **({"numNodes": nodes} if nodes is not None else {})}, name=name)


def job(*patches: Tree, name: str = "job", runtime_name: str = "torch-distributed", **spec: Any) -> Job:
    """Return a TrainJob; fields of its spec, and its runtimePatches."""
    if patches:
        spec["runtimePatches"] = list(patches)
    return read(
        {
            "apiVersion": names.API_VERSION,
            "kind": names.TRAIN_JOB,
            "metadata": {"name": name, "namespace": "team", "uid": "uid-1"},
            "spec": {
                "runtimeRef": {
                    "apiGroup": names.GROUP,
                    "kind": names.CLUSTER_TRAINING_RUNTIME,
                    "name": runtime_name,
                },
                "suspend": False,
                **spec,
            },
        },
        TrainJob,
    )


def patch(manager: str = "example.com/team", job: str = "node", metadata: Tree | None = None, **pod_spec: Any) -> Tree:
    """Return a runtimePatches entry that changes the pods of one replicated job."""
    pod: Tree = {"spec": pod_spec}
    if metadata is not None:
        pod["metadata"] = metadata
    change = {"name": job, "template": {"spec": {"template": pod}}}
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [change]}}}}


def render(job: Job, runtime: Runtime) -> Rendering:
    """Render with the built-in plugins."""
    return PIPELINE.render(job, runtime)


def in_job(name: str, *path: Step) -> tuple[Step, ...]:
    """Return the path of a part of a replicated job in a JobSet."""
    return ("spec", "replicatedJobs", ("name", name), *path)


def in_pod(name: str, *path: Step) -> tuple[Step, ...]:
    """Return the path of a part of a pod's spec in a JobSet."""
    return in_job(name, "template", "spec", "template", "spec", *path)


def in_container(*path: Step, job: str = "node", container: str = "node") -> tuple[Step, ...]:
    """Return the path of a part of a container in a JobSet."""
    return in_pod(job, "containers", ("name", container), *path)


def container_of(rendering: Rendering, name: str = "node", job: str = "node") -> Tree:
    """Return a container of the rendered JobSet."""
    found: Tree = get(rendering.jobset.tree, *in_container(job=job, container=name))
    return found


def values_of(container: Tree) -> dict[str, Any]:
    """Return a container's variables by name: the value, or where it comes from."""
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container.get("env", [])}


def pods_of(rendering: Rendering, job: str = "node") -> tuple[int, int]:
    """Return parallelism and completions of a rendered replicated job."""
    spec = get(rendering.jobset.tree, *in_job(job, "template", "spec"))
    return spec["parallelism"], spec["completions"]


def origin(rendered: Rendered, *path: Step) -> str:
    """Return an origin as people read it."""
    return str(rendered.origin_of(*path))
