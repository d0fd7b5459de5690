"""One TrainJob on a screen: where it stands and why, how far it is, its nodes, its metrics, its last lines."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from trainplane.cli.live.cells import UNICODE, Glyphs, cell, column, fitted, line, plain, spaced, wrapped
from trainplane.cli.live.chart import bar, chart
from trainplane.cli.live.grid import GROUP, STYLES, grid, legend, node_states, nodes_each, state_of
from trainplane.client.display.facts import age, blame, duration, nodes, percent, trouble
from trainplane.client.types.jobs import COMPLETE, CREATED, FAILED, FINISHED, RUNNING, SUSPENDED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rich.text import Text

    from trainplane.client.types.jobs import Step, TrainJob
    from trainplane.client.types.observation import Observation

_STATUS: Final = {
    CREATED: ("pending", "yellow"),
    SUSPENDED: ("pending", "yellow"),
    RUNNING: ("running", "green"),
    COMPLETE: ("done", "green"),
    FAILED: ("failed", "bold red"),
}
_TALL: Final = 30
"""Rows from which on there is room for more than the least."""
_GRID_ROWS: Final = 4
_CHART_ROWS: Final = 5
_NAME: Final = 20
"""Cells of the names of metrics and steps, at most."""
_VALUE: Final = 11
_STATE: Final = 12
_FEW: Final = GROUP
"""Nodes that need no grid: each has a line of its own below."""


def job_view(
    seen: Observation, now: datetime, width: int, height: int, glyphs: Glyphs = UNICODE, *, note: str = ""
) -> list[Text]:
    """Return the lines of a screen; `note` is its last line."""
    job = seen.job
    above = [
        *_head(seen, now, width, glyphs),
        *_why(seen, width, 5 if height >= _TALL else 3, glyphs),
        *_progress(job, now, width, glyphs),
        *_stages(seen, now, width, glyphs),
        *_nodes(seen, width, 2 * _GRID_ROWS if height >= _TALL else _GRID_ROWS, glyphs),
    ]
    below = [line((cell(note, width), ""))] if note else []
    room = height - len(above) - len(below)
    steps = _by_need(job.steps)
    wanted = min(len(steps), max(3, room // 2)) + 1
    metrics = _metrics(seen, width, max(room - wanted, room // 3), glyphs)
    lines = _last_lines(seen, steps, width, room - len(metrics), glyphs)
    return fitted(spaced([above, metrics, lines], below, height), width, height)


def _head(seen: Observation, now: datetime, width: int, glyphs: Glyphs) -> list[Text]:
    job = seen.job
    sign, style = _STATUS.get(job.status, ("unknown", "yellow"))
    state = f"{getattr(glyphs, sign)} {'Deleted' if seen.is_deleted else cell(job.status, _STATE, glyphs.more)}"
    took = duration(age(job, now))
    name = cell(job.name, max(8, width - cell_len(state) - len(took) - 5), glyphs.more)
    where = {"namespace": job.namespace, "on": job.cluster, "queue": job.queue, "runtime": job.runtime.name}
    told = ", ".join(f"{word} {plain(what)}" for word, what in where.items() if what)
    left = width - cell_len(name) - cell_len(state) - len(took) - 6
    rest = f"  {cell(told, left, glyphs.more)}" if left >= len("namespace x") else ""
    return [line((name, "bold"), "  ", (state, style), "  ", took, rest)]


def _why(seen: Observation, width: int, most: int, glyphs: Glyphs) -> list[Text]:
    """Return what it waits for or what went wrong, and what to do: nothing where all is well."""
    job, told, queue = seen.job, seen.explanation, seen.queue
    parts: list[tuple[str, str, str]] = []
    if told is not None:
        parts = [(glyphs.failed, "bold red", told.summary), (glyphs.do, "cyan", told.remedy)]
    elif queue is not None and queue.summary:
        place = f"Place {queue.position} of {queue.pending} in line. " if queue.position else ""
        advice = next((one for one in queue.suggestions if one.now), None)
        said = queue.summary if "in line" in queue.summary else place + queue.summary
        parts = [(glyphs.pending, "yellow", said)]
        parts += [(glyphs.do, "cyan", f"{advice.what} {advice.do}")] if advice else []
    elif job.cause is not None:
        sign, style = _STATUS.get(job.status, ("unknown", "yellow"))
        parts = [(getattr(glyphs, sign), style, blame(job.cause))]
    elif job.status == CREATED:
        parts = [(glyphs.pending, "yellow", _still_waits(job))]
    found: list[Text] = []
    for number, (sign, style, text) in enumerate(parts):
        rows = most - len(found) - (len(parts) - number - 1)
        first, *others = wrapped(text, width - 2, rows, glyphs.more) or [""]
        found += [line((sign, style), " ", first), *(line("  ", row) for row in others)]
    return found


def _still_waits(job: TrainJob) -> str:
    """Return what a job that has no cause for it waits for."""
    if not job.steps:
        return "it has no pods yet"
    started, all_ = nodes(job)
    waiting = next((step for step in job.steps if step.status == "Pending"), None)
    first = f"; {waiting.name}: {trouble(waiting) or 'Pending'}" if waiting else ""
    return f"{started} of {all_} nodes run{first}"


def _progress(job: TrainJob, now: datetime, width: int, glyphs: Glyphs) -> list[Text]:
    told, done = job.progress, percent(job)
    if told is None:
        return []
    words = [] if done is None else [f"{done:>3} %"]
    if told.remaining_seconds is not None and job.status not in FINISHED:
        words.append(f"about {duration(told.remaining_seconds)} left")
    if told.updated is not None and job.status not in FINISHED:
        words.append(f"said {duration(max(0.0, (now - told.updated).total_seconds()))} ago")
    said = cell(", ".join(words), width - 12, glyphs.more)
    if done is None:
        return [line("progress  ", said)]
    cells = max(1, width - len("progress  ") - len(said) - 2)
    full = bar(done / 100, cells)
    return [line("progress  ", (glyphs.full * full, "green"), glyphs.empty * (cells - full), "  ", said)]


def _stages(seen: Observation, now: datetime, width: int, glyphs: Glyphs) -> list[Text]:
    """Return the way so far: each stage with the time it took from the one before, the newest kept where it is long."""
    timeline = seen.timeline
    if not timeline:
        return []
    words = [timeline[0].stage]
    for before, one in pairwise(timeline):
        took = duration(max(0.0, (one.time - before.time).total_seconds()))
        words.append(f"{one.stage}{f' {one.number}' if one.number else ''} +{took}")
    if seen.job.status not in FINISHED:
        words[-1] += f", {duration(max(0.0, (now - timeline[-1].time).total_seconds()))} ago"
    room = width - len("stages    ")
    shown = [plain(word, 60) for word in words]
    joint = f" {glyphs.then} "
    while len(shown) > 1 and len(joint.join(shown)) > room:
        shown = [glyphs.more, *shown[2 if shown[0] == glyphs.more else 1 :]]
    return [line("stages    ", cell(joint.join(shown), room, glyphs.more))]


def _nodes(seen: Observation, width: int, rows: int, glyphs: Glyphs) -> list[Text]:
    states = node_states(seen.job)
    if not states:
        return []
    again = max((one.number for one in seen.timeline if one.stage == "Restarted"), default=0)
    inside = sum(max(0, step.restarts) for step in seen.job.steps)
    told = f"  {_times(again + inside, 'restart')}" if again + inside else ""
    head = line("nodes     ", *legend(states, glyphs), told)
    if len(states) <= _FEW:
        return [head]
    each = nodes_each(len(states), width - 2, rows)
    if each > 1:
        head.append(f"  (a sign is {each} nodes: the worst of them)")
    return [head, *(line("  ", row) for row in grid(states, width - 2, rows, glyphs))]


def _metrics(seen: Observation, width: int, room: int, glyphs: Glyphs) -> list[Text]:
    """Return a chart for each metric that fits, taller where there is room."""
    charted = {name: points for name, points in seen.metrics.items() if points}
    reported = dict(seen.job.progress.metrics) if seen.job.progress else {}
    names = [*charted, *(name for name in reported if name not in charted)]
    fit = names[: max(0, room - 1)]
    if not fit:
        return []
    begin = min((points[0][0] for points in charted.values()), default=None)
    end = max((points[-1][0] for points in charted.values()), default=None)
    over = f" over {duration((end - begin).total_seconds())}" if begin and end and begin < end else ""
    hidden = f"  ({len(names) - len(fit)} more)" if len(names) > len(fit) else ""
    found = [line((f"metrics{over}", "bold"), hidden)]
    tall = max(1, min(_CHART_ROWS, (room - 1) // len(fit))) if over else 1
    label = min(_NAME, max(len(plain(name, 60)) for name in fit))
    for name in fit:
        value = reported.get(name) or (number(charted[name][-1][1]) if name in charted else "")
        found += _metric(name, value, charted.get(name, ()), label, width, tall, glyphs)
    return found


def _metric(
    name: str, value: str, points: Sequence[tuple[datetime, float]], label: int, width: int, tall: int, glyphs: Glyphs
) -> list[Text]:
    cells = width - 2 - label - 2 - 2 - 2 * _VALUE
    title, newest = column(name, label, glyphs.more), column(_shortest(value), _VALUE, glyphs.more)
    if not points or cells < GROUP:
        return [line("  ", title, "  ", (newest, "bold"))]
    values = [one for _, one in points]
    low, high = number(min(values)), number(max(values))
    if tall == 1:
        ends = cell(f"{low}{glyphs.more}{high}", _VALUE + 8, glyphs.more)
        row = chart(points, cells - 8, 1, glyphs)[0]
        return [line("  ", title, "  ", (newest, "bold"), (row, "cyan"), "  ", ends)]
    sides = [(title, newest), *((" " * label, " " * _VALUE) for _ in range(tall - 1))]
    marks = [f"max {high}", *("" for _ in range(tall - 2)), f"min {low}"]
    return [
        line("  ", left, "  ", (now, "bold"), (row, "cyan"), "  ", mark)
        for (left, now), row, mark in zip(sides, chart(points, cells, tall, glyphs), marks, strict=True)
    ]


def _by_need(steps: Sequence[Step]) -> list[Step]:
    """Return the steps, those first that somebody would look for: failed, in trouble, started again; else in order."""
    order = {"failed": 0, "unknown": 1, "pending": 2, "again": 3}
    return sorted(steps, key=lambda step: (not trouble(step), order.get(state_of(step), 4)))


def _last_lines(seen: Observation, steps: Sequence[Step], width: int, room: int, glyphs: Glyphs) -> list[Text]:
    """Return a row for each step that fits: its sign, its name, what is wrong with it or what it printed last."""
    if not steps or room < 2:
        return []
    shown = steps[: room - 1]
    hidden = f"  ({len(steps) - len(shown)} more)" if len(steps) > len(shown) else ""
    refused = f"  logs: {plain(seen.unread['logs'])}" if "logs" in seen.unread else ""
    label = min(_NAME, max(len(plain(step.name)) for step in shown))
    found = [line(("steps, with their last lines", "bold"), hidden, cell(refused, width - 50, glyphs.more))]
    for step in shown:
        state, wrong, said = state_of(step), trouble(step), seen.lines.get(step.name, "")
        again = _times(step.restarts, "restart") if step.restarts else ""
        told = ", ".join(part for part in (again, wrong) if part)
        told = f"{told} | {said}" if told and said else told or said or step.node or ""
        parts = (getattr(glyphs, state), STYLES.get(state, "")), " ", column(step.name, label, glyphs.more), "  "
        found.append(line("  ", *parts, cell(told, width - label - 6, glyphs.more)))
    return found


def _times(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def number(value: float) -> str:
    """Return a number as short as it can be read."""
    return f"{value:.4g}"


def _shortest(value: str) -> str:
    """Return what was reported, in fewer digits where it is a number of many."""
    if len(value) < _VALUE:
        return value
    try:
        return number(float(value[:64]))
    except ValueError:
        return value
