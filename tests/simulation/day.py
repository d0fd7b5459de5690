"""How many histories a run draws, and the seed of the first."""

from __future__ import annotations

from typing import Final

from tests.day import seed
from tests.size import sized

SEED: Final = seed(apart=1_000_000)
"""The first of the run's histories; the others follow it."""

HISTORIES: Final = sized(500, full=100_000)
