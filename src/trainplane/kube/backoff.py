"""How long to wait before trying again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential waiting with jitter, so that what failed together does not come back together."""

    base: float = 0.2
    """Seconds after the first failure; short, since most failures are a conflict or a restart just over."""

    factor: float = 2.0
    """What each further failure multiplies the wait by."""

    cap: float = 300.0
    """Seconds at most, jitter included: a cluster that is mended is noticed within five minutes."""

    jitter: float = 0.5
    """The share of the wait that is drawn at random: 0.5 draws from the upper half of the interval."""

    def delay(self, failures: int, random: Random) -> float:
        """Return the seconds to wait after so many failures in a row (1 is the first)."""
        exponent = min(max(failures, 1) - 1, 64)  # a float overflows long before failures stop counting
        longest = min(self.cap, self.base * self.factor**exponent)
        return longest * (1.0 - self.jitter * random.random())
