"""What the hub reads of a job is the same question for every kind, and each has its own answer."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import pytest

from tests.unit.hub.legacy import JAX, LEGACY, MPI, PYTORCH, job, labels_of
from trainplane.api import names
from trainplane.api.legacy import names as legacy_names
from trainplane.hub.front import main as front
from trainplane.hub.kinds import KINDS, TRAIN_JOB, claimed, is_over, key_of, kind_of
from trainplane.hub.placement import place
from trainplane.hub.settings import add_kinds

if TYPE_CHECKING:
    from trainplane.hub.kinds import JobKind


@pytest.mark.parametrize("kind", LEGACY, ids=lambda kind: kind.name)
def test_a_job_says_who_runs_it_in_its_run_policy(kind: JobKind) -> None:
    assert kind.is_dispatched(job(kind))
    local = job(kind, local=True)
    assert kind.managed_by(local) == (
        legacy_names.MANAGED_BY_MPI_OPERATOR if kind is MPI else legacy_names.MANAGED_BY_TRAINING_OPERATOR
    )
    assert place(local, None).reason == f"it runs on this cluster: spec.runPolicy.managedBy is {kind.manager}"
    assert not kind.is_suspended(local)
    local["spec"]["runPolicy"]["suspend"] = True
    assert kind.is_suspended(local)


@pytest.mark.parametrize(
    ("condition", "over"), [("Succeeded", True), ("Failed", True), ("Running", False), ("", False)]
)
def test_a_job_is_over_by_its_kinds_own_conditions(condition: str, *, over: bool) -> None:
    assert is_over(job(PYTORCH, condition=condition)) is over
    assert not is_over(job(PYTORCH, condition="Complete"))
    assert not is_over(None)


def test_a_condition_that_does_not_hold_ends_nothing() -> None:
    tree = job(PYTORCH, condition="Succeeded")
    tree["status"]["conditions"][0]["status"] = "False"
    assert not is_over(tree)


def test_a_success_counts_before_a_failure() -> None:
    tree = job(PYTORCH, condition="Failed")
    tree["status"]["conditions"].append({"type": "Succeeded", "status": "True"})
    end = PYTORCH.end(tree)
    assert end is not None
    assert end["type"] == "Succeeded"


def test_a_document_without_a_kind_is_a_train_jobs() -> None:
    tree = {"metadata": {"name": "x", "namespace": "team"}}
    assert kind_of(tree) is TRAIN_JOB
    assert str(key_of(tree)) == "TrainJob team/x"


def test_kueue_knows_the_kinds_by_these_names() -> None:
    assert [kind.framework for kind in KINDS.values()] == [
        "trainer.kubeflow.org/trainjob",
        "kubeflow.org/pytorchjob",
        "kubeflow.org/tfjob",
        "kubeflow.org/xgboostjob",
        "kubeflow.org/paddlejob",
        "kubeflow.org/jaxjob",
        "kubeflow.org/mpijob",
    ]
    assert [kind.name for kind in KINDS.values() if not kind.is_mirrored] == [JAX.name]


@pytest.mark.parametrize("kind", LEGACY, ids=lambda kind: kind.name)
def test_a_pod_says_whose_it_is_by_its_operator(kind: JobKind) -> None:
    assert claimed(labels_of(kind, "worker"), KINDS.values()) == (kind, "x")


def test_a_pod_has_one_answer_whatever_stands_on_it() -> None:
    labels = labels_of(PYTORCH, "worker") | {names.LABEL_JOBSET_NAME: "y"}
    assert claimed(labels, KINDS.values()) == (PYTORCH, "x")
    assert claimed(labels, (TRAIN_JOB,)) == (TRAIN_JOB, "y"), "a kind that is not on claims nothing"
    assert claimed(labels | {legacy_names.LABEL_OPERATOR_NAME: "whoever"}, KINDS.values()) == (TRAIN_JOB, "y")
    assert claimed({}, KINDS.values()) is None


def test_an_admin_chooses_kinds_by_their_plurals() -> None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_kinds(parser)
    assert parser.parse_args([]).legacy_kinds == (TRAIN_JOB,)
    assert parser.parse_args(["--legacy-kinds=mpijobs, pytorchjobs"]).legacy_kinds == (TRAIN_JOB, PYTORCH, MPI)
    with pytest.raises(argparse.ArgumentError, match=r"no kind of kubeflow\.org: these are pytorchjobs, tf"):
        parser.parse_args(["--legacy-kinds=trainjobs"])
    assert front.parse(["--legacy-kinds=pytorchjobs"]).kinds == (TRAIN_JOB, PYTORCH)
