"""TrainJobs, runtimes and JobSets to judge, small and right, and a pipeline that judges nothing itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.document import read
from trainplane.api.jobset import JobSetTemplate
from trainplane.api.runtime import ClusterTrainingRuntime, TrainingRuntime
from trainplane.render.findings import Verdict

if TYPE_CHECKING:
    from trainplane.api.document import Document
    from trainplane.api.trainjob import TrainJob
    from trainplane.api.tree import Tree
    from trainplane.render.pipeline import Pipeline, Runtime

KUEUE = names.PATCH_MANAGER_KUEUE
OURS = names.PATCH_MANAGER_OLDER_FIELDS


def trainjob(name: str = "job", **spec: Any) -> Tree:
    """Return a TrainJob as the API server hands it to admission, the schema's defaults filled in."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.TRAIN_JOB,
        "metadata": {"name": name, "namespace": "team", "uid": "1-2-3"},
        "spec": {
            "runtimeRef": {"apiGroup": names.GROUP, "kind": names.CLUSTER_TRAINING_RUNTIME, "name": "torch"},
            "suspend": False,
            "managedBy": names.MANAGED_BY_TRAINER,
            **spec,
        },
    }


def with_spec(job: Tree, **spec: Any) -> Tree:
    """Return a TrainJob with other fields in its spec; None takes one away."""
    merged = {**job["spec"], **spec}
    return {**job, "spec": {field: value for field, value in merged.items() if value is not None}}


def entry(manager: str = "example.com/me", *, time: str | None = None, **pod: Any) -> Tree:
    """Return a runtimePatches entry that changes the pods of job node; without changes, an empty entry."""
    spec = {"replicatedJobs": [job_patch("node", **pod)]} if pod else {}
    patch: Tree = {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": spec}}}
    return {**patch, "time": time} if time else patch


def job_patch(name: str, **pod: Any) -> Tree:
    """Return a patch of a replicated job's pods."""
    return {"name": name, "template": {"spec": {"template": {"spec": pod}}}}


def replicated_job(name: str = "node", ancestor: str | None = "trainer", *containers: str, **fields: Any) -> Tree:
    """Return a replicated job; its container is the one its ancestor needs unless others are named."""
    wanted = containers or (names.CONTAINER_OF_ANCESTOR.get(ancestor or "", name),)
    pod = {"containers": [{"name": one, "image": "image", "command": ["train"]} for one in wanted]}
    metadata = {"labels": {names.LABEL_ANCESTOR: ancestor}} if ancestor else {}
    return {
        "name": name,
        "replicas": 1,
        "template": {"metadata": metadata, "spec": {"template": {"spec": pod}}},
        **fields,
    }


def runtime_tree(*jobs: Tree, kind: str = names.CLUSTER_TRAINING_RUNTIME, policy: Any = None, **spec: Any) -> Tree:
    """Return a runtime; with torch and one job unless said otherwise."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": kind,
        "metadata": {"name": "torch"},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}} if policy is None else policy,
            "template": {"spec": {"replicatedJobs": list(jobs) or [replicated_job()], **spec}},
        },
    }


def runtime(*jobs: Tree, policy: Any = None, **spec: Any) -> Document[ClusterTrainingRuntime]:
    """Return a ClusterTrainingRuntime as a document."""
    return read(runtime_tree(*jobs, policy=policy, **spec), ClusterTrainingRuntime)


def namespaced(*jobs: Tree) -> Document[TrainingRuntime]:
    """Return a TrainingRuntime as a document."""
    return read(runtime_tree(*jobs, kind=names.TRAINING_RUNTIME), TrainingRuntime)


@dataclass
class Rendered:
    """An object that was rendered."""

    tree: Tree


@dataclass
class Planned:
    """What the plain pipeline plans: the template of a JobSet."""

    template: JobSetTemplate


@dataclass
class Rendering:
    """What the plain pipeline renders: a JobSet."""

    jobset: Rendered


class Plain:
    """A pipeline whose plugins find `verdict`, and which renders the template with the pods' patches put in."""

    def __init__(self, verdict: Verdict | None = None) -> None:
        """Find this in every TrainJob."""
        self.verdict = verdict or Verdict()
        self.judged: list[tuple[Document[TrainJob], Document[TrainJob] | None, Runtime]] = []
        self.renders = 0

    def validate(self, job: Document[TrainJob], old: Document[TrainJob] | None, runtime: Runtime) -> Verdict:
        """Remember the question."""
        self.judged.append((job, old, runtime))
        return self.verdict

    def plan(self, job: Document[TrainJob], runtime: Runtime) -> Planned:
        """Return the template of what is rendered."""
        return Planned(JobSetTemplate(self.render(job, runtime).jobset.tree))

    def render(self, job: Document[TrainJob], runtime: Runtime) -> Rendering:
        """Put numNodes and patched fields into the template."""
        self.renders += 1
        template = trees.copy(runtime.tree["spec"]["template"])
        nodes = trees.get(job.tree, "spec", "trainer", "numNodes") or 1
        for one in template["spec"]["replicatedJobs"]:
            one["template"]["spec"].update(parallelism=nodes, completions=nodes)
            for patch in trees.get(job.tree, "spec", "runtimePatches") or []:
                change = trees.get(
                    patch,
                    "trainingRuntimeSpec",
                    "template",
                    "spec",
                    "replicatedJobs",
                    ("name", one["name"]),
                    "template",
                )
                one["template"]["metadata"] = {**one["template"]["metadata"], **(trees.get(change, "metadata") or {})}
                pod = trees.get(change, "spec", "template", "spec") or {}
                one["template"]["spec"]["template"]["spec"].update(pod)
        return Rendering(Rendered(template))


def plain(verdict: Verdict | None = None) -> Pipeline:
    """Return a plain pipeline as the type that admission takes."""
    return cast("Pipeline", Plain(verdict))
