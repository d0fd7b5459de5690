"""Which workers hold a fragment: rendezvous hashing.

Everybody who knows the members finds the same holders, so nothing is stored and a head that restarts recomputes it. A
member that joins or leaves moves only what it gains or held: one part in n.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

REPLICAS: Final = 2


def holders(fragment: str, members: Collection[str], replicas: int = REPLICAS) -> tuple[str, ...]:
    """Return the members that hold a fragment, the first choice first; all of them where there are too few."""
    return tuple(sorted(members, key=lambda member: (_weight(fragment, member), member), reverse=True)[:replicas])


def _weight(fragment: str, member: str) -> bytes:
    return hashlib.blake2b(f"{len(member)}:{member}{fragment}".encode(), digest_size=8).digest()
