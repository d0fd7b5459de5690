"""docs/fault-tolerance.md: what breaks is started again as it says, and the loss goes on where it was."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from lab import node
from tests.seeds.machines.site import INDEX, MACHINES, Site, examples

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = examples("fault-tolerance.md")
TRAINING = PAGE["The example program"]
STEPS = 12
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


def losses(site: Site, job: str) -> dict[int, list[float]]:
    """Return the loss of each step, by rank, as the last attempt printed it."""
    told = (re.match(r"rank (\d+) losses (.*)", line) for line in site.logs(job))
    return {int(match[1]): [float(loss) for loss in match[2].split()] for match in told if match}


def begun(site: Site, job: str) -> dict[int, int]:
    """Return the step after which the last attempt of each rank began."""
    told = (re.match(r"rank (\d+) begins after step (\d+)", line) for line in site.logs(job))
    return {int(match[1]): int(match[2]) for match in told if match}


def assert_goes_on(site: Site, job: str, *ranks: int) -> None:
    """Check that the curve of each rank is that of a training that nothing happened to."""
    whole, weight = [], 0.0
    for _ in range(STEPS):
        whole.append(round((weight - 3) ** 2, 3))
        weight -= 0.2 * (weight - 3)
    assert losses(site, job) == dict.fromkeys(ranks, whole)


def restarts(site: Site, job: str, *, counted: bool = False) -> int:
    """Return how often a TrainJob restarted; with `counted`, only restarts that count towards maxRestarts."""
    status = site.get("trainjob", job)["status"]
    count: int = status.get("restartsCountTowardsMax" if counted else "restarts", 0)
    return count


def test_a_container_is_started_again_in_its_pod(site: Site) -> None:
    site.apply_example(*TRAINING, *PAGE["Restart a container"])
    site.wait("a pod", lambda: bool(site.pods("on-failure")))
    (pod,) = site.pods("on-failure")
    site.wait_state("on-failure", "Succeeded", via=("Pending", "Running", "Restarting"))
    (after,) = site.pods("on-failure")
    assert after["metadata"]["uid"] == pod["metadata"]["uid"]
    assert after["status"]["containerStatuses"][0]["restartCount"] == 1
    assert begun(site, "on-failure") == {0: 5}
    assert_goes_on(site, "on-failure", 0)


def test_all_pods_start_again_from_their_checkpoint(site: Site) -> None:
    site.apply_example(*TRAINING, *PAGE["Restart all pods"])
    site.wait_state("all-pods", "Succeeded", via=("Pending", "Running", "Restarting"))
    assert restarts(site, "all-pods") == restarts(site, "all-pods", counted=True) == 1
    assert site.get("jobset", "all-pods")["metadata"]["labels"]["trainplane.dev/restarts"] == "1"
    assert begun(site, "all-pods")[1] == 5
    assert_goes_on(site, "all-pods", 0, 1)
    timeline = site.get("trainjob", "all-pods")["status"]["timeline"]
    assert "Restarted" in [one["stage"] for one in timeline]


@pytest.mark.full
def test_one_pod_of_many_is_replaced_and_the_others_go_on(site: Site) -> None:
    site.apply_example(*TRAINING, *PAGE["Replace one of many pods"])
    site.wait_state("one-pod", "Succeeded", via=("Pending", "Running", "Restarting"))
    assert restarts(site, "one-pod") == 0
    made = [pod["metadata"]["labels"][INDEX] for pod in site.pods("one-pod")]
    assert sorted(made) == ["0", "1", "2", "2"]
    assert {rank: step for rank, step in begun(site, "one-pod").items() if rank != 2} == {0: 0, 1: 0}
    assert_goes_on(site, "one-pod", 0, 1, 2)


@pytest.mark.full
def test_an_exit_code_says_whether_it_is_worth_another_try(site: Site) -> None:
    *runtime, job = PAGE["Restart by exit code"]
    site.apply_example(*TRAINING, *runtime, job)
    site.wait_state("exit-codes", "Succeeded", via=("Pending", "Running", "Restarting"))
    assert restarts(site, "exit-codes") == 1
    assert_goes_on(site, "exit-codes", 0, 1)

    env = [{"name": "FAIL_AT", "value": "1/12"}, {"name": "EXIT_CODE", "value": "3"}]
    wrong = {**job, "metadata": {"name": "wrong"}, "spec": {**job["spec"], "trainer": {"env": env}}}
    site.kubectl("delete", "trainjob", "exit-codes")
    for path in (site.cluster.folder / "shared" / site.namespace).glob("*.json"):
        path.unlink()
    site.apply(wrong)
    site.wait_state("wrong", "Failed")
    assert restarts(site, "wrong") == 0
    assert site.get("trainjob", "wrong")["status"]["firstFault"]["exitCode"] == 3


@pytest.mark.full
def test_a_training_goes_on_without_the_machine_that_is_lost(site: Site) -> None:
    *runtime, job = PAGE["Restart after a disruption"]
    (program,) = (one for one in TRAINING if one["kind"] == "ConfigMap")
    slow = program["data"]["train.py"].replace("sleep(0.1)", "sleep(2)")
    pod = runtime[0]["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"jobset.sigs.k8s.io/jobset-name": "machine"}},
        }
    ]
    others = [one for one in TRAINING if one["kind"] != "ConfigMap"]
    site.apply_example(*others, {**program, "data": {"train.py": slow}}, *runtime, job)
    site.wait_state("machine", "Running", via=["Pending"])
    site.wait("a pod on each machine", lambda: set(site.places("machine").values()) == set(MACHINES))
    with _lost(site):
        site.wait("all pods on the other", lambda: list(site.places("machine").values()) == [node.NAME] * 2)
        site.wait_state("machine", "Succeeded", via=("Pending", "Running", "Restarting"))
    assert restarts(site, "machine") == 1
    assert restarts(site, "machine", counted=True) == 0
    assert_goes_on(site, "machine", 0, 1)


@contextmanager
def _lost(site: Site) -> Iterator[None]:
    """Take the second machine away for a while.

    Kubernetes' own judgement that it is away takes the lab 400 s, so that is written here as the controller would.
    """
    cluster = site.cluster
    cluster.kill("kubelet-2")
    unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    patch = json.dumps({"status": {"conditions": [unknown]}})
    try:
        cluster.kubectl("patch", "node", node.SECOND, "--subresource=status", f"--patch={patch}")
        cluster.kubectl("taint", "node", node.SECOND, f"{OUT_OF_SERVICE}=nodeshutdown:NoExecute")
        yield
    finally:
        cluster.kubectl("taint", "node", node.SECOND, f"{OUT_OF_SERVICE}-")
        cluster.revive("kubelet-2")
        node.wait_ready(cluster, node.SECOND)
