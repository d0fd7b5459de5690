"""Which connections a server keeps when more come than it has room for. Pure: no sockets, no clock.

Who a caller is shows only afterwards, so room is made by how callers behaved so far:

    fresh      had no answer yet: a handshake, a first request on its way, or silence
    known      had an answer and wants none now
    answering  a whole request of theirs is being answered: never cut

When all places are taken, one of the fresh goes if they have more than half of the places, else one of the known: the
one that has stood still for the longest. To end a handshake, to begin a request and to end its headers are steps; a
byte more is none. So a flood of connections that never ask competes with itself and cuts no connection that an API
server keeps; and connections that asked once and then lie idle stand longer than those in use. Addresses are not
counted: behind a Service all callers may share one.

Bytes of requests count in the same way. What a connection sends up to `free` bytes is its own, which bounds all of
them by the number of connections; past that, bytes of all share a budget, and when it is spent the request goes that
began first of those that are not whole. An API server sends a review at once; who is slow pays.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, Generic, Protocol, TypeVar

FREE_BYTES: Final = 64 << 10
"""Bytes of one request that are not counted: most reviews are smaller, so that none of them is ever refused."""


class Cuttable(Protocol):
    """A connection, as far as its place matters."""

    def cut(self) -> None:
        """Close it now, without a word."""


C = TypeVar("C", bound=Cuttable)


class Capacity(Generic[C]):
    """The places and bytes of one server.

    Args:
        places: connections at once.
        budget: bytes of all requests together, without the free ones.
        free: bytes of each request that are not counted.
    """

    def __init__(self, places: int, budget: int, free: int = FREE_BYTES) -> None:
        self.places = places
        self.budget = budget
        self.cuts: Counter[str] = Counter()
        """How many connections were cut, and for what."""
        self._free = free
        self._fresh: dict[C, None] = {}
        self._known: dict[C, None] = {}
        self._answering: dict[C, None] = {}
        self._held: dict[C, int] = {}
        self._spent = 0

    def __len__(self) -> int:
        return len(self._fresh) + len(self._known) + len(self._answering)

    def all(self) -> list[C]:
        """Return all connections that have a place."""
        return [*self._fresh, *self._known, *self._answering]

    @property
    def spent(self) -> int:
        """Bytes of the budget in use."""
        return self._spent

    def enter(self, connection: C) -> bool:
        """Give a new connection a place; False if there is none to be had."""
        if len(self) >= self.places and not self.make_room():
            self.cuts["refused"] += 1
            return False
        self._fresh[connection] = None
        return True

    def make_room(self) -> bool:
        """Cut the connection that deserves its place least; False if all are being answered."""
        crowded = len(self._fresh) > self.places // 2
        chosen = self._fresh if self._fresh and (crowded or not self._known) else self._known
        if not chosen:
            return False
        self.cut(next(iter(chosen)), "room")
        return True

    def cut(self, connection: C, reason: str) -> None:
        """Close a connection and count why."""
        self.cuts[reason] += 1
        self.leave(connection)
        connection.cut()

    def leave(self, connection: C) -> None:
        """Take away a connection's place and bytes, if it still has them."""
        self.release(connection)
        for places in (self._fresh, self._known, self._answering):
            places.pop(connection, None)

    def advance(self, connection: C) -> None:
        """Note that a connection came a step further: of its kind, it now stands still for the shortest time."""
        for places in (self._fresh, self._known):
            if connection in places:
                del places[connection]
                places[connection] = None

    def hold(self, connection: C, size: int) -> bool:
        """Count bytes that came; False if the connection was cut for them."""
        before = self._held.get(connection, 0)
        self._held[connection] = held = before + size
        self._spent += max(0, held - self._free) - max(0, before - self._free)
        while self._spent > self.budget:
            slow = (each for each, held in self._held.items() if held > self._free and each not in self._answering)
            victim = next(slow, connection)
            self.cut(victim, "memory")
            if victim is connection:
                return False
        return True

    def answer(self, connection: C) -> None:
        """Note that a request is whole and being answered, unless its connection was cut meanwhile."""
        for places in (self._fresh, self._known):
            if connection in places:
                del places[connection]
                self._answering[connection] = None

    def finish(self, connection: C) -> None:
        """Note that a request was answered; what it held is free again."""
        self.release(connection)
        if connection in self._answering:
            del self._answering[connection]
            self._known[connection] = None

    def release(self, connection: C) -> None:
        """Count a connection's bytes no longer."""
        self._spent -= max(0, self._held.pop(connection, 0) - self._free)
