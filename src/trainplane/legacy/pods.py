"""The pod and the Service of each member of a job.

Both have the member's name: the Service is without an address of its own, so its name leads to the pod that bears it
now. A template passes through as the user wrote it; beyond it a pod has labels, what its framework tells it, and the
restart policy of its replicas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import tree as trees
from trainplane.api.legacy import names
from trainplane.legacy import gangs
from trainplane.legacy.frameworks import FRAMEWORKS

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.legacy.decision import Settings
    from trainplane.legacy.job import Job, Member


def pod(job: Job, member: Member, settings: Settings) -> Tree:
    """Return the pod of a member."""
    framework, replicas = FRAMEWORKS[job.kind.name], job.replicas[member.type]
    metadata = trees.fields(replicas.template, "metadata")
    labels = {**trees.fields(metadata, "labels"), **_labels(job, member)}
    if framework.is_master(job, member):
        labels[names.LABEL_JOB_ROLE] = names.ROLE_MASTER
    spec = dict(trees.fields(replicas.template, "spec"))
    told = framework.variables(job, member, settings)
    spec["containers"] = [
        _told(one, told) if framework.tells(job, one) else one for one in trees.entries(spec, "containers")
    ]
    before = [*trees.entries(spec, "initContainers"), *framework.init_containers(job, member, settings)]
    if before:
        spec["initContainers"] = before
    never = replicas.restart == names.RESTART_EXIT_CODE
    spec["restartPolicy"] = names.RESTART_NEVER if never else replicas.restart
    kept = {name: metadata[name] for name in ("annotations", "finalizers") if metadata.get(name)}
    made = {**_metadata(job, member), "labels": labels, **kept}
    return gangs.join(job, member, settings, {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": spec})


def service(job: Job, member: Member) -> Tree:
    """Return the Service of a member, with the ports of the container that trains, told apart by their names."""
    labels = _labels(job, member)
    template = job.replicas[member.type].template
    listed = trees.entries(template, "spec", "containers", ("name", job.kind.container), "ports")
    ports = {trees.text(one, "name") or "": trees.number(one, "containerPort") for one in listed}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**_metadata(job, member), "labels": labels},
        "spec": {
            "clusterIP": "None",
            "selector": labels,
            "ports": [{**({"name": name} if name else {}), "port": port} for name, port in ports.items()],
        },
    }


def _metadata(job: Job, member: Member) -> Tree:
    return {"name": job.pod_name(*member), "namespace": job.namespace, "ownerReferences": [job.owner]}


def _labels(job: Job, member: Member) -> dict[str, str]:
    return {**job.labels_of(member.type), names.LABEL_REPLICA_INDEX: str(member.number)}


def _told(container: Tree, variables: list[Tree]) -> Tree:
    """Return a container with variables after its own: of two that share a name, the last is the one that counts."""
    return {**container, "env": [*trees.entries(container, "env"), *variables]} if variables else container
