"""What people delete of a job that runs is back at once, on the real API server and under the operator's own rights.

Nothing runs pods here. A Node without a kubelet takes them, so they have a machine and never start: they wait for what
they mount, as a pod does whose Secret is gone.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from lab import trainplane
from lab.processes import wait_for
from tests.conformance import gangs
from tests.integration.operator.test_operator import metric
from tests.size import FULL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster
    from tests.suite import SuiteReport

Tree = dict[str, Any]

GROUP = "trainer.kubeflow.org"
AT_ONCE = 30.0
"""Seconds within which an object must be back: two of kubectl's on a machine that does other things as well, and the
few that the operator lets pass when it mends a TrainJob again. Nothing but its watches would bring it that soon."""
FORGED = 300


@pytest.fixture(scope="module")
def operated(cluster: Cluster) -> Iterator[Cluster]:
    """Return the cluster with our operator on it, a runtime that makes everything, and a Node that takes pods."""
    if not FULL:
        gangs.install(cluster)
    trainplane.install(cluster)
    if FULL:  # after the operator, which looks for them each minute
        gangs.install(cluster)
    cluster.apply(runtime(), node())
    status = {"status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "500"}, "conditions": [READY]}}
    cluster.kubectl("patch", "node", "paper", "--subresource=status", "--type=merge", "-p", json.dumps(status))
    yield cluster
    cluster.kubectl("delete", "node", "paper")
    trainplane.uninstall(cluster)


READY: Tree = {"type": "Ready", "status": "True", "reason": "Said", "message": "it is"}


def node() -> Tree:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "paper"}}


def runtime() -> Tree:
    """Return a runtime whose jobs have a hostfile, keys and a group."""
    container = {"name": "node", "image": "example.com/mpi:1"}
    template = {
        "metadata": {"labels": {f"{GROUP}/trainjob-ancestor-step": "trainer"}},
        "spec": {
            "template": {
                "spec": {
                    "containers": [container],
                    "tolerations": [{"operator": "Exists"}],
                }
            }
        },
    }
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "gang-mpi", "labels": {f"{GROUP}/framework": "mpi"}},
        "spec": {
            "mlPolicy": {"numNodes": 1, "mpi": {"mpiImplementation": "OpenMPI"}},
            "podGroupPolicy": {"volcano": {}},
            "template": {"spec": {"replicatedJobs": [{"name": "node", "template": template}]}},
        },
    }


def train_job(namespace: str, name: str, **spec: Any) -> Tree:
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"runtimeRef": {"name": "gang-mpi"}, "trainer": {"numNodes": 1}, **spec},
    }


def find(cluster: Cluster, namespace: str, kind: str, name: str) -> Tree | None:
    answer = cluster.kubectl("get", kind, name, "-n", namespace, "-o", "json", "--ignore-not-found")
    return json.loads(answer.stdout) if answer.stdout.strip() else None


def begun(cluster: Cluster, namespace: str, name: str, **spec: Any) -> str:
    """Create a TrainJob, and return its uid when its status has been written: then it has everything."""
    cluster.apply(train_job(namespace, name, **spec))

    def has_status() -> bool:
        job = find(cluster, namespace, "trainjob", name) or {}
        return bool((job.get("status") or {}).get("runtimeDigest"))

    wait_for("a TrainJob that has begun", has_status, seconds=60)
    job = find(cluster, namespace, "trainjob", name)
    assert job is not None
    return str(job["metadata"]["uid"])


def back(cluster: Cluster, namespace: str, kind: str, name: str, seconds: float = AT_ONCE) -> tuple[Tree, float]:
    """Delete an object; return the one that took its place, and after how many seconds it was there."""
    before = find(cluster, namespace, kind, name)
    assert before is not None, f"there is no {kind} {name}"
    cluster.kubectl("delete", kind, name, "-n", namespace)
    began = time.monotonic()

    def is_back() -> bool:
        found = find(cluster, namespace, kind, name)
        return found is not None and found["metadata"]["uid"] != before["metadata"]["uid"]

    wait_for(f"{kind} {name} to be back", is_back, seconds=seconds)
    took = time.monotonic() - began
    after = find(cluster, namespace, kind, name)
    assert after is not None
    assert after["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]
    if kind != "secret":
        assert (after.get("data"), after.get("spec")) == (before.get("data"), before.get("spec"))
    return after, took


def watches_groups(cluster: Cluster) -> bool:
    return metric(cluster, "reflector_lists_total", "podgroups") is not None


@pytest.mark.parametrize("suspend", [False, True])
def test_what_is_deleted_of_a_job_is_back_at_once(
    operated: Cluster, namespace: str, suspend: bool, report: SuiteReport
) -> None:
    wait_for(
        "groups to be found, whose CRD may have come after the operator", lambda: watches_groups(operated), seconds=90
    )
    begun(operated, namespace, "job", suspend=suspend)
    jobset = find(operated, namespace, "jobset", "job")
    assert jobset is not None
    slowest = 0.0
    for kind, name in (
        ("configmap", "job-runtime-snapshot"),
        ("configmap", "job-mpi-hostfile"),
        ("podgroups.scheduling.volcano.sh", "job"),
    ):
        _, took = back(operated, namespace, kind, name)
        slowest = max(slowest, took)
    report.figure(f"back_after_s_{'suspended' if suspend else 'running'}", slowest)
    after = find(operated, namespace, "jobset", "job")
    assert after is not None
    assert after["metadata"]["generation"] == jobset["metadata"]["generation"], "what runs is never changed"


def test_a_hostfile_that_is_edited_is_put_right(operated: Cluster, namespace: str) -> None:
    begun(operated, namespace, "job")
    before = find(operated, namespace, "configmap", "job-mpi-hostfile")
    assert before is not None
    edit = json.dumps({"data": {"hostfile": "elsewhere slots=1\n"}})
    operated.kubectl("patch", "configmap", "job-mpi-hostfile", "-n", namespace, "--type=merge", "-p", edit)

    def is_right() -> bool:
        found = find(operated, namespace, "configmap", "job-mpi-hostfile")
        return found is not None and found["data"] == before["data"]

    wait_for("the hostfile to be right", is_right, seconds=AT_ONCE)


@pytest.mark.full
def test_keys_that_are_deleted_are_there_again_for_a_pod_that_waits(operated: Cluster, namespace: str) -> None:
    begun(operated, namespace, "job")

    def is_bound() -> bool:
        pods = operated.get("pods", "-n", namespace)["items"]
        return bool(pods) and all(pod["spec"].get("nodeName") for pod in pods)

    wait_for("pods that have a machine", is_bound, seconds=60)
    back(operated, namespace, "secret", "job-mpi-ssh-auth", seconds=90)


def test_what_went_while_no_operator_ran_is_back_when_one_does(operated: Cluster, namespace: str) -> None:
    begun(operated, namespace, "job")
    operated.kill(trainplane.ENGINE)
    gone = ("job-runtime-snapshot", "job-mpi-hostfile")
    operated.kubectl("delete", "configmap", *gone, "-n", namespace)
    operated.kubectl("delete", "podgroups.scheduling.volcano.sh", "job", "-n", namespace)
    operated.revive(trainplane.ENGINE)
    trainplane.wait_ready(operated)
    wanted = [*(("configmap", one) for one in gone), ("podgroups.scheduling.volcano.sh", "job")]
    wait_for("everything to be back", lambda: all(find(operated, namespace, *one) for one in wanted), seconds=60)


def test_forged_owners_by_the_hundred_are_not_looked_at(operated: Cluster, namespace: str, report: SuiteReport) -> None:
    uid = begun(operated, namespace, "victim")
    owner = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "TrainJob", "name": "victim", "uid": uid, "controller": True}
    forged = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": f"victim-{number}",
                "namespace": namespace,
                "labels": {"forged": "yes"},
                "ownerReferences": [owner],
            },
        }
        for number in range(FORGED)
    ]
    # What the job's own beginning still brings is over before anything is counted.
    before = still(operated)
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": forged})
    operated.kubectl("create", "-f", "-", stdin=text)
    operated.kubectl("delete", "--raw", f"/api/v1/namespaces/{namespace}/configmaps?labelSelector=forged")
    caused = still(operated) - before
    report.figure("looks_at_forged_owners", caused)
    assert caused <= FORGED / 50


def still(cluster: Cluster) -> float:
    """Return how many reconciles there were, when there were none for some seconds."""
    seen: list[float] = []

    def is_still() -> bool:
        seen.append(looks(cluster))
        return len(seen) > 10 and seen[-1] == seen[-10]

    wait_for("no more reconciles", is_still, seconds=120)
    return seen[-1]


def looks(cluster: Cluster) -> float:
    return sum(
        metric(cluster, "controller_runtime_reconcile_total", "trainjob_controller", result) or 0.0
        for result in ("success", "requeue", "requeue_after", "error")
    )
