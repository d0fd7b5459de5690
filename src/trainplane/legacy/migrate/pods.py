"""The pods of an older job and of the TrainJob that takes its place, each as it would be before anything has run.

Of many pods that are made alike the first few and the last are looked at: a job of thousands is compared in the same
time as one of ten.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.jobset import JobSetTemplate
from trainplane.api.legacy import names as old
from trainplane.legacy import pods as core
from trainplane.legacy.decision import Settings
from trainplane.legacy.job import Job
from trainplane.legacy.mpi import pods as mpi
from trainplane.legacy.mpi.job import MPIJob
from trainplane.render.amounts import POD, write_amounts

if TYPE_CHECKING:
    from trainplane.api.legacy.kinds import Kind
    from trainplane.api.tree import Tree
    from trainplane.legacy.job import Member

FIELD_GLOBAL_INDEX: Final = "metadata.annotations['jobset.sigs.k8s.io/job-global-index']"
"""A Job's place among all Jobs of its JobSet."""
FIELD_JOBSET_NAME: Final = f"metadata.labels['{names.LABEL_JOBSET_NAME}']"
_FIRST: Final = 8
_REFERENCE: Final = re.compile(r"\$\$|\$\(([^)]*)\)")


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod, and by which name the others find it."""

    label: str
    """What messages call it: `Worker 1`."""
    host: str
    spec: Tree
    container: Tree
    """The container that trains."""
    fields: dict[str, str]
    """What its variables read of it, by fieldPath."""

    @property
    def env(self) -> dict[str, str]:
        """The variables of the container that trains, as its process sees them; what only a node knows is `?`."""
        seen: dict[str, str] = {}
        for entry in trees.entries(self.container, "env"):
            seen[str(entry.get("name"))] = self._value(entry, seen)
        return seen

    def _value(self, entry: Tree, seen: dict[str, str]) -> str:
        path = trees.text(entry, "valueFrom", "fieldRef", "fieldPath")
        if path is not None:
            return self.fields.get(path, "?")
        if entry.get("valueFrom") is not None:
            return "?"
        value = str(entry.get("value") or "")
        return _REFERENCE.sub(lambda found: "$" if found[1] is None else seen.get(found[1], found[0]), value)


def pods_of_trainjob(jobset: Tree, order: tuple[str, ...]) -> list[Pod]:
    """Return the pods of a rendered JobSet, jobs in the order that is asked for."""
    template = JobSetTemplate(jobset)
    name = jobset["metadata"]["name"]
    found: dict[str, list[Pod]] = {}
    earlier = 0
    for job in template.jobs:
        pods = found.setdefault(job.name, [])
        for place in looked_at(job.replicas * job.parallelism):
            index, pod = divmod(place, job.parallelism)
            fields = {
                names.FIELD_PATH_COMPLETION_INDEX: str(pod),
                FIELD_GLOBAL_INDEX: str(earlier + index),
                FIELD_JOBSET_NAME: name,
            }
            host = f"{names.pod_hostname(name, job.name, index, pod)}.{template.subdomain or name}"
            pods.append(_pod(f"{job.name} {place}", host, job.pod_spec, names.CONTAINER_NODE, fields))
        earlier += job.replicas
    return [pod for job in order for pod in found.get(job, ())]


def pods_of_job(kind: Kind, job: Tree, *, joined: bool) -> list[Pod]:
    """Return the pods of an older job as they are when it is served, in the order of its kind's replica types.

    `joined` says that all of them together are the nodes of one job now, so that of all together some are looked at.
    """
    read = Job(kind, job)
    members = list(read.members())
    if joined:
        chosen = [members[place] for place in looked_at(len(members))]
    else:
        chosen = [member for member in members if member.number in looked_at(read.count(member.type))]
    return [_member(read, member) for member in chosen]


def _member(job: Job, member: Member) -> Pod:
    settings, container = Settings(), job.kind.container
    if job.kind.name != old.MPI_JOB:
        spec = core.pod(job, member, settings)["spec"]
    elif member.type == old.LAUNCHER:
        spec = mpi.launcher(MPIJob(job.tree), settings)["spec"]["template"]["spec"]
    else:
        spec = mpi.worker(MPIJob(job.tree), member.number, settings)["spec"]
    if job.kind.name == old.MPI_JOB:
        container = trees.text(spec, "containers", 0, "name") or ""
    return _pod(f"{member.type} {member.number}", job.pod_name(*member), trees.without_nulls(spec), container, {})


def looked_at(count: int) -> list[int]:
    """Return the places that are looked at of so many."""
    return [*range(min(count, _FIRST)), *([count - 1] if count > _FIRST else [])]


def _pod(label: str, host: str, spec: Tree, container: str, fields: dict[str, str]) -> Pod:
    spec = trees.copy(spec)
    write_amounts(spec, POD)
    containers = trees.entries(spec, "containers")
    for one in containers:
        _request(one)
    trains = next((one for one in containers if one.get("name") == container), containers[0] if containers else {})
    return Pod(label, host, spec, trains, fields)


def _request(container: Tree) -> None:
    """Let a container request what it is limited to and says no more of, as Kubernetes does."""
    limits = trees.fields(container, "resources", "limits")
    if limits:
        container["resources"]["requests"] = limits | trees.fields(container, "resources", "requests")
