"""Times as local backends write them: with fractions, so that of two pods that end in one second the first is known."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """Return a time as Kubernetes writes it, with microseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
