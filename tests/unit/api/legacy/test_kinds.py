"""The table of older kinds says what its types, its CRDs and its peers say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from trainplane.api.crds import emit, legacy
from trainplane.api.crds.__main__ import stale
from trainplane.api.legacy import names
from trainplane.api.legacy.kinds import BY_PLURAL, JAX, KINDS, MPI, PYTORCH, Kind
from trainplane.api.legacy.mpijob import MPIJob, MPIJobV1
from trainplane.api.legacy.pytorchjob import PyTorchJob
from trainplane.resources import LEGACY_JOBS, resource_of

COMMITTED = Path(__file__).parents[4] / "manifests" / "crds-legacy"
JOBS = {kind.name: kind for kind in legacy.KINDS if kind.plural in BY_PLURAL}


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_a_kind_is_called_the_same_everywhere(kind: Kind) -> None:
    crd = emit.crd(JOBS[kind.name])
    assert crd["spec"]["names"] == {
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": kind.plural,
        "singular": kind.singular,
    }
    stored = next(version for version in crd["spec"]["versions"] if version["storage"])
    assert stored["name"] == kind.version
    assert kind.specs in stored["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"]
    assert LEGACY_JOBS[kind.name].api_version == kind.api_version
    assert resource_of({"apiVersion": kind.api_version, "kind": kind.name}) == LEGACY_JOBS[kind.name]


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_the_type_of_a_kind_says_its_version_and_name(kind: Kind) -> None:
    type_ = JOBS[kind.name].versions[0].type
    job = msgspec.convert({"spec": {kind.specs: {"Worker": {}}}}, type_)
    assert msgspec.to_builtins(job)["apiVersion"] == kind.api_version
    assert msgspec.to_builtins(job)["kind"] == kind.name
    assert msgspec.to_builtins(job)["spec"][kind.specs] == {"Worker": {}}


@pytest.mark.parametrize("kind", JOBS.values(), ids=lambda kind: kind.name)
def test_workers_are_scaled_where_the_table_says_so(kind: emit.Kind) -> None:
    stored = emit.crd(kind)["spec"]["versions"][0]
    scale = stored["subresources"].get("scale", {})
    wanted = f".spec.{KINDS[kind.name].specs}.Worker.replicas" if KINDS[kind.name].scaled else None
    assert scale.get("specReplicasPath") == wanted
    elastic = "elasticPolicy" in stored["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert elastic == KINDS[kind.name].elastic


@pytest.mark.parametrize("kind", legacy.KINDS, ids=lambda kind: kind.plural)
def test_each_field_of_ours_and_each_rule_says_what_it_is(kind: emit.Kind) -> None:
    for version in emit.crd(kind)["spec"]["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        assert schema["description"]
        for name, inner in schema["properties"]["spec"]["properties"].items():
            assert inner.get("description"), name
        assert all(rule["message"] for rule in rules(schema))


def rules(schema: Any) -> list[dict[str, str]]:
    if isinstance(schema, list):
        return [rule for item in schema for rule in rules(item)]
    if not isinstance(schema, dict):
        return []
    own = schema.get("x-kubernetes-validations", [])
    return [*own, *(rule for value in schema.values() for rule in rules(value))]


def test_the_committed_files_are_what_the_types_say_and_have_no_aliases() -> None:
    assert stale(COMMITTED, legacy.KINDS) == ""
    for kind in legacy.KINDS:
        assert "&id" not in (COMMITTED / kind.file_name).read_text()


def test_the_last_names_are_each_once() -> None:
    assert len(BY_PLURAL) == len(KINDS) == 6
    assert {kind.operator for kind in KINDS.values()} == {
        *(f"{kind.singular}-controller" for kind in KINDS.values() if kind is not MPI),
        "mpi-operator",
    }


def test_a_launcher_tries_again_and_its_workers_do_not() -> None:
    assert MPI.restart_of(names.LAUNCHER) == names.RESTART_ON_FAILURE
    assert MPI.restart_of(names.WORKER) == names.RESTART_NEVER
    assert PYTORCH.restart_of(names.MASTER) == names.RESTART_ON_FAILURE


def test_reviews_are_asked_for_where_the_old_operator_was() -> None:
    assert JAX.review_path("validate") == "/validate-kubeflow-org-v1-jaxjob"
    assert MPI.review_path("mutate") == "/mutate-kubeflow-org-v2beta1-mpijob"


def test_a_pod_is_named_after_its_job_type_and_place() -> None:
    assert names.pod_name("train", names.EVALUATOR, 0) == "train-evaluator-0"


def test_a_status_is_read_as_it_is_written() -> None:
    tree = {
        "spec": {"pytorchReplicaSpecs": {}, "elasticPolicy": {"nProcPerNode": 2, "rdzvId": "x"}},
        "status": {
            "conditions": [{"type": "Running", "status": "True", "lastUpdateTime": "2026-01-01T00:00:00Z"}],
            "replicaStatuses": {"Worker": {"active": 2, "selector": "a=b"}},
        },
    }
    job = msgspec.convert(tree, PyTorchJob)
    assert job.spec.elastic_policy is not None
    assert job.spec.elastic_policy.nproc_per_node == 2
    assert job.status.replica_statuses["Worker"].active == 2
    assert msgspec.to_builtins(job)["status"] == tree["status"]


def test_both_versions_of_an_mpijob_are_read() -> None:
    spec = {"mpiReplicaSpecs": {"Launcher": {"template": {"spec": {"newer": 1}}}}}
    assert msgspec.convert({"spec": spec}, MPIJob).spec.mpi_implementation == names.MPI_OPENMPI
    old = msgspec.convert({"spec": {**spec, "mainContainer": "mpi"}}, MPIJobV1)
    assert msgspec.to_builtins(old)["apiVersion"] == "kubeflow.org/v1"
    assert msgspec.to_builtins(old)["spec"] == {**spec, "mainContainer": "mpi"}
