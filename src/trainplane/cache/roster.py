"""What the head knows of its workers: who lives, who holds what, whether all is there. Pure; the clock is given.

The first digest that is heard of a fragment is the one: a worker that decoded other bytes is refused and loads anew.
Members that fall silent keep their place for a while, so that a restart moves nothing; those that are expected have
theirs from the start, so that the first to come does not load what others will.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from trainplane.cache.placement import REPLICAS, holders

if TYPE_CHECKING:
    from collections.abc import Collection

    from trainplane.cache.manifest import Manifest
    from trainplane.cache.wire import Hello

SILENT: Final = 15.0
"""Seconds after which a worker that says nothing is not named to clients."""
LOST: Final = 120.0
"""Seconds after which its fragments are given to others."""
MOST_MEMBERS: Final = 1024


@dataclass
class _Member:
    location: str
    heard: float
    has_plan: bool
    held: set[int] = field(default_factory=set)
    trouble: str = ""


class Roster:
    """The workers of one manifest."""

    def __init__(
        self, manifest: Manifest, replicas: int = REPLICAS, expected: Collection[str] = (), now: float = 0.0
    ) -> None:
        self.manifest, self.replicas = manifest, replicas
        self._expected, self._since = frozenset(expected), now
        self._members: dict[str, _Member] = {}
        self._digests: dict[int, str] = {}
        self._turned_away: dict[str, str] = {}

    def hear(self, hello: Hello, now: float) -> tuple[int, ...]:
        """Take in what a worker says; return the fragments whose bytes are not what another worker has."""
        if hello.name not in self._members and len(self._members) >= MOST_MEMBERS:
            self._members = {name: one for name, one in self._members.items() if now - one.heard < LOST}
        held, refused = set(), []
        has_plan = hello.manifest == self.manifest.name
        if has_plan:
            for fragment, digest in hello.held.items():
                if fragment >= len(self.manifest.fragments):
                    continue
                if self._digests.setdefault(fragment, digest) == digest:
                    held.add(fragment)
                else:
                    refused.append(fragment)
        self._members[hello.name] = _Member(hello.location, now, has_plan, held, hello.trouble)
        self._turned_away.pop(hello.name, None)
        return tuple(refused)

    def turn_away(self, name: str, why: str) -> None:
        """Remember why a worker is not heard: whoever waits for its rows is told."""
        if len(self._turned_away) < MOST_MEMBERS:
            self._turned_away[name] = why

    def members(self, now: float) -> tuple[str, ...]:
        """Return those between whom fragments are shared out."""
        expected = self._expected if now - self._since < LOST else frozenset()
        return tuple(sorted(expected.union(name for name, one in self._members.items() if now - one.heard < LOST)))

    def living(self, now: float) -> dict[str, str]:
        """Return where those are that can be asked for rows."""
        return {name: one.location for name, one in sorted(self._members.items()) if now - one.heard < SILENT}

    def taking(self, now: float) -> dict[str, str]:
        """Return where those are that have taken up the plan: before that, one would refuse what is written to it."""
        return {name: where for name, where in self.living(now).items() if self._members[name].has_plan}

    def takes_all(self, now: float) -> bool:
        """Whether every part can be written to as many as are to hold it."""
        return len(self.taking(now)) >= max(1, min(self.replicas, len(self.members(now))))

    def locations(self, fragment: int, now: float) -> list[str]:
        """Return where a fragment can be had now, the first choice first."""
        living = self.living(now)
        name = self.manifest.fragments[fragment].name
        members = self.members(now)
        ranked = holders(name, members, len(members))
        return [living[one] for one in ranked if one in living and fragment in self._members[one].held]

    def holding(self, now: float) -> set[int]:
        """Return the fragments that somebody living holds; those without rows need nobody."""
        having = {number for number, fragment in enumerate(self.manifest.fragments) if not fragment.rows}
        return having.union(*(self._members[name].held for name in self.living(now)))

    def held(self, now: float) -> int:
        """Return how many fragments somebody living holds."""
        return len(self.holding(now))

    def ready(self, now: float) -> bool:
        """Whether every row can be had."""
        return self.held(now) == len(self.manifest.fragments)

    def trouble(self, now: float) -> str:
        """Return why some fragment is not there, in the words of one who should hold it."""
        told = (f"{name}: {self._members[name].trouble}" for name in self.living(now) if self._members[name].trouble)
        return next(told, next(iter(self._turned_away.values()), ""))
