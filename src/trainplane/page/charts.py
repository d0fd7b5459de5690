"""A metric over time as a picture, and in words below: for those who cannot see it, and for its figures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from trainplane.page.markup import Html, tag

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from trainplane.client.types.jobs import TrainJob

MOST_CHARTS: Final = 24
MOST_POINTS: Final = 512
_WIDTH, _HEIGHT, _EDGE = 320, 96, 4
"""Of the picture's own coordinates; a page stretches it."""

Points = tuple[tuple["datetime", float], ...]


def charts(job: TrainJob) -> Html:
    """Return each metric that a TrainJob reported: over time where that is kept, else its last value."""
    latest: Mapping[str, str] = job.progress.metrics if job.progress else {}
    shown = [chart(name, points) for name, points in list(job.metrics_history.items())[:MOST_CHARTS]]
    alone = {name: value for name, value in latest.items() if name not in job.metrics_history}
    shown += [_number(name, value) for name, value in list(alone.items())[: MOST_CHARTS - len(shown)]]
    left = len(job.metrics_history) + len(alone) - len(shown)
    parts = [tag("div", *shown, class_="charts")]
    if left > 0:
        parts.append(tag("p", f"and {left} more metrics", class_="faint"))
    return tag("div", *parts)


def chart(name: str, points: Points) -> Html:
    """Return one metric: a line, its last value, and from where to where it went. What is no number is left out."""
    finite = [(when, value) for when, value in points[-MOST_POINTS:] if math.isfinite(value)]
    if len(finite) < 2:
        return _number(name, _short(finite[0][1]) if finite else "no number was reported")
    values = [value for _, value in finite]
    first, last = finite[0], finite[-1]
    told = (
        f"from {_short(first[1])} at {first[0]:%H:%M:%S} to {_short(last[1])} at {last[0]:%H:%M:%S}; "
        f"least {_short(min(values))}, most {_short(max(values))}"
    )
    line = tag("polyline", points=Html(" ".join(f"{x:.1f},{y:.1f}" for x, y in _places(finite))), class_="line")
    picture = tag(
        "svg",
        line,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{name} {told}",
    )
    return tag("figure", _head(name, _short(last[1])), picture, tag("figcaption", told))


def _number(name: str, value: str) -> Html:
    return tag("figure", _head(name, value))


def _head(name: str, value: str) -> Html:
    return tag("p", tag("span", name, class_="name"), " ", tag("b", value))


def _places(points: Sequence[tuple[datetime, float]]) -> list[tuple[float, float]]:
    """Return where points stand in the picture. Scaled before it is subtracted: 1e308 less -1e308 is no number."""
    begin = points[0][0]
    seconds = [(when - begin).total_seconds() for when, _ in points]
    longest = max(seconds) or 1.0
    size = max(abs(value) for _, value in points) or 1.0
    values = [value / size for _, value in points]
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    wide, tall = _WIDTH - 2 * _EDGE, _HEIGHT - 2 * _EDGE
    return [
        (_EDGE + wide * max(0.0, second) / longest, _EDGE + tall * (high - value) / span)
        for second, value in zip(seconds, values, strict=True)
    ]


def _short(value: float) -> str:
    return f"{value:.4g}"
