"""Names in a JobSet's template that lead nowhere: JobSet and the API server refuse what has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.jobset import JobSetTemplate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.jobset import ReplicatedJob
    from trainplane.api.tree import Tree

Fault: TypeAlias = "tuple[tuple[str | int, ...], str]"
"""A part of a template, by its path, and what is wrong with it."""

POD: Final = ("template", "spec", "template", "spec")
_JOBS: Final = ("spec", "replicatedJobs")


def lost_jobs(template: Tree) -> Iterator[Fault]:
    """Yield a fault for each name of a replicated job that there is not, or not yet where its turn is."""
    window = JobSetTemplate(template)
    known = {job.name for job in window.jobs}
    earlier: set[str] = set()
    for index, job in enumerate(window.jobs):
        for place, dependency in enumerate(job.tree.get("dependsOn") or ()):
            if dependency.get("name") not in earlier:
                name = dependency.get("name")
                problem = f"{name} is no job that stands before {job.name}: JobSet starts jobs in order"
                yield (*_JOBS, index, "dependsOn", place, "name"), problem
        earlier.add(job.name)
    for path, targets in _targets(window):
        for index, name in enumerate(targets):
            if name not in known:
                yield (*path, index), f"there is no job {name} in this runtime"
    yield from _lost_coordinator(window)


def _lost_coordinator(template: JobSetTemplate) -> Iterator[Fault]:
    """Yield a fault for a coordinator that is no pod of the JobSet, as far as its numbers are known yet."""
    at, coordinator = ("spec", "coordinator"), template.get("spec", "coordinator")
    if not coordinator:
        return
    name = coordinator.get("replicatedJob")
    job = next((job for job in template.jobs if job.name == name), None)
    if job is None:
        yield (*at, "replicatedJob"), f"there is no job {name} in this runtime"
        return
    completions = job.get("template", "spec", "completions")
    for field, count in (("jobIndex", job.tree.get("replicas", 1)), ("podIndex", completions)):
        index = coordinator.get(field, 0)
        if index < 0 or (isinstance(count, int) and index >= count):
            yield (
                (*at, field),
                f"there is no such {field.removesuffix('Index')} of {name}: write 0 to {max(0, (count or 1) - 1)}",
            )
    if completions is None and template.tree.get("kind") == names.JOBSET:
        yield (*at, "replicatedJob"), f"JobSet wants to know how many pods {name} has: set completions in its template"


def lost_volumes(template: Tree) -> Iterator[Fault]:
    """Yield a fault for each mount of a volume, and each use of a device's claim, that the pods do not have."""
    window = JobSetTemplate(template)
    claimed = {
        trees.get(claim, "metadata", "name")
        for policy in window.get("spec", "volumeClaimPolicies") or ()
        for claim in policy.get("templates") or ()
    }
    for index, job in enumerate(window.jobs):
        yield from _lost_in_pod(job, claimed, (*_JOBS, index, *POD))


def _lost_in_pod(job: ReplicatedJob, claimed: set[Any], at: tuple[str | int, ...]) -> Iterator[Fault]:
    volumes = {volume.get("name") for volume in job.pod_spec.get("volumes") or ()} | claimed
    devices = {claim.get("name") for claim in job.pod_spec.get("resourceClaims") or ()}
    for kind, containers in (("initContainers", job.init_containers), ("containers", job.containers)):
        for index, container in enumerate(containers):
            for place, mount in enumerate(container.tree.get("volumeMounts") or ()):
                if mount.get("name") not in volumes:
                    problem = f"the pods of job {job.name} have no volume {mount.get('name')}"
                    yield (*at, kind, index, "volumeMounts", place, "name"), problem
            for place, claim in enumerate(container.get("resources", "claims") or ()):
                if claim.get("name") not in devices:
                    problem = f"the pods of job {job.name} have no resourceClaims entry {claim.get('name')}"
                    yield (*at, kind, index, "resources", "claims", place, "name"), problem


def _targets(template: JobSetTemplate) -> Iterator[tuple[tuple[str | int, ...], list[str]]]:
    """Yield each list of jobs that a policy speaks of."""
    field = "targetReplicatedJobs"
    yield ("spec", "successPolicy", field), template.get("spec", "successPolicy", field) or []
    for index, rule in enumerate(template.get("spec", "failurePolicy", "rules") or ()):
        yield ("spec", "failurePolicy", "rules", index, field), rule.get(field) or []
