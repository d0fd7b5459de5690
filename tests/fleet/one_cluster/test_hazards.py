"""What Kueue 0.19 does to TrainJobs beside queueing them, and what becomes of it with us."""

from __future__ import annotations

import copy
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from lab.errors import LabError
from tests.fleet import objects
from tests.fleet.one_cluster import podsets
from tests.fleet.one_cluster.runtimes import in_namespace, runtime, step
from tests.fleet.one_cluster.stage import GPU
from tests.fleet.one_cluster.team import condition_of

if TYPE_CHECKING:
    from tests.fleet.objects import Tree
    from tests.fleet.one_cluster.team import Team

_UNCHECKED = "trainer.kubeflow.org/webhook-validation"


@pytest.mark.scenario("I-empty", "values that Kueue's typed writes drop do not keep a job from starting, and stay")
def test_empty_values_and_fields_unknown_to_kueue_survive_its_writes(team: Team) -> None:
    team.open_queue()
    team.create(runtime("one", team.namespace, step("dataset-initializer", ancestor="dataset-initializer"), step()))
    pod = {"terminationGracePeriodSeconds": 7, "nodeSelector": {}, "containers": []}
    change = {"name": "node", "template": {"spec": {"template": {"metadata": {}, "spec": pod}}}}
    empty = {"manager": "example.com/empty", "trainingRuntimeSpec": {}}
    mine = {"manager": "example.com/mine", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [change]}}}}
    trainer = {
        "args": [],
        "command": ["train", ""],
        "env": [{"name": "EMPTY", "value": ""}, {"name": "SET", "value": "1"}],
        "resourcesPerNode": {"requests": {"cpu": "0.5", "memory": "1Gi"}, "limits": {}},
    }
    initializer: Tree = {"dataset": {"env": []}}
    job = objects.train_job("job", team.namespace, **in_namespace("one"))
    job["spec"] |= {"trainer": trainer, "initializer": initializer, "runtimePatches": [mine, empty]}
    made = team.create_seen(job)
    team.wait_running("job", pods=2)
    spec = team.job("job")["spec"]
    assert spec["trainer"] == made["spec"]["trainer"]
    amounts = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {}}  # Kueue's webhook writes amounts its way
    assert spec["trainer"] == {**trainer, "resourcesPerNode": amounts}
    assert spec["initializer"] == initializer
    kept = {one["manager"]: one for one in spec["runtimePatches"]}
    for one in made["spec"]["runtimePatches"]:
        if one["manager"] != objects.KUEUE_MANAGER:
            assert kept[one["manager"]] == one, "neither the words nor the time changed"
    seconds = {pod["spec"]["terminationGracePeriodSeconds"] for pod in team.pods("job")}
    assert seconds == {7, 30}, "what the patch says, and what Kubernetes says where there is none"


@pytest.mark.parametrize("queue", ["named", "default"])
@pytest.mark.scenario("I-resources", "resourcesPerNode that says less than the runtime is counted as the pods have it")
def test_resources_that_kueue_would_lose_are_counted(team: Team, queue: str) -> None:
    team.open_queue({GPU: "2"})
    if queue == "default":
        team.create(objects.local_queue(team.namespace, name="default"))
        team.wait("the queue to be active", lambda: team.holds("localqueues", "default", "Active"))
    team.create(runtime("gpus", team.namespace, step(limits={GPU: "2"})))
    said = {"requests": {"cpu": "1", "memory": "1Gi"}}
    job = objects.train_job("job", team.namespace, queue=objects.QUEUE if queue == "named" else None)
    job["spec"] |= {"runtimeRef": {"kind": "TrainingRuntime", "name": "gpus"}, "trainer": {"resourcesPerNode": said}}
    if queue == "default":
        team.wait("Kueue to know the default queue", lambda: _labelled(team, job))
    made = team.create_seen(job)
    assert made["metadata"]["labels"][objects.QUEUE_LABEL] == (objects.QUEUE if queue == "named" else "default")
    whole = {**said, "limits": {GPU: "2"}}
    assert made["spec"]["trainer"]["resourcesPerNode"] == whole
    team.wait_running("job")
    workload = team.workload("job")
    assert workload is not None
    assert podsets.of_workload(workload) == podsets.of_jobset(team.get("jobsets", "job"))
    (assigned,) = workload["status"]["admission"]["podSetAssignments"]
    assert assigned["resourceUsage"][GPU] == "2"

    # Whoever writes their own file again changes nothing.
    replaced: list[Tree] = []
    team.wait("to be the last to write", lambda: _written_again(team, job, replaced))
    assert replaced[0]["spec"]["trainer"]["resourcesPerNode"] == whole
    team.submit("next", gpus=1, **in_namespace("gpus"))
    team.wait_queued("next")


