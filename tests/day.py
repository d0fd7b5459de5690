"""The seed of a run: by default that of a fixed day, so that every run draws the same inputs.

The gate refuses a change for what the change does, and not for what a new day draws. SEED=day or FULL=1 draws the
inputs of today (UTC), which no earlier day had. SEED=N repeats a run: what draws inputs prints its seed and reports it
as a figure.
"""

from __future__ import annotations

import os
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

FIXED: Final = date(2026, 11, 19)
"""The day whose inputs a run draws by default."""
TODAY: Final = datetime.now(UTC).date()
_DAY: Final = "day"


def day(environ: Mapping[str, str] = os.environ) -> date:
    """Return the day whose inputs a run draws: today with SEED=day or FULL=1."""
    is_todays = environ.get("SEED") == _DAY or environ.get("FULL") == "1"
    return TODAY if is_todays else FIXED


def seed(environ: Mapping[str, str] = os.environ, *, apart: int = 1) -> int:
    """Return N of SEED=N, otherwise the seed of the run's day.

    The seeds of two days are `apart` from each other, for a run that draws from a range of seeds.
    """
    given = environ.get("SEED") or _DAY
    return int(given) if given != _DAY else day(environ).toordinal() * apart
