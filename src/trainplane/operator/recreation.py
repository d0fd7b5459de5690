"""Change a rendered JobSet into the one of a later attempt. Pure.

A JobSet that the operator creates again differs from the first one of its TrainJob in two ways:

    labels    it and its pods have the number of restarts before it, from which the number of an attempt follows
    claims    those that outlived the JobSet before are mounted by name: JobSet refuses to create a JobSet whose claim
              template differs from a claim that exists, as each claim does once it is bound
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.api import tree as trees

if TYPE_CHECKING:
    from trainplane.api.tree import Tree


def recreate(jobset: Tree, restarts: int) -> None:
    """Change a rendered JobSet in place into the one after so many restarts; the first one stays as it is."""
    if not restarts:
        return
    _label(jobset, restarts)
    _mount_retained_claims(jobset)


def _label(jobset: Tree, restarts: int) -> None:
    for part in (jobset, *_pod_templates(jobset)):
        part.setdefault("metadata", {}).setdefault("labels", {})[names.LABEL_RESTARTS] = str(restarts)


def _mount_retained_claims(jobset: Tree) -> None:
    spec = jobset["spec"]
    policies = trees.entries(spec, "volumeClaimPolicies")
    retained = [one for one in policies if trees.get(one, "retentionPolicy", "whenDeleted") == names.CLAIMS_RETAIN]
    claims = [
        trees.text(template, "metadata", "name") for one in retained for template in trees.entries(one, "templates")
    ]
    for pod in _pod_templates(jobset):
        mounted = _mounted(pod["spec"])
        added = [
            {"name": claim, "persistentVolumeClaim": {"claimName": f"{claim}-{jobset['metadata']['name']}"}}
            for claim in claims
            if claim in mounted
        ]
        if added:
            pod["spec"]["volumes"] = [*trees.entries(pod, "spec", "volumes"), *added]
    if retained:
        spec["volumeClaimPolicies"] = [one for one in policies if one not in retained]
    if retained and not spec["volumeClaimPolicies"]:
        del spec["volumeClaimPolicies"]


def _pod_templates(jobset: Tree) -> list[Tree]:
    jobs = trees.entries(jobset, "spec", "replicatedJobs")
    return [job["template"]["spec"]["template"] for job in jobs]


def _mounted(pod: Tree) -> set[str]:
    """Return the names of the volumes that the containers of a pod mount, as JobSet looks for them."""
    containers = [*trees.entries(pod, "containers"), *trees.entries(pod, "initContainers")]
    return {str(mount.get("name")) for one in containers for mount in trees.entries(one, "volumeMounts")}
