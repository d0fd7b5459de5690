"""The plain form: each change once."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.cli.live.facts import a_training
from trainplane.cli.live.changes import Changes
from trainplane.client.types.descriptions import QueueAnswer
from trainplane.client.types.jobs import Progress
from trainplane.explain.explanation import Explanation


def test_each_change_is_one_line_and_what_is_told_is_not_told_again() -> None:
    changes = Changes(lambda: 0.0)
    seen = a_training(2)
    first = changes.news(seen)
    assert "node-1: Failed on gpu-1, started again, OOMKilled (exit code 137)" in first
    assert first[-1].startswith("TrainJob mnist: Running")
    assert changes.news(seen) == []
    later = replace(seen, job=replace(seen.job, progress=Progress(50, 60)))
    assert changes.news(later) == ["50 % done, about 60 s left"]


def test_waits_explanations_and_what_may_not_be_read_are_told_once() -> None:
    changes = Changes(lambda: 0.0)
    seen = a_training(2)
    changes.news(seen)
    told = Explanation("Running", "mnist stands still", cause="Stalled", remedy="look at node-1")
    more = replace(
        seen, queue=QueueAnswer("It waits for quota."), explanation=told, unread={"logs": "no"}, is_deleted=True
    )
    assert changes.news(more) == [
        "waits: It waits for quota.",
        "why: mnist stands still",
        "do: look at node-1",
        "deleted: TrainJob mnist was deleted",
        "logs cannot be read: no",
    ]
    assert changes.news(more) == []
