"""Every TrainJob and runtime that users find in documents does what the document says, by `kubectl apply` alone."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.localise import EXAMPLES, example, reports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.user import User
    from tests.suite import SuiteReport

GROUP = "trainer.kubeflow.org"


@pytest.fixture
def home(user: User) -> Iterator[User]:
    """Return a user in `default`, where most documents put their TrainJobs; these are deleted afterwards."""
    home = user.elsewhere("default")
    yield home
    home.kubectl("delete", "trainjobs", "--all")


@pytest.fixture
def proves(report: SuiteReport) -> Callable[[int], None]:
    """Return how a test says, at its end, how many documents of the seeds it has proven."""

    def add(documents: int) -> None:
        report.figure("seed_examples", report.figures.get("seed_examples", 0) + documents)

    return add


def _assert_succeeds_and_says_so(user: User, job: str) -> None:
    user.wait_state(job, "Succeeded")
    user.wait_event(job, "Completed")
    user.wait_news(job, "created JobSet")  # written on its own if it waited for no other news, and in no order
    described = user.kubectl("describe", "trainjob", job).stdout
    assert "created JobSet" in described
    assert "AllJobsCompleted" in described


def _torch(user: User, job: str) -> list[dict[str, str]]:
    """Return torch's variables in each pod of a TrainJob, without their prefix, by rank."""
    found = [
        {name.removeprefix("PET_"): value for name, value in report["env"].items() if name.startswith("PET_")}
        for report in reports(user.logs(job))
    ]
    return sorted(found, key=lambda variables: variables["NODE_RANK"])


