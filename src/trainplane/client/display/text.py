"""Plain text: tables that fit a terminal, and a line for each type."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from trainplane.client.display.facts import blame, devices, moment, nodes, progress, trouble
from trainplane.client.types.jobs import FINISHED, Event, Step, TrainJob
from trainplane.client.types.runtimes import Runtime, RuntimeKind
from trainplane.client.types.shown import text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.client.display.tables import Table

GAP: Final = "  "
NARROWEST: Final = 24
"""What the last column has at least; where less is left, it goes below its row."""


def lay_out(table: Table, width: int, paint: Callable[[str], str] = str) -> str:
    """Return a table whose last column is wrapped at `width`. No cell is cut: names are there to be copied.

    `paint` gives a padded cell of the other columns its colour, and takes no room on the screen.
    """
    if not table.headers:
        return ""
    *heads, last = (header.upper() for header in table.headers)
    widths = [max(map(len, column)) for column in zip(heads, *(row[:-1] for row in table.rows), strict=True)]
    begin = sum(widths) + len(GAP) * len(widths)
    left = width - begin
    longest = max(len(row[-1]) for row in table.rows)
    below = left < min(NARROWEST, longest)
    lines = [_line(heads, widths, last if not below else "")]
    for row in table.rows:
        told = row[-1]
        if below:
            lines.append(_line(row[:-1], widths, "", paint))
            lines += [f"    {part}" for part in _wrapped(told, max(width, NARROWEST) - 4)]
            continue
        parts = _wrapped(told, left) or [""]
        lines.append(_line(row[:-1], widths, parts[0], paint))
        lines += [" " * begin + part for part in parts[1:]]
    return "\n".join(lines)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _line(cells: tuple[str, ...] | list[str], widths: list[int], last: str, paint: Callable[[str], str] = str) -> str:
    padded = [paint(cell.ljust(width)) for cell, width in zip(cells, widths, strict=True)]
    return GAP.join([*padded, last]).rstrip()


@text_of.register(TrainJob)
def say_job(job: TrainJob) -> str:
    """Return where a TrainJob stands: `TrainJob mnist: Running, 2 of 2 nodes run, 40 % done`."""
    parts = [job.status]
    if job.status not in FINISHED:
        parts.append("{} of {} nodes run".format(*nodes(job)))
    if told := progress(job):
        parts.append(told)
    where = f" on {job.cluster}" if job.cluster else ""
    why = f" ({blame(job.cause)})" if job.cause else ""
    return f"TrainJob {job.name}{where}: {', '.join(parts)}{why}"


@text_of.register(Step)
def say_step(step: Step) -> str:
    """Return what a step does: `node-1: Pending, ImagePullBackOff: …`."""
    where = f" on {step.node}" if step.node else ""
    again = f", started again {step.restarts} times" if step.restarts > 1 else ", started again" * step.restarts
    why = f", {trouble(step)}" if trouble(step) else ""
    return f"{step.name}: {step.status or 'Unknown'}{where}{again}{why}"


@text_of.register(Runtime)
def say_runtime(runtime: Runtime) -> str:
    """Return what a runtime offers: `torch-distributed: torch, 2 nodes with 4 gpu each`."""
    trainer = runtime.trainer
    if runtime.kind is RuntimeKind.UNKNOWN:
        return f"{runtime.name}: only its name is known; get_runtime({runtime.name!r}) finds the rest"
    each = f" with {computing} each" if (computing := devices(trainer.device, trainer.device_count)) else ""
    number = f"{trainer.num_nodes} node{'' if trainer.num_nodes == 1 else 's'}"
    model = f", fine-tunes {runtime.pretrained_model}" if runtime.pretrained_model else ""
    return f"{runtime.name}: {trainer.framework}, {number}{each}{model}{', deprecated' if runtime.deprecated else ''}"


@text_of.register(Event)
def say_event(event: Event) -> str:
    """Return what happened: `08:00:01 Warning FailedScheduling Pod mnist-node-0-0: …`."""
    warning = "Warning " if event.type == "Warning" else ""
    often = f" ({event.count} times)" if event.count > 1 else ""
    whose = f"{event.involved_object_kind} {event.involved_object_name}"
    return f"{moment(event):%H:%M:%S} {warning}{event.reason} {whose}: {event.message}{often}"
