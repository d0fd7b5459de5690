"""What Kueue's webhooks and ours make of a TrainJob together when it is created."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lab.errors import LabError
from tests.fleet import objects
from tests.fleet.one_cluster.runtimes import in_namespace, runtime, step
from tests.fleet.one_cluster.stage import BLOCK

if TYPE_CHECKING:
    from tests.fleet.objects import Tree
    from tests.fleet.one_cluster.team import Team

_ITSELF = "trainer.kubeflow.org/trainjob-controller"
_PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"
_REQUIRED, _PREFERRED, _SLICE, _SLICE_SIZE = (
    f"kueue.x-k8s.io/podset-{word}"
    for word in ("required-topology", "preferred-topology", "slice-required-topology", "slice-size")
)


@pytest.mark.scenario(12, "a LocalQueue named default takes jobs that name no queue")
def test_a_default_queue_takes_jobs_without_one(team: Team) -> None:
    team.open_queue()
    team.create(objects.local_queue(team.namespace, name="default"))
    job = objects.train_job("job", team.namespace, queue=None, runtime=objects.HELD)

    def labelled() -> bool:
        made = team.dry_run(job)
        labels = made["metadata"].get("labels")
        return labels == {objects.QUEUE_LABEL: "default"} and bool(made["spec"]["suspend"])

    team.wait("Kueue to know the queue", labelled)
    team.create(job)
    team.wait_running("job")
    assert (team.workload("job") or {})["spec"]["queueName"] == "default"


@pytest.mark.scenario(13, "managedBy is defaulted where the queue has a MultiKueue check")
@pytest.mark.scenario(14, "a managedBy that the user wrote is kept")
@pytest.mark.scenario(15, "managedBy is not defaulted without a MultiKueue check")
def test_managed_by_follows_the_queue_and_a_job_of_multikueue_is_left_alone(team: Team) -> None:
    check = f"{team.namespace}-check"
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": check}
    team.create(_kueue("MultiKueueConfig", check, {"clusters": ["far-away"]}))
    spec = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}
    team.create(_kueue("AdmissionCheck", check, spec))
    team.create(objects.cluster_queue(f"{team.namespace}-far", checks=(check,)))
    team.create(objects.local_queue(team.namespace, name="far", cluster_queue=f"{team.namespace}-far"))
    team.open_queue()
    far = objects.train_job("far", team.namespace, queue="far", runtime=objects.HELD)

    def defaulted() -> bool:
        return bool(team.dry_run(far)["spec"]["managedBy"] == objects.MULTIKUEUE)

    team.wait("Kueue to know the check", defaulted)
    team.create(far)
    users = team.submit("users", runtime=objects.HELD, managedBy=objects.MULTIKUEUE)
    assert users["spec"]["managedBy"] == objects.MULTIKUEUE
    near = team.submit("near", runtime=objects.HELD)
    assert near["spec"]["managedBy"] == _ITSELF
    team.wait_running("near")
    team.wait("Kueue to unsuspend the user's job", lambda: not team.suspended("users"))
    for name in ("far", "users"):  # the operator has seen them before it started the last one
        assert team.find("jobsets", name) is None
        assert set(team.job(name).get("status") or {}) <= {"phase", "reason"}


@pytest.mark.scenario(4, "a runtime that is not there is refused at creation, so that Kueue never asks for it")
def test_a_job_of_an_unknown_runtime_is_refused(team: Team) -> None:
    team.open_queue()
    with pytest.raises(LabError, match="nowhere"):
        team.submit("job", runtime="nowhere")
    assert team.find("trainjobs", "job") is None


@pytest.mark.scenario(16, "a queue name that cannot be one is refused")
def test_a_queue_of_an_impossible_name_is_refused(team: Team) -> None:
    with pytest.raises(LabError, match="queue-name"):
        team.create(objects.train_job("job", team.namespace, queue="No_Queue"))


@pytest.mark.scenario(17, "a prebuilt Workload may be named")
def test_a_job_may_name_a_workload(team: Team) -> None:
    team.open_queue()
    made = team.submit("job", runtime=objects.HELD, annotations={_PREBUILT: "made-before"})
    assert made["metadata"]["annotations"][_PREBUILT] == "made-before"
    assert made["spec"]["suspend"] is True


def _annotated(source: str, annotations: dict[str, str], namespace: str) -> tuple[Tree, Tree]:
    """Return a runtime and a TrainJob, with annotations on the pods by one of the two."""
    from_runtime = annotations if source == "runtime" else {}
    job = objects.train_job("job", namespace, nodes=2, **in_namespace("one"))
    if source == "patches":
        pod = {"metadata": {"annotations": annotations}}
        change = {"name": "node", "template": {"spec": {"template": pod}}}
        spec = {"template": {"spec": {"replicatedJobs": [change]}}}
        job["spec"]["runtimePatches"] = [{"manager": "example.com/team", "trainingRuntimeSpec": spec}]
    return runtime("one", namespace, step(annotations=from_runtime)), job


_TOPOLOGY: tuple[Any, ...] = (
    pytest.param(
        "patches", {_REQUIRED: BLOCK}, None, marks=pytest.mark.scenario(18, "topology annotations from patches")
    ),
    pytest.param(
        "runtime", {_PREFERRED: BLOCK}, None, marks=pytest.mark.scenario(19, "topology annotations from the runtime")
    ),
    pytest.param(
        "patches",
        {_REQUIRED: BLOCK, _PREFERRED: BLOCK},
        "must not contain more than one topology",
        marks=pytest.mark.scenario(18, "topology annotations from patches"),
    ),
    pytest.param(
        "runtime",
        {_REQUIRED: BLOCK, _PREFERRED: BLOCK},
        "must not contain more than one topology",
        marks=pytest.mark.scenario(20, "contradicting topology annotations from the runtime are refused"),
    ),
    pytest.param(
        "runtime",
        {_REQUIRED: BLOCK, _SLICE: BLOCK, _SLICE_SIZE: "3"},
        "must not be greater than pod set count 2",
        marks=pytest.mark.scenario(21, "a slice larger than the job is refused"),
    ),
)


@pytest.mark.parametrize(("source", "annotations", "refusal"), _TOPOLOGY)
def test_topology_annotations_are_judged_wherever_they_come_from(
    team: Team, source: str, annotations: dict[str, str], refusal: str | None
) -> None:
    one, job = _annotated(source, annotations, team.namespace)
    team.create(one)
    if refusal is None:
        team.create_seen(job)
        return
    with pytest.raises(LabError, match=refusal):
        team.create_seen(job)


def _kueue(kind: str, name: str, spec: Tree) -> Tree:
    return {"apiVersion": objects.KUEUE, "kind": kind, "metadata": {"name": name}, "spec": spec}
