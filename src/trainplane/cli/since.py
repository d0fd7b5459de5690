"""Times as people type them: `10m` ago, or a moment."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from trainplane.cli.errors import CommandError

_AGO: Final = re.compile(r"([0-9]{1,9})([smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def read_since(text: str, now: datetime) -> datetime:
    """Return the moment that `--since` means; one without a zone is in UTC.

    Raises:
        CommandError: it means none.
    """
    found = _AGO.fullmatch(text)
    try:
        if found:
            return now - timedelta(**{_UNITS[found[2]]: int(found[1])})
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise CommandError(
            f"--since {text!r} is no time", "say 30s, 10m, 2h, 1d, or a moment such as 2026-11-16T08:00:00Z"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
