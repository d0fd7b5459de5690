"""Which runtimes may exist."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.admission.objects import replicated_job, runtime_tree
from trainplane.admission.runtimes import validate_runtime
from trainplane.api import names
from trainplane.render.findings import Finding

KINDS = (names.TRAINING_RUNTIME, names.CLUSTER_TRAINING_RUNTIME)
TWO = replicated_job(replicas=2)
NO_NODE = replicated_job("node", "trainer", "main")
REPLICAS = Finding(
    "spec.template.spec.replicatedJobs[0].replicas",
    'must be 1, not 2, in job "node", which runs the trainer: the number of nodes is mlPolicy.numNodes',
)
CONTAINER = Finding(
    "spec.template.spec.replicatedJobs[0].template.spec.template.spec.containers",
    'must have a container "node" in job "node", which runs the trainer: '
    "it is the one that a TrainJob's settings go into",
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("job", "finding"), [(TWO, REPLICAS), (NO_NODE, CONTAINER)])
def test_a_create_is_refused(kind: str, job: Any, finding: Finding) -> None:
    verdict = validate_runtime(runtime_tree(job, kind=kind), None)
    assert verdict.errors == (finding,)
    assert verdict.warnings == ()


def test_an_update_of_a_cluster_training_runtime_is_refused() -> None:
    verdict = validate_runtime(runtime_tree(TWO), runtime_tree())
    assert verdict.errors == (REPLICAS,)


def test_an_update_of_a_training_runtime_is_let_through_with_a_warning() -> None:
    kind = names.TRAINING_RUNTIME
    verdict = validate_runtime(runtime_tree(TWO, kind=kind), runtime_tree(kind=kind))
    assert verdict.errors == ()
    (warning,) = verdict.warnings
    assert warning == (
        "no TrainJob can run so: spec.template.spec.replicatedJobs[0].replicas: must be 1, not 2, in job "
        '"node", which runs the trainer: the number of nodes is mlPolicy.numNodes'
    )


def test_every_job_speaks() -> None:
    wrong = replicated_job("b", "model-initializer", "main", replicas=3)
    paths = [
        finding.path for finding in validate_runtime(runtime_tree(TWO, replicated_job("a", None), wrong), None).errors
    ]
    assert paths == [
        "spec.template.spec.replicatedJobs[0].replicas",
        "spec.template.spec.replicatedJobs[2].replicas",
        "spec.template.spec.replicatedJobs[2].template.spec.template.spec.containers",
    ]


@pytest.mark.parametrize(
    "job",
    [
        replicated_job("a", None, "main", replicas=4),
        replicated_job("a", "cache-initializer", "main", replicas=4),
        replicated_job("launcher", "trainer", "node"),
        replicated_job("d", "dataset-initializer"),
        replicated_job("m", "model-initializer"),
        {"name": "silent"},
    ],
)
def test_what_the_reference_accepts(job: Any) -> None:
    assert validate_runtime(runtime_tree(job), None).allowed


def test_the_container_must_be_a_regular_one() -> None:
    job = replicated_job("node", "trainer", "main")
    job["template"]["spec"]["template"]["spec"]["initContainers"] = [{"name": "node"}]
    assert validate_runtime(runtime_tree(job), None).errors == (CONTAINER,)


def test_replicas_left_out_are_one() -> None:
    job = replicated_job()
    del job["replicas"]
    assert validate_runtime(runtime_tree(job), None).allowed


@pytest.mark.parametrize("kind", KINDS)
def test_a_deprecated_runtime_warns_when_it_is_created(kind: str) -> None:
    tree = runtime_tree(kind=kind)
    tree["metadata"]["labels"] = {names.LABEL_SUPPORT: names.SUPPORT_DEPRECATED}
    (warning,) = validate_runtime(tree, None).warnings
    assert warning == (
        f'{kind} "torch" is deprecated and will be removed: move to another runtime. See '
        "https://trainer.kubeflow.org/en/latest/operator-guides/runtime.html#runtime-deprecation-policy"
    )
    assert validate_runtime(tree, tree).warnings == ()


@pytest.mark.parametrize("tree", [{"kind": names.TRAINING_RUNTIME}, {"kind": names.TRAINING_RUNTIME, "spec": None}])
def test_a_runtime_with_nothing_in_it(tree: Any) -> None:
    assert validate_runtime(tree, None).allowed
