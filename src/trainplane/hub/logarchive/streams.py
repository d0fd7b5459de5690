"""How many logs of one cluster are read at a time.

Each is a connection to the cluster, and from there to a kubelet. A log that is followed holds its place for as long as
its container runs, days perhaps; so who finds all places taken does not wait for one, but reads what there is, again
and again, and says so. What is only read has places of its own, which are free again in a moment: the end of a log is
read however many are followed.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trainplane.kube.logfollower import TURN_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger(__name__)


class Streams:
    """The places of one cluster.

    Args:
        cluster: what it is called, for people.
        most: logs that are followed at once.
        reads: logs that are read at once beside these.
    """

    def __init__(self, cluster: str, most: int, reads: int) -> None:
        self.open = 0
        """Logs that are followed now."""
        self.refused = 0
        """How often there was no place for one more."""
        self.reads = asyncio.Semaphore(reads)
        self._cluster = cluster
        self._most = most
        self._is_told = False

    @property
    def is_full(self) -> bool:
        """Whether no more logs can be followed."""
        return self.open >= self._most

    @property
    def shortage(self) -> str:
        """What the reader of a log is told that cannot be followed."""
        return (
            f"{self._most} logs of {self._cluster} are followed already, as many as may be at once: this one is read "
            f"every {TURN_SECONDS:g} s, and its last lines are lost if its pod is deleted in between "
            "(--streams of the hub's server sets how many)"
        )

    @contextmanager
    def place(self) -> Iterator[bool]:
        """Take a place for the time of the context, if there is one; say whether there is."""
        if self.is_full:
            self.refused += 1
            if not self._is_told:
                self._is_told = True
                log.warning("more logs than can be followed", extra={"cluster": self._cluster, "streams": self._most})
            yield False
            return
        self.open += 1
        try:
            yield True
        finally:
            self.open -= 1
            if self.open <= self._most // 2:
                self._is_told = False  # a shortage that comes again is told again
