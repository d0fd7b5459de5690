"""Which of several processes works on which namespace.

A namespace belongs to one shard, so a TrainJob, its JobSet and its pods are always in the same hands. Each shard is a
Lease; a process works on the namespaces of the shards whose Leases it holds, one or several.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

SHARDS_MAX = 1024


@lru_cache(maxsize=65536)
def shard_of(namespace: str, shards: int) -> int:
    """Return the shard of a namespace, the same in every process and release.

    Jump consistent hashing (Lamping and Veach, 2014): going from n to n+1 shards moves one namespace in n+1, and each
    of those to the new shard. Cluster-scoped objects have the empty namespace, and so a shard like any other.
    """
    state = int.from_bytes(blake2b(namespace.encode(), digest_size=8).digest(), "big")
    shard, candidate = 0, 0
    while candidate < shards:
        shard = candidate
        state = (state * 2862933555777941757 + 1) % (1 << 64)
        candidate = int((shard + 1) * ((1 << 31) / ((state >> 33) + 1)))
    return shard


@dataclass(frozen=True, slots=True)
class Sharding:
    """How the work is divided. The number of shards is the same in all processes, or two may work on one key."""

    shards: int = 1
    """How many parts; 1 is no division, and more than processes lets several survivors share a lost one's work.
    To change it, stop all processes first: two divisions at once would give a namespace two workers."""

    name: str = "trainplane"
    """What the Leases' names begin with."""

    def __post_init__(self) -> None:
        """Refuse numbers that leave keys without a worker."""
        if not 1 <= self.shards <= SHARDS_MAX:
            raise ValueError(f"shards is {self.shards}: give a number from 1 to {SHARDS_MAX}")

    def shard_of(self, namespace: str) -> int:
        """Return the shard that `namespace` belongs to."""
        return shard_of(namespace, self.shards)

    def lease_name(self, shard: int) -> str:
        """Return the name of a shard's Lease. It names the division, too: a Lease means the same namespaces to all."""
        if not 0 <= shard < self.shards:
            raise ValueError(f"shard is {shard}: there are {self.shards}, counted from 0")
        return f"{self.name}-{shard}-of-{self.shards}"


class Holdings:
    """The shards that this process works on, as its Leases come and go."""

    def __init__(self, sharding: Sharding) -> None:
        self.sharding = sharding
        self._held: set[int] = set()

    @property
    def held(self) -> frozenset[int]:
        """The shards held now."""
        return frozenset(self._held)

    def acquire(self, shard: int) -> None:
        """Work on a shard from now on; its keys must be queued anew, they were passed over until now."""
        self.sharding.lease_name(shard)  # refuses a shard that does not exist
        self._held.add(shard)

    def release(self, shard: int) -> None:
        """Work on a shard no longer."""
        self._held.discard(shard)

    def owns(self, namespace: str) -> bool:
        """Whether objects of `namespace` are ours to work on now."""
        return self.sharding.shard_of(namespace) in self._held
