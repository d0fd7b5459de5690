"""Jobs of kubeflow.org and their pods on fake clusters, as their operators and MultiKueue leave them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.unit.hub.hubstage import MULTIKUEUE, HubStage, reference
from tests.unit.hub.kept import pod
from trainplane.api import names
from trainplane.api.legacy import names as legacy_names
from trainplane.hub.kinds import KINDS
from trainplane.kube.resource import PODS, Key
from trainplane.resources import JOBS, WORKLOADS

if TYPE_CHECKING:
    from trainplane.hub.kinds import JobKind
    from trainplane.kube.testing.podlogs import ContainerLogs
    from trainplane.kube.testing.server import FakeServer

Tree = dict[str, Any]

PYTORCH = KINDS[legacy_names.PYTORCH_JOB]
MPI = KINDS[legacy_names.MPI_JOB]
JAX = KINDS[legacy_names.JAX_JOB]
LEGACY = tuple(kind for kind in KINDS.values() if kind.replica_specs)


def job(kind: JobKind, name: str = "x", *, uid: str = "", local: bool = False, condition: str = "") -> Tree:
    """Return a job as the hub stores it."""
    held = [{"type": condition, "status": "True", "reason": "R", "message": "M"}] if condition else []
    metadata = {"name": name, "namespace": "team", "uid": uid or f"{kind.name.lower()}-1"}
    return {
        "apiVersion": kind.resource.api_version,
        "kind": kind.name,
        "metadata": metadata,
        "spec": {"runPolicy": {} if local else {"managedBy": MULTIKUEUE}},
        "status": {"conditions": held, "replicaStatuses": {"Worker": {"active": 1}}},
    }


def put_job(stage: HubStage, kind: JobKind, *, cluster: str | None = "worker1", **fields: Any) -> str:
    """Store a job on the hub with a Workload that says where it is; return its uid."""
    tree = job(kind, **fields)
    uid: str = tree["metadata"]["uid"]
    stage.hub.put(kind.resource, tree)
    meta = {"name": f"w-{uid}", "namespace": "team", "uid": f"w-{uid}", "labels": {names.LABEL_JOB_UID: uid}}
    stage.hub.put(WORKLOADS, {"metadata": meta, "status": {"clusterName": cluster} if cluster else {}})
    return uid


def put_copy(server: FakeServer, kind: JobKind, uid: str, name: str = "x") -> Tree:
    """Store MultiKueue's copy of a job on a worker; return the reference to it."""
    labels = {names.LABEL_MULTIKUEUE_ORIGIN: "hub", names.PREBUILT_WORKLOAD: f"w-{uid}"}
    meta = {"name": name, "namespace": "team", "uid": f"copy-of-{uid}", "labels": labels}
    server.put(kind.resource, {"metadata": meta})
    return reference(kind.resource, name, f"copy-of-{uid}")


def put_launcher(server: FakeServer, owner: Tree, name: str = "x") -> Tree:
    """Store the Job of an MPIJob's launcher; return the reference to it."""
    meta = {"name": f"{name}-launcher", "namespace": "team", "uid": f"launcher-{name}", "ownerReferences": [owner]}
    server.put(JOBS, {"metadata": meta})
    return reference(JOBS, f"{name}-launcher", f"launcher-{name}")


def labels_of(kind: JobKind, step: str, index: int = 0, name: str = "x") -> dict[str, str]:
    """Return the labels of a pod, as its operator writes them."""
    part = legacy_names.LABEL_JOB_ROLE if kind is MPI else legacy_names.LABEL_REPLICA_TYPE
    return {
        legacy_names.LABEL_JOB_NAME: name,
        legacy_names.LABEL_OPERATOR_NAME: kind.operator,
        legacy_names.LABEL_REPLICA_INDEX: str(index),
        part: step,
    }


def put_pod(
    server: FakeServer, name: str, labels: dict[str, str], owner: Tree | None, container: str = "pytorch", **fields: Any
) -> ContainerLogs:
    """Store a pod with these labels alone; return what it prints to."""
    tree = pod(name, owner=owner, containers=(container,), **fields)
    tree["metadata"]["labels"] = labels
    server.put(PODS, tree)
    return server.pods.containers[Key("team", name), container]
