"""A warning of ours is declared by its cause in the case: the same words elsewhere are a fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.cases import Case, Change, Create, Remove
from tests.conformance.compare import Difference
from tests.conformance.documents import container, patch, patch_job, replicated_job, runtime, torch
from tests.conformance.planted import KUEUE, TOUCH, difference, explained_by

if TYPE_CHECKING:
    from tests.conformance.cases import Tree

RUN = '299 - "spec.trainer.command: neither this TrainJob nor its runtime says what to run"'
USED = '299 - "this runtime is used by TrainJob a/job"'
DEPRECATED = '299 - "TrainingRuntime r is deprecated and will be removed"'
VAIN = '299 - "spec.runtimePatches[manager=x].template.metadata: only labels and annotations are taken"'
LEFT = f'299 - "spec.runtimePatches[manager={KUEUE}]: is left out"'
ELSE = '299 - "something else"'
SAYS = torch(replicated_job(containers=[container(command=["train"])]))
NAMED = {"runtimePatches": [patch("x.example.com/x", patch_job(pod_metadata={"name": "n"}))]}
FORGED = {"runtimePatches": [patch(KUEUE, patch_job(nodeSelector={"a": "b"}))]}
GOES = Remove("TrainingRuntime", "runtime")


def warned(*lines: str, theirs: int = 0, **case: Any) -> Difference:
    """Return a difference in how often each side warns, with our lines."""
    return difference("verdict", "warned", theirs, len(lines), message="\n".join(lines), **case)


@pytest.mark.parametrize(
    ("found", "by"),
    [
        (warned(RUN), "nothing-to-run"),
        (warned(RUN, on=SAYS), None),
        (warned(RUN, spec={"trainer": {"image": "a"}}), None),
        (warned(RUN, then=(TOUCH,)), None),
        (warned(RUN, theirs=1), None),
        (warned(RUN, ELSE), None),
        (warned(USED, then=(GOES,)), "runtime-used"),
        (warned(USED, then=(TOUCH,)), None),
        (warned(USED), None),
        (warned(VAIN, spec=NAMED, on=SAYS), "warns"),
        (warned(VAIN, RUN, spec=NAMED), "warns"),
        (warned(VAIN), None),
        (warned(LEFT, spec=FORGED, on=SAYS), "kueues-own"),
        (warned(LEFT, spec={"runtimePatches": [patch(KUEUE)]}, on=SAYS), None),
        (warned(ELSE, then=(Change({"spec": {}}, "TrainingRuntime", "runtime"),)), None),
        (warned(), None),
    ],
    ids=str,
)
def test_a_warning_is_known_by_its_cause(found: Difference, by: str | None) -> None:
    assert explained_by(found) == by


@pytest.mark.parametrize(
    ("labels", "kind", "theirs", "known"),
    [
        ({"trainer.kubeflow.org/support": "deprecated"}, "TrainingRuntime", 0, True),
        ({"trainer.kubeflow.org/support": "deprecated"}, "ClusterTrainingRuntime", 1, True),
        ({"trainer.kubeflow.org/support": "deprecated"}, "ClusterTrainingRuntime", 0, False),
        ({}, "TrainingRuntime", 0, False),
    ],
)
def test_a_deprecated_runtime_is_labelled_so(labels: Tree, kind: str, theirs: int, known: bool) -> None:
    create = Create(runtime(kind=kind, metadata={"labels": labels}))
    ours = 1 + theirs
    message = "\n".join([DEPRECATED] * ours)
    found = Difference(Case("planted", (create,)), 0, create, "verdict", "warned", theirs, ours, message)
    assert explained_by(found) == ("warns" if known else None)


OLD: Tree = {"kind": "ClusterTrainingRuntime", "name": "old"}
DEPRECATED_ONE = runtime(**OLD, metadata={"labels": {"trainer.kubeflow.org/support": "deprecated"}})
RESUMES = Change({"spec": {"suspend": False}})


@pytest.mark.parametrize(
    ("step", "on", "sides", "by"),
    [
        (TOUCH, DEPRECATED_ONE, (1, 0), "told-of-spec"),
        (RESUMES, DEPRECATED_ONE, (1, 0), None),
        (TOUCH, runtime(**OLD), (1, 0), None),
        (TOUCH, {**DEPRECATED_ONE, "kind": "TrainingRuntime"}, (1, 0), None),
        (TOUCH, DEPRECATED_ONE, (0, 1), None),
    ],
)
def test_an_edit_of_labels_is_not_told_of_a_deprecated_runtime(
    step: Change, on: Tree, sides: tuple[int, int], by: str | None
) -> None:
    found = difference("verdict", "warned", *sides, on=on, spec={"suspend": True, "runtimeRef": OLD}, then=(step,))
    assert explained_by(found) == by


@pytest.mark.parametrize(("step", "by"), [(RESUMES, "warns"), (TOUCH, None)])
def test_an_edit_of_the_spec_is_told_of_a_deprecated_runtime(step: Change, by: str | None) -> None:
    on = {**DEPRECATED_ONE, "kind": "TrainingRuntime"}
    assert explained_by(warned(DEPRECATED, on=on, spec={"suspend": True}, then=(step,))) == by
