"""The pods of an older job and of the TrainJob that takes its place, each as it would be before anything has run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.jobset import JobSetTemplate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.legacy.kinds import Kind
    from trainplane.api.tree import Tree

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
        """The variables of the container that trains, as its process sees them; what is not known is `?`."""
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
        for index in range(job.replicas):
            for pod in range(job.parallelism):
                fields = {
                    names.FIELD_PATH_COMPLETION_INDEX: str(pod),
                    "metadata.annotations['jobset.sigs.k8s.io/job-global-index']": str(earlier + index),
                    f"metadata.labels['{names.LABEL_JOBSET_NAME}']": name,
                }
                host = f"{names.pod_hostname(name, job.name, index, pod)}.{template.subdomain or name}"
                pods.append(_pod(f"{job.name} {index + pod}", host, job.pod_spec, names.CONTAINER_NODE, fields))
        earlier += job.replicas
    return [pod for job in order for pod in found.get(job, ())]


def _pod(label: str, host: str, spec: Tree, container: str, fields: dict[str, str]) -> Pod:
    containers = trees.entries(spec, "containers")
    trains = next((one for one in containers if one.get("name") == container), containers[0] if containers else {})
    return Pod(label, host, spec, trains, fields)


def pods_of_job(kind: Kind, job: Tree) -> list[Pod]:
    """Return the pods that an older job has, in the order of its kind's replica types."""
    return list(_written_pods(kind, job))


def _written_pods(kind: Kind, job: Tree) -> Iterator[Pod]:
    specs: Any = {key.lower(): value for key, value in trees.fields(job, "spec", kind.specs).items()}
    name = trees.text(job, "metadata", "name") or ""
    for replica_type in kind.types:
        spec = trees.without_nulls(specs.get(replica_type.lower()) or {})
        pod = dict(trees.fields(spec, "template", "spec"))
        restart = spec.get("restartPolicy") or kind.restart_of(replica_type)
        pod["restartPolicy"] = "Never" if restart == "ExitCode" else restart
        for index in range(spec.get("replicas", 1) if spec else 0):
            host = f"{name}-{replica_type.lower()}-{index}"
            yield _pod(f"{replica_type} {index}", host, pod, kind.container, {})
