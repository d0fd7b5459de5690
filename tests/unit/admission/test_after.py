"""`trainplane.dev/after`: the gate that a new TrainJob gets, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.admission.objects import plain, runtime, trainjob
from trainplane.admission.defaulting import default_trainjob
from trainplane.admission.trainjobs import validate_trainjob
from trainplane.api import names
from trainplane.api import tree as trees

if TYPE_CHECKING:
    from trainplane.api.tree import Tree

AFTER, GATES = names.ANNOTATION_AFTER, names.ANNOTATION_ADMISSION_GATES
NOW = datetime(2026, 3, 4, tzinfo=UTC)
QUEUE = {names.LABEL_QUEUE: "queue"}


def job(annotations: Any, labels: Any = QUEUE) -> Tree:
    made = trees.put(trainjob(), "metadata", "annotations", value=annotations)
    return trees.put(made, "metadata", "labels", value=labels)  # type: ignore[no-any-return]


def gate(new: Tree, old: Tree | None = None) -> Any:
    return trees.get(default_trainjob(new, old, now=NOW).tree, "metadata", "annotations", GATES)


def refused(new: Tree) -> list[str]:
    verdict = validate_trainjob(new, None, runtime=runtime(), runtime_source="live", jobset=None, pipeline=plain())
    return [f"{finding.path}: {finding.problem}" for finding in verdict.errors]


def test_a_queued_job_gets_the_gate_once() -> None:
    assert gate(job({AFTER: "data"})) == AFTER
    assert gate(job({AFTER: "data", GATES: AFTER})) == AFTER
    assert gate(job({AFTER: "data", GATES: "example.com/budget"})) == f"example.com/budget,{AFTER}"


@pytest.mark.parametrize(
    "new",
    [
        job({}),
        job(None),
        job({AFTER: ""}),
        job({AFTER: "data"}, {}),
        job({AFTER: "data"}, {**QUEUE, names.LABEL_MULTIKUEUE_ORIGIN: "hub"}),
        job({AFTER: 7}),
        job("text"),
    ],
)
def test_others_get_none(new: Tree) -> None:
    assert gate(new) is None


def test_a_gate_that_was_opened_does_not_come_back() -> None:
    opened = job({AFTER: "data"})
    assert gate(opened, opened) is None


@pytest.mark.parametrize(
    ("new", "words"),
    [
        (job({AFTER: "data"}, {}), "needs a queue"),
        (job({AFTER: "other/data"}), "must be the name"),
        (job({AFTER: "Data\n"}), "must be the name"),
        (job({AFTER: "x" * 64}), "must be the name"),
        (job({AFTER: trainjob()["metadata"]["name"]}), "names this TrainJob itself"),
    ],
)
def test_what_could_never_begin_is_refused(new: Tree, words: str) -> None:
    (problem,) = refused(new)
    assert problem.startswith(f"metadata.annotations[{AFTER}]: ")
    assert words in problem


def test_what_can_begin_is_not() -> None:
    assert refused(job({AFTER: "data"})) == []
    assert refused(job({AFTER: "data"}, {names.LABEL_MULTIKUEUE_ORIGIN: "hub"})) == []
