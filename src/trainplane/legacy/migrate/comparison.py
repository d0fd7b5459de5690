"""Pods side by side: what an older job's pods were, and what the TrainJob's are. Told by field, never by value.

Every field of a pod and of its training container must be what it was, but for names that JobSet gives. Variables by
which a framework's nodes find each other are compared by what they mean: the rank, how many there are, and which pod an
address leads to, whatever that pod is called.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import tree as trees

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainplane.legacy.migrate.pods import Pod

_RANKS: Final = ("RANK", "PET_NODE_RANK", "PROCESS_ID", "JAX_PROCESS_ID")
_SIZES: Final = ("WORLD_SIZE", "PET_NNODES", "NUM_PROCESSES", "PADDLE_NNODES")
_ADDRESSES: Final = ("MASTER_ADDR", "PET_MASTER_ADDR", "COORDINATOR_ADDRESS")
_OF_THE_POD: Final = frozenset({"containers", "initContainers", "hostname", "subdomain"})
_OF_THE_CONTAINER: Final = frozenset({"name", "env", "ports"})
_WAITS: Final = "init-pytorch"
"""The init container by which the old operator let a worker wait for its master's name."""


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """A field in which pods are not what they were. Values stay out: a variable may hold a secret."""

    field: str
    pods: str
    """Which pods: `Worker 0`, or how many."""

    def __str__(self) -> str:
        return f"{self.field} of {self.pods}"


def compare(before: Sequence[Pod], after: Sequence[Pod]) -> list[Difference]:
    """Return how the pods of a TrainJob differ from those of the job whose place it takes, pod for pod."""
    if len(before) != len(after):
        return [Difference("count", f"all pods: {len(after)}, not {len(before)}")]
    found: dict[str, list[str]] = {}
    places = [{_short(pod.host): index for index, pod in enumerate(pods)} for pods in (before, after)]
    for old, new in zip(before, after, strict=True):
        for field in _fields(old, new, places):
            found.setdefault(field, []).append(old.label)
    return sorted(
        Difference(field, pods[0] if len(pods) == 1 else f"{len(pods)} pods") for field, pods in found.items()
    )


def _fields(old: Pod, new: Pod, places: list[dict[str, int]]) -> Iterator[str]:
    yield from _unequal(old.spec, new.spec, _OF_THE_POD)
    yield from _unequal(old.container, new.container, _OF_THE_CONTAINER)
    if _others(old) != _others(new):
        yield "containers"
    if _waiting(old) != _waiting(new):
        yield "initContainers"
    yield from _variables(old.env, new.env, places)


def _unequal(old: Any, new: Any, apart: frozenset[str]) -> Iterator[str]:
    for field in sorted((old.keys() | new.keys()) - apart):
        if (old.get(field) or None) != (new.get(field) or None):
            yield field


def _others(pod: Pod) -> list[Any]:
    """Return the containers beside the one that trains, without what was told to them of the others."""
    beside = [one for one in trees.entries(pod.spec, "containers") if one is not pod.container]
    return [{key: value for key, value in one.items() if key != "env"} for one in beside]


def _waiting(pod: Pod) -> list[Any]:
    return [one for one in trees.entries(pod.spec, "initContainers") if one.get("name") != _WAITS]


def _variables(old: dict[str, str], new: dict[str, str], places: list[dict[str, int]]) -> Iterator[str]:
    for names, field in ((_RANKS, "rank"), (_SIZES, "nodes")):
        for name in names:
            if name in old and name in new and old[name] != new[name]:
                yield field
    for name in _ADDRESSES:
        was = places[0].get(_short(old.get(name, "")))
        if was is not None and was != places[1].get(_short(new.get(name, ""))):
            yield "address"
    meant = {*_RANKS, *_SIZES, *_ADDRESSES}
    for name in sorted(old.keys() - meant):
        if name in new and old[name] != new[name] and "?" not in {old[name], new[name]}:
            yield f"env {name}"
        elif name not in new:
            yield f"env {name}"


def _short(host: str) -> str:
    return host.split(".")[0].split(":")[0]
