"""What engines decide of a TrainJob under fire: the garbage collector, JobSet's TTL, and its way to stop and resume."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from lab import trainplane
from tests.integration.operator.test_operator import (
    GROUP,
    conditions,
    find,
    patch,
    runtime,
    train_job,
    until,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster

Tree = dict[str, Any]


@pytest.fixture(scope="module")
def operated(cluster: Cluster) -> Iterator[Cluster]:
    """Return the cluster with our operator on it; other modules find it without its webhooks again."""
    trainplane.install(cluster)
    yield cluster
    trainplane.uninstall(cluster)


def revive(cluster: Cluster) -> None:
    cluster.revive(trainplane.ENGINE)
    trainplane.wait_ready(cluster)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def complete(cluster: Cluster, namespace: str, name: str) -> None:
    """Report that a JobSet is done, in the place of JobSet's controller, which agrees: its end is never judged anew."""
    now = _now()
    done = {"type": "Completed", "status": "True", "reason": "AllJobsCompleted", "message": "done"}
    status = {"status": {"conditions": [{**done, "lastTransitionTime": now}], "terminalState": "Completed"}}
    cluster.kubectl(
        *("patch", "jobset", name, "-n", namespace, "--subresource=status", "--type=merge", "-p", json.dumps(status))
    )


@pytest.mark.finding("runtime", 3, "a finished training ran again when its TTL passed before anybody looked")
def test_a_ttl_that_passes_while_the_operator_is_down(operated: Cluster, namespace: str) -> None:
    expiring = runtime("expiring")
    expiring["spec"]["template"]["spec"]["ttlSecondsAfterFinished"] = 1
    operated.apply(expiring)
    operated.apply(train_job(namespace, "short", runtime_name="expiring"))
    first = until(lambda: find(operated, namespace, "jobset", "short"), "a JobSet")
    operated.kill(trainplane.ENGINE)
    complete(operated, namespace, "short")
    # What would remove it is JobSet's controller; this JobSet, with a TTL of its own, shows that it is at work.
    rival = {**first, "metadata": {"name": "rival", "namespace": namespace}}
    rival["spec"] = {**first["spec"], "ttlSecondsAfterFinished": 1}
    rival.pop("status", None)  # JobSet writes it a moment after the object is there
    operated.apply(rival)
    complete(operated, namespace, "rival")
    until(lambda: find(operated, namespace, "jobset", "rival") is None, "the other JobSet to expire")
    assert find(operated, namespace, "jobset", "short") is not None
    revive(operated)
    until(lambda: "Complete" in conditions(operated, namespace, "short"), "Complete")
    until(lambda: find(operated, namespace, "jobset", "short") is None, "the JobSet to expire once its end is told")
    operated.apply(train_job(namespace, "later", runtime_name="expiring"))
    until(lambda: find(operated, namespace, "jobset", "later"), "the JobSet of another")
    assert find(operated, namespace, "jobset", "short") is None, "it must not train again"
    assert conditions(operated, namespace, "short") == {"Complete": ("True", "AllJobsCompleted")}


