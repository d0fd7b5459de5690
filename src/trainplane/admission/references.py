"""What a runtime's template refers to by name is there: JobSet and the API server would refuse every TrainJob else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import tree as trees
from trainplane.api.jobset import JobSetTemplate
from trainplane.render.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.jobset import ReplicatedJob
    from trainplane.api.tree import Tree

_SPEC = "spec.template.spec"
_POD = "template.spec.template.spec"


def judge_references(runtime: Tree) -> Iterator[Finding]:
    """Yield a finding for each name that leads nowhere."""
    template = JobSetTemplate(trees.get(runtime, "spec", "template") or {})
    jobs: set[str] = set()
    claimed = {
        trees.get(claim, "metadata", "name")
        for policy in template.get("spec", "volumeClaimPolicies") or ()
        for claim in policy.get("templates") or ()
    }
    for index, job in enumerate(template.jobs):
        at = f"{_SPEC}.replicatedJobs[{index}]"
        yield from _judge_dependencies(job, jobs, at)
        yield from _judge_mounts(job, claimed, f"{at}.{_POD}")
        jobs.add(job.name)
    for place, targets in _targets(template):
        for index, name in enumerate(targets):
            if name not in jobs:
                yield Finding(f"{place}[{index}]", f"there is no job {name} in this runtime", "NotFound")


def _judge_dependencies(job: ReplicatedJob, earlier: set[str], at: str) -> Iterator[Finding]:
    for index, dependency in enumerate(job.tree.get("dependsOn") or ()):
        if dependency.get("name") not in earlier:
            problem = f"{dependency.get('name')} is no job that stands before {job.name}: JobSet starts jobs in order"
            yield Finding(f"{at}.dependsOn[{index}].name", problem, "NotFound")


def _judge_mounts(job: ReplicatedJob, claimed: set[str | None], at: str) -> Iterator[Finding]:
    volumes = {volume.get("name") for volume in job.pod_spec.get("volumes") or ()} | claimed
    for kind, containers in (("initContainers", job.init_containers), ("containers", job.containers)):
        for index, container in enumerate(containers):
            for place, mount in enumerate(container.tree.get("volumeMounts") or ()):
                if mount.get("name") not in volumes:
                    problem = f"the pods of job {job.name} have no volume {mount.get('name')}"
                    yield Finding(f"{at}.{kind}[{index}].volumeMounts[{place}].name", problem, "NotFound")


def _targets(template: JobSetTemplate) -> Iterator[tuple[str, list[str]]]:
    """Yield each list of jobs that a policy speaks of."""
    success = template.get("spec", "successPolicy", "targetReplicatedJobs") or []
    yield f"{_SPEC}.successPolicy.targetReplicatedJobs", success
    for index, rule in enumerate(template.get("spec", "failurePolicy", "rules") or ()):
        yield f"{_SPEC}.failurePolicy.rules[{index}].targetReplicatedJobs", rule.get("targetReplicatedJobs") or []
