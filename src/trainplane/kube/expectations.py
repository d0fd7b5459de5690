"""Expectations: writes of ours that the watch has not brought back yet, so that no reconcile decides on older state.

A write's answer comes before the watch brings it back. A reconcile that runs in between sees the world without its own
last write and would do it again: a second object, a status set back. So whoever writes notes the resourceVersion of
the answer, and whoever reconciles asks first whether the store has caught up.

    applied = await client.apply(JOBSETS, jobset, ...)
    writes.note(key, applied["metadata"]["resourceVersion"])
    ...
    if writes.pending(key):
        return RequeueAfter(1.0)  # the watch will bring it, and the key with it, sooner
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.kube.clock import SystemClock

if TYPE_CHECKING:
    from trainplane.kube.clock import Clock
    from trainplane.kube.resource import Key
    from trainplane.kube.store import Store

PATIENCE = 60.0
"""Seconds for which a write is waited for. Watches lag by milliseconds; a server set back in time never brings it."""


class Expectations:
    """The writes to one resource that its store has not shown yet.

    The store has caught up with a write once it holds that version of the object or a later one, or has seen any
    change of the resource that is later: then the object's own, or its deletion, has come by as well.
    """

    def __init__(self, store: Store, clock: Clock | None = None, *, patience: float = PATIENCE) -> None:
        self._store = store
        self._clock = clock or SystemClock()
        self._patience = patience
        self._expected: dict[Key, tuple[int, float]] = {}

    def __len__(self) -> int:
        """How many keys have a write that was not seen to arrive; asking `pending` clears those that did."""
        return len(self._expected)

    def note(self, key: Key, resource_version: str | int) -> None:
        """Remember a write by the resourceVersion that the server answered with."""
        version = int(resource_version)
        self._forget_overdue()
        if not self._has_seen(key, version):
            earlier, _ = self._expected.pop(key, (0, 0.0))
            self._expected[key] = (max(earlier, version), self._clock.monotonic() + self._patience)

    def pending(self, key: Key) -> bool:
        """Whether the store is older than our last write to `key`: do not decide anything on it yet."""
        expected = self._expected.get(key)
        if expected is None:
            return False
        version, until = expected
        if self._has_seen(key, version) or self._clock.monotonic() >= until:
            del self._expected[key]
            return False
        return True

    def _forget_overdue(self) -> None:
        """Forget writes to what nobody asks about any more: it was deleted before they were seen."""
        now = self._clock.monotonic()
        while self._expected:
            oldest = next(iter(self._expected))
            if self._expected[oldest][1] > now:
                break
            del self._expected[oldest]

    def _has_seen(self, key: Key, version: int) -> bool:
        return max(self._store.observed, self._store.resource_version(key) or 0) >= version
