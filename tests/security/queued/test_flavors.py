"""A tenant of a queue runs where it was charged for, and only when Kueue says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lab.errors import LabError
from lab.kwok import TAINT
from tests.fleet import objects
from tests.fleet.one_cluster import podsets
from tests.fleet.one_cluster.stage import POOL
from tests.security.queued.conftest import CHEAP

if TYPE_CHECKING:
    from tests.fleet.objects import Tree
    from tests.fleet.one_cluster.team import Team

MINE = "example.com/tenant"
KUEUE = objects.KUEUE_MANAGER
TOLERANT: Tree = {"tolerations": [{"key": TAINT["key"], "operator": "Exists"}]}
ELSEWHERE: Tree = {"nodeSelector": {POOL: "spot"}}
PREMIUM_NODES: Tree = {**TOLERANT, **ELSEWHERE}
"""A pod's spec that leads to nodes that were not charged."""


def entry(manager: str, *, metadata: Tree | None = None, **spec: Any) -> Tree:
    """Return a runtimePatches entry for the pods of job node."""
    pod: Tree = {"spec": spec, **({"metadata": metadata} if metadata else {})}
    change = {"name": "node", "template": {"spec": {"template": pod}}}
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [change]}}}}


def add(tenant: Team, *entries: Tree, **spec: Any) -> Tree:
    """Let the tenant write entries behind those that are there."""
    present = tenant.job("job")["spec"]["runtimePatches"]
    return tenant.patch("trainjobs", "job", {"spec": {"runtimePatches": [*present, *entries], **spec}})


def replace(tenant: Team, kueues: Tree, **spec: Any) -> Tree:
    """Let the tenant write another entry in the place of Kueue's."""
    present = tenant.job("job")["spec"]["runtimePatches"]
    others = [one for one in present if one["manager"] != KUEUE]
    return tenant.patch("trainjobs", "job", {"spec": {"runtimePatches": [*others, kueues], **spec}})


def open_queue(admin: Team) -> None:
    admin.patch("clusterqueues", admin.namespace, {"spec": {"stopPolicy": "None"}})


def charged(team: Team) -> set[str]:
    """Return the flavors that the job's quota was taken of."""
    workload = team.workload("job") or {}
    (assignment,) = workload["status"]["admission"]["podSetAssignments"]
    return set(assignment["flavors"].values())


def check_runs_as_charged(team: Team) -> None:
    team.wait_running("job")
    assert charged(team) == {CHEAP}
    assert {pod["spec"]["nodeName"].rpartition("-")[0] for pod in team.pods("job")} == {"plain"}


@pytest.mark.attack("TrainJob author", "nodes of a flavor that the queue did not charge for")
def test_a_patch_behind_kueues_does_not_lead_elsewhere(admin: Team, tenant: Team) -> None:
    """Kueue sees that a queued job's tolerations change, and chooses anew; a node selector it does not see."""
    tenant.submit("job", runtime=objects.HELD, runtimePatches=[entry(MINE, **TOLERANT)])
    admin.wait_queued("job")
    add(tenant, entry(f"{MINE}/2", **ELSEWHERE))
    open_queue(admin)
    check_runs_as_charged(admin)


@pytest.mark.attack("TrainJob author", "pods that Kueue takes for another job's, or for nobody's")
def test_marks_by_which_kueue_knows_pods_are_kueues(admin: Team, tenant: Team) -> None:
    theirs = {
        "labels": {"kueue.x-k8s.io/podset": "other", "kueue.x-k8s.io/cluster-queue-name": "others"},
        "annotations": {"kueue.x-k8s.io/workload": "others"},
    }
    tenant.submit("job", runtime=objects.HELD, runtimePatches=[entry(MINE, metadata=theirs)])
    admin.wait_queued("job")
    add(tenant, entry(f"{MINE}/2", metadata=theirs))
    open_queue(admin)
    admin.wait_running("job")
    workload = admin.workload("job") or {}
    for pod in admin.pods("job"):
        assert pod["metadata"]["labels"]["kueue.x-k8s.io/podset"] == "node"
        assert pod["metadata"]["labels"]["kueue.x-k8s.io/cluster-queue-name"] == admin.namespace
        assert pod["metadata"]["annotations"]["kueue.x-k8s.io/workload"] == workload["metadata"]["name"]


