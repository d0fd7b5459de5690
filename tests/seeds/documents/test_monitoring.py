"""What the guide says under Monitoring and Troubleshooting: each of its commands, read from it, answers what it says.

Four jobs stand for the four phases; the operator that tells of them works under its own rights.
"""

from __future__ import annotations

import concurrent.futures
import http.client
import re
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from lab import trainplane
from tests.e2e.shell import WAITING, failing, shell_job, shell_runtime
from tests.e2e.user import User
from tests.seeds.documents.commands import command_of
from tests.seeds.documents.reading import documents, statements
from trainplane.client import KubernetesBackendConfig, TrainerClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster
    from tests.seeds.documents.reading import Statement

pytestmark = pytest.mark.skipif(not documents(), reason="the documents do not lie beside this clone")

_PROGRAM: Final = f"""
echo begins
case $WHAT in
fail) {failing("NCCL error: unhandled system error")} ;;
wait) {WAITING} ;;
esac
echo ends
sleep 1
"""
_IMAGE: Final = "registry.invalid/none:1"


def _said(begin: str) -> Statement:
    """Return the entry of the guide's lists that begins so, or has a command that does."""
    (found,) = (one for one in statements() if one.kind == "item" and _begins(one.text, begin))
    return found


def _begins(text: str, begin: str) -> bool:
    return text.startswith(begin) or re.search(rf"{re.escape(begin)}[^—]*— ", text) is not None


def _job(name: str, what: str = "", **trainer: Any) -> dict[str, Any]:
    return shell_job(name, trainer={"env": [{"name": "WHAT", "value": what}], **trainer})


@pytest.fixture(scope="module")
def people(cluster: Cluster) -> Iterator[User]:
    """Return a user with jobs in each phase: one held back, one that runs, one that is done, one that failed."""
    user = User(cluster, f"phases-{uuid.uuid4().hex[:8]}")
    cluster.kubectl("create", "namespace", user.namespace)
    held = _job("held")
    held["spec"]["suspend"] = True
    user.apply(
        shell_runtime(_PROGRAM),
        held,
        _job("going", "wait"),
        _job("done"),
        _job("wrong", "fail"),
        _job("lost", image=_IMAGE),
    )
    for job, state in (("held", "Suspended"), ("going", "Running"), ("done", "Succeeded"), ("wrong", "Failed")):
        user.wait_state(job, state, via=("Pending", "Running"))  # type: ignore[arg-type] # each is a State
    yield user
    cluster.kubectl("delete", "namespace", user.namespace, "--wait=false")


def test_each_phase_is_shown(people: User) -> None:
    said = _said("Job status:")
    (words,) = re.findall(r"phase \(([\w, ]+)\)", said.text)
    assert command_of(said) == ["get", "trainjobs"]
    shown = {line.split()[0]: line.split()[1] for line in people.kubectl(*command_of(said)).stdout.splitlines()[1:]}
    del shown["lost"]
    assert sorted(shown.values()) == sorted(words.split(", "))
    assert shown == {"held": "Suspended", "going": "Running", "done": "Succeeded", "wrong": "Failed"}


def test_events_tell_the_whole_life(people: User) -> None:
    said = _said("Events:")

    def told(job: str, *words: str) -> bool:
        events = people.kubectl(*command_of(said, name=job)).stdout.partition("\nEvents:")[2]
        return all(word in events for word in words)

    for job, end in (("done", "AllJobsCompleted"), ("wrong", "FailedJobs")):
        life = ("created JobSet", "has a machine", end)  # creation, scheduling, completion or failure
        people.wait(f"the life of {job}", partial(told, job, *life))  # several write events, in no order


