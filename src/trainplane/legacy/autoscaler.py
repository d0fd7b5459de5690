"""The autoscaler of a PyTorchJob: it changes the number of elastic workers by what `elasticPolicy.metrics` says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import tree as trees
from trainplane.api.legacy import names

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.legacy.decision import Observed
    from trainplane.legacy.job import Job

API_VERSION: Final = "autoscaling/v2"
KIND: Final = "HorizontalPodAutoscaler"


def autoscaler(job: Job) -> Tree | None:
    """Return the job's autoscaler; None if it has no metrics to go by."""
    policy = job.elastic or {}
    if job.kind.name != names.PYTORCH_JOB or policy.get("metrics") is None or policy.get("maxReplicas") is None:
        return None
    spec: Tree = {
        "scaleTargetRef": {"apiVersion": job.kind.api_version, "kind": job.kind.name, "name": job.name},
        "minReplicas": policy.get("minReplicas"),
        "maxReplicas": policy["maxReplicas"],
        "metrics": policy["metrics"],
    }
    metadata = {"name": job.name, "namespace": job.namespace, "ownerReferences": [job.owner]}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": trees.without_nulls(spec)}


def autoscaler_of(job: Job, seen: Observed) -> Tree | None:
    """Return the job's autoscaler as it is; None if there is none."""
    return next(
        (one for one in seen.others if one.get("kind") == KIND and trees.get(one, "metadata", "name") == job.name), None
    )
