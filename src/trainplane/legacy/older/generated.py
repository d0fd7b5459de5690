"""The runtime of a v2alpha1 TrainJob that has no runtimeRef: torch on its nodes, and initializers that run before them.

The runtime has an initializer for the dataset and one for the model, if the TrainJob has them. A claim is shared by the
initializers and all nodes then. The claim is ReadWriteOnce for one node, and ReadWriteMany for several nodes.

The claim is deleted with the JobSet. It only holds fetched data: the trained model goes to `modelConfig.output`. If the
operator restarts the TrainJob, the initializers fetch the data again.

All of it follows from immutable fields, so the runtime is created once and never changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api.errors import QuantityError
from trainplane.api.legacy.v2alpha1 import ANNOTATION_CLAIM_STORAGE
from trainplane.api.quantity import Quantity
from trainplane.render.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainplane.api.legacy.v2alpha1 import TrainJobSpec
    from trainplane.api.tree import Tree

CLAIM_STORAGE: Final = "20Gi"
"""How large a claim is unless the TrainJob says: as large as those of the runtimes that we ship."""
_MAX_RESTARTS: Final = 10
"""How often the operator restarts a TrainJob after a fault, as in the shipped runtimes."""
_INITIALIZER_USER: Final = 65532
"""Whom the initializers' image runs as, and whom the claim must belong to."""
_DISRUPTED: Final = {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
_MOUNTS: Final = [{"name": names.VOLUME_INITIALIZER, "mountPath": "/workspace"}]


def runtime_spec(spec: TrainJobSpec, annotations: Mapping[str, str], *, initializers: str) -> Tree:
    """Return the spec of the runtime that a TrainJob without one gets; `initializers` is the image that fetches."""
    parts = [
        (names.ANCESTOR_DATASET, "dataset", spec.dataset_config is not None),
        (names.ANCESTOR_MODEL, "model", spec.model_config is not None and spec.model_config.input is not None),
    ]
    fetching = [(ancestor, word) for ancestor, word, named in parts if named]
    jobs = [_initializer(ancestor, word, initializers) for ancestor, word in fetching]
    node = _node("" if spec.trainer is None else spec.trainer.image or "")
    template: Tree = {"failurePolicy": _failure_policy(), "replicatedJobs": [*jobs, node]}
    if fetching:
        node["dependsOn"] = [{"name": ancestor, "status": "Complete"} for ancestor, _ in fetching]
        _pod(node)["containers"][0]["volumeMounts"] = _MOUNTS
        mode = "ReadWriteOnce" if spec.nodes == 1 else "ReadWriteMany"
        storage = annotations.get(ANNOTATION_CLAIM_STORAGE, CLAIM_STORAGE)
        template["volumeClaimPolicies"] = [{"templates": [_claim(mode, storage)]}]
    return {
        "mlPolicy": {"numNodes": spec.nodes, "torch": {}},
        "runPolicy": {"failurePolicy": {"maxRestarts": _MAX_RESTARTS}},
        "template": {"spec": template},
    }


def judge_storage(annotations: Mapping[str, str]) -> Finding | None:
    """Return what is wrong with how large a claim shall be; None if nothing is."""
    said = annotations.get(ANNOTATION_CLAIM_STORAGE, CLAIM_STORAGE)
    try:
        if Quantity.of(said) > Quantity.of("0"):
            return None
    except QuantityError:
        pass
    return Finding(
        f"metadata.annotations[{ANNOTATION_CLAIM_STORAGE}]",
        f"{said[:63]!r} is no amount of storage: write one such as {CLAIM_STORAGE}",
    )


def _failure_policy() -> Tree:
    """Return the policy of the shipped runtimes: a disruption restarts all pods, without a limit."""
    disrupted = {
        "name": "disrupted",
        "action": "RestartJobSetAndIgnoreMaxRestarts",
        "onJobFailureReasons": ["PodFailurePolicy"],
        "onJobFailureMessagePatterns": ["has condition DisruptionTarget"],
    }
    return {"rules": [disrupted]}


def _node(image: str) -> Tree:
    container = {"name": names.CONTAINER_NODE, "image": image}
    return _job(names.JOB_NODE, names.ANCESTOR_TRAINER, 0, [{"action": "FailJob", **_DISRUPTED}], container)


def _initializer(ancestor: str, word: str, image: str) -> Tree:
    """Return the job that fetches a dataset or a model; its exit code 1 says that another try would end alike."""
    final = {"operator": "In", "values": [1]}
    rules: list[Tree] = [{"action": "Ignore", **_DISRUPTED}, {"action": "FailJob", "onExitCodes": final}]
    container = {"name": ancestor, "image": image, "args": [word], "volumeMounts": _MOUNTS}
    job = _job(ancestor, ancestor, 2, rules, container)
    _pod(job)["securityContext"] = {"fsGroup": _INITIALIZER_USER, "fsGroupChangePolicy": "OnRootMismatch"}
    return job


def _job(name: str, ancestor: str, tries: int, rules: list[Tree], container: Tree) -> Tree:
    pod = {
        "restartPolicy": "Never",
        "containers": [{**container, "terminationMessagePolicy": "FallbackToLogsOnError"}],
    }
    spec = {"backoffLimit": tries, "podFailurePolicy": {"rules": rules}, "template": {"spec": pod}}
    return {
        "name": name,
        "groupName": "default",
        "replicas": 1,
        "template": {"metadata": {"labels": {names.LABEL_ANCESTOR: ancestor}}, "spec": spec},
    }


def _pod(job: Tree) -> Tree:
    pod: Tree = job["template"]["spec"]["template"]["spec"]
    return pod


def _claim(mode: str, storage: str) -> Tree:
    spec = {"accessModes": [mode], "resources": {"requests": {"storage": storage}}}
    return {"metadata": {"name": names.VOLUME_INITIALIZER}, "spec": spec}
