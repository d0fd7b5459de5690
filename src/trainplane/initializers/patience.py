"""How long something is tried that breaks off again and again."""

from __future__ import annotations

import random
import time
from typing import Final

_GAIN: Final = 1 << 20
"""Bytes by which what is tried again must have grown for patience to begin anew."""
_CRUMB: Final = 1 << 16
"""Bytes that a try must have brought not to have been in vain."""
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 30.0


class Patience:
    """Begins anew when more is there than ever before: neither a trickle nor a break at one place lasts for ever."""

    def __init__(self, limit: float, at: int) -> None:
        self.limit = limit
        self._mark = self._at = self._paused_at = at
        self._since = time.monotonic()
        self._pause = _FIRST_PAUSE

    @property
    def left(self) -> float:
        """Seconds."""
        return self._since + self.limit - time.monotonic()

    def note(self, at: int) -> None:
        """Take in how far the part is."""
        self._at = at
        if at - self._mark >= _GAIN:
            self._mark, self._since = at, time.monotonic()

    def pause(self, asked: float) -> float:
        """Return how long to wait before the next try: as long as the source asks, and longer after each in vain."""
        if self._at - self._paused_at >= _CRUMB:
            self._pause = _FIRST_PAUSE
        self._paused_at = self._at
        seconds = min(max(asked, self._pause * random.uniform(0.5, 1)), _LONGEST_PAUSE, max(self.left, 0))  # noqa: S311 jitter
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return seconds
