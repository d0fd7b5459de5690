"""How many requests may be in flight at once: found out, not configured.

A fixed rate is wrong twice: it starves a controller on an idle API server and drowns a busy one. Requests in flight are
what the server really feels (its own priority and fairness counts seats, not rates), so that number is steered as TCP
steers its window: a little more after each success at the limit, much less when the server pushes back.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LimiterSettings:
    """How the limit moves."""

    initial: int = 16
    """Requests in flight at the start; 16 saturate no server, and the limit doubles within some 16 round trips."""
    least: int = 1
    """Requests in flight that no push-back goes below; with 0 nothing would ever find out that the server is back."""
    most: int = 128
    """Requests in flight that no success goes above; each is a connection, and one asyncio process fills no more."""
    decrease: float = 0.7
    """Factor after push-back; gentler than TCP's 0.5 because a 429 is an exact signal and no guess from a loss."""


class Limiter:
    """Gate for requests: `acquire` before, `release` after, saying whether the server pushed back.

    Waiters go first come, first served. Push-back to requests that began before the last decrease counts once: one
    overloaded moment refuses many requests together and says the same thing with each.
    """

    def __init__(self, settings: LimiterSettings | None = None) -> None:
        self._settings = settings or LimiterSettings()
        self.limit = float(self._settings.initial)
        self.in_flight = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._epoch = 0

    async def acquire(self) -> int:
        """Wait for a place; return the ticket to give back to `release`."""
        if self.in_flight >= int(self.limit) or self._waiters:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self.in_flight -= 1
                    self._wake()
                elif waiter in self._waiters:
                    self._waiters.remove(waiter)
                raise
        else:
            self.in_flight += 1
        return self._epoch

    def release(self, ticket: int, *, pushed_back: bool = False) -> None:
        """Give the place back and move the limit."""
        settings = self._settings
        if pushed_back:
            if ticket == self._epoch:
                self._epoch += 1
                self.limit = max(float(settings.least), self.limit * settings.decrease)
        elif self.in_flight >= int(self.limit):
            self.limit = min(float(settings.most), self.limit + 1 / self.limit)
        self.in_flight -= 1
        if self._waiters:
            self._wake()

    def _wake(self) -> None:
        while self._waiters and self.in_flight < int(self.limit):
            waiter = self._waiters.popleft()
            if not waiter.done():
                self.in_flight += 1
                waiter.set_result(None)
