"""The last points of each metric, from the ConfigMap that the operator keeps with a TrainJob.

It stands in the namespace, so anybody there may have written it: what is no points is left out.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainplane.api.tree import Tree

Points = tuple[tuple[datetime, float], ...]

_MOST: Final = 64 << 10
"""Characters that are looked at; the operator writes some four thousand."""


def read_history(config_map: Tree) -> Mapping[str, Points]:
    """Return the points of each metric, in order of time."""
    text = trees.text(config_map, "data", names.HISTORY_KEY) or ""
    try:
        kept = json.loads(text) if len(text) <= _MOST else {}
    except (ValueError, RecursionError):
        return {}
    since, metrics = trees.get(kept, "since"), trees.get(kept, "metrics")
    if not isinstance(metrics, dict) or not isinstance(since, int | float):
        return {}
    found = {name: _points(entries, since) for name, entries in metrics.items()}
    return {name: points for name, points in found.items() if points}


def _points(entries: Any, since: float) -> Points:
    if not isinstance(entries, list):
        return ()
    return tuple(point for entry in entries if (point := _point(entry, since)) is not None)


def _point(entry: Any, since: float) -> tuple[datetime, float] | None:
    try:
        seconds, value = entry
        point = datetime.fromtimestamp(since + seconds, UTC), float(value)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    return point if math.isfinite(point[1]) else None
