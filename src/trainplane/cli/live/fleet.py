"""A cluster or a hub on a screen: jobs by phase, devices, quota, workers, queues, and what needs somebody.

Of each list those come first that need attention, as many as fit, and the rest is counted.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from trainplane.cli.live.cells import UNICODE, Glyphs, cell, column, fitted, line, plain, spaced
from trainplane.cli.live.chart import bar
from trainplane.client.display.facts import amount, duration
from trainplane.client.reading.devices import is_device

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rich.text import Text

    from trainplane.client.types.overview import Concern, Overview, QueueUse, QuotaUse, WorkerState

_SIGNS: Final = {
    "Running": ("running", "green"),
    "Restarting": ("again", "cyan"),
    "Pending": ("pending", "yellow"),
    "Queued": ("pending", "yellow"),
    "Suspended": ("absent", ""),
    "Failed": ("failed", "bold red"),
    "Succeeded": ("done", ""),
}
_DEVICES: Final = 3
"""Kinds of devices that are told."""
_NAME: Final = 24
_BAR: Final = 12
_HELD: Final = 9
"""Cells of `used/nominal`, at least."""


def fleet_view(
    seen: Overview, now: datetime, width: int, height: int, glyphs: Glyphs = UNICODE, *, title: str = "", note: str = ""
) -> list[Text]:
    """Return the lines of a screen."""
    above = [*_head(seen, now, title, width, glyphs), *_devices(seen, width, glyphs), *_unread(seen, width, glyphs)]
    below = [line(cell(note, width, glyphs.more))] if note else []
    room = height - len(above) - len(below)
    workers = _workers(seen.workers, width, max(3, room // 4), glyphs)
    concerns = _concerns(seen.concerns, now, width, max(3, room // 3), glyphs)
    queues = _queues(seen.queues, width, room - len(workers) - len(concerns), glyphs)
    if queues:
        concerns = _concerns(seen.concerns, now, width, room - len(workers) - len(queues), glyphs)
    return fitted(spaced([above, workers, queues, concerns], below, height), width, height)


def _head(seen: Overview, now: datetime, title: str, width: int, glyphs: Glyphs) -> list[Text]:
    clock = f"{now:%H:%M:%S}Z"
    whose = f"namespace {seen.namespace}" if seen.namespace else "all namespaces"
    name = cell(f"{title or 'cluster'}, {whose}", width - len(clock) - 2, glyphs.more)
    parts: list[str | tuple[str, str]] = ["jobs  "]
    for phase, (sign, style) in _SIGNS.items():
        if count := seen.jobs.get(phase):
            parts += ["  " if len(parts) > 1 else "", (getattr(glyphs, sign), style), f" {count} {phase}"]
    return [
        line((column(name, width - len(clock) - 2), "bold"), "  ", clock),
        line(*parts) if len(parts) > 1 else line("jobs  none"),
    ]


def _devices(seen: Overview, width: int, glyphs: Glyphs) -> list[Text]:
    """Return what computes: devices that nodes have, and the quota of all queues."""
    rows: list[tuple[str, float, float, str]] = []
    for one in seen.devices[:_DEVICES]:
        more = [f"{one.idle} idle"]
        more += [f"{one.waiting} waited for"] if one.waiting else []
        more += [f"{one.away} away"] if one.away else []
        rows.append((one.resource, one.used, one.capacity, ", ".join(more)))
    totals: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for queue in seen.queues:
        for quota in queue.quotas:
            if is_device(quota.resource):
                totals[quota.resource][0] += quota.used
                totals[quota.resource][1] += quota.nominal
    for resource, (used, nominal) in sorted(totals.items())[:_DEVICES]:
        rows.append((f"quota {resource}", used, nominal, f"{amount(resource, max(0.0, nominal - used))} free"))
    label = min(_NAME + 6, max((len(row[0]) for row in rows), default=0))
    return [
        line(
            column(name, label, glyphs.more),
            "  ",
            *_bar(used, whole, glyphs),
            "  ",
            cell(f"{used:g} of {whole:g} used, {more}", width - label - _BAR - 4, glyphs.more),
        )
        for name, used, whole, more in rows
    ]


def _unread(seen: Overview, width: int, glyphs: Glyphs) -> list[Text]:
    told = [f"not seen: {plain(what)}: {plain(why, 200)}" for what, why in seen.unread.items()]
    return [line(("! ", "yellow"), cell(one, width - 2, glyphs.more)) for one in told]


def _workers(workers: Sequence[WorkerState], width: int, room: int, glyphs: Glyphs) -> list[Text]:
    if not workers:
        return []
    lost = sum(not one.is_connected for one in workers)
    ordered = sorted(workers, key=lambda one: (one.is_connected, -(one.jobs or 0), one.name))
    shown = ordered[: room - 1]
    told = f", {lost} not connected" if lost else ", all connected"
    found = [_heading(f"workers: {len(workers)}{told}", len(ordered) - len(shown))]
    label = min(_NAME, max(len(one.name) for one in shown))
    for one in shown:
        sign, style = (glyphs.running, "green") if one.is_connected else (glyphs.failed, "bold red")
        jobs = "" if one.jobs is None else f"{one.jobs} job{'' if one.jobs == 1 else 's'}"
        why = f"not connected: {one.why}" if not one.is_connected else ""
        words = ", ".join(part for part in (why, jobs) if part) or "connected"
        row = cell(words, width - label - 6, glyphs.more)
        found.append(line("  ", (sign, style), " ", column(one.name, label, glyphs.more), "  ", row))
    return found


def _queues(queues: Sequence[QueueUse], width: int, room: int, glyphs: Glyphs) -> list[Text]:
    """Return the queues: those that are stopped first, then those where somebody waits, then the fullest."""
    if not queues or room < 2:
        return []
    ordered = sorted(queues, key=lambda one: (one.is_active, not one.pending, -_fullness(one), one.name))
    rows = [_rows_of(queue, 3) for queue in ordered]
    if sum(map(len, rows)) > room - 1:
        rows = [_rows_of(queue, 1) for queue in ordered]
    shown = min(len(rows), room - 1)
    waiting, stopped = sum(one.pending for one in queues), sum(not one.is_active for one in queues)
    told = "".join([f", {waiting} jobs wait" if waiting else "", f", {stopped} stopped" if stopped else ""])
    found = [_heading(f"queues: {len(queues)}{told}", len(rows) - shown)]
    label = min(_NAME, max(len(one.name) for one in ordered[:shown]))
    for queue, quotas in zip(ordered[:shown], rows, strict=False):
        found += _queue(queue, quotas, label, width, glyphs)
    return found


def _queue(queue: QueueUse, quotas: Sequence[QuotaUse | None], label: int, width: int, glyphs: Glyphs) -> list[Text]:
    sign, style = _sign(queue, glyphs)
    count = f"{queue.pending:>4} wait {queue.admitted:>4} run"
    left = width - 4 - label - 2 - len(count) - 2
    found = []
    for number, quota in enumerate(quotas):
        name = column(queue.name, label, glyphs.more)
        begin = line(" " * (width - left)) if number else line("  ", (sign, style), f" {name}  {count}  ")
        if quota is None:
            found.append(line(begin, cell(f"stopped: {queue.why}" if queue.why else "no quota", left, glyphs.more)))
            continue
        held = f"{amount(quota.resource, quota.used)}/{amount(quota.resource, quota.nominal)}"
        held = f"{held:<{_HELD}}"
        what = cell(f"{quota.resource} ({quota.flavor})", left - _BAR - len(held) - 2, glyphs.more)
        found.append(line(begin, *_bar(quota.used, quota.nominal, glyphs), f" {held} {what}"))
    return found


def _rows_of(queue: QueueUse, most: int) -> Sequence[QuotaUse | None]:
    """Return what is told of a queue: that it is stopped, else its quotas: devices before others, the fullest first."""
    if not queue.is_active or not queue.quotas:
        return [None]
    return sorted(queue.quotas, key=lambda one: (not is_device(one.resource), -_share(one), one.flavor))[:most]


def _concerns(concerns: Sequence[Concern], now: datetime, width: int, room: int, glyphs: Glyphs) -> list[Text]:
    if not concerns or room < 2:
        return []
    shown = concerns[: room - 1]
    found = [_heading("to look at", len(concerns) - len(shown))]
    label = min(_NAME, max(len(plain(f"{one.namespace}/{one.name}")) for one in shown))
    for one in shown:
        sign, style = _SIGNS[one.phase]
        ago = duration(max(0.0, (now - one.since).total_seconds()))
        what = f"failed {ago} ago" if one.phase == "Failed" else f"{one.phase} for {ago}"
        where = f" in {one.queue}" if one.queue and one.phase == "Queued" else ""
        told = f"{what}{where}{f': {one.reason}' if one.reason else ''}"
        name = column(f"{one.namespace}/{one.name}", label, glyphs.more)
        row = cell(told, width - label - 6, glyphs.more)
        found.append(line("  ", (getattr(glyphs, sign), style), " ", name, "  ", row))
    return found


def _heading(text: str, hidden: int) -> Text:
    return line((text, "bold"), f"  ({hidden} more)" if hidden else "")


def _sign(queue: QueueUse, glyphs: Glyphs) -> tuple[str, str]:
    if not queue.is_active:
        return glyphs.failed, "bold red"
    return (glyphs.pending, "yellow") if queue.pending else (glyphs.running, "green")


def _bar(used: float, whole: float, glyphs: Glyphs) -> list[tuple[str, str]]:
    share = used / whole if whole else float(used > 0)
    full = bar(share, _BAR)
    style = "red" if share >= 1 else "yellow" if share >= 0.9 else "green"
    return [(glyphs.full * full, style), (glyphs.empty * (_BAR - full), "")]


def _share(quota: QuotaUse) -> float:
    return quota.used / quota.nominal if quota.nominal else float(quota.used > 0)


def _fullness(queue: QueueUse) -> float:
    return max(map(_share, queue.quotas), default=0.0)
