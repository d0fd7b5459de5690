"""Jobs of older kinds with real pods: how they run, end, are stopped, restarted and cleaned up, and what attacks do.

All of them are begun at once, and the operator is killed while they start: none may notice.
"""

from __future__ import annotations

import contextlib
import http.client
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lab import trainplane
from tests.legacy.live.tenant import JOB_NAME, NAMESPACE, job, replicas

if TYPE_CHECKING:
    from tests.legacy.live.tenant import Tenant

Tree = dict[str, Any]

MEET = (Path(__file__).parents[1] / "old/meet.py").read_text()
FOREVER = "trap 'exit 0' TERM; sleep 600 & wait"
TELL = "env"

PROGRAMS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "programs"}, "data": {"meet.py": MEET}}
CODES = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "codes"}, "data": {"code": "137"}}
STRAY = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "stray", "labels": {JOB_NAME: "cleaned"}},
    "spec": replicas(FOREVER)["template"]["spec"],
}
TAKEN: Tree = {**STRAY, "metadata": {"name": "taken-master-0"}}
VARIABLES = {
    "TFJob": ("TF_CONFIG",),
    "XGBoostJob": ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"),
    "PaddleJob": ("PADDLE_JOB_ID", "PADDLE_NNODES", "PADDLE_MASTER"),
    "JAXJob": ("COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID"),
}


def meeting() -> Tree:
    """Return a job whose processes find each other."""
    master, worker = replicas("python3 /programs/meet.py"), replicas("python3 /programs/meet.py", 2)
    for one in (master, worker):
        spec = one["template"]["spec"]
        spec["volumes"] = [{"name": "programs", "configMap": {"name": "programs"}}]
        spec["containers"][0]["volumeMounts"] = [{"name": "programs", "mountPath": "/programs"}]
    return job("meeting", Master=master, Worker=worker)


def telling(kind: str) -> Tree:
    """Return a job whose pods say what they were given; TensorFlow's are told nothing where there is one alone."""
    pods = replicas(TELL, 2 if kind == "TFJob" else 1, kind=kind)
    name = f"tell-{kind.lower()}"
    return job(name, kind, Master=pods) if kind == "XGBoostJob" else job(name, kind, Worker=pods)


RETRIED = job(
    "retried",
    Master=replicas(
        'exit "$CODE"',
        restart="ExitCode",
        env=[{"name": "CODE", "valueFrom": {"configMapKeyRef": {"name": "codes", "key": "code"}}}],
    ),
)
JOBS = (
    meeting(),
    *map(telling, VARIABLES),
    RETRIED,
    job("final", Master=replicas("exit 3", restart="ExitCode")),
    job("spent", policy={"backoffLimit": 1}, Master=replicas("exit 1", restart="OnFailure")),
    job("late", policy={"activeDeadlineSeconds": 3}, Master=replicas(FOREVER)),
    job("cleaned", policy={"cleanPodPolicy": "All"}, Master=replicas("true"), Worker=replicas(FOREVER)),
    job("brief", policy={"ttlSecondsAfterFinished": 1}, Master=replicas("true")),
    job("held", policy={"suspend": True}, Master=replicas(FOREVER)),
    job("elsewhere", policy={"managedBy": "kueue.x-k8s.io/multikueue"}, Master=replicas("true")),
    job("taken", Master=replicas("true")),
)


@pytest.fixture(scope="module", autouse=True)
def _begun(tenant: Tenant) -> None:
    """Begin all jobs, and let the operator die once they have begun."""
    tenant.apply(PROGRAMS, CODES, STRAY, TAKEN)
    tenant.apply(*JOBS)
    tenant.wait("pods", lambda: tenant.pods("meeting"))
    tenant.cluster.kill(trainplane.ENGINE)
    tenant.cluster.revive(trainplane.ENGINE)
    trainplane.wait_ready(tenant.cluster)


def test_a_pod_of_another_is_left_alone_told_of_and_waited_for(tenant: Tenant) -> None:
    tenant.wait("word of the taken name", lambda: "FailedCreatePod" in tenant.events("taken"))
    assert "is not controlled by this PyTorchJob" in tenant.events("taken")["FailedCreatePod"]
    theirs = tenant.api.get("pods", NAMESPACE, "taken-master-0") or {}
    assert "ownerReferences" not in theirs["metadata"]
    tenant.kubectl("delete", "pod", "taken-master-0", "--grace-period=1")
    tenant.wait_condition("taken", "Succeeded")


def test_processes_of_a_pytorchjob_meet_and_it_succeeds(tenant: Tenant) -> None:
    tenant.wait_condition("meeting", "Succeeded")
    assert "all 3 processes met" in tenant.logs("meeting-master-0")
    assert "one of 3 processes met the first" in tenant.logs("meeting-worker-1")
    found = tenant.status("meeting")
    types = [one["type"] for one in found["conditions"]]
    assert types in (["Created", "Running", "Succeeded"], ["Created", "Succeeded"]), "the operator was away for a while"
    assert found["replicaStatuses"]["Master"]["succeeded"] == 1
    assert found["startTime"] <= found["completionTime"]
    services = tenant.api.list("services", NAMESPACE, labels=f"{JOB_NAME}=meeting")
    assert sorted(one["metadata"]["name"] for one in services) == sorted(tenant.pods("meeting"))


