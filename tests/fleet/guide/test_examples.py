"""Examples that go through the fleet: the one that Kueue's documents show, and a real training."""

from __future__ import annotations

import subprocess
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from lab import kwok, node
from lab.engines import binary
from lab.fleet import CHECK
from lab.paths import REPOSITORY
from tests.e2e.localise import example
from tests.fleet import objects
from tests.fleet.api import Api
from tests.fleet.team import Team, make_team, remove_team

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Cluster
    from lab.fleet import Fleet
    from tests.suite import SuiteReport

Tree = dict[str, Any]

_TORCH_SECONDS = 400.0
"""How long two ranks may take to load torch and to meet: seconds when cores are idle, minutes when they are not."""


def _documents(name: str) -> list[Tree]:
    return list(yaml.safe_load_all((REPOSITORY / "examples" / name).read_text()))


# -- the example of Kueue's documents ---------------------------------------------------------------------------------


@pytest.fixture
def home(fleet: Fleet) -> Iterator[Team]:
    """Return a team in the namespace `default`, with the queue that the example names."""
    team = Team(fleet, "default")
    runtime, job = _documents("trainjobs/multikueue.yaml")
    queue = objects.local_queue("default", name="multikueue-queue")
    for name in ("hub", *team.workers):
        checks = (CHECK,) if name == "hub" else ()
        quota = objects.cluster_queue("default", checks=checks)
        team.api(name).apply(quota, queue, runtime)
        team.wait(f"the queue on {name}", partial(_is_active, team.api(name)))
    for worker in fleet.workers:
        kwok.hold(worker, "default")
    yield team
    team.delete(job["metadata"]["name"])
    for name, cluster in zip(("hub", *team.workers), fleet.clusters, strict=True):
        kwok.release(cluster, "default")
        team.api(name).delete("localqueues", "default", "multikueue-queue")
        team.api(name).delete("clusterqueues", "", "default")
        team.api(name).delete("clustertrainingruntimes", "", runtime["metadata"]["name"])


def _is_active(api: Api) -> bool:
    status = (api.get("localqueues", "default", "multikueue-queue") or {}).get("status") or {}
    return any(one["type"] == "Active" and one["status"] == "True" for one in status.get("conditions", []))


def test_the_example_of_kueues_documents_runs_as_written(home: Team) -> None:
    _, job = _documents("trainjobs/multikueue.yaml")
    name = job["metadata"]["name"]
    home.create_seen(job)
    where = home.wait_running(name)
    on_hub, on_worker = home.job(name), home.job(name, on=where)
    assert on_hub is not None
    assert on_worker is not None
    assert on_hub["spec"]["managedBy"] == objects.MULTIKUEUE
    assert on_worker["spec"]["managedBy"] == "trainer.kubeflow.org/trainjob-controller"
    assert home.api().get("jobsets", "default", name) is None
    assert home.pods(name, on="hub") == []

    pods = home.pods(name, on=where)
    assert len(pods) == 2
    for pod in pods:
        (container,) = pod["spec"]["containers"]
        assert container["resources"]["requests"] == {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "1"}
        assert container["resources"]["limits"] == {"nvidia.com/gpu": "1"}
        assert container["image"] == "pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime"
        assert {"name": "PET_NNODES", "value": "2"} in container["env"]
    workload = home.workload(name)
    assert workload is not None
    (assigned,) = workload["status"]["admission"]["podSetAssignments"]
    assert assigned["resourceUsage"] == {"cpu": "8", "memory": "16Gi", "nvidia.com/gpu": "2"}

    home.end(name, on=where)
    home.wait_done(name)
    home.wait_gone(name, on=where)
    assert home.condition(name, "Complete") is not None


def test_the_guides_example_is_that_of_kueues_documents() -> None:
    runtime, job = _documents("trainjobs/multikueue.yaml")
    assert _documents("multikueue/runtime.yaml") == [runtime]
    del job["metadata"]["namespace"]  # the guide's reader has a team
    assert _documents("multikueue/trainjob.yaml") == [job]


