"""A TrainJob's life on other releases of Kubernetes and Kueue: a cluster for each combination, with real pods.

The engines are built when they are first asked for, which takes half an hour for a Kubernetes on two cores.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from lab import jobset, kueue, node, trainplane
from lab.cluster import Cluster
from lab.engines import build
from tests.cli.tenant import wait_allowed
from tests.e2e.shell import WAITING, shell_job, shell_runtime
from tests.e2e.user import User
from tests.seeds.versions.matrix import MATRIX, Combination

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.suite import SuiteReport

FRAMEWORKS = ("batch/job", "jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob")
QUEUE = "team"
POLICY = "kueue.trainjob.trainer.kubeflow.org"


@pytest.fixture(params=MATRIX, ids=str)
def combination(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Combination:
    """Choose a combination, and build what is missing of it."""
    chosen: Combination = request.param
    for engine, release in chosen.engines.items():
        monkeypatch.setenv(f"LAB_{engine.upper()}", release)
    build.build_missing(list(chosen.engines))
    return chosen


@pytest.fixture
def cluster(combination: Combination) -> Iterator[Cluster]:
    """Return a cluster of these versions: a real node, JobSet, our operator, and Kueue."""
    cluster = Cluster.up(f"versions-{os.getpid()}", owned=True)
    try:
        jobset.install(cluster)
        node.install(cluster)
        trainplane.install_crds(cluster)
        kueue.install(cluster, frameworks=FRAMEWORKS)
        # Our webhooks are called before Kueue's, as in a real cluster: by the order of their configurations' names.
        trainplane.install(cluster, with_crds=False, prefix="a")
        yield cluster
    finally:
        cluster.down()


@pytest.mark.full
@pytest.mark.timeout(300, func_only=True)
def test_a_trainjob_lives_its_life(combination: Combination, cluster: Cluster, report: SuiteReport) -> None:
    start = time.monotonic()
    said = _version(cluster)
    assert said.startswith(f"v{combination.kubernetes}.")
    user = User(cluster, "team")
    cluster.kubectl("create", "namespace", user.namespace)
    user.apply(shell_runtime(WAITING))

    _check_policy(user)
    _check_refusals(user)
    _check_suspended_and_resumed(user)
    if combination.queues:
        _check_queued(user, guarded=combination.guarded)
        report.figure("versions", report.figures.get("versions", 0) + 1)
    seconds = round(time.monotonic() - start, 1)
    engines = {engine: f"v{release}" for engine, release in combination.engines.items()} | {"kubernetes": said}
    report.row(**engines, pods="real", queues=combination.queues, guarded=combination.guarded, seconds=seconds)


def _version(cluster: Cluster) -> str:
    return str(json.loads(cluster.kubectl("get", "--raw=/version").stdout)["gitVersion"])


def _check_policy(user: User) -> None:
    """The API server has checked the types of our policy's expressions, and has nothing to say against them."""

    def checked() -> bool:
        return "typeChecking" in user.cluster.get("validatingadmissionpolicy", POLICY).get("status", {})

    user.wait("the policy's types to be checked", checked)
    assert not user.cluster.get("validatingadmissionpolicy", POLICY)["status"]["typeChecking"].get("expressionWarnings")


def _check_refusals(user: User) -> None:
    """Schema, its CEL rules and our webhook refuse what they refuse elsewhere."""
    more = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
    for job, words in (
        (shell_job("none", trainer={"resourcesPerNode": more}), "spec.trainer.resourcesPerNode"),
        (shell_job("none", trainer={"numNodes": "many"}), "spec.trainer.numNodes"),
        (shell_job("none", managedBy="example.com/nobody"), "spec.managedBy"),
    ):
        refused = user.apply(job, check=False)
        assert refused.code
        assert words in refused.stderr


def _check_suspended_and_resumed(user: User) -> None:
    user.apply(shell_job("plain", trainer={"numNodes": 2}))
    user.wait_state("plain", "Running", via=["Pending"])
    user.set_suspend("plain", suspend=True)
    user.wait_state("plain", "Suspended", via=["Running", "Pending"])
    user.wait("its pods to stop", lambda: not user.names("pods"))
    user.set_suspend("plain", suspend=False)
    user.wait_state("plain", "Running", via=["Suspended", "Pending"])
    user.wait("both pods to run", lambda: user.row("plain")["READY"] == "2/2")
    user.tell("plain", "/tmp/go")
    user.wait_state("plain", "Succeeded", via=["Running", "Pending"])


def _check_queued(user: User, *, guarded: bool) -> None:
    """One TrainJob fits into the queue and the next waits for its end, whatever a tenant writes."""
    user.cluster.apply(*kueue.queue(QUEUE, user.namespace, cpu="1", memory="1Gi"))
    first, second = (_queued(name) for name in ("first", "second"))
    user.apply(first)
    user.wait_state("first", "Running", via=["Pending", "Queued", "Suspended"])
    user.apply(second)
    user.wait_state("second", "Queued", via=["Pending", "Suspended"])
    assert not user.pods("second")
    _check_kueues_word_stands(user, "second", guarded=guarded)
    user.tell("first", "/tmp/go")
    user.wait_state("first", "Succeeded")
    user.wait_state("second", "Running", via=["Pending", "Queued", "Suspended"])
    user.wait("its pod to run", lambda: user.row("second")["READY"] == "1/1")
    user.tell("second", "/tmp/go")
    user.wait_state("second", "Succeeded")


def _queued(name: str) -> dict[str, Any]:
    job = shell_job(name, trainer={"resourcesPerNode": {"requests": {"cpu": "600m", "memory": "64Mi"}}})
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": QUEUE}
    return job


def _check_kueues_word_stands(user: User, name: str, *, guarded: bool) -> None:
    """A tenant does not start what waits: it stays suspended, or where that is not guarded, Kueue takes it back."""
    user.kubectl("create", "role", "tenant", "--verb=get,patch", "--resource=trainjobs.trainer.kubeflow.org")
    user.kubectl("create", "rolebinding", "tenant", "--role=tenant", "--user=tenant")
    wait_allowed(user.cluster, "tenant", "patch", "trainjobs", user.namespace)
    patch = ("--type=merge", '--patch={"spec": {"suspend": false}}')
    answer = user.kubectl("patch", "trainjob", name, "--as=tenant", *patch)
    if guarded:
        assert "spec.suspend: stays true" in answer.stderr
        assert user.get("trainjob", name)["spec"]["suspend"] is True
    user.wait("Kueue to have it suspended", lambda: user.get("trainjob", name)["spec"]["suspend"] is True)
    user.wait("no pod to be left", lambda: not user.pods(name))
    user.wait_state(name, "Queued", via=["Pending", "Running", "Suspended"])
