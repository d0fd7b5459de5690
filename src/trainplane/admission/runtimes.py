"""May this runtime exist?

A replicated job that carries the label of a part of a TrainJob gets that part's settings, so it must have the container
they go into, and it must be one Job: a TrainJob's nodes are the pods of one Job.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.bounds import MOST_PODS
from trainplane.api.jobset import JobSetTemplate
from trainplane.render.findings import Finding, Verdict, written
from trainplane.render.pipeline import too_many_pods
from trainplane.render.references import lost_jobs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.tree import Tree

_POLICY: Final = "https://trainer.kubeflow.org/en/latest/operator-guides/runtime.html#runtime-deprecation-policy"


def validate_runtime(new: Tree, old: Tree | None, *, most_pods: int = MOST_PODS) -> Verdict:
    """Judge a TrainingRuntime or ClusterTrainingRuntime; `most_pods` is what a TrainJob may come to.

    An update of a TrainingRuntime that breaks a rule is let through with a warning: the reference never looks at these
    updates, and a namespace may live with what it stored so.
    """
    findings = Verdict.of(chain(_judge_pods(new, most_pods), _judge(new))).errors
    warnings: tuple[str, ...] = ()
    if old is None and is_deprecated(new):
        warnings = (deprecation(new),)
    if old is not None and new.get("kind") == names.TRAINING_RUNTIME:
        return Verdict(warnings=(*warnings, *(f"no TrainJob can run so: {finding}" for finding in findings)))
    return Verdict(findings, warnings)


def is_deprecated(runtime: Tree) -> bool:
    """Return whether a runtime says of itself that it will go away."""
    label: str | None = trees.get(runtime, "metadata", "labels", names.LABEL_SUPPORT)
    return label == names.SUPPORT_DEPRECATED


def deprecation(runtime: Tree) -> str:
    """Return the warning for whoever creates or uses a deprecated runtime; it names the successor, if there is one."""
    successor = trees.get(runtime, "metadata", "annotations", names.ANNOTATION_REPLACED_BY)
    todo = f"use {successor} instead" if isinstance(successor, str) and successor else "move to another runtime"
    name = trees.get(runtime, "metadata", "name")
    return f'{runtime.get("kind")} "{name}" is deprecated and will be removed: {todo}. See {_POLICY}'


def _judge_pods(runtime: Tree, most: int) -> Iterator[Finding]:
    """Yield a finding if a TrainJob that says nothing of its own would come to more pods than it may have."""
    policy = trees.get(runtime, "spec", "mlPolicy") or {}
    said = [policy.get("numNodes"), trees.get(policy, "torch", "elasticPolicy", "maxNodes")]
    nodes = max((count for count in said if isinstance(count, int)), default=0)
    if nodes > most:
        yield too_many_pods("spec.mlPolicy", nodes, most)
        return
    jobs = JobSetTemplate(trees.get(runtime, "spec", "template") or {}).jobs
    pods = sum(
        max(job.replicas, 0) * max(nodes if nodes and job.ancestor == names.ANCESTOR_TRAINER else job.parallelism, 0)
        for job in jobs
    )
    if pods > most:
        yield too_many_pods("spec.template.spec.replicatedJobs", pods, most)


def _judge(runtime: Tree) -> Iterator[Finding]:
    template = JobSetTemplate(trees.get(runtime, "spec", "template") or {})
    yield from _judge_jobs(template)
    for path, problem in lost_jobs(template.tree):
        yield Finding(written(("spec", "template", *path)), problem, "NotFound")


def _judge_jobs(template: JobSetTemplate) -> Iterator[Finding]:
    for index, job in enumerate(template.jobs):
        if job.ancestor == names.ANCESTOR_CACHE:
            continue  # no word of the reference's: a job that has it and is no cache of ours runs as it is
        container = names.CONTAINER_OF_ANCESTOR.get(job.ancestor or "")
        if container is None:
            continue
        path = f"spec.template.spec.replicatedJobs[{index}]"
        if job.replicas != 1:
            yield Finding(
                f"{path}.replicas",
                f'must be 1, not {job.replicas}, in job "{job.name}", which runs the {job.ancestor}: '
                "the number of nodes is mlPolicy.numNodes",
            )
        if job.container(container) is None:
            yield Finding(
                f"{path}.template.spec.template.spec.containers",
                f'must have a container "{container}" in job "{job.name}", which runs the {job.ancestor}: '
                "it is the one that a TrainJob's settings go into",
            )
