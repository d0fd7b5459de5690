"""From facts to an explanation: what is the matter with a TrainJob, if anything is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.explain.creation import explain_creation
from trainplane.explain.explanation import Explanation
from trainplane.explain.failure import explain_failure
from trainplane.explain.holding import explain_hold, is_held
from trainplane.explain.pace import explain_pace, explain_start
from trainplane.explain.phrasing import of_class
from trainplane.explain.waiting import explain_crash, explain_wait
from trainplane.lifecycle.conditions import conditions_of, finish

if TYPE_CHECKING:
    from datetime import datetime

    from trainplane.explain.facts import Facts


def explain(facts: Facts, now: datetime) -> Explanation:
    """Return what is the matter with a TrainJob; `cause` is empty if nothing is."""
    end = finish(conditions_of(facts.job))
    if end is not None:
        if end["type"] == names.COMPLETE:
            return Explanation("Complete", f"{facts.name} is complete")
        return explain_failure(facts, end)
    trouble = explain_trouble(facts)
    if trouble is not None:
        return trouble
    slow = explain_start(facts, now) or explain_pace(facts, now)
    return slow or Explanation("Running", f"{facts.name} runs, and nothing is wrong that can be seen")


def explain_trouble(facts: Facts) -> Explanation | None:
    """Return what keeps a TrainJob that is not over from getting on, whatever time it is; None if nothing does."""
    if is_held(facts.job, facts.view):
        return explain_hold(facts)
    problem = trees.text(facts.view, "status", "problem")
    if problem:
        return of_class("Running", "WorkerLost", facts.name, detail=problem, source="hub view", certainty="likely")
    crash = explain_crash(facts) or explain_wait(facts)
    if crash is not None:
        return crash
    return explain_creation(facts) if not facts.pods else None
