"""Whether a TrainJob that has its pods gets on: slow to start, standing still, or with one node behind the others.

What is slow is judged by the job's own pace: a job that prints once an hour does not stand still after a minute.
"""

from __future__ import annotations

import re
from datetime import timedelta
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final

from trainplane.api import tree as trees
from trainplane.api.moments import read_moment
from trainplane.explain.cleaning import MOST_LETTERS, clean
from trainplane.explain.explanation import Explanation
from trainplane.explain.phrasing import NOWHERE, of_class, where_of
from trainplane.explain.places import TRAINING
from trainplane.explain.pods import index_of, name_of, phase_of
from trainplane.explain.stacks import read_stand
from trainplane.explain.timeline import last_start, timeline_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from trainplane.api.tree import Tree
    from trainplane.explain.facts import Facts, Line
    from trainplane.explain.phrasing import Where

SLOW_START: Final = timedelta(minutes=2)
"""After which a start is worth a word."""
_SILENT: Final = timedelta(seconds=60)
"""No shorter silence is one."""
_TIMES: Final = 10
"""How many times the longest gap so far a silence must last."""
_GAPS: Final = 5
"""Gaps that a pace is made of, at least."""
_SHOWN: Final = 4
"""Nodes whose place is told."""
_STEP: Final = re.compile(r"(?i)\b(?:step|iter|iteration|batch)\W{0,3}(\d{1,12})\b")


def explain_start(facts: Facts, now: datetime) -> Explanation | None:
    """Return the stage that a TrainJob's start is in; None once all of its nodes run."""
    steps = facts.steps()
    late = [step for step, pod in steps.items() if phase_of(pod) == "Pending"]
    if steps and not late and any(map(_trains, steps.values())):
        return None
    timeline = timeline_of(facts)
    began = last_start(timeline, facts.job)
    stage = _stage(facts, late)
    if began is None or now - began < SLOW_START:
        return Explanation("Starting", f"{facts.name} starts: {stage}")
    after = f"; {timeline[-1].stage} was {_span(max(now - timeline[-1].time, timedelta(0)))} ago" if timeline else ""
    detail = f"{stage}, since {_span(now - began)}{after}"
    return of_class("Starting", "SlowStart", facts.name, detail=detail, source="pods")


def _stage(facts: Facts, late: Sequence[str]) -> str:
    steps = facts.steps()
    if not steps:
        return "its pods are not made yet"
    running = [step for step, pod in steps.items() if phase_of(pod) == "Running" and not _trains(pod)]
    if running and not late:
        return f"{', '.join(running[:3])} still runs"
    unplaced = [step for step in late if not trees.text(steps[step], "spec", "nodeName")]
    if unplaced:
        return f"{len(unplaced)} pods wait for a node ({unplaced[0]} first)"
    pulling = [step for step in late if _is_pulling(facts, steps[step])]
    if pulling:
        return f"the image of {pulling[0]} is being pulled"
    return f"the containers of {late[0]} are being made" if late else "the training's pods are not made yet"


def _is_pulling(facts: Facts, pod: Tree) -> bool:
    name = name_of(pod)
    reasons = [event.get("reason") for event in facts.events if trees.get(event, "involvedObject", "name") == name]
    return "Pulling" in reasons and "Pulled" not in reasons[reasons.index("Pulling") :]


def explain_pace(facts: Facts, now: datetime) -> Explanation | None:
    """Return whether nodes stand still, or one is behind; None if all get on, as far as their logs tell."""
    steps = facts.steps()
    ranks = {step: facts.logs.get(step, ()) for step, pod in steps.items() if _trains(pod)}
    return _stand(facts, ranks) or _hang(facts, ranks, now) or _straggler(facts, ranks)


def _stand(facts: Facts, ranks: dict[str, Sequence[Line]]) -> Explanation | None:
    """Return where nodes stand that have printed their stacks and nothing since: one that waits for no other, first."""
    stands = {step: stand for step, lines in ranks.items() if (stand := read_stand([line.text for line in lines]))}
    if not stands:
        return None
    alone = [step for step, stand in stands.items() if not stand.waits]
    culprit = alone[0] if len(alone) == 1 else ""
    told = sorted(stands.items(), key=lambda one: one[0] != culprit)
    detail = "; ".join(f"{step} stands in {stand}" for step, stand in told[:_SHOWN])
    return of_class(
        "Running",
        "Hang",
        culprit or facts.name,
        detail=detail,
        source=f"stacks of {told[0][0]}",
        where=_place(facts, culprit),
    )


def _hang(facts: Facts, ranks: dict[str, Sequence[Line]], now: datetime) -> Explanation | None:
    told = {step: [line.time for line in lines if line.time] for step, lines in ranks.items()}
    told = {step: times for step, times in told.items() if times}
    if not told:
        return None
    gaps = [later - earlier for times in told.values() for earlier, later in pairwise(times)]
    if len(gaps) < _GAPS:
        return None
    allowed = max(_SILENT, _TIMES * max(gaps))
    spoke = max(times[-1] for times in told.values())
    reported = read_moment(trees.get(facts.job, "status", "trainerStatus", "lastUpdatedTime"))
    quiet = now - max(spoke, reported or spoke)
    if quiet <= allowed:
        return None
    step = min(told, key=lambda one: told[one][-1])
    apart = spoke - told[step][-1] > max(gaps)
    who = step if apart else facts.name
    last = ranks[step][-1].text
    detail = f"nothing was printed for {_span(quiet)}, and before never for more than {_span(max(gaps))}"
    return of_class(
        "Running",
        "Hang",
        who,
        detail=f"{detail}; {step} said last: {clean(last, MOST_LETTERS)}",
        source=f"log of {step}",
        where=_place(facts, step if apart else ""),
    )


def _straggler(facts: Facts, ranks: dict[str, Sequence[Line]]) -> Explanation | None:
    counts = {step: reached for step, lines in ranks.items() if (reached := _reached(lines)) is not None}
    if len(counts) < 2:
        return None
    last = min(counts, key=lambda step: counts[step])
    others = median(count for step, count in counts.items() if step != last)
    if others - counts[last] < max(5, others * 0.05):
        return None
    detail = f"it is at step {counts[last]}, the others at {others:g}"
    return of_class("Running", "Straggler", last, detail=detail, source=f"log of {last}", where=_place(facts, last))


def _reached(lines: Sequence[Line]) -> int | None:
    for line in reversed(lines):
        found = _STEP.search(line.text[:MOST_LETTERS])
        if found:
            return int(found[1])
    return None


def _place(facts: Facts, step: str) -> Where:
    pod = facts.steps().get(step)
    return NOWHERE if pod is None else where_of(step, pod)


def _trains(pod: Tree) -> bool:
    place = index_of(pod)
    return place is not None and place.replicated_job in TRAINING


def _span(span: timedelta) -> str:
    seconds = int(span.total_seconds())
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"
