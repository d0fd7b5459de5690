"""Times as Kubernetes writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

BEGINNING: Final = datetime.fromtimestamp(0, UTC)
"""The time of what has none, so that times can be compared."""


def read_moment(text: Any) -> datetime | None:
    """Return a time such as `2026-11-15T05:11:08.123456Z`; None for what is none."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
