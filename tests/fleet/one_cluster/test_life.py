"""The life of queued TrainJobs: held back, admitted, placed, drained, preempted, done."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest

from lab.errors import LabError
from lab.kwok import TAINT
from tests.fleet import objects
from tests.fleet.one_cluster.runtimes import in_namespace, runtime, step
from tests.fleet.one_cluster.stage import POOL
from tests.fleet.one_cluster.team import condition_of

if TYPE_CHECKING:
    from tests.fleet.objects import Tree
    from tests.fleet.one_cluster.team import Team

OURS = "example.com/team"
_SPARE = {"key": "example.com/spare", "operator": "Exists", "effect": "NoSchedule"}
_TAINT = {"key": TAINT["key"], "operator": "Equal", "value": TAINT["value"], "effect": TAINT["effect"]}


def _patch(manager: str, job: str, **pod: Any) -> Tree:
    change = {"name": job, "template": {"spec": {"template": {"spec": pod}}}}
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [change]}}}}


def _jobs(entry: Tree) -> list[Tree]:
    jobs: list[Tree] = entry["trainingRuntimeSpec"]["template"]["spec"].get("replicatedJobs", [])
    return jobs


def _pod(job: Tree) -> Tree:
    pod: Tree = job["template"]["spec"]["template"]
    return pod


@pytest.mark.scenario(1, "the pod sets' placement becomes Kueue's runtimePatches entry")
@pytest.mark.scenario(2, "patches of other managers are untouched")
@pytest.mark.scenario(7, "the Workload's pod sets stand in the runtime's order, with index labels for topology")
@pytest.mark.scenario(8, "numNodes is the trainer's count")
@pytest.mark.scenario(9, "a queue label suspends the job and brings Kueue's entry")
@pytest.mark.scenario(30, "suspended, admitted, unsuspended with event Started, finished with the job")
@pytest.mark.scenario(38, "a job in a queue runs to Complete and its Workload is finished")
def test_a_job_is_queued_admitted_run_and_finished(team: Team) -> None:
    queue = team.open_queue()
    team.create(runtime("two", team.namespace, step("extra", ancestor=None, parallelism=1), step()))
    mine = _patch(OURS, "node", nodeSelector={POOL: "plain"})
    made = team.submit("job", nodes=2, runtimePatches=[mine], **in_namespace("two"))
    assert made["spec"]["suspend"] is True
    entries = {one.pop("manager"): one for one in made["spec"]["runtimePatches"]}
    assert entries[objects.KUEUE_MANAGER]["trainingRuntimeSpec"] == {"template": {"spec": {}}}
    assert all(one["time"] for one in entries.values()), "Kueue's entry is stamped too, although it came after us"

    team.wait_running("job", pods=3)
    workload = team.workload("job")
    assert workload is not None
    assert [(one["name"], one["count"]) for one in workload["spec"]["podSets"]] == [("extra", 1), ("node", 2)]
    for one in workload["spec"]["podSets"]:
        topology = one["topologyRequest"]
        assert topology["podIndexLabel"] == "batch.kubernetes.io/job-completion-index"
        assert topology["subGroupIndexLabel"] == "jobset.sigs.k8s.io/job-index"
    team.wait_event("job", "Started", "Admitted by clusterQueue")
    job = team.job("job")
    assert _only(job, OURS)["trainingRuntimeSpec"] == mine["trainingRuntimeSpec"]
    entry = team.kueue_entry("job")
    assert [one["name"] for one in _jobs(entry)] == ["extra", "node"]
    for one in _jobs(entry):
        assert _pod(one)["metadata"]["labels"] == {
            "kueue.x-k8s.io/podset": one["name"],
            "kueue.x-k8s.io/local-queue-name": queue,
            "kueue.x-k8s.io/cluster-queue-name": team.namespace,
        }
    for pod in team.pods("job"):
        labels = pod["metadata"]["labels"]
        assert labels["kueue.x-k8s.io/podset"] == labels["jobset.sigs.k8s.io/replicatedjob-name"]

    team.end_pods("job")
    team.wait("the job to be complete", lambda: team.holds("trainjobs", "job", "Complete"))
    team.wait("the Workload to be finished", lambda: condition_of(team.workload("job") or {}, "Finished") == "True")
    assert condition_of(team.job("job"), "Failed") is None


@pytest.mark.scenario(34, "two replicated jobs on two flavors: a nodeSelector for each")
@pytest.mark.scenario(39, "the flavor's nodeSelector and tolerations reach the pods; HoldAndDrain suspends the job")
@pytest.mark.scenario("I-tolerations", "a flavor's tolerations are added to the runtime's")
@pytest.mark.scenario(5, "Kueue's entry is replaced when the job is admitted again")
@pytest.mark.scenario(6, "a stop clears Kueue's entry")
def test_flavors_lead_pods_to_their_nodes_and_a_drained_queue_takes_them_back(team: Team) -> None:
    plain, spot = (f"{team.namespace}-{pool}" for pool in ("plain", "spot"))
    team.create(objects.flavor(plain, nodeLabels={POOL: "plain"}))
    team.create(objects.flavor(spot, nodeLabels={POOL: "spot"}, tolerations=[_TAINT]))
    team.open_queue({"cpu": "2"}, flavors=(plain, spot))
    small = step("small", ancestor=None, parallelism=1, requests={"cpu": "1", "memory": "1Gi"})
    team.create(runtime("two", team.namespace, small, step(pod={"tolerations": [_SPARE]})))
    mine = _patch(OURS, "small", tolerations=[_SPARE])
    team.submit("job", nodes=2, cpu="1", runtimePatches=[mine], **in_namespace("two"))

    def check_placed() -> None:
        team.wait_running("job", pods=3)
        nodes = {
            pod["metadata"]["labels"]["kueue.x-k8s.io/podset"]: pod["spec"]["nodeName"] for pod in team.pods("job")
        }
        assert nodes["small"].startswith("plain-")
        assert nodes["node"].startswith("spot-")
        first, second = _jobs(team.kueue_entry("job"))
        assert _pod(first)["spec"]["nodeSelector"] == {POOL: "plain"}
        assert _pod(second)["spec"] == {"nodeSelector": {POOL: "spot"}, "tolerations": [_TAINT]}
        (_, node) = team.get("jobsets", "job")["spec"]["replicatedJobs"]
        # Kueue up to 0.19 puts a flavor's tolerations in place of the runtime's; ours adds them.
        keys = {one["key"] for one in _pod(node)["spec"]["tolerations"]}
        assert keys == {_SPARE["key"], TAINT["key"]}

    check_placed()
    team.patch("clusterqueues", team.namespace, {"spec": {"stopPolicy": "HoldAndDrain"}})
    team.wait("the job to be suspended", lambda: team.suspended("job"))
    team.wait("Kueue's entry to be cleared", lambda: not _jobs(team.kueue_entry("job")))
    assert _only(team.job("job"), OURS)["trainingRuntimeSpec"] == mine["trainingRuntimeSpec"]
    team.wait("the pods to go", lambda: not team.pods("job"))
    team.wait("the JobSet to forget its nodes", lambda: not _selectors(team))
    team.patch("clusterqueues", team.namespace, {"spec": {"stopPolicy": "None"}})
    check_placed()


@pytest.mark.scenario(3, "the number of pods cannot change under Kueue: it is refused")
def test_a_queued_job_keeps_its_number_of_pods(team: Team) -> None:
    team.open_queue({"cpu": "2"})
    team.submit("job", nodes=3, runtime=objects.HELD)
    team.wait_queued("job")
    with pytest.raises(LabError, match=r"numNodes.*cannot be changed"):
        team.patch("trainjobs", "job", {"spec": {"trainer": {"numNodes": 2}}})
    assert [one["count"] for one in (team.workload("job") or {})["spec"]["podSets"]] == [3]


@pytest.mark.scenario(32, "a preempted job keeps its quota while active, and is pending once it is not")
def test_a_job_of_higher_priority_takes_the_place_of_a_lower_and_gives_it_back(team: Team) -> None:
    low, high = (f"{team.namespace}-{word}" for word in ("low", "high"))
    team.create(objects.priority_class(low, 10))
    team.create(objects.priority_class(high, 100))
    team.open_queue({"cpu": "2"}, preemption={"withinClusterQueue": "LowerPriority"})
    team.submit("first", cpu="2", runtime=objects.HELD, labels={objects.PRIORITY_LABEL: low})
    team.wait_running("first")
    workload = team.workload("first")
    assert workload is not None
    assert workload["spec"]["priority"] == 10

    # Nobody stops pods for a while, or counts them: the job, once it is seen to be active, stays so.
    team.wait("the first to be seen as active", lambda: team.active("first") == 1)
    jobs = team.cluster.engines()["kube-controller-manager"].process
    jobs.signal(signal.SIGSTOP)
    try:
        team.submit("second", cpu="2", runtime=objects.HELD, labels={objects.PRIORITY_LABEL: high})
        team.wait("the first to be suspended", lambda: team.suspended("first"))
        team.wait("Kueue to be told", lambda: condition_of(team.workload("first") or {}, "Evicted") == "True")
        assert team.active("first") == 1
        assert condition_of(team.workload("first") or {}, "QuotaReserved") == "True"
        assert team.suspended("second")
    finally:
        jobs.signal(signal.SIGCONT)
    team.wait_running("second")
    team.wait_queued("first")
    team.wait("the first to have no active Job", lambda: team.active("first") == 0)

    team.end_pods("second")
    team.wait_running("first")


@pytest.mark.scenario(35, "finished parts give their quota back, and a second job comes in")
def test_quota_of_finished_steps_serves_the_next_job(team: Team) -> None:
    team.open_queue({"cpu": "6"})
    cpu = {"cpu": "1", "memory": "1Mi"}
    many = step("many", ancestor=None, replicas=2, parallelism=2, completions=2, requests=cpu)
    pair = step("pair", ancestor=None, parallelism=2, completions=2, requests=cpu)
    team.create(runtime("steps", team.namespace, many, pair, policy={}))
    job = objects.train_job("first", team.namespace, **in_namespace("steps"))
    del job["spec"]["trainer"]
    team.create_seen(job)
    team.wait_running("first", pods=6)
    team.submit("second", nodes=4, runtime=objects.HELD)
    team.wait_queued("second")

    team.end_pods("first", "many")
    team.wait_running("second", pods=4)
    workload = team.workload("first")
    assert workload is not None
    assert workload["status"]["reclaimablePods"] == [{"name": "many", "count": 4}]
    assert not team.holds("trainjobs", "first", "Complete")


@pytest.mark.scenario(10, "without a queue a job is not suspended; Kueue's entry is there all the same")
@pytest.mark.scenario(33, "only jobs with a queue are managed; one that gets a queue later is from then on")
@pytest.mark.scenario(37, "the webhook with and without a queue")
def test_a_job_without_a_queue_runs_at_once_and_may_join_one_later(team: Team) -> None:
    queue = team.open_queue({"cpu": "1"})
    made = team.submit("job", queue=None, cpu="1", runtime=objects.HELD)
    assert made["spec"]["suspend"] is False
    assert [one["manager"] for one in made["spec"]["runtimePatches"]] == [objects.KUEUE_MANAGER]
    team.wait_running("job")
    assert team.workload("job") is None

    team.submit("other", cpu="1", runtime=objects.HELD)
    team.wait_running("other")
    team.patch("trainjobs", "job", {"spec": {"suspend": True}, "metadata": {"labels": {objects.QUEUE_LABEL: queue}}})
    team.wait_queued("job")
    team.wait("its pods to go", lambda: not team.pods("job"))
    team.end_pods("other")
    team.wait_running("job")


def _selectors(team: Team) -> list[Tree]:
    """Return the node selectors of the JobSet's steps."""
    steps = team.get("jobsets", "job")["spec"]["replicatedJobs"]
    return [_pod(one)["spec"]["nodeSelector"] for one in steps if "nodeSelector" in _pod(one)["spec"]]


def _only(job: Tree, manager: str) -> Tree:
    (entry,) = [one for one in job["spec"]["runtimePatches"] if one["manager"] == manager]
    found: Tree = entry
    return found
