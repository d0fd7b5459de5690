"""Which jobs of v1 may exist: what the old operator refuses, what could never run, what costs others too much."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from trainplane.api.legacy import kinds, names
from trainplane.legacy.decision import VOLCANO, Settings
from trainplane.legacy.judgement import default, problems, warnings
from trainplane.render.findings import MOST_FINDINGS

if TYPE_CHECKING:
    from trainplane.api.legacy.kinds import Kind

Tree = dict[str, Any]

V1 = tuple(kind for kind in kinds.KINDS.values() if kind is not kinds.MPI)
SETTINGS = Settings()


def job(kind: Kind, *, name: str = "train", spec: Tree | None = None, **replicas: Any) -> Tree:
    """Return a job with a master where the kind wants one, and whatever else is said of its replicas."""
    wanted: Tree = {names.MASTER: {}} if names.MASTER in kind.types and kind is not kinds.TENSORFLOW else {}
    said = {**wanted, names.WORKER: {}, **replicas}
    container = {"name": kind.container, "image": "train:1"}
    specs = {
        key: {"template": {"spec": {"containers": [container]}}, **one} if isinstance(one, dict) else one
        for key, one in said.items()
        if one is not None
    }
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": name, "namespace": "team"},
        "spec": {kind.specs: specs, **(spec or {})},
    }


def paths(kind: Kind, tree: Tree, old: Tree | None = None, settings: Settings = SETTINGS) -> list[str]:
    return [finding.path for finding in problems(kind, tree, old, settings)]


@pytest.mark.parametrize("kind", V1, ids=lambda kind: kind.name)
def test_a_plain_job_of_each_kind_is_taken_before_and_after_it_is_completed(kind: Kind) -> None:
    plain = job(kind)
    assert problems(kind, plain, None, SETTINGS) == []
    assert problems(kind, default(kind, plain), None, SETTINGS) == []
    assert warnings(kind, default(kind, plain)) == []


@pytest.mark.parametrize("kind", V1, ids=lambda kind: kind.name)
def test_completing_a_job_twice_changes_nothing(kind: Kind) -> None:
    once = default(kind, job(kind))
    assert default(kind, once) == once
    worker = once["spec"][kind.specs][names.WORKER]
    assert worker["replicas"] == 1
    assert worker["restartPolicy"] == kind.restart
    assert worker["template"]["spec"]["containers"][0]["ports"] == [
        {"name": kind.port_name, "containerPort": kind.port}
    ]


def test_replica_types_are_spelt_as_the_kind_spells_them() -> None:
    written = job(kinds.PYTORCH, Master=None, Worker=None, MASTER={}, worker={"replicas": 2})
    assert set(default(kinds.PYTORCH, written)["spec"]["pytorchReplicaSpecs"]) == {"Master", "Worker"}


def test_a_type_that_is_said_twice_is_refused_and_neither_is_lost() -> None:
    written = job(kinds.PYTORCH, worker={"replicas": 7})
    assert default(kinds.PYTORCH, written) == written
    assert "spec.pytorchReplicaSpecs.worker" in paths(kinds.PYTORCH, written)


@pytest.mark.parametrize("name", ["Train", "1train", "train.x", "train-", "träin", "a_b", "-a", "a\n"])
def test_a_name_that_no_address_can_begin_with_is_refused(name: str) -> None:
    assert "metadata.name" in paths(kinds.PYTORCH, job(kinds.PYTORCH, name=name))


def test_how_long_a_name_may_be_follows_from_the_last_pod() -> None:
    name = "a" * (63 - len("-worker-9"))
    assert paths(kinds.PYTORCH, job(kinds.PYTORCH, name=name, Worker={"replicas": 10})) == []
    (finding,) = problems(kinds.PYTORCH, job(kinds.PYTORCH, name=name, Worker={"replicas": 11}), None, SETTINGS)
    assert finding.path == "metadata.name"
    assert f"at most {len(name) - 1}" in finding.problem


def test_an_elastic_job_is_judged_by_the_most_that_it_grows_to() -> None:
    name = "a" * (63 - len("-worker-9"))
    written = job(kinds.PYTORCH, name=name, spec={"elasticPolicy": {"minReplicas": 1, "maxReplicas": 1000}})
    assert paths(kinds.PYTORCH, written) == ["metadata.name"]


def test_a_job_whose_name_is_still_to_be_drawn_is_not_judged_by_it() -> None:
    written = job(kinds.JAX)
    written["metadata"] = {"generateName": "train-"}
    assert problems(kinds.JAX, written, None, SETTINGS) == []


@pytest.mark.parametrize("kind", V1, ids=lambda kind: kind.name)
def test_each_template_has_the_container_that_trains_and_every_container_an_image(kind: Kind) -> None:
    containers = [{"name": "sidecar", "image": ""}]
    written = job(kind, Worker={"template": {"spec": {"containers": containers}}})
    path = f"spec.{kind.specs}.Worker.template.spec.containers"
    assert paths(kind, written) == [f"{path}[0].image", path]


@pytest.mark.parametrize("template", [None, {}, {"spec": None}, {"spec": {"containers": None}}, [], "x", {"spec": []}])
def test_a_template_of_any_form_is_judged_and_not_believed(template: Any) -> None:
    written = job(kinds.JAX, Worker={"template": template})
    assert paths(kinds.JAX, default(kinds.JAX, written)) == ["spec.jaxReplicaSpecs.Worker.template.spec.containers"]


@pytest.mark.parametrize("spec", [None, [], "x", {}, {"jaxReplicaSpecs": None}, {"jaxReplicaSpecs": {"Worker": None}}])
def test_a_job_without_replicas_is_refused_whatever_stands_there(spec: Any) -> None:
    written = {"metadata": {"name": "train"}, "spec": spec}
    assert "spec.jaxReplicaSpecs" in paths(kinds.JAX, default(kinds.JAX, written))


@pytest.mark.parametrize("kind", V1, ids=lambda kind: kind.name)
def test_an_unknown_replica_type_is_refused_with_those_that_there_are(kind: Kind) -> None:
    (finding,) = problems(kind, job(kind, Boss={}), None, SETTINGS)
    assert finding.path == f"spec.{kind.specs}.Boss"
    assert kind.types[-1] in finding.problem


@pytest.mark.parametrize("kind", [kinds.PYTORCH, kinds.XGBOOST], ids=lambda kind: kind.name)
def test_there_is_one_master(kind: Kind) -> None:
    assert paths(kind, job(kind, Master={"replicas": 2})) == [f"spec.{kind.specs}.Master.replicas"]


def test_paddles_masters_are_servers_and_may_be_many() -> None:
    assert paths(kinds.PADDLE, job(kinds.PADDLE, Master={"replicas": 3})) == []


def test_xgboost_needs_its_master_and_torch_does_not() -> None:
    assert paths(kinds.XGBOOST, job(kinds.XGBOOST, Master=None)) == ["spec.xgbReplicaSpecs.Master"]
    assert paths(kinds.PYTORCH, job(kinds.PYTORCH, Master=None)) == []


def test_chief_and_master_of_tensorflow_are_the_same() -> None:
    assert paths(kinds.TENSORFLOW, job(kinds.TENSORFLOW, Chief={}, Master={})) == ["spec.tfReplicaSpecs"]


@pytest.mark.parametrize(("kind", "count"), [(kinds.PYTORCH, 0), (kinds.TENSORFLOW, -1)])
def test_too_few_replicas_are_refused(kind: Kind, count: int) -> None:
    assert f"spec.{kind.specs}.Worker.replicas" in paths(kind, job(kind, Worker={"replicas": count}))


def test_a_type_may_have_no_pods_but_a_job_may_not() -> None:
    assert paths(kinds.TENSORFLOW, job(kinds.TENSORFLOW, Chief={}, Worker={"replicas": 0})) == []
    assert paths(kinds.JAX, job(kinds.JAX, Worker={"replicas": 0})) == ["spec.jaxReplicaSpecs"]


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        ({"cleanPodPolicy": "Some"}, "cleanPodPolicy"),
        ({"ttlSecondsAfterFinished": -1}, "ttlSecondsAfterFinished"),
        ({"activeDeadlineSeconds": -1}, "activeDeadlineSeconds"),
        ({"backoffLimit": -1}, "backoffLimit"),
        ({"managedBy": "kubeflow.org/mpi-operator"}, "managedBy"),
        ({"managedBy": ""}, "managedBy"),
    ],
)
@pytest.mark.parametrize("kind", V1, ids=lambda kind: kind.name)
def test_a_run_policy_that_means_nothing_is_refused(kind: Kind, policy: Tree, path: str) -> None:
    assert paths(kind, job(kind, spec={"runPolicy": policy})) == [f"spec.runPolicy.{path}"]


@pytest.mark.parametrize("manager", [names.MANAGED_BY_TRAINING_OPERATOR, names.MANAGED_BY_MULTIKUEUE])
def test_who_manages_a_job_is_said_once_and_needs_its_gate(manager: str) -> None:
    written = job(kinds.PYTORCH, spec={"runPolicy": {"managedBy": manager}})
    assert paths(kinds.PYTORCH, written) == []
    (finding,) = problems(kinds.PYTORCH, written, None, Settings(job_managed_by=False))
    assert names.GATE_MANAGED_BY in finding.problem
    assert paths(kinds.PYTORCH, written, job(kinds.PYTORCH)) == ["spec.runPolicy.managedBy"]
    assert paths(kinds.PYTORCH, job(kinds.PYTORCH), written) == ["spec.runPolicy.managedBy"]


def test_a_gang_of_more_pods_than_there_are_is_refused_where_there_are_gangs() -> None:
    written = job(kinds.PYTORCH, spec={"runPolicy": {"schedulingPolicy": {"minAvailable": 3}}})
    assert paths(kinds.PYTORCH, written) == []
    found = paths(kinds.PYTORCH, written, settings=Settings(gang=VOLCANO))
    assert found == ["spec.runPolicy.schedulingPolicy.minAvailable"]


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        ({"minReplicas": 0, "maxReplicas": 2}, "spec.elasticPolicy.minReplicas"),
        ({"minReplicas": 3, "maxReplicas": 2}, "spec.elasticPolicy.maxReplicas"),
    ],
)
def test_bounds_of_an_elastic_job_are_bounds(policy: Tree, path: str) -> None:
    assert paths(kinds.PADDLE, job(kinds.PADDLE, spec={"elasticPolicy": policy})) == [path]


def test_an_elastic_job_has_workers() -> None:
    written = job(kinds.PYTORCH, Worker=None, spec={"elasticPolicy": {"maxReplicas": 2}})
    assert paths(kinds.PYTORCH, written) == ["spec.pytorchReplicaSpecs.Worker"]


def test_processes_are_said_in_one_place_and_the_older_one_is_warned_of() -> None:
    policy = {"elasticPolicy": {"nProcPerNode": 2}}
    written = default(kinds.PYTORCH, job(kinds.PYTORCH, spec=policy))
    assert paths(kinds.PYTORCH, written) == []
    assert "spec.nprocPerNode" in warnings(kinds.PYTORCH, written)[0]
    both = job(kinds.PYTORCH, spec={**policy, "nprocPerNode": "2"})
    assert paths(kinds.PYTORCH, both) == ["spec.elasticPolicy.nProcPerNode"]


def test_policies_that_are_no_words_of_theirs_are_refused() -> None:
    assert paths(kinds.JAX, job(kinds.JAX, Worker={"restartPolicy": "Sometimes"})) == [
        "spec.jaxReplicaSpecs.Worker.restartPolicy"
    ]
    assert paths(kinds.TENSORFLOW, job(kinds.TENSORFLOW, spec={"successPolicy": "Most"})) == ["spec.successPolicy"]


def test_a_restart_policy_in_the_template_is_warned_of() -> None:
    template = {"spec": {"restartPolicy": "Always", "containers": [{"name": "jax", "image": "x"}]}}
    written = default(kinds.JAX, job(kinds.JAX, Worker={"template": template}))
    assert len(warnings(kinds.JAX, written)) == 1
    written["spec"]["jaxReplicaSpecs"]["Worker"]["restartPolicy"] = "Always"
    assert warnings(kinds.JAX, written) == []


def test_an_edit_is_refused_for_what_it_makes_worse_alone() -> None:
    broken = job(kinds.PYTORCH, name="Broken", Master={"replicas": 2})
    suspended = job(kinds.PYTORCH, name="Broken", Master={"replicas": 2}, spec={"runPolicy": {"suspend": True}})
    worse = job(kinds.PYTORCH, name="Broken", Master={"replicas": 2}, spec={"runPolicy": {"backoffLimit": -1}})
    assert problems(kinds.PYTORCH, broken, broken, SETTINGS) == []
    assert problems(kinds.PYTORCH, suspended, broken, SETTINGS) == []
    assert paths(kinds.PYTORCH, worse, broken) == ["spec.runPolicy.backoffLimit"]


def test_a_job_that_goes_may_be_edited_as_it_must() -> None:
    worse = job(kinds.PYTORCH, Master={"replicas": 2})
    worse["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert problems(kinds.PYTORCH, worse, job(kinds.PYTORCH), SETTINGS) == []


def test_more_pods_than_are_looked_after_are_refused_by_number() -> None:
    for count in (5000, 2**31 - 1):
        (finding, *_) = problems(kinds.PYTORCH, job(kinds.PYTORCH, Worker={"replicas": count}), None, SETTINGS)
        assert finding.path == "spec.pytorchReplicaSpecs"
        assert str(count + 1) in finding.problem


@pytest.mark.parametrize("kind", [kinds.TENSORFLOW, kinds.XGBOOST], ids=lambda kind: kind.name)
def test_a_list_of_addresses_that_no_process_starts_with_is_refused(kind: Kind) -> None:
    written = job(kind, name="a" * 40, Worker={"replicas": 3000})
    assert paths(kind, written) == [f"spec.{kind.specs}"]
    assert paths(kind, job(kind, name="a" * 40, Worker={"replicas": 500})) == []


def test_workers_that_come_and_go_are_not_listed() -> None:
    spec = {"enableDynamicWorker": True}
    assert paths(kinds.TENSORFLOW, job(kinds.TENSORFLOW, name="a" * 40, Worker={"replicas": 3000}, spec=spec)) == []


def test_a_job_of_ten_thousand_faults_is_refused_for_the_first_few_and_soon() -> None:
    written = job(kinds.PYTORCH)
    written["spec"]["pytorchReplicaSpecs"] |= {f"type{index}": {} for index in range(10_000)}
    begun = time.process_time()
    assert len(problems(kinds.PYTORCH, default(kinds.PYTORCH, written), None, SETTINGS)) == MOST_FINDINGS
    assert time.process_time() - begun < 1


def test_nothing_of_a_template_is_quoted() -> None:
    secret = "hunter2"
    container = {"name": secret, "image": "", "env": [{"name": "TOKEN", "value": secret}], "args": [secret]}
    written = job(kinds.JAX, Worker={"restartPolicy": secret, "template": {"spec": {"containers": [container]}}})
    told = [str(finding) for finding in problems(kinds.JAX, written, None, SETTINGS)]
    assert len(told) == 3
    assert secret not in " ".join(told)
