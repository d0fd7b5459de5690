"""MPIJobs on an API server: both versions, and a life whose pods the test plays; Job controller and garbage collector
are Kubernetes' own.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from lab.processes import wait_for
from tests.fleet.api import Api, RefusedError
from tests.legacy.mpi.cases import mpi_job, replica

if TYPE_CHECKING:
    from lab.cluster import Cluster

Tree = dict[str, Any]

NAMESPACE = "default"
_PATIENCE = 180.0
_V1 = "mpijobs.v1.kubeflow.org"


class Stage:
    """A cluster without nodes, on which our operator serves MPIJobs."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.api = Api(cluster)

    def create(self, name: str, **spec: Any) -> Tree:
        """Create a job of v2beta1."""
        job = mpi_job(name=name, **spec)
        return self.api.create({**job, "metadata": {"name": name, "namespace": NAMESPACE}})

    def job(self, name: str) -> Tree:
        """Return a job as it is stored."""
        found = self.api.get("mpijobs", NAMESPACE, name)
        assert found is not None
        return found

    def pods(self, name: str) -> list[Tree]:
        """Return a job's pods."""
        return self.api.list("pods", NAMESPACE, labels=f"training.kubeflow.org/job-name={name}")

    def play(self, name: str, phase: str, role: str = "") -> None:
        """Set the phase of pods that have not ended, in the place of a kubelet."""
        for pod in self.pods(name):
            if role in pod["metadata"]["name"] and pod["status"]["phase"] not in {"Succeeded", "Failed"}:
                place = (NAMESPACE, pod["metadata"]["name"], {"status": {"phase": phase}})
                self.api.patch("pods", *place, part="status")

    def until(self, what: str, name: str, **wanted: str) -> None:
        """Wait until conditions of a job are as they should be."""
        wait_for(what, lambda: wanted.items() <= self._conditions(name).items(), seconds=_PATIENCE)

    def until_pods(self, name: str, count: int) -> None:
        """Wait until a job has so many pods."""
        wait_for(f"{name} has {count} pods", lambda: len(self.pods(name)) == count, seconds=_PATIENCE)

    def _conditions(self, name: str) -> dict[str, str]:
        return {one["type"]: one["status"] for one in self.job(name).get("status", {}).get("conditions", ())}


@pytest.fixture
def stage(cluster: Cluster) -> Stage:
    return Stage(cluster)


def test_a_job_runs_is_suspended_resumes_and_ends(stage: Stage) -> None:
    stage.create("life", runPolicy={"cleanPodPolicy": "All"})
    stage.until_pods("life", 3)
    assert stage.api.get("services", NAMESPACE, "life") is not None
    hosts = stage.api.get("configmaps", NAMESPACE, "life-config")
    assert hosts is not None
    assert hosts["data"]["hostfile"].count("slots=1\n") == 2
    keys = stage.api.get("secrets", NAMESPACE, "life-ssh")
    assert keys is not None
    stage.play("life", "Running")
    stage.until("it runs", "life", Running="True")
    assert stage.job("life")["status"]["replicaStatuses"] == {"Launcher": {"active": 1}, "Worker": {"active": 2}}

    stage.api.patch("mpijobs", NAMESPACE, "life", {"spec": {"runPolicy": {"suspend": True}}})
    stage.until_pods("life", 0)
    stage.until("it is suspended", "life", Suspended="True", Running="False")
    wait_for("its launcher goes", lambda: not stage.api.list("jobs", NAMESPACE), seconds=_PATIENCE)

    template = {"spec": {"nodeSelector": {"queue": "admitted"}}}
    admitted = {name: {"template": template} for name in ("Launcher", "Worker")}
    change = {"spec": {"runPolicy": {"suspend": False}, "mpiReplicaSpecs": admitted}}
    stage.api.patch("mpijobs", NAMESPACE, "life", change)
    stage.until_pods("life", 3)
    assert {pod["spec"]["nodeSelector"]["queue"] for pod in stage.pods("life")} == {"admitted"}
    stage.play("life", "Running")
    stage.until("it runs again", "life", Suspended="False", Running="True")
    again = stage.api.get("secrets", NAMESPACE, "life-ssh")
    assert again is not None
    assert again["data"] == keys["data"]

    stage.play("life", "Succeeded", "launcher")
    stage.until("it succeeded", "life", Succeeded="True", Running="False")
    wait_for("its workers go", lambda: len(stage.pods("life")) == 1, seconds=_PATIENCE)
    status = stage.job("life")["status"]
    assert status["replicaStatuses"]["Launcher"] == {"succeeded": 1}
    assert status["completionTime"]


def test_workers_come_and_go_with_their_number(stage: Stage) -> None:
    stage.create("elastic")
    stage.until_pods("elastic", 3)
    workers = {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 1}}}}
    stage.api.patch("mpijobs", NAMESPACE, "elastic", workers)
    stage.until_pods("elastic", 2)
    stage.play("elastic", "Running")

    def finds_one() -> bool:
        hosts = stage.api.get("configmaps", NAMESPACE, "elastic-config") or {}
        return "echo elastic-worker-0.elastic.default.svc\n" in hosts["data"]["discover_hosts.sh"]

    wait_for("the running worker is found", finds_one, seconds=_PATIENCE)


def test_what_is_written_as_v1_runs_and_reads_as_it_was_written(stage: Stage) -> None:
    replicas = {
        "Launcher": replica(replicas=1),
        "Worker": replica(replicas=1, restartPolicy="ExitCode"),
    }
    written = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "metadata": {"name": "older", "namespace": NAMESPACE},
        "spec": {"cleanPodPolicy": "Running", "mainContainer": "main", "mpiReplicaSpecs": replicas},
    }
    told = stage.cluster.kubectl("create", "-f", "-", stdin=json.dumps(written)).stderr
    assert "sshd" in told
    assert "ExitCode runs as Never" in told
    stage.until_pods("older", 2)
    spec = stage.cluster.get(_V1, "older")["spec"]
    assert spec["mainContainer"] == "main"
    assert spec["cleanPodPolicy"] == "Running"
    assert spec["mpiReplicaSpecs"]["Worker"]["restartPolicy"] == "ExitCode"
    assert "restartPolicy" not in spec["mpiReplicaSpecs"]["Launcher"]
    stored = stage.job("older")["spec"]
    assert stored["runPolicy"]["cleanPodPolicy"] == "Running"
    assert stored["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] == "Never"

    stage.cluster.kubectl("label", _V1, "older", "touched=by-v1")
    assert stage.cluster.get(_V1, "older")["spec"] == spec
    listed = stage.cluster.get(_V1)["items"]
    assert {one["apiVersion"] for one in listed} == {"kubeflow.org/v1"}


def test_what_could_not_run_is_refused(stage: Stage) -> None:
    with pytest.raises(RefusedError, match=r"spec\.mpiReplicaSpecs\[Worker\]\.replicas"):
        stage.create("refused", workers=0)
    stage.create("managed", runPolicy={"managedBy": "kueue.x-k8s.io/multikueue"})
    with pytest.raises(RefusedError, match="managedBy"):
        stage.api.patch("mpijobs", NAMESPACE, "managed", {"spec": {"runPolicy": {"managedBy": None}}})
    assert stage.pods("managed") == []
