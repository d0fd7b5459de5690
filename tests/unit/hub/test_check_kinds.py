"""The fleet check of older kinds: told of where the hub dispatches them, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.hub.check_objects import NAMESPACE, cluster_facts, content, fleet_facts, hub_facts, worker_facts
from tests.unit.hub.legacy import JAX, LEGACY, MPI, PYTORCH
from trainplane.hub.check.facts import NEEDED, ClusterFacts, permissions_for
from trainplane.hub.check.judge import judge
from trainplane.hub.check.kinds import legacy_kinds
from trainplane.hub.check.needs import needs_of, read_manifest
from trainplane.resources import SECRETS

if TYPE_CHECKING:
    from trainplane.hub.kinds import JobKind

Tree = dict[str, Any]


def serving(facts: ClusterFacts, *kinds: JobKind, **changes: Any) -> ClusterFacts:
    served = {api: frozenset(plurals) for api, plurals in NEEDED.items()}
    for kind in kinds:
        api = kind.resource.api_version
        served[api] = served.get(api, frozenset()) | {kind.plural, f"{kind.plural}/status"}
    return replace(facts, served=served, **changes)


def pytorch_job(*, workers: Any = 2, **policy: Any) -> Tree:
    variable = {"name": "T", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "k"}}}
    container = {"name": "pytorch", "image": "train:1", "resources": {"requests": {"cpu": "2"}}, "env": [variable]}
    template = {"spec": {"containers": [container]}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "tune", "namespace": NAMESPACE, "labels": {"kueue.x-k8s.io/queue-name": "gpu"}},
        "spec": {
            "runPolicy": policy,
            "pytorchReplicaSpecs": {
                "Master": {"template": template},
                "Worker": {"replicas": workers, "template": template},
            },
        },
    }


def test_a_fleet_without_older_kinds_is_told_nothing_of_them() -> None:
    report = judge(fleet_facts())
    assert report.ready
    assert all(check.area != "kinds" for cluster in (report.hub, *report.workers) for check in cluster.checks)


def test_kinds_that_are_served_everywhere_are_well() -> None:
    worker = worker_facts(cluster=serving(cluster_facts(content()), PYTORCH, MPI))
    report = judge(fleet_facts(worker, hub=serving(hub_facts(), PYTORCH, MPI)))
    assert report.ready
    assert report.hub.check("kinds").summary == "TrainJob, PyTorchJob, MPIJob"
    assert report.worker("worker1").check("kinds").findings == ()


def test_a_worker_that_lacks_a_kind_of_the_hub_is_told_of() -> None:
    report = judge(fleet_facts(hub=serving(hub_facts(), PYTORCH)))
    (finding,) = report.worker("worker1").check("kinds").findings
    assert finding.level == "stops"
    assert finding.problem == "kubeflow.org/v1 is served without pytorchjobs, which the hub dispatches"
    assert "legacy.kinds" in finding.remedy


def test_a_kind_that_the_hubs_kueue_does_not_take_asks_nothing_of_workers() -> None:
    hub = serving(hub_facts(), PYTORCH, MPI, frameworks=frozenset({"batch/job", "kubeflow.org/mpijob"}))
    assert legacy_kinds(hub) == (MPI,)
    worker = worker_facts(cluster=serving(cluster_facts(content()), MPI))
    assert judge(fleet_facts(worker, hub=hub)).ready


def test_that_no_jax_job_is_ever_sent_is_said_in_words() -> None:
    worker = worker_facts(cluster=serving(cluster_facts(content()), JAX))
    report = judge(fleet_facts(worker, hub=serving(hub_facts(), JAX)))
    (finding,) = report.hub.check("kinds").findings
    assert finding.level == "warns"
    assert finding.problem.startswith("no JAXJob can be sent to a worker: the webhook of Kueue there refuses")
    assert report.ready, "jobs of other kinds go their way"


def test_a_jax_job_that_is_given_would_be_stopped() -> None:
    job = pytorch_job() | {"kind": "JAXJob", "spec": {"jaxReplicaSpecs": {"Worker": {"replicas": 1}}}}
    findings = judge(fleet_facts(trainjob=job)).hub.check("trainjob").findings
    assert [finding.level for finding in findings] == ["stops"]


def test_what_a_job_needs_is_read_from_its_own_pods() -> None:
    needs = needs_of(pytorch_job(), hub_facts())
    assert needs.problem == ""
    assert [(one.name, one.count, str(one.per_pod["cpu"])) for one in needs.pod_sets] == [
        ("master", 1, "2"),
        ("worker", 2, "2"),
    ]
    assert [(one.resource, one.name, one.by) for one in needs.references] == [
        (SECRETS, "hf", "container pytorch of the pods of Master")
    ]


def test_a_job_that_asks_for_more_than_there_is_would_be_stopped() -> None:
    findings = judge(fleet_facts(trainjob=pytorch_job(workers=9))).worker("worker1").check("trainjob").findings
    assert any("can never give more than 8 cpu" in finding.problem for finding in findings)


def test_a_manager_that_is_not_ours_is_named_with_its_field() -> None:
    job = pytorch_job(managedBy="someone.example/else")
    (finding,) = judge(fleet_facts(trainjob=job)).hub.check("trainjob").findings
    assert finding.problem == "spec.runPolicy.managedBy is 'someone.example/else': MultiKueue leaves it alone"


@pytest.mark.parametrize("workers", ["many", -1, 1.5, [2]])
def test_a_number_of_pods_that_is_none_is_named(workers: Any) -> None:
    assert "spec.pytorchReplicaSpecs.Worker.replicas" in needs_of(pytorch_job(workers=workers), hub_facts()).problem


@pytest.mark.parametrize("spec", [{}, {"pytorchReplicaSpecs": None}, {"pytorchReplicaSpecs": ["Master"]}, {"a": 1}])
def test_a_job_without_pods_is_named(spec: Tree) -> None:
    job = pytorch_job() | {"spec": spec}
    assert needs_of(job, hub_facts()).problem.startswith("spec.pytorchReplicaSpecs is missing")


@pytest.mark.parametrize("replicas", [None, "x", {"template": None}, {"template": {"spec": {"containers": None}}}])
def test_pods_that_are_none_need_nothing(replicas: Any) -> None:
    job = pytorch_job() | {"spec": {"pytorchReplicaSpecs": {"Worker": replicas}}}
    assert needs_of(job, hub_facts()).references == ()


@pytest.mark.parametrize("kind", LEGACY, ids=lambda kind: kind.name)
def test_a_manifest_may_have_a_job_of_any_kind(kind: JobKind) -> None:
    text = f"apiVersion: {kind.resource.api_version}\nkind: {kind.name}\nmetadata: {{name: x}}\n"
    assert read_manifest(text, "mine", "f.yaml")["metadata"] == {"namespace": "mine", "name": "x"}


def test_what_multikueue_must_be_allowed_is_asked_for_each_kind() -> None:
    asked = permissions_for(MPI)
    assert {one.resource for one in asked} == {"mpijobs", "mpijobs/status"}
    denied = dict.fromkeys(asked, False)
    worker = worker_facts(cluster=serving(cluster_facts(content()), MPI), permissions=denied)
    findings = judge(fleet_facts(worker, hub=serving(hub_facts(), MPI))).worker("worker1").check("credentials").findings
    assert [finding.problem for finding in findings] == [
        "MultiKueue's credentials may not create, update, patch, delete, get, list, watch mpijobs.kubeflow.org",
        "MultiKueue's credentials may not get mpijobs/status.kubeflow.org",
    ]