@pytest.mark.attack("TrainJob author", "nodes of another flavor, by an entry in Kueue's name")
def test_kueues_entry_is_written_by_kueue_alone(admin: Team, tenant: Team) -> None:
    tenant.submit("job", runtime=objects.HELD, runtimePatches=[entry(KUEUE, **PREMIUM_NODES)])
    admin.wait_queued("job")
    assert tenant.kueue_entry("job")["trainingRuntimeSpec"] == {"template": {"spec": {}}}, "Kueue's, and empty"
    for forged in (
        entry(KUEUE, **PREMIUM_NODES),
        {"manager": KUEUE},  # Kueue would break on it at every try to start the job
        {"manager": KUEUE, "trainingRuntimeSpec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {}}}},
    ):
        with pytest.raises(LabError, match=r": 403 .*spec.runtimePatches\[manager=kueue.x-k8s.io/manager\]"):
            replace(tenant, forged)
    open_queue(admin)
    check_runs_as_charged(admin)
    for suspend in (False, True):
        with pytest.raises(LabError, match=": 403 "):
            replace(tenant, entry(KUEUE, **PREMIUM_NODES), suspend=suspend)
    check_runs_as_charged(admin)


@pytest.mark.attack("TrainJob author", "nodes without quota: a job that begins before it is admitted is never placed")
def test_only_kueue_lets_a_queued_job_begin(admin: Team, tenant: Team) -> None:
    tenant.submit("job", runtime=objects.HELD, runtimePatches=[entry(MINE, **PREMIUM_NODES)])
    admin.wait_queued("job")
    assert tenant.patch("trainjobs", "job", {"spec": {"suspend": False}})["spec"]["suspend"] is True
    leaves = {"metadata": {"labels": {objects.QUEUE_LABEL: None}}, "spec": {"suspend": False}}
    with pytest.raises(LabError, match=r": 403 .*queue-name"):  # Kueue's own rule: who leaves a queue is suspended
        tenant.patch("trainjobs", "job", leaves)
    assert admin.suspended("job")
    assert not admin.pods("job")


@pytest.mark.attack("TrainJob author", "quota for one node with one CPU, and pods with more of both")
def test_patches_do_not_change_what_is_counted(admin: Team, tenant: Team) -> None:
    greedy = entry(MINE, containers=[{"name": "node", "resources": {"requests": {"cpu": "16"}}}], nodeName="spot-0")
    (change,) = greedy["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    change["replicas"] = 3
    change["template"]["spec"] |= {"parallelism": 3, "completions": 3}
    greedy["trainingRuntimeSpec"]["mlPolicy"] = {"numNodes": 3}
    unseen = entry(MINE)
    (hidden,) = unseen["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    hidden["template"]["metadata"] = {"labels": {objects.STEP_LABEL: "dataset-initializer"}}
    with pytest.raises(LabError, match=r": 403 .*spec.trainer: .*would have no effect"):  # nothing would be counted
        tenant.create(objects.train_job("unseen", tenant.namespace, runtime=objects.HELD, runtimePatches=[unseen]))
    tenant.submit("job", runtime=objects.HELD, runtimePatches=[greedy])
    open_queue(admin)
    admin.wait_running("job")
    counted = podsets.of_workload(admin.workload("job") or {})
    assert counted == podsets.of_jobset(admin.get("jobsets", "job"))
    assert [one["count"] for one in counted] == [len(admin.pods("job"))] == [1]


@pytest.mark.attack("TrainJob author", "a privileged pod on the node's own disk, with another's service account")
def test_patches_keep_to_the_admins_list(tenant: Team) -> None:
    greedy: Tree = {
        "serviceAccountName": "admin",
        "volumes": [{"name": "host", "hostPath": {"path": "/"}}],
        "containers": [{"name": "node", "securityContext": {"privileged": True}}],
    }
    override = {"targetJobs": [{"name": "node"}], "spec": {"serviceAccountName": "admin"}}
    for name, spec in (
        ("patches", {"runtimePatches": [entry(MINE, **greedy)]}),
        ("older", {"podTemplateOverrides": [override]}),
        ("ours", {"runtimePatches": [entry("trainer.kubeflow.org/older-fields", **greedy)]}),
    ):
        refusal = (
            r": 403 .*trainingRuntimeSpec\.template\.spec\.replicatedJobs\[name=node\].*may not be patched by admission"
        )
        with pytest.raises(LabError, match=refusal):
            tenant.create(objects.train_job(name, tenant.namespace, **spec))
    tenant.submit("job", runtime=objects.HELD)
    with pytest.raises(LabError, match=": 403 "):
        replace(tenant, entry(KUEUE, **greedy))
