"""The time after which a finished JobSet removes itself, held back until its end is told. Pure.

A runtime may set `ttlSecondsAfterFinished`, and JobSet deletes the JobSet so long after its end. If nobody had seen the
end by then, a TrainJob without a JobSet would look like one that has yet to run, and the training would run again. So
a JobSet gets its time only when the TrainJob's status says Complete or Failed; JobSet counts from the end all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import tree as trees

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.operator.runtimes import Runtime

FIELD: Final = "ttlSecondsAfterFinished"


def of(runtime: Runtime) -> int | None:
    """Return the seconds that a runtime sets; None if its JobSets stay until their TrainJobs go."""
    seconds = trees.get(runtime.tree, "spec", "template", "spec", FIELD)
    return seconds if isinstance(seconds, int) else None


def held(body: Tree) -> Tree:
    """Return a JobSet without its time."""
    return {**body, "spec": {name: value for name, value in body["spec"].items() if name != FIELD}}


def held_as_in(live: Tree, body: Tree) -> Tree:
    """Return a rendered JobSet with its time if the live one, that another controller made, has one."""
    return body if (live.get("spec") or {}).get(FIELD) is not None else held(body)
