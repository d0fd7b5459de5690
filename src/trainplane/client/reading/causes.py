"""Causes: why a TrainJob failed, is held, or does not get on, as `explain` finds it, in the SDK's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.client.types.jobs import Cause
from trainplane.explain.explain import explain_trouble
from trainplane.explain.facts import Facts
from trainplane.explain.failure import explain_failure
from trainplane.lifecycle.conditions import conditions_of, finish

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainplane.api.tree import Tree
    from trainplane.explain.explanation import Explanation
    from trainplane.explain.facts import Line


def find_cause(
    job: Tree,
    pods: Sequence[Tree],
    events: Sequence[Tree] = (),
    *,
    view: Tree | None = None,
    logs: Mapping[str, Sequence[Line]] | None = None,
) -> Cause | None:
    """Return why a TrainJob failed, is held, or does not start; None if nothing is wrong with it.

    Args:
        job: the TrainJob.
        pods: its pods, also former ones.
        events: its events, for what pods that are gone cannot tell any more.
        view: the hub's view of it, if it is dispatched.
        logs: the end of each step's log, if at hand.
    """
    facts = Facts(job, pods, events, view=view, logs=logs or {})
    end = finish(conditions_of(job))
    if end is not None:
        return None if end["type"] == names.COMPLETE else cause_of(explain_failure(facts, end))
    trouble = explain_trouble(facts)
    return cause_of(trouble) if trouble else None


def cause_of(told: Explanation) -> Cause:
    """Return an explanation as the SDK tells it."""
    return Cause(told.reason, told.message, told.step or None, told.exit_code, told.log, told.cause)
