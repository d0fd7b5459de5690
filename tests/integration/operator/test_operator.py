"""Our operator on the real API server, with the real JobSet controller, as a process that can be killed."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any

import pytest

from lab import trainplane
from lab.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lab.cluster import Cluster

Tree = dict[str, Any]

SECONDS = 60.0
GROUP = "trainer.kubeflow.org"


@pytest.fixture(scope="module")
def operated(cluster: Cluster) -> Iterator[Cluster]:
    """Return the cluster with our operator on it; other suites find it without its webhooks again."""
    trainplane.install(cluster)
    cluster.apply(runtime("torch"))
    yield cluster
    trainplane.uninstall(cluster)


def runtime(name: str, image: str = "example.com/torch:1") -> Tree:
    container = {"name": "node", "image": image, "resources": {"requests": {"cpu": "0.5"}}}
    template = {
        "metadata": {"labels": {f"{GROUP}/trainjob-ancestor-step": "trainer"}},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name, "labels": {f"{GROUP}/framework": "torch"}},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            "template": {"spec": {"replicatedJobs": [{"name": "node", "template": template}]}},
        },
    }


def train_job(namespace: str, name: str, *, runtime_name: str = "torch", **spec: Any) -> Tree:
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"runtimeRef": {"name": runtime_name}, "trainer": {"numNodes": 2}, **spec},
    }


def until(there: Callable[[], Any], what: str, seconds: float = SECONDS) -> Any:
    """Ask again until something is so."""
    found: list[Any] = []

    def is_there() -> bool:
        found[:] = [there()]
        return bool(found[0])

    wait_for(what, is_there, seconds=seconds)
    return found[0]


def find(cluster: Cluster, namespace: str, kind: str, name: str) -> Tree | None:
    answer = cluster.kubectl("get", kind, name, "-n", namespace, "-o", "json", "--ignore-not-found")
    return json.loads(answer.stdout) if answer.stdout.strip() else None


def conditions(cluster: Cluster, namespace: str, name: str) -> dict[str, tuple[str, str]]:
    job = find(cluster, namespace, "trainjob", name) or {}
    found = job.get("status", {}).get("conditions") or []
    return {one["type"]: (one["status"], one["reason"]) for one in found}


def counted(cluster: Cluster, namespace: str, name: str) -> Any:
    job = find(cluster, namespace, "trainjob", name) or {}
    return (job.get("status") or {}).get("jobsStatus")


def ours(cluster: Cluster, namespace: str, name: str) -> Tree:
    """Return what we wrote of a TrainJob's objects, and when: other controllers write beside us."""
    found = {}
    for kind in ("jobset", "trainjob"):
        obj = cluster.get(kind, name, "-n", namespace, "--show-managed-fields")
        entries = obj["metadata"]["managedFields"]
        found[kind] = obj["metadata"]["generation"], [one for one in entries if one["manager"] == "trainer"]
    return found


def patch(cluster: Cluster, namespace: str, name: str, spec: Tree) -> None:
    cluster.kubectl("patch", "trainjob", name, "-n", namespace, "--type=merge", "-p", json.dumps({"spec": spec}))


def reasons(cluster: Cluster, namespace: str, name: str) -> set[str]:
    events = cluster.get("events", "-n", namespace)["items"]
    ours = [one for one in events if one["involvedObject"]["name"] == name and one["firstTimestamp"]]
    return {one["reason"] for one in ours if one["involvedObject"]["kind"] == "TrainJob"}


