"""What a person reads when refused."""

from __future__ import annotations

from trainplane.admission.message import describe
from trainplane.render.findings import Finding, Verdict

ONE = Finding("spec.trainer.numNodes", "must be 0 or more, not -1: it is a number of pods")
OTHER = Finding("metadata.name", "is too long for what it becomes", "Forbidden")


def test_one_reason() -> None:
    assert describe(Verdict((ONE,)), "TrainJob") == (
        "this TrainJob is refused: spec.trainer.numNodes: must be 0 or more, not -1: it is a number of pods"
    )


def test_several_reasons_stand_one_on_each_line() -> None:
    assert describe(Verdict((ONE, OTHER), ("a warning",)), "TrainJob").splitlines() == [
        "this TrainJob is refused for 2 reasons:",
        "- spec.trainer.numNodes: must be 0 or more, not -1: it is a number of pods",
        "- metadata.name: is too long for what it becomes",
    ]
