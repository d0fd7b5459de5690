"""What the head knows of its workers: who lives, who holds what, whether all is there. Pure; the clock is given.

The first digest that is heard of a fragment is the one: a worker that decoded other bytes is refused and loads anew.
Members that fall silent keep their place for a while, so that a restart moves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from trainplane.cache.placement import REPLICAS, holders

if TYPE_CHECKING:
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
    held: set[int] = field(default_factory=set)
    trouble: str = ""


class Roster:
    """The workers of one manifest."""

    def __init__(self, manifest: Manifest, replicas: int = REPLICAS) -> None:
        self.manifest, self.replicas = manifest, replicas
        self._members: dict[str, _Member] = {}
        self._digests: dict[int, str] = {}

    def hear(self, hello: Hello, now: float) -> tuple[int, ...]:
        """Take in what a worker says; return the fragments whose bytes are not what another worker has."""
        if hello.name not in self._members and len(self._members) >= MOST_MEMBERS:
            self._members = {name: one for name, one in self._members.items() if now - one.heard < LOST}
        held, refused = set(), []
        if hello.manifest == self.manifest.name:
            for fragment, digest in hello.held.items():
                if fragment >= len(self.manifest.fragments):
                    continue
                if self._digests.setdefault(fragment, digest) == digest:
                    held.add(fragment)
                else:
                    refused.append(fragment)
        self._members[hello.name] = _Member(hello.location, now, held, hello.trouble)
        return tuple(refused)

    def members(self, now: float) -> tuple[str, ...]:
        """Return those between whom fragments are shared out."""
        return tuple(sorted(name for name, member in self._members.items() if now - member.heard < LOST))

    def living(self, now: float) -> dict[str, str]:
        """Return where those are that can be asked for rows."""
        return {name: one.location for name, one in sorted(self._members.items()) if now - one.heard < SILENT}

    def locations(self, fragment: int, now: float) -> list[str]:
        """Return where a fragment can be had now, the first choice first."""
        living = self.living(now)
        name = self.manifest.fragments[fragment].name
        ranked = holders(name, self.members(now), len(self._members))
        return [living[one] for one in ranked if one in living and fragment in self._members[one].held]

    def held(self, now: float) -> int:
        """Return how many fragments somebody living holds; those without rows need nobody."""
        living = self.living(now)
        having = set().union(*(self._members[name].held for name in living))
        return sum(1 for n, fragment in enumerate(self.manifest.fragments) if n in having or not fragment.rows)

    def ready(self, now: float) -> bool:
        """Whether every row can be had."""
        return self.held(now) == len(self.manifest.fragments)

    def trouble(self, now: float) -> str:
        """Return why some fragment is not there, in the words of one who should hold it."""
        told = (f"{name}: {self._members[name].trouble}" for name in self.living(now) if self._members[name].trouble)
        return next(told, "")
