"""The seed of a run: SEED=N, or that of the day (UTC), so that every day draws what no day had before.

What draws by it prints it and keeps it as a figure, so that a find of any day can be made again.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Final

DAY: Final = datetime.now(UTC).date().toordinal()


def seed(*, apart: int = 1) -> int:
    """Return SEED=N as it is given, or the day's: those of two days are so far apart as a run needs."""
    return int(os.environ.get("SEED") or DAY * apart)
