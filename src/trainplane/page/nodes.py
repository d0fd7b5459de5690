"""The steps of a TrainJob: every one as a small square, and in a table those that stand out, the rest folded away."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from trainplane.client.display.facts import devices, tally, trouble
from trainplane.page.markup import SYMBOLS, TONES, Html, badge, folded, table, tag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainplane.client.types.jobs import Step

FEW: Final = 16
"""Steps up to which all are listed at once."""
MOST_STEPS: Final = 1024
"""Steps that are listed at all; the others are counted."""
_HEADERS: Final = ("step", "state", "machine", "cluster", "devices", "restarts", "pod", "why")


def nodes(steps: Sequence[Step]) -> Html:
    """Return the steps; of many, squares for all, a table of those in trouble, and the rest behind a fold."""
    if not steps:
        return tag("p", "There are no pods yet.", class_="faint")
    shown = list(steps[:MOST_STEPS])
    if len(shown) <= FEW:
        return _table("Every step", shown)
    usual = Counter(_state(step) for step in shown).most_common(1)[0][0]
    unusual = [step for step in shown if _state(step) != usual or trouble(step)]
    parts = [tag("p", f"{len(steps)} steps: {tally(_state(step) for step in steps)}"), _squares(shown)]
    if unusual:
        parts.append(_table("Steps that stand out", unusual[:FEW]))
    if len(unusual) > FEW:
        parts.append(tag("p", f"and {len(unusual) - FEW} more that stand out, in the list below", class_="faint"))
    parts.append(folded("all-steps", f"All {len(shown)} steps", _table("Every step", shown)))
    if len(steps) > len(shown):
        parts.append(tag("p", f"and {len(steps) - len(shown)} more steps", class_="faint"))
    return tag("div", *parts)


def _squares(steps: Sequence[Step]) -> Html:
    squares = (
        tag("span", SYMBOLS.get(_state(step), "·"), class_=TONES.get(_state(step), "grey"), title=_title(step))
        for step in steps
    )
    seen = list(dict.fromkeys(_state(step) for step in steps))
    legend = tag("p", *(badge(state) for state in seen), class_="legend")
    return tag("div", tag("div", *squares, class_="squares", aria_hidden="true"), legend)


def _table(caption: str, steps: Sequence[Step]) -> Html:
    return table(caption, _HEADERS, map(_row, steps))


def _row(step: Step) -> tuple[str, ...]:
    return (
        step.name,
        badge(_state(step)),
        step.node or "",
        step.cluster or "",
        devices(step.device, step.device_count),
        str(step.restarts) if step.restarts else "",
        step.pod_name,
        trouble(step),
    )


def _title(step: Step) -> str:
    return f"{step.name} {_state(step)} {trouble(step)}".rstrip()


def _state(step: Step) -> str:
    return step.status or "Unknown"