# -- a real training --------------------------------------------------------------------------------------------------


@pytest.fixture
def trainees(fleet: Fleet, real_worker: Cluster) -> Iterator[Team]:
    """Return a team whose quota is on the first worker alone, and there on a node with real pods."""
    for cluster in fleet.clusters:
        labels = {"nodeLabels": {"kubernetes.io/hostname": node.NAME}, "tolerations": [objects.REAL]}
        Api(cluster).apply(objects.flavor("real", **(labels if cluster is real_worker else {})))
    team = make_team(fleet, "trainees", quotas={"worker2": {"cpu": "0"}}, flavor="real")
    yield team
    remove_team(team)
    for cluster in fleet.clusters:
        Api(cluster).delete("resourceflavors", "", "real")
        Api(cluster).delete("clustertrainingruntimes", "", "torch-ddp")


@pytest.mark.timeout(900)
def test_a_training_with_ddp_goes_to_a_worker_and_back(trainees: Team, report: SuiteReport, tmp_path: Path) -> None:
    us, worker = trainees, trainees.cluster("worker1")
    runtime, program, job = example("ddp", image_name="torch")
    for name in ("hub", *us.workers):
        us.api(name).apply(runtime)
    program["metadata"]["namespace"] = us.namespace
    us.api("worker1").create(program)  # pods use it, so it is needed where they run, and nowhere else
    job["metadata"] |= {"namespace": us.namespace, "labels": {objects.QUEUE_LABEL: objects.QUEUE}}
    job["spec"]["trainer"]["env"] = [{"name": "OMP_NUM_THREADS", "value": "1"}, {"name": "STEPS", "value": "1000000"}]
    us.wait("Kueue to know the runtime", lambda: _accepted(us, job))
    us.wait_running("ddp", on="worker1")
    pods = [pod["metadata"]["name"] for pod in us.pods("ddp", on="worker1")]
    kubectl = (f"--namespace={us.namespace}",)

    def logs(pod: str) -> str:
        return worker.kubectl(*kubectl, "logs", pod, check=False).stdout

    us.wait("both ranks to train", lambda: all("trains" in logs(pod) for pod in pods), seconds=_TORCH_SECONDS)
    followed = [_follow(worker, us.namespace, pod, tmp_path / pod) for pod in pods]
    us.wait("both to be followed", lambda: all("trains" in (tmp_path / pod).read_text() for pod in pods))
    worker.touch(us.namespace, pods[0], "/tmp/stop")  # ends the training, on all nodes
    for one in followed:
        one.wait(_TORCH_SECONDS)
    lines = [line for pod in pods for line in (tmp_path / pod).read_text().splitlines()]
    said = sorted(line for line in lines if line.startswith("rank"))
    assert said == [
        line
        for rank in range(2)
        for line in (f"rank {rank} of 2 trains", f"rank {rank} of 2: weights equal on all ranks: True")
    ]
    us.wait_done("ddp")
    us.wait_gone("ddp", on="worker1")
    assert us.pods("ddp", on="hub") == []
    report.figure("ddp_ranks_through_the_fleet", len(pods))


def _follow(worker: Cluster, namespace: str, pod: str, output: Path) -> subprocess.Popen[bytes]:
    """Begin to follow a pod's log, into a file: its pod goes at once when it has ended."""
    options = (f"--kubeconfig={worker.kubeconfig}", f"--namespace={namespace}")
    with output.open("wb") as file:
        return subprocess.Popen([binary("kubectl"), *options, "logs", pod, "--follow"], stdout=file)


def _accepted(us: Team, job: Tree) -> bool:
    return us.cluster("hub").kubectl("apply", "--filename=-", stdin=yaml.safe_dump(job), check=False).code == 0
