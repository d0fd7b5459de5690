"""How much a suite does: its usual size, the full one with FULL=1, a smaller one with SMALL=1.

`.ci/run` sets SMALL=1 on a machine where everything had to be built first, or that is slow. A person sets FULL=1 and
waits. Single tests are marked `full` or `usual`: pyproject.toml says what that means.
"""

from __future__ import annotations

import os
from typing import Final, TypeVar

T = TypeVar("T")

FULL: Final = os.environ.get("FULL") == "1"
SMALL: Final = os.environ.get("SMALL") == "1" and not FULL


def sized(usual: T, *, full: T, small: T | None = None) -> T:
    """Return what this run's size asks for; where nothing smaller is said, the usual one is small enough."""
    if FULL:
        return full
    return small if SMALL and small is not None else usual
