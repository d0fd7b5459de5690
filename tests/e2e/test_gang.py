"""Gangs on real gang schedulers: two TrainJobs that each need the whole node never start in part.

The node offers two slots, and another pod holds one of them. Each TrainJob needs both, one for each of its pods: a
scheduler that places pod by pod gives the free slot to one of the four, and that TrainJob has begun in part.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from lab import coscheduling, node, volcano
from lab.images import reference as image
from lab.processes import wait_for
from tests.e2e.shell import WAITING, shell_job, shell_runtime
from tests.e2e.user import User

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from lab.cluster import Cluster

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

SLOT = "lab.trainplane.dev/slot"
SLOTS = 2
JOBS = ("first", "second")


@dataclass(frozen=True)
class Scheduler:
    """A gang scheduler that runs, and how a runtime asks for a gang of it."""

    name: str
    pod_groups: str
    policy: dict[str, Any]


POLICIES: dict[ModuleType, dict[str, Any]] = {
    coscheduling: {"coscheduling": {"scheduleTimeoutSeconds": 60}},
    volcano: {"volcano": {}},
}


@pytest.fixture(scope="module", params=POLICIES, ids=lambda module: module.__name__.rpartition(".")[2])
def scheduler(cluster: Cluster, request: pytest.FixtureRequest) -> Scheduler:
    """Install a scheduler beside the cluster's own; it stays for the rest of the run, in nobody's way."""
    module: ModuleType = request.param
    module.install(cluster)
    return Scheduler(module.SCHEDULER, module.POD_GROUPS, POLICIES[module])


@pytest.fixture(scope="module")
def slots(cluster: Cluster) -> None:
    """Let the node offer slots."""
    patch = json.dumps({"status": {"capacity": {SLOT: str(SLOTS)}}})
    cluster.kubectl("patch", "node", node.NAME, "--subresource=status", "--type=merge", f"--patch={patch}")

    def offered() -> bool:
        allocatable: dict[str, str] = cluster.get("node", node.NAME)["status"]["allocatable"]
        return allocatable.get(SLOT) == str(SLOTS)

    wait_for("the node's slots", offered, seconds=60)


@pytest.fixture
def busy(cluster: Cluster, slots: None) -> Iterator[User]:
    """Return a user on a node one slot of which a pod named `other` holds; all slots are free again afterwards."""
    del slots
    user = User(cluster, f"test-{uuid.uuid4().hex[:8]}")
    cluster.kubectl("create", "namespace", user.namespace)
    user.kubectl("wait", "--for=create", "--timeout=120s", "serviceaccount/default")  # pods are refused without it
    user.apply(_holder("other"))
    user.wait("the other pod to hold a slot", lambda: user.get("pod", "other")["status"]["phase"] == "Running")
    yield user
    cluster.kubectl("delete", "namespace", user.namespace)  # waits until it is gone


def _holder(name: str) -> dict[str, Any]:
    container = {
        "name": "holder",
        "image": image("python"),
        "imagePullPolicy": "Never",
        "command": ["sleep", "infinity"],
        "resources": {"limits": {SLOT: "1"}},
    }
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _runtime(scheduler: Scheduler, policy: dict[str, Any] | None) -> dict[str, Any]:
    """Return a runtime whose pods take a slot each, placed by a scheduler, in a gang or not."""
    runtime = shell_runtime(WAITING)
    (step,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    pod = step["template"]["spec"]["template"]["spec"]
    pod["schedulerName"] = scheduler.name
    pod["containers"][0]["resources"] = {"limits": {SLOT: "1"}}
    if policy is not None:
        runtime["spec"]["podGroupPolicy"] = policy
    return runtime


def _jobs() -> list[dict[str, Any]]:
    return [shell_job(name, trainer={"numNodes": SLOTS}) for name in JOBS]


def _placed(user: User) -> dict[str, int]:
    """Return how many pods of each TrainJob are on the node. A pod that is placed stays so until it is deleted."""
    return {job: sum(bool(pod["spec"].get("nodeName")) for pod in user.pods(job)) for job in JOBS}


def _judged(user: User) -> bool:
    """Tell if all pods are there and the scheduler has said of each that it found a place, or that there is none."""
    pods = [pod for job in JOBS for pod in user.pods(job)]
    conditions = [condition["type"] for pod in pods for condition in pod["status"].get("conditions", [])]
    return len(pods) == SLOTS * len(JOBS) == conditions.count("PodScheduled")


def _runs(user: User, job: str) -> bool:
    """Tell if all pods of a TrainJob run: it is shown as running as soon as one does."""
    return user.row(job)["READY"] == f"{SLOTS}/{SLOTS}"


def _uids(user: User) -> set[str]:
    return {pod["metadata"]["uid"] for job in JOBS for pod in user.pods(job)}


def test_without_a_gang_a_job_starts_in_part(busy: User, scheduler: Scheduler) -> None:
    busy.apply(_runtime(scheduler, None), *_jobs())
    busy.wait("a pod to be placed alone", lambda: sum(_placed(busy).values()) == 1)
    busy.wait("the scheduler to see all pods", lambda: _judged(busy))
    assert sorted(_placed(busy).values()) == [0, 1]


def test_gangs_that_each_need_the_whole_node_run_one_after_the_other(busy: User, scheduler: Scheduler) -> None:
    busy.apply(_runtime(scheduler, scheduler.policy), *_jobs())
    busy.wait("the scheduler to see all pods", lambda: _judged(busy))
    for job in JOBS:
        spec = busy.get(scheduler.pod_groups, job)["spec"]
        assert (spec["minMember"], spec["minResources"]) == (SLOTS, {SLOT: str(SLOTS)})
    assert _placed(busy) == dict.fromkeys(JOBS, 0), "the free slot went to a part of a gang"
    uids = _uids(busy)

    busy.kubectl("delete", "pod", "other")
    busy.wait("a gang to run", lambda: any(_runs(busy, job) for job in JOBS))
    # Pods that are placed stay placed: had one of the other gang ever been, it would be still.
    now = _placed(busy)
    assert sorted(now.values()) == [0, SLOTS], "both gangs have begun"
    assert _uids(busy) == uids
    winner = next(job for job in JOBS if now[job])
    (loser,) = set(JOBS) - {winner}

    busy.tell(winner, "/tmp/go")
    busy.wait_state(winner, "Succeeded")
    busy.wait_state(loser, "Running", via=["Pending"])
    busy.wait("the other gang to run", lambda: _runs(busy, loser))
    assert _placed(busy)[loser] == SLOTS
    busy.tell(loser, "/tmp/go")
    busy.wait_state(loser, "Succeeded")