def test_a_trainjob_becomes_pods_and_its_end_comes_back(operated: Cluster, namespace: str) -> None:
    operated.apply(train_job(namespace, "whole"))
    jobset = until(lambda: find(operated, namespace, "jobset", "whole"), "a JobSet")
    assert jobset["metadata"]["ownerReferences"][0]["kind"] == "TrainJob"
    snapshot = find(operated, namespace, "configmap", "whole-runtime-snapshot")
    assert snapshot is not None
    assert "kind: ClusterTrainingRuntime" in snapshot["data"]["runtime"]
    until(lambda: counted(operated, namespace, "whole"), "counts from JobSet")
    done = {"type": "Completed", "status": "True", "reason": "AllJobsCompleted", "message": "jobset completed"}
    status = {"status": {"conditions": [{**done, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}
    operated.kubectl(
        *("patch", "jobset", "whole", "-n", namespace, "--subresource=status", "--type=merge", "-p", json.dumps(status))
    )
    until(lambda: "Complete" in conditions(operated, namespace, "whole"), "Complete")
    assert conditions(operated, namespace, "whole")["Complete"] == ("True", "AllJobsCompleted")
    until(lambda: "Completed" in reasons(operated, namespace, "whole"), "events for the SDK")


def _suspended_jobs(cluster: Cluster, namespace: str, name: str) -> list[int]:
    jobset = find(cluster, namespace, "jobset", name) or {}
    return [one["suspended"] for one in (jobset.get("status") or {}).get("replicatedJobsStatus") or ()]


def test_suspend_kill_and_resume(operated: Cluster, namespace: str) -> None:
    kueues = {"manager": "kueue.x-k8s.io/manager", "trainingRuntimeSpec": {"template": {"spec": {}}}}
    operated.apply(train_job(namespace, "queued", suspend=True, runtimePatches=[kueues]))
    until(lambda: "Suspended" in conditions(operated, namespace, "queued"), "Suspended")
    # JobSet counts before it has made its Job and again afterwards: only then will nothing more be said.
    until(lambda: _suspended_jobs(operated, namespace, "queued") == [1], "a suspended Job")
    before = ours(operated, namespace, "queued")
    operated.kill(trainplane.ENGINE)
    operated.revive(trainplane.ENGINE)
    trainplane.wait_ready(operated)
    operated.apply(train_job(namespace, "later"))  # news; the backlog of the restart has its turn with it
    until(lambda: find(operated, namespace, "jobset", "later"), "a JobSet after the restart")
    until(lambda: metric(operated, "workqueue_depth", "trainjob_controller") == 0, "an empty queue")
    assert ours(operated, namespace, "queued") == before, "a restart must write nothing"
    selector = {"template": {"spec": {"nodeSelector": {"pool": "gpu"}}}}
    template = {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": selector}}]}}
    entry = {**kueues, "trainingRuntimeSpec": {"template": template}}
    patch(operated, namespace, "queued", {"runtimePatches": [entry], "suspend": False})
    until(lambda: conditions(operated, namespace, "queued").get("Suspended") == ("False", "Resumed"), "Resumed")
    jobset = find(operated, namespace, "jobset", "queued")
    assert jobset is not None
    assert jobset["spec"]["suspend"] is False
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"pool": "gpu"}


def test_the_runtime_may_go_while_trainjobs_stay(operated: Cluster, namespace: str) -> None:
    operated.apply(runtime("short-lived"))
    operated.apply(train_job(namespace, "orphan", runtime_name="short-lived", suspend=True))
    until(lambda: find(operated, namespace, "jobset", "orphan"), "a JobSet")
    operated.kubectl("delete", "clustertrainingruntime", "short-lived")
    patch(operated, namespace, "orphan", {"suspend": False})
    until(lambda: not (find(operated, namespace, "jobset", "orphan") or {})["spec"]["suspend"], "a resumed JobSet")


def test_the_deadline_stops_the_pods(operated: Cluster, namespace: str) -> None:
    operated.apply(train_job(namespace, "slow", activeDeadlineSeconds=2))
    until(lambda: "Failed" in conditions(operated, namespace, "slow"), "Failed")
    assert conditions(operated, namespace, "slow")["Failed"] == ("True", "DeadlineExceeded")
    until(lambda: find(operated, namespace, "jobset", "slow") is None, "no JobSet")


def test_a_jobset_deleted_by_hand_comes_back(operated: Cluster, namespace: str) -> None:
    operated.apply(train_job(namespace, "robust"))
    first = until(lambda: find(operated, namespace, "jobset", "robust"), "a JobSet")
    operated.kubectl("delete", "jobset", "robust", "-n", namespace)

    def is_new() -> bool:
        found = find(operated, namespace, "jobset", "robust")
        return found is not None and found["metadata"]["uid"] != first["metadata"]["uid"]

    until(is_new, "another JobSet")


def test_what_others_manage_is_left_to_them(operated: Cluster, namespace: str) -> None:
    operated.apply(train_job(namespace, "theirs", managedBy="kueue.x-k8s.io/multikueue"))
    operated.apply(train_job(namespace, "ours"))
    until(lambda: find(operated, namespace, "jobset", "ours"), "the JobSet of the other")
    assert find(operated, namespace, "jobset", "theirs") is None
    theirs = find(operated, namespace, "trainjob", "theirs") or {}
    assert set(theirs.get("status") or {}) <= {"phase", "reason"}


def test_admission_refuses_with_403_and_the_schema_with_422(operated: Cluster, namespace: str) -> None:
    document = json.dumps(train_job(namespace, "lost", runtime_name="ghost"))
    refused = operated.kubectl("create", "-f", "-", stdin=document, check=False)
    assert refused.code != 0
    assert "validator.trainjob.trainer.kubeflow.org" in refused.output
    assert "ghost" in refused.output
    assert "Forbidden" in refused.output
    document = json.dumps(train_job(namespace, "lost", activeDeadlineSeconds=0))
    refused = operated.kubectl("create", "-f", "-", stdin=document, check=False)
    assert "is invalid" in refused.output


@pytest.mark.parametrize(("amount", "advice"), [("4GB", "write 4Gi or 4G"), ("2cores", "write 2")])
def test_what_is_no_amount_is_refused_in_words(operated: Cluster, namespace: str, amount: str, advice: str) -> None:
    job = train_job(namespace, "greedy", trainer={"resourcesPerNode": {"limits": {"memory": amount}}})
    refused = operated.kubectl("create", "-f", "-", stdin=json.dumps(job), check=False)
    assert refused.code != 0
    assert f"spec.trainer.resourcesPerNode.limits.memory: '{amount}' is no quantity: {advice}" in refused.output
    assert "[0-9]+" not in refused.output, "the schema's own words"


def test_a_runtime_that_is_used_goes_with_a_warning(operated: Cluster, namespace: str) -> None:
    operated.apply(runtime("used"))
    operated.apply(train_job(namespace, "user", runtime_name="used", suspend=True))
    until(lambda: find(operated, namespace, "jobset", "user"), "a JobSet")
    told = operated.kubectl("delete", "clustertrainingruntime", "used").output
    assert f"Warning: this runtime is used by TrainJob {namespace}/user" in told


def test_a_trainjob_for_which_nobody_says_what_to_run_is_made_with_a_warning(operated: Cluster, namespace: str) -> None:
    told = operated.kubectl("create", "-f", "-", stdin=json.dumps(train_job(namespace, "idle", suspend=True))).output
    assert "Warning: spec.trainer.command: neither this TrainJob nor its runtime says what to run" in told
    assert "may train nothing: example.com/torch:1" in told, "not cut"


def test_an_old_finalizer_is_removed(operated: Cluster) -> None:
    old = runtime("old")
    old["metadata"]["finalizers"] = [f"{GROUP}/resource-in-use"]
    operated.apply(old)

    def is_free() -> bool:
        found = operated.get("clustertrainingruntime", "old")
        return "finalizers" not in found["metadata"]

    until(is_free, "no finalizer")
    operated.kubectl("delete", "clustertrainingruntime", "old")


def test_figures_are_served(operated: Cluster, namespace: str) -> None:
    operated.apply(train_job(namespace, "counted", suspend=True))
    until(lambda: metric(operated, "trainplane_trainjobs", namespace, "torch", "suspended") == 1, "one suspended")
    assert metric(operated, "controller_runtime_reconcile_total", "trainjob_controller", "success")


def metric(cluster: Cluster, name: str, *labels: str) -> float | None:
    """Return the value of the first sample of a metric whose labels have these values."""
    with cluster.sandbox.entered():
        connection = http.client.HTTPConnection("127.0.0.1", trainplane.METRICS_PORT, timeout=60)
        try:
            connection.request("GET", "/metrics")
            lines = connection.getresponse().read().decode().splitlines()
        except OSError:
            return None
        finally:
            connection.close()
    samples = [line for line in lines if line.startswith(f"{name}{{") and all(f'="{one}"' in line for one in labels)]
    return float(samples[0].rpartition(" ")[2]) if samples else None