@pytest.mark.scenario("I-torchtune", "a torchtune job starts although Kueue writes its command back expanded")
def test_a_torchtune_job_starts_and_keeps_its_command(team: Team) -> None:
    team.open_queue()
    (case,) = [one for one in podsets.CASES if one.name == "torchtune with initializers"]
    team.create(case.runtime(team.namespace))
    team.create_seen(case.job(team.namespace))
    team.wait_running("job", pods=2)
    for name in ("dataset-initializer", "model-initializer"):
        team.end_pods("job", name)

    def tunes() -> list[Tree]:
        return [
            pod
            for pod in team.pods("job")
            if pod["metadata"]["labels"]["kueue.x-k8s.io/podset"] == "node" and pod["status"]["phase"] == "Running"
        ]

    team.wait("the model to be tuned", tunes)
    (container,) = tunes()[0]["spec"]["containers"]
    assert container["command"][:2] == ["tune", "run"]
    assert "full_finetune_distributed" in container["command"]
    assert team.job("job")["spec"]["trainer"]["command"] == ["tune", "run"]
    workload = team.workload("job")
    assert workload is not None
    assert workload["spec"]["podSets"][-1]["template"]["spec"]["containers"][0]["command"] == container["command"]

    team.patch("workloads", workload["metadata"]["name"], {"spec": {"active": False}})
    team.wait("the job to be stopped", lambda: team.suspended("job") and not tunes())
    team.patch("workloads", workload["metadata"]["name"], {"spec": {"active": True}})
    team.wait("the model to be tuned again", tunes)
    with pytest.raises(LabError, match="cannot be changed"):
        team.patch("trainjobs", "job", {"spec": {"trainer": {"command": ["tune", "run", "mine"]}}})


@pytest.mark.scenario("I-flux", "a Flux job starts although Kueue writes its command back wrapped")
def test_a_flux_job_starts_and_keeps_its_command(team: Team) -> None:
    team.open_queue()
    trainer = {"command": ["lmp"], "args": ["-in", "file"], "numNodes": 2}
    case = podsets.shipped("flux-distributed", trainer=trainer)
    team.create(case.runtime(team.namespace))
    team.create_seen(case.job(team.namespace))
    team.wait("the job to be complete", lambda: team.holds("trainjobs", "job", "Complete"))
    assert team.job("job")["spec"]["trainer"] == trainer


def _changed(tree: Tree, **container: Any) -> Tree:
    """Return a runtime with other words in its first container."""
    tree = copy.deepcopy(tree)
    (first,) = tree["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"][
        "containers"
    ]
    first.update(container)
    return tree


@pytest.mark.parametrize("state", ["running", "queued"])
@pytest.mark.scenario("I-runtime", "a runtime does not change or go under a job that Kueue counts by it")
def test_a_runtime_in_use_is_neither_changed_nor_deleted(team: Team, state: str) -> None:
    team.open_queue({"cpu": "1" if state == "running" else "0"})
    team.create(runtime("used", team.namespace, step()))
    team.submit("job", **in_namespace("used"))
    if state == "running":
        team.wait_running("job")
    else:
        team.wait_queued("job")
        team.wait("the operator, too, to have seen the job", lambda: team.find("jobsets", "job"))
    stands = team.get("trainingruntimes", "used")
    named = f"TrainJob {team.namespace}/job"
    with pytest.raises(LabError, match="cannot change containers of job node while Kueue counts by it") as refusal:
        team.replace("trainingruntimes", _changed(stands, image="none.invalid/x:2"))
    assert named in str(refusal.value)
    with pytest.raises(LabError, match=r"cannot change spec\.mlPolicy"):
        team.patch("trainingruntimes", "used", {"spec": {"mlPolicy": {"numNodes": 3}}})
    with pytest.raises(LabError, match="cannot be deleted while Kueue counts by it") as refusal:
        team.delete("trainingruntimes", "used")
    assert named in str(refusal.value)
    # What Kueue makes no pods of may change.
    team.patch("trainingruntimes", "used", {"spec": {"template": {"spec": {"ttlSecondsAfterFinished": 600}}}})

    if state == "running":
        team.end_pods("job")
        team.wait("the job to be complete", lambda: team.holds("trainjobs", "job", "Complete"))
    else:
        team.delete("trainjobs", "job")
    team.wait("leave to change it", lambda: _accepted(team, _changed(stands, image="none.invalid/x:3")))
    team.delete("trainingruntimes", "used")