def test_logs_are_followed_by_the_name_of_the_job(people: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the command to the end of a job that runs, and by the SDK."""
    said = _said("Logs:")
    people.apply(_job("followed", "wait"))
    people.wait("its first line", lambda: people.logs("followed", check=False) == ["begins"])
    words = command_of(said, trainjob_name="followed")
    assert words[-1] == "--follow"
    with concurrent.futures.ThreadPoolExecutor() as pool:
        following = pool.submit(people.kubectl, *words)
        people.tell("followed", "/tmp/go")
        assert following.result(timeout=120).stdout.splitlines() == ["begins", "ends"]
    monkeypatch.setenv("KUBECONFIG", str(people.cluster.kubeconfig))
    assert "client.get_job_logs()" in said.text
    with TrainerClient(KubernetesBackendConfig(namespace=people.namespace)) as client:
        assert list(client.get_job_logs("followed", follow=True)) == ["begins", "ends"]


def test_metrics_tell_latency_depth_and_active_jobs(people: User) -> None:
    """Their names: docs/operations.md."""
    said = _said("Metrics:")
    (path,) = re.findall(r"/\w+", said.text)
    families: dict[str, Any] = {}

    def values(family: str, sample: str, **labels: str) -> list[float]:
        samples = families[family].samples if family in families else []
        return [one.value for one in samples if one.name == sample and one.labels.items() >= labels.items()]

    def counted() -> bool:  # by what the operator has read, which is a moment older than what the API server has
        with people.cluster.sandbox.entered():
            connection = http.client.HTTPConnection("127.0.0.1", trainplane.METRICS_PORT, timeout=60)
            connection.request("GET", path)
            text = connection.getresponse().read().decode()
            connection.close()
        families.update({one.name: one for one in text_string_to_metric_families(text)})
        name, states = "trainplane_trainjobs", ("suspended", "failed", "active")
        found = {state: sum(values(name, name, namespace=people.namespace, state=state)) for state in states}
        # Active are the one that runs, and the one whose image is not to be had.
        return found == {"suspended": 1, "failed": 1, "active": 2}

    people.wait("one suspended, one failed, two active", counted)

    controller = {"controller": "trainjob_controller"}
    latency = "controller_runtime_reconcile_time_seconds"
    assert values(latency, f"{latency}_count", **controller)[0] >= 5
    assert values(latency, f"{latency}_sum", **controller)[0] > 0
    assert all(depth >= 0 for depth in values("workqueue_depth", "workqueue_depth", name="trainjob_controller"))
    assert values("workqueue_depth", "workqueue_depth", name="trainjob_controller")


def test_jobsets_are_shown_with_their_end(people: User) -> None:
    said = _said("JobSet status:")
    assert command_of(said) == ["get", "jobsets"]
    lines = {line.split()[0]: line.split() for line in people.kubectl(*command_of(said)).stdout.splitlines()}
    assert "TERMINALSTATE" in lines["NAME"]
    assert "Completed" in lines["done"]
    assert "Failed" in lines["wrong"]
    (counts,) = people.get("jobset", "done")["status"]["replicatedJobsStatus"]
    assert (counts["name"], counts["succeeded"]) == ("node", 1)


def test_diagnostics_tell_what_is_wrong(people: User) -> None:
    conditions = yaml.safe_load(people.kubectl(*command_of(_said("kubectl get trainjob"), name="wrong")).stdout)
    (failed,) = (one for one in conditions["status"]["conditions"] if one["type"] == "Failed")
    assert "exit code 3" in failed["message"]
    assert "NCCL error" in failed["message"]

    jobset = yaml.safe_load(people.kubectl(*command_of(_said("kubectl get jobset "), name="wrong")).stdout)
    assert jobset["status"]["terminalState"] == "Failed"
    assert any(one["type"] == "Failed" and one["message"] for one in jobset["status"]["conditions"])

    describe = command_of(_said("kubectl describe pods"), name="lost")
    people.wait("the kubelet's word", lambda: "ErrImageNeverPull" in people.kubectl(*describe).stdout)
    described = people.kubectl(*describe).stdout
    assert "Successfully assigned" in described
    assert _IMAGE in described

    (pod,) = people.pods("wrong")
    logs = people.kubectl(*command_of(_said("kubectl logs <pod>"), pod=pod["metadata"]["name"])).stdout
    assert "NCCL error: unhandled system error" in logs
