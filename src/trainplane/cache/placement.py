"""Which workers hold a fragment: rendezvous hashing.

Everybody who knows the members finds the same holders, so nothing is stored and a head that restarts recomputes it. A
member that joins or leaves moves only what it gains or held: one part in n.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

REPLICAS: Final = 2


def holders(fragment: str, members: Collection[str], replicas: int = REPLICAS) -> tuple[str, ...]:
    """Return the members that hold a fragment, the first choice first; all of them where there are too few."""
    return tuple(sorted(members, key=lambda member: (_weight(fragment, member), member), reverse=True)[:replicas])


def asked(
    fragment: str, living: Collection[str], replicas: int, shunned: Mapping[str, float], now: float
) -> tuple[str, ...]:
    """Return whom to ask for a fragment's blocks: those that hold it, and one more, who may since somebody left.

    The first choice is everybody's, so that a fragment is in one worker's memory and on two disks. A worker that failed
    (`shunned` until a time) is asked last: nobody waits for it with every block.
    """
    return tuple(sorted(holders(fragment, living, replicas + 1), key=lambda worker: shunned.get(worker, 0.0) > now))


@lru_cache(maxsize=1 << 17)
def _weight(fragment: str, member: str) -> bytes:
    return hashlib.blake2b(f"{len(member)}:{member}{fragment}".encode(), digest_size=8).digest()
