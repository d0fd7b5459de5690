"""A refusal is declared by what deserves it in the case, never by our words: refusing the good is a fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.cases import Case, Change, Create, Remove, Step
from tests.conformance.compare import Difference
from tests.conformance.documents import (
    COMPLETED,
    container,
    patch,
    patch_job,
    replicated_job,
    reported,
    runtime,
    torch,
    train_job,
)
from tests.conformance.planted import KUEUE, SELECTOR, TOUCH, difference, explained_by, patched

if TYPE_CHECKING:
    from tests.conformance.cases import Tree

X = "x.example.com/x"
ENTRY = f"spec.runtimePatches[manager={X}].trainingRuntimeSpec.template.spec.replicatedJobs"
POD = "template.spec.template.spec"
HELD = {"suspend": True}


def refused(field: str, *reasons: str, **case: Any) -> Difference:
    """Return a refusal of ours alone that names fields."""
    told = "".join(f"\n- {one}: no" for one in (field, *reasons))
    message = f'admission webhook "v" denied the request: this TrainJob is refused for reasons:{told}'
    codes = (200 if case.get("then") else 201, 403)
    return difference("verdict", "code", *codes, message=message, **case)


def of(*jobs: Tree) -> Tree:
    """Return a spec with one patch."""
    return {"runtimePatches": [patch(X, *jobs)]}


def fetched(uri: str) -> Tree:
    """Return a spec whose dataset is fetched."""
    return {"initializer": {"dataset": {"storageUri": uri}}}


GHOST = of(patch_job("ghost", nodeSelector={"a": "b"}))
GHOST_CONTAINER = of(patch_job(containers=[{"name": "ghost"}]))
TWICE = of(patch_job(containers=[{"name": "node", "volumeMounts": [{"name": "v", "mountPath": "/a"}] * 2}]))
LIMITED = torch(replicated_job(containers=[container(resources={"limits": {"cpu": "2"}})]))
UNLIKE = torch(
    replicated_job("actor", containers=[container(resources={"limits": {"nvidia.com/gpu": "1"}})]),
    replicated_job("learner"),
)
ASKS = {"trainer": {"resourcesPerNode": {"requests": {"cpu": "4"}}}}
QUEUED = {"labels": {"kueue.x-k8s.io/queue-name": "q"}}
TOLERATES = of(patch_job(tolerations=[{"key": "a", "operator": "a", "effect": "b"}]))
TOLERATES_ALL = of(patch_job(tolerations=[{"operator": "Exists"}]))
DEAF = runtime(replicated_job(ancestor=None))
AFFINE = patched(patch(X, patch_job(affinity={"nodeAffinity": {}})))


@pytest.mark.parametrize(
    ("found", "by"),
    [
        (refused(f"{ENTRY}[name=ghost]", spec=GHOST), "ghost-target"),
        (refused(f"{ENTRY}[name=node].{POD}.containers[name=ghost]", spec=GHOST_CONTAINER), "ghost-target"),
        (refused("spec.trainer", spec=HELD, then=(Change({"spec": {"trainer": {}}}),)), "fixed-means-fixed"),
        (refused("spec.runtimePatches", spec=HELD, then=(AFFINE,)), "jobset-fixed"),
        (refused("spec.trainer.numNodes", spec={"trainer": {"numNodes": 0}}), "numbers"),
        (refused("spec.trainer.numProcPerNode", spec={"trainer": {"numProcPerNode": 0}}), "numbers"),
        (refused("spec.trainer.numNodes", spec={"trainer": {"numNodes": 50_000}}), "too-many-pods"),
        (refused("spec.trainer.resourcesPerNode", spec=ASKS, on=LIMITED), "requests-over-limits"),
        (
            refused(
                "spec.initializer.dataset.storageUri", spec={"initializer": {"dataset": {"storageUri": "pvc://A_b"}}}
            ),
            "no-such-claim",
        ),
        (refused(f"{ENTRY}[name=node].{POD}.containers[name=node].volumeMounts[1]", spec=TWICE), "said-twice"),
        (refused(f"{ENTRY}[name=node].{POD}.tolerations[0].operator", spec=TOLERATES), "no-such-pod"),
        (
            refused("spec.trainer", spec={"trainer": {"image": "a"}}, on=runtime(replicated_job(ancestor=None))),
            "unheard-trainer",
        ),
    ],
    ids=str,
)
def test_what_deserves_a_refusal_is_known(found: Difference, by: str) -> None:
    assert explained_by(found) == by


@pytest.mark.parametrize(
    "planted",
    [
        refused("spec.trainer.numNodes", spec={"trainer": {"numNodes": 2}}),
        refused("spec.trainer.numProcPerNode", spec={"trainer": {"numProcPerNode": 4}}),
        refused("spec.trainer.numProcPerNode", spec={"trainer": {"numProcPerNode": 0}}, on=runtime()),
        refused("metadata.name"),
        refused(f"{ENTRY}[name=node]", spec=of(patch_job(nodeSelector={"a": "b"}))),
        refused(f"{ENTRY}[name=node].{POD}.containers[name=node]", spec=of(patch_job(containers=[{"name": "node"}]))),
        refused("spec.runtimePatches", spec=HELD, then=(SELECTOR,)),
        refused("spec.trainer", spec={"trainer": {}}, then=(TOUCH,)),
        refused("spec", then=(TOUCH,)),
        refused("metadata.labels", then=(TOUCH,)),
        refused("spec.trainer.resourcesPerNode", spec=ASKS),
        refused("spec.trainer", spec={"trainer": {"image": "a"}}),
        refused("spec.initializer.dataset.storageUri", spec=fetched("pvc://a/b")),
        refused(
            f"{ENTRY}[name=node].{POD}.tolerations[0].operator",
            spec=of(patch_job(tolerations=[{"operator": "Exists"}])),
        ),
        refused(f"{ENTRY}[name=node].{POD}.tolerations[0].key", spec=TOLERATES),
        refused("spec.trainer.numNodes", f"{ENTRY}[name=node]", spec={"trainer": {"numNodes": 0}}),
    ],
    ids=str,
)
def test_refusing_the_good_is_a_fault(planted: Difference) -> None:
    assert explained_by(planted) is None


@pytest.mark.parametrize(
    ("letters", "nodes", "known"), [(48, 1, False), (49, 1, True), (47, 100, False), (47, 1000, True)]
)
def test_a_name_is_too_long_by_the_pods_that_it_becomes(letters: int, nodes: int, known: bool) -> None:
    create = Create(train_job("n" * letters, trainer={"numNodes": nodes}))
    message = 'admission webhook "v" denied the request: this TrainJob is refused: metadata.name: is too long'
    found = Difference(Case("planted", (create,), (torch(),)), 0, create, "verdict", "code", 201, 403, message)
    assert explained_by(found) == ("long-names" if known else None)


COUNTED = {"suspend": True, "runtimePatches": [patch(KUEUE)]}
BIGGER = Change({"spec": {"mlPolicy": {"numNodes": 7}}}, "TrainingRuntime", "runtime")
SAME = Change({"metadata": {"labels": {"a": "b"}}}, "TrainingRuntime", "runtime")
GOES = Remove("TrainingRuntime", "runtime")
ENDS = reported(conditions=(COMPLETED,))


@pytest.mark.parametrize(
    ("field", "spec", "then", "known"),
    [
        ("spec", COUNTED, (BIGGER,), True),
        ("metadata.name", COUNTED, (GOES,), True),
        ("spec", COUNTED, (SAME,), False),
        ("spec", HELD, (BIGGER,), False),
        ("metadata.name", HELD, (GOES,), False),
        ("spec", COUNTED, (ENDS, BIGGER), False),
    ],
)
def test_a_runtime_is_held_by_whom_kueue_counts(field: str, spec: Tree, then: tuple[Step, ...], known: bool) -> None:
    assert explained_by(refused(field, spec=spec, then=then)) == ("runtime-counted" if known else None)


@pytest.mark.parametrize(("labels", "known"), [(QUEUED, True), ({}, False)])
def test_what_cannot_be_counted_is_queued(labels: Tree, known: bool) -> None:
    spec = {"resourcesPerNode": {"requests": {"memory": "1Gi"}}}
    create = Create(train_job(metadata=labels, trainer=spec))
    message = "this TrainJob is refused: spec.trainer.resourcesPerNode: cannot be counted"
    found = Difference(Case("planted", (create,), (UNLIKE,)), 0, create, "verdict", "code", 201, 403, message)
    assert explained_by(found) == ("cannot-be-counted" if known else None)


@pytest.mark.parametrize(("target", "known"), [("ghost", True), ("node", False)])
def test_a_runtime_that_names_a_job_it_lacks_is_known(target: str, known: bool) -> None:
    create = Create(runtime(successPolicy={"operator": "All", "targetReplicatedJobs": [target]}))
    message = "this runtime is refused: spec.template.spec.successPolicy.targetReplicatedJobs[0]: there is no such job"
    found = Difference(Case("planted", (create,)), 0, create, "verdict", "code", 201, 403, message)
    assert explained_by(found) == ("lost-jobs" if known else None)