@pytest.mark.parametrize("kind", VARIABLES)
def test_pods_of_each_framework_know_their_place(tenant: Tenant, kind: str) -> None:
    name = f"tell-{kind.lower()}"
    tenant.wait_condition(name, "Succeeded", f"{kind.lower()}s")
    pod, *_ = sorted(tenant.pods(name))
    given = dict(line.partition("=")[::2] for line in tenant.logs(pod).splitlines())
    assert set(VARIABLES[kind]) <= given.keys()


def test_a_pod_that_ends_with_a_retryable_code_comes_again_under_its_name(tenant: Tenant) -> None:
    assert "137" in tenant.wait_condition("retried", "Restarting")["message"]
    tenant.apply({**CODES, "data": {"code": "0"}})
    tenant.wait_condition("retried", "Succeeded")
    assert list(tenant.pods("retried")) == ["retried-master-0"]


def test_a_pod_that_ends_with_a_final_code_fails_the_job_and_is_kept(tenant: Tenant) -> None:
    failed = tenant.wait_condition("final", "Failed")
    assert "exit code 3" in failed["message"]
    assert tenant.pods("final")["final-master-0"]["status"]["phase"] == "Failed"


def test_more_restarts_than_the_limit_fail_the_job(tenant: Tenant) -> None:
    assert "backoffLimit" in tenant.wait_condition("spent", "Failed")["message"]


def test_a_job_past_its_deadline_fails_and_its_pods_are_stopped(tenant: Tenant) -> None:
    assert "activeDeadlineSeconds" in tenant.wait_condition("late", "Failed")["message"]
    tenant.wait("late pods to go", lambda: not tenant.pods("late"))


def test_pods_are_cleaned_up_and_those_of_nobody_are_left(tenant: Tenant) -> None:
    tenant.wait_condition("cleaned", "Succeeded")
    tenant.wait("cleaned pods to go", lambda: list(tenant.pods("cleaned")) == ["stray"])
    services = f"{JOB_NAME}=cleaned"
    tenant.wait("cleaned services to go", lambda: not tenant.api.list("services", NAMESPACE, labels=services))


def test_a_job_whose_time_to_live_is_over_goes(tenant: Tenant) -> None:
    tenant.wait("brief to go", lambda: tenant.api.get("pytorchjobs", NAMESPACE, "brief") is None)


def test_a_job_is_held_resumed_held_and_resumed(tenant: Tenant) -> None:
    tenant.wait_condition("held", "Suspended")
    assert not tenant.pods("held")
    tenant.set_suspend("held", suspend=False)
    tenant.wait_condition("held", "Running")
    first = tenant.pods("held")
    began = tenant.status("held")["startTime"]
    tenant.set_suspend("held", suspend=True)
    tenant.wait_condition("held", "Suspended")
    tenant.wait("held pods to go", lambda: not tenant.pods("held"))
    tenant.set_suspend("held", suspend=False)
    tenant.wait_condition("held", "Running")
    assert _uids(first).isdisjoint(_uids(tenant.pods("held")))
    assert tenant.status("held")["startTime"] > began


def test_a_job_that_multikueue_runs_elsewhere_is_left_alone(tenant: Tenant) -> None:
    tenant.wait_condition("meeting", "Succeeded")  # by now it would have begun
    assert not tenant.status("elsewhere")
    assert not tenant.pods("elsewhere")


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        (job("army", Master=replicas("true"), Worker=replicas("true", 10_000)), "asks for 10001 pods"),
        (job("n" * 63, Master=replicas("true")), "is too long"),
        (job("two", Master=replicas("true", 2)), "must be 1"),
        (job("alien", policy={"managedBy": "example.com/me"}, Master=replicas("true")), "managedBy"),
        (job("nameless", Master=replicas("true", name="main")), 'a container with the name "pytorch"'),
    ],
)
def test_what_could_never_run_or_costs_others_too_much_is_refused(tenant: Tenant, attack: Tree, words: str) -> None:
    refused = tenant.apply(attack, check=False)
    assert refused.code
    assert words in refused.stderr


def test_nobody_hands_a_job_to_another_manager(tenant: Tenant) -> None:
    patch = '{"spec": {"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}}'
    refused = tenant.kubectl("patch", "pytorchjob", "final", "--type=merge", f"--patch={patch}", check=False)
    assert "spec.runPolicy.managedBy" in refused.stderr


def test_jobs_are_counted_under_the_old_names(tenant: Tenant) -> None:
    name = f'training_operator_jobs_restarted_total{{framework="pytorch",job_namespace="{NAMESPACE}"}}'

    def counted() -> bool:
        with tenant.cluster.sandbox.entered():
            connection = http.client.HTTPConnection("127.0.0.1", trainplane.METRICS_PORT, timeout=60)
            with contextlib.closing(connection):
                connection.request("GET", "/metrics")
                text = connection.getresponse().read().decode()
        return float(dict(line.rsplit(" ", 1) for line in text.splitlines()).get(name, 0)) >= 1

    tenant.wait("a restart to be counted", counted)


def _uids(pods: dict[str, Tree]) -> set[str]:
    return {one["metadata"]["uid"] for one in pods.values()}