@pytest.mark.finding("semantics", 7, "an MPI or Flux job deleted and made again could hang on the old one's keys")
@pytest.mark.finding("runtime", 4, "an MPI job deleted and made again took the old job's keys, which then went")
def test_an_mpi_job_deleted_and_made_again(operated: Cluster, namespace: str) -> None:
    mpi = runtime("fire-mpi")
    mpi["metadata"]["labels"] = {f"{GROUP}/framework": "mpi"}
    mpi["spec"]["mlPolicy"] = {"numNodes": 1, "mpi": {}}
    operated.apply(mpi)
    document = train_job(namespace, "again", runtime_name="fire-mpi")
    operated.apply(document)
    until(lambda: find(operated, namespace, "jobset", "again"), "a JobSet")
    first = find(operated, namespace, "secret", "again-mpi-ssh-auth")
    assert first is not None
    hold = {"metadata": {"finalizers": ["example.com/a-slow-garbage-collector"]}}
    operated.kubectl(
        *("patch", "secret", "again-mpi-ssh-auth", "-n", namespace, "--type=merge", "-p", json.dumps(hold))
    )
    operated.kubectl("delete", "trainjob", "again", "-n", namespace)
    operated.apply(document)
    job = find(operated, namespace, "trainjob", "again")
    assert job is not None

    def has_begun() -> bool:
        snapshot = find(operated, namespace, "configmap", "again-runtime-snapshot")
        owners = (snapshot or {"metadata": {}})["metadata"].get("ownerReferences", [])
        return [one["uid"] for one in owners] == [job["metadata"]["uid"]]

    until(has_begun, "the second job to begin")
    jobset = find(operated, namespace, "jobset", "again")
    assert jobset is None or jobset["metadata"]["ownerReferences"][0]["uid"] != job["metadata"]["uid"]
    free = {"metadata": {"finalizers": None}}
    operated.kubectl(
        *("patch", "secret", "again-mpi-ssh-auth", "-n", namespace, "--type=merge", "-p", json.dumps(free))
    )

    def is_made() -> bool:
        found = find(operated, namespace, "jobset", "again")
        return found is not None and found["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]

    until(is_made, "the second job's JobSet")
    keys = find(operated, namespace, "secret", "again-mpi-ssh-auth")
    assert keys is not None
    assert keys["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
    assert keys["data"] != first["data"]


@pytest.mark.finding("runtime", 6, "evicted and admitted elsewhere between two looks, a job ran on in the first flavor")
def test_evicted_and_admitted_elsewhere_while_the_operator_is_down(operated: Cluster, namespace: str) -> None:
    operated.apply(runtime("torch"))
    waiting = {"manager": _KUEUE, "trainingRuntimeSpec": {"template": {"spec": {}}}}  # as Kueue makes it at creation
    operated.apply(train_job(namespace, "moved", suspend=True, runtimePatches=[waiting]))
    until(lambda: "Suspended" in conditions(operated, namespace, "moved"), "Suspended")
    patch(operated, namespace, "moved", {"runtimePatches": [_flavor("cheap")], "suspend": False})
    until(lambda: _pools(operated, namespace) == {"cheap"}, "a Job in the first pool")
    try:
        trainplane.uninstall(operated)  # with its webhooks, so that others can write meanwhile
        ran = operated.get("jobset", "moved", "-n", namespace, "--show-managed-fields")
        applied = max(one["time"] for one in ran["metadata"]["managedFields"] if one["operation"] == "Apply")
        until(
            lambda: _now() > applied, "another second: times have no smaller parts, and what is no younger is no news"
        )
        until(lambda: _may_write(operated, namespace), "the API server to ask no webhook that is gone")
        for change in (
            {"suspend": True, "runtimePatches": [{"manager": _KUEUE}]},
            {"suspend": False, "runtimePatches": [_flavor("dear")]},
        ):
            patch(operated, namespace, "moved", change)
    finally:
        revive(operated)
    until(lambda: _pools(operated, namespace) == {"dear"}, "its Jobs in the second pool")
    until(lambda: not (find(operated, namespace, "jobset", "moved") or {})["spec"].get("suspend"), "a JobSet that runs")
    until(lambda: _tells(operated, namespace, "its pods are stopped first"), "an Event that says so")


_KUEUE = "kueue.x-k8s.io/manager"


def _tells(cluster: Cluster, namespace: str, words: str) -> bool:
    """Return whether an Event has these words: steps that follow each other closely are told as one."""
    return any(words in one["message"] for one in cluster.get("events", "-n", namespace)["items"])


def _may_write(cluster: Cluster, namespace: str) -> bool:
    """Return whether TrainJobs can be written: the API server reads configurations a moment after they changed."""
    words = ("annotate", "trainjob", "moved", "-n", namespace, "asked=yes", "--overwrite", "--dry-run=server")
    return cluster.kubectl(*words, check=False).code == 0


def _flavor(pool: str) -> Tree:
    """Return Kueue's patch for a flavor, stamped as admission does."""
    job = {"name": "node", "template": {"spec": {"template": {"spec": {"nodeSelector": {"pool": pool}}}}}}
    return {
        "manager": _KUEUE,
        "time": _now(),
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}},
    }


def _pools(cluster: Cluster, namespace: str) -> set[str]:
    """Return where Jobs that run put their pods."""
    jobs = cluster.get("jobs", "-n", namespace)["items"]
    running = [one["spec"] for one in jobs if not one["spec"].get("suspend")]
    return {one["template"]["spec"].get("nodeSelector", {}).get("pool") for one in running}
