"""Wakes all who wait for the next change.

news = notifier.next      # before looking
look()
await news.wait()         # set already if something changed meanwhile: no change is missed
"""

from __future__ import annotations

import asyncio


class Notifier:
    """Has an event for each change: `next` is the one that is set at the next."""

    __slots__ = ("next",)

    def __init__(self) -> None:
        self.next = asyncio.Event()

    def notify(self) -> None:
        """Wake who waits; who takes `next` from now on waits for another change."""
        now, self.next = self.next, asyncio.Event()
        now.set()
