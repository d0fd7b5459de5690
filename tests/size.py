"""How much a suite does: its usual size, or the full one with FULL=1, which takes hours for some suites.

Single tests of the full size are marked `full`.
"""

from __future__ import annotations

import os
from typing import Final, TypeVar

T = TypeVar("T")

FULL: Final = os.environ.get("FULL") == "1"


def sized(usual: T, *, full: T) -> T:
    """Return what this run's size asks for."""
    return full if FULL else usual