@pytest.mark.scenario("I-runtime-forced", "what Kueue does when a runtime changes under a running job all the same")
def test_a_runtime_changed_by_force_makes_kueue_stop_and_requeue_its_jobs(team: Team) -> None:
    """Why the edit is refused; and that nothing worse happens to whoever forces it."""
    team.open_queue()
    team.create(runtime("used", team.namespace, step()))
    team.submit("job", **in_namespace("used"))
    team.wait_running("job")
    first = {pod["metadata"]["uid"] for pod in team.pods("job")}
    team.patch("trainingruntimes", "used", {"metadata": {"labels": {_UNCHECKED: "disabled"}}})
    team.replace("trainingruntimes", _changed(team.get("trainingruntimes", "used"), image="none.invalid/x:2"))
    news = count()

    def stopped() -> bool:
        if not team.suspended("job"):  # Kueue looks when the job changes, and may have seen that before the runtime
            team.patch("trainjobs", "job", {"metadata": {"labels": {"any": f"news-{next(news)}"}}})
        return first.isdisjoint(pod["metadata"]["uid"] for pod in team.pods("job"))

    team.wait("Kueue to stop it", stopped)
    team.wait_event("job", "DeletedWorkload", "Deleted not matching Workload")
    team.wait_running("job")
    (pod,) = team.pods("job")
    assert pod["spec"]["containers"][0]["image"] == "none.invalid/x:1", "the job goes on with what it began with"

    team.delete("trainingruntimes", "used")
    team.wait("Kueue to see that it is gone", lambda: _frozen(team, "job", "change"))
    team.end_pods("job")
    team.wait("the job to be complete", lambda: team.holds("trainjobs", "job", "Complete"))
    workload = team.workload("job")
    assert workload is not None
    assert condition_of(workload, "Finished") is None, "its quota stays taken"
    restored = runtime("used", team.namespace, step())
    team.create(_changed(restored, image="none.invalid/x:2"))
    team.wait("Kueue to know it again, and look", lambda: not _frozen(team, "job", "more"))
    team.wait("Kueue to see the end", lambda: condition_of(team.workload("job") or {}, "Finished") == "True")


def _frozen(team: Team, job: str, news: str) -> bool:
    """Return whether Kueue refuses any change of a TrainJob, such as this; if not, it is made."""
    try:
        team.patch("trainjobs", job, {"metadata": {"labels": {"any": news}}})
    except LabError as refusal:
        return "runtime 'used' not found" in str(refusal)
    return False


def _accepted(team: Team, tree: Tree) -> bool:
    latest = team.get("trainingruntimes", tree["metadata"]["name"])
    try:
        team.replace("trainingruntimes", {**tree, "metadata": latest["metadata"]})
    except LabError as refusal:
        if "while Kueue counts by it" not in str(refusal):
            raise
        return False
    return True


def _labelled(team: Team, job: Tree) -> bool:
    """Return whether Kueue would put a TrainJob into the default queue; it is not created."""
    try:
        made = team.dry_run(job)
    except LabError:
        return False
    return objects.QUEUE_LABEL in made["metadata"].get("labels", {})


def _written_again(team: Team, job: Tree, written: list[Tree]) -> bool:
    """Put a TrainJob as the user has it over the stored one, with what others put into it; False if it just changed."""
    stored = team.job(job["metadata"]["name"])
    others = {field: stored["spec"][field] for field in ("runtimePatches", "suspend", "managedBy")}
    try:
        written.append(team.replace("trainjobs", {**job, "metadata": stored["metadata"], "spec": job["spec"] | others}))
    except LabError as refusal:
        if "409" not in str(refusal):
            raise
        return False
    return True
