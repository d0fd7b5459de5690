"""Nodes as one sign each, so that hundreds fit on a screen; a sign differs by its shape, not by its colour alone."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from trainplane.api.podindex import as_number
from trainplane.cli.live.cells import UNICODE, Glyphs, line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from trainplane.client.types.jobs import Step, TrainJob

GROUP: Final = 8
"""Signs between two gaps."""
WORST: Final = ("failed", "unknown", "pending", "absent", "again", "running", "done")
"""States of a node, by what is told where one sign stands for several."""
STYLES: Final = {"failed": "bold red", "unknown": "yellow", "pending": "yellow", "again": "cyan", "running": "green"}
WORDS: Final = {
    "failed": "failed",
    "unknown": "unknown",
    "pending": "pending",
    "absent": "to come",
    "again": "restarted",
    "running": "running",
    "done": "done",
}
_PHASES: Final = {"Running": "running", "Succeeded": "done", "Failed": "failed", "Pending": "pending"}
_NODE: Final = "node-"
_MOST_NODES: Final = 100_000


def state_of(step: Step) -> str:
    """Return the state of a step."""
    state = _PHASES.get(step.status or "", "unknown")
    return "again" if state == "running" and step.restarts else state


def node_states(job: TrainJob) -> list[str]:
    """Return the state of each node by its number, also of those that have no pod yet."""
    known = {
        as_number(number): state_of(step)
        for step in job.steps
        if step.name.startswith(_NODE) and (number := step.name.removeprefix(_NODE)).isdecimal()
    }
    count = min(max(job.num_nodes, max(known, default=-1) + 1), _MOST_NODES)
    return [known.get(number, "absent") for number in range(count)]


def legend(states: Sequence[str], glyphs: Glyphs = UNICODE) -> list[tuple[str, str]]:
    """Return what each sign means and how often it is there, as parts of a line: the worst first."""
    counts = Counter(states)
    parts: list[tuple[str, str]] = []
    for state in WORST:
        if counts[state]:
            parts += [("  " if parts else "", ""), (getattr(glyphs, state), STYLES.get(state, ""))]
            parts.append((f" {counts[state]} {WORDS[state]}", ""))
    return parts


def grid(states: Sequence[str], width: int, rows: int, glyphs: Glyphs = UNICODE) -> list[Text]:
    """Return the nodes in at most `rows` rows, the number of each row's first in front.

    Where they are too many, a sign stands for several: for the worst of them.
    """
    label = len(str(max(0, len(states) - 1)))
    per_row = _per_row(width - label - 1)
    each = nodes_each(len(states), width, rows)
    shown = [min(states[at : at + each], key=WORST.index) for at in range(0, len(states), each)]
    found = []
    for begin in range(0, len(shown), per_row):
        parts: list[tuple[str, str]] = [(f"{begin * each:>{label}}", "")]
        for place, state in enumerate(shown[begin : begin + per_row]):
            parts.append((" " * (place % GROUP == 0) + getattr(glyphs, state), STYLES.get(state, "")))
        found.append(line(*parts))
    return found


def nodes_each(count: int, width: int, rows: int) -> int:
    """Return for how many nodes a sign of `grid` stands."""
    label = len(str(max(0, count - 1)))
    return max(1, -(-count // (_per_row(width - label - 1) * max(1, rows))))


def _per_row(width: int) -> int:
    """Return how many signs a row has: a power of two times GROUP, so that numbers in front are easy to count from."""
    per_row = GROUP
    while 2 * per_row + 2 * per_row // GROUP <= width:
        per_row *= 2
    return per_row