def _time(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


def _job(user: User, job: str, step: str) -> dict[str, Any]:
    return user.get("job", f"{job}-{step}-0")


def _assert_one_after_the_other(user: User, job: str, *steps: str) -> None:
    for earlier, later in itertools.pairwise(steps):
        done = _time(_job(user, job, earlier)["status"]["completionTime"])
        assert done <= _time(_job(user, job, later)["metadata"]["creationTimestamp"])


def test_on_a_worker_cluster_two_pods_train_with_a_gpu_each(home: User, proves: Callable[[int], None]) -> None:
    home.apply(*example("multikueue"))
    _assert_succeeds_and_says_so(home, "pytorch-multikueue")
    address = {"MASTER_ADDR": "pytorch-multikueue-node-0-0.pytorch-multikueue", "MASTER_PORT": "29500"}
    assert _torch(home, "pytorch-multikueue") == [
        {"NNODES": "2", "NPROC_PER_NODE": "auto", "NODE_RANK": str(rank), **address} for rank in range(2)
    ]
    for pod in home.pods("pytorch-multikueue"):
        (container,) = pod["spec"]["containers"]
        assert container["resources"]["requests"]["nvidia.com/gpu"] == "1"
    proves(2)


def test_on_the_management_cluster_the_trainjob_is_left_to_kueue(home: User) -> None:
    runtime, job = example("multikueue")
    job["metadata"]["name"] = "dispatched"
    job["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue"  # Kueue's webhook would write it
    home.apply(runtime, job)
    home.apply(*example("multikueue"))  # comes later: once it is done, the operator has long seen the first
    home.wait_state("pytorch-multikueue", "Succeeded")
    home.wait_state("dispatched", "Queued", via=["Pending"])
    assert home.get("trainjob", "dispatched")["status"].keys() <= {"phase", "reason"}
    assert home.events("dispatched") == {}
    assert home.names("jobsets") == ["pytorch-multikueue"]
    assert "dispatched-runtime-snapshot" not in home.names("configmaps")
    assert home.state("dispatched") == "Queued"


def test_a_runtime_of_the_cluster_serves_a_trainjob_that_only_names_it(
    home: User, proves: Callable[[int], None]
) -> None:
    said = home.apply(*example("torch-distributed")).output
    assert f"Warning: spec.runtimeRef.apiGroup: kubeflow.org was stored as {GROUP}" in said
    _assert_succeeds_and_says_so(home, "example-train-job")
    lines = home.logs("example-train-job")
    assert lines[:3] == ["Torch Distributed Runtime", "-" * 38, "Torch Default Runtime Env"]
    assert {"PET_NNODES=1", "PET_NODE_RANK=0", "PET_NPROC_PER_NODE=1"} <= set(lines)
    proves(2)


def test_a_runtime_of_a_team_serves_its_namespace_alone(home: User, proves: Callable[[int], None]) -> None:
    team = home.elsewhere("team-a")
    team.kubectl("create", "namespace", "team-a")
    runtime, job = example("team-runtime")
    team.apply(runtime, job)
    _assert_succeeds_and_says_so(team, "example-train-job")
    assert "PET_NNODES=1" in team.logs("example-train-job")

    job["metadata"]["namespace"] = "default"
    refused = home.apply(job, check=False)
    assert refused.code != 0
    assert "spec.runtimeRef" in refused.stderr
    assert "pytorch-team-runtime" in refused.stderr
    assert home.names("trainjobs") == []
    team.kubectl("delete", "namespace", "team-a", "--wait=false")
    proves(1)


def test_ml_policy_sets_nodes_and_processes(home: User, proves: Callable[[int], None]) -> None:
    home.apply(*example("gpu-processes"))
    _assert_succeeds_and_says_so(home, "three-nodes")
    told = _torch(home, "three-nodes")
    assert [(pod["NNODES"], pod["NPROC_PER_NODE"], pod["NODE_RANK"]) for pod in told] == [
        ("3", "gpu", str(rank)) for rank in range(3)
    ]
    proves(1)


def test_training_starts_when_the_model_is_there(home: User, proves: Callable[[int], None]) -> None:
    home.apply(*example("model-initializer"))
    _assert_succeeds_and_says_so(home, "model-then-train")
    _assert_one_after_the_other(home, "model-then-train", "model-initializer", "node")
    (pod,) = home.pods("model-then-train", "node")
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    proves(1)


def test_labels_say_where_a_trainjobs_fields_go(home: User) -> None:
    home.apply(*example("initializers"))
    _assert_succeeds_and_says_so(home, "three-steps")
    _assert_one_after_the_other(home, "three-steps", "dataset-initializer", "model-initializer", "node")
    (training,) = reports(home.logs("three-steps"))
    assert training["args"] == ["--epochs=3"]
    assert training["env"]["LEARNING_RATE"] == "0.01"
    for step in ("dataset-initializer", "model-initializer"):
        (preparing,) = reports(home.logs("three-steps", step))
        assert preparing["args"] == []
        assert "LEARNING_RATE" not in preparing["env"]


_CACHE = """
import socket
server = socket.create_server(("", 50051))
while True:
    asking, _ = server.accept()  # a probe connects and says nothing
    if asking.recv(4) == b"rows":
        asking.sendall(b"42 rows")
        break
"""
_READER = """
import os, socket, time
host, port = os.environ["DATA_CACHE_ENDPOINT"].split(":")
while True:
    try:
        cache = socket.create_connection((host, int(port)))
        break
    except socket.gaierror:  # the name of a new pod is known a moment after the pod is ready
        time.sleep(0.1)
cache.sendall(b"rows")
print("read", cache.recv(100).decode())
"""


def test_training_starts_when_the_cache_is_ready_and_reads_from_it(home: User, proves: Callable[[int], None]) -> None:
    """With a cache of one's own, which ends when it was read and no sooner; ours serves in tests/cache/live."""
    runtime, job = example("data-cache", programs={"cache-initializer": _CACHE, "node": _READER})
    cache = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"][
        "containers"
    ][0]
    cache["readinessProbe"]["tcpSocket"] = cache["readinessProbe"].pop("grpc")  # which a plain socket answers
    home.apply(runtime, job)
    _assert_succeeds_and_says_so(home, "train-from-cache")
    assert home.logs("train-from-cache") == ["read 42 rows"]
    proves(1)


def test_every_field_of_a_trainjob_takes_effect(home: User, proves: Callable[[int], None]) -> None:
    said = home.apply(*example("every-field")).output
    for field in ("spec.labels", "spec.annotations"):
        assert f"Warning: {field} is an older form, stored as spec.runtimePatches" in said
    home.wait_state("every-field", "Suspended", via=["Pending"])
    home.wait_news("every-field", "held back by spec.suspend")
    assert home.pods("every-field") == []
    jobset = home.get("jobset", "every-field")["metadata"]
    assert jobset["labels"]["team"] == "vision"
    assert jobset["annotations"]["example.com/ticket"] == "1234"

    home.set_suspend("every-field", suspend=False)
    home.wait_state("every-field", "Succeeded", via=["Suspended", "Pending", "Running"])
    _assert_one_after_the_other(home, "every-field", "dataset-initializer", "model-initializer", "node")
    dataset, model = (
        reports(home.logs("every-field", step))[0]["env"] for step in ("dataset-initializer", "model-initializer")
    )
    assert (dataset["STORAGE_URI"], dataset["SPLIT"]) == ("hf://tatsu-lab/alpaca", "train")
    assert model["STORAGE_URI"] == "hf://meta-llama/Llama-3.2-1B"
    assert dataset["ACCESS_TOKEN"] == model["ACCESS_TOKEN"] == "your-token"
    training = reports(home.logs("every-field"))
    assert [(one["args"], one["env"]["NCCL_DEBUG"]) for one in training] == [(["--epochs=3"], "INFO")] * 2
    assert [pod["NODE_RANK"] for pod in _torch(home, "every-field")] == ["0", "1"]
    home.wait_news("every-field", "resumed: ")
    proves(1)


def test_every_example_is_used_by_this_suite() -> None:
    """An example that nothing runs would rot."""
    folder = EXAMPLES.parent.parent / "tests/e2e"
    used = "".join(path.read_text() for path in folder.glob("test_*.py"))
    assert [path.stem for path in EXAMPLES.glob("*.yaml") if f'example("{path.stem}"' not in used] == []
