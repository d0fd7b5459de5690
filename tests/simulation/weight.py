"""How much memory an operator holds: the sizes of all that is reached from its mirrors, queues and memories."""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.operator.main import Operator

_CONTAINERS = (dict, list, tuple, set, frozenset, deque)


def weight(operator: Operator) -> int:
    """Return the bytes that a replica holds of what it saw; what two places share counts once."""
    controller: Any = operator.train_jobs
    reconciler = controller._reconcile.__self__
    objects = reconciler._objects
    owners = [
        *operator.stores.all(),
        controller.queue,
        reconciler,
        reconciler.chronicle,
        reconciler._witness,
        reconciler._witness.evidence,
        reconciler._job_writes,
        objects,
        objects._apply_cache,
        objects._writes,
        reconciler.snapshots,
        operator.train_job_metrics,
        operator.news,
        operator.recorder,
    ]
    left = [part for owner in owners for part in _attributes(owner) if isinstance(part, _CONTAINERS)]
    seen: set[int] = set()
    held = 0
    while left:
        one = left.pop()
        if id(one) not in seen:
            seen.add(id(one))
            held += sys.getsizeof(one)
            left += _parts(one)
    return held


def _attributes(owner: Any) -> list[Any]:
    names = getattr(owner, "__slots__", None) or vars(owner)
    return [getattr(owner, name, None) for name in names]


def _parts(one: Any) -> Iterator[Any]:
    if isinstance(one, dict):
        yield from one
        yield from one.values()
    elif isinstance(one, _CONTAINERS):
        yield from one
    elif isinstance(one, msgspec.Struct):
        yield from (getattr(one, name) for name in one.__struct_fields__)
