"""Pods side by side: what an older job's pods were, and what the TrainJob's are. Told by field, never by value.

Every field of a pod and of its training container must be what it was, but for names that JobSet gives. Variables by
which a framework's nodes find each other are compared by what they mean: the rank, how many there are, and which pod an
address leads to, whatever that pod is called.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.legacy import names as old
from trainplane.legacy.mpi.pods import CONFIG_VOLUME, SSH_VOLUME

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainplane.legacy.migrate.pods import Pod

_RANKS: Final = ("RANK", names.TORCH_NODE_RANK, "PROCESS_ID")
_SIZES: Final = ("WORLD_SIZE", names.TORCH_NNODES, "NUM_PROCESSES", names.PADDLE_NNODES)
_ADDRESSES: Final = (
    names.MASTER_ADDR,
    names.TORCH_MASTER_ADDR,
    names.TORCH_RDZV_ENDPOINT,
    names.PADDLE_MASTER,
    "COORDINATOR_ADDRESS",
    "WORKER_ADDRS",
)
_PORTS: Final = frozenset({names.MASTER_PORT, names.TORCH_MASTER_PORT, "COORDINATOR_PORT", "WORKER_PORT"})
"""Where all nodes meet is told to all of them: another port means the same."""
_ONLY_OLD: Final = frozenset({"POD_IP_DUMMY"})
"""By which the old operator built another variable."""
_MEANT: Final = frozenset({*_RANKS, *_SIZES, *_ADDRESSES, names.TENSORFLOW_CONFIG}) | _PORTS | _ONLY_OLD
_OF_THE_POD: Final = frozenset({"containers", "initContainers", "hostname", "subdomain", "volumes"})
_OF_THE_CONTAINER: Final = frozenset({"name", "env", "ports", "volumeMounts"})
_OF_THE_OPERATOR: Final = frozenset({SSH_VOLUME, CONFIG_VOLUME})
"""Volumes that the old operator added; what the TrainJob's operator adds has other names, and is no difference."""
_WAITS: Final = "init-pytorch"
"""The init container by which the old operator let a worker wait for its master's name."""
_UNKNOWN: Final = "?"


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
        return [Difference("count", f"all: {len(after)} pods, not {len(before)}")]
    found: dict[str, list[str]] = {}
    was, now = ({_short(pod.host): place for place, pod in enumerate(pods)} for pods in (before, after))
    for older, newer in zip(before, after, strict=True):
        for field in _fields(older, newer, was, now):
            found.setdefault(field, []).append(older.label)
    return sorted(
        Difference(field, pods[0] if len(pods) == 1 else f"{len(pods)} pods") for field, pods in found.items()
    )


def _fields(older: Pod, newer: Pod, was: dict[str, int], now: dict[str, int]) -> Iterator[str]:
    yield from _unequal(older.spec, newer.spec, _OF_THE_POD)
    yield from _unequal(older.container, newer.container, _OF_THE_CONTAINER)
    yield from _lost(older.spec, newer.spec, "volumes")
    yield from _lost(older.container, newer.container, "volumeMounts")
    if _others(older) != _others(newer):
        yield "containers"
    if _waiting(older) != _waiting(newer):
        yield "initContainers"
    old_env, new_env = older.env, newer.env
    yield from _meaning(old_env, new_env, was, now)
    for name in sorted(old_env.keys() - _MEANT):
        if not _same(old_env[name], new_env.get(name)) and (name, old_env[name]) != _AUTO:
            yield f"env {name}"


_AUTO: Final = (names.TORCH_NPROC_PER_NODE, old.NPROC_AUTO)
"""Nothing was said of processes, and torchrun counts."""


def _unequal(older: Any, newer: Any, apart: frozenset[str]) -> Iterator[str]:
    for field in sorted((older.keys() | newer.keys()) - apart):
        if (older.get(field) or None) != (newer.get(field) or None):
            yield field


def _lost(older: Any, newer: Any, field: str) -> Iterator[str]:
    there = trees.entries(newer, field)
    if any(one not in there for one in trees.entries(older, field) if one.get("name") not in _OF_THE_OPERATOR):
        yield field


def _others(pod: Pod) -> list[Any]:
    """Return the containers beside the one that trains, without what was told to them of the others."""
    beside = [one for one in trees.entries(pod.spec, "containers") if one is not pod.container]
    return [{key: value for key, value in one.items() if key != "env"} for one in beside]


def _waiting(pod: Pod) -> list[Any]:
    return [one for one in trees.entries(pod.spec, "initContainers") if one.get("name") != _WAITS]


def _same(older: str, newer: str | None) -> bool:
    return older == newer or (newer is not None and _UNKNOWN in {older, newer})


def _meaning(older: dict[str, str], newer: dict[str, str], was: dict[str, int], now: dict[str, int]) -> Iterator[str]:
    for listed, field in ((_RANKS, "rank"), (_SIZES, "nodes")):
        if any(name in older and not _same(older[name], newer.get(name)) for name in listed):
            yield field
    for name in _ADDRESSES:
        if name in older and _UNKNOWN not in older[name] and _led(older[name], was) != _led(newer.get(name, ""), now):
            yield "address"
    config = names.TENSORFLOW_CONFIG
    if config in older and _cluster(older[config], was) != _cluster(newer.get(config, ""), now):
        yield config


def _led(addresses: str, places: dict[str, int]) -> list[int | str]:
    """Return which pods some addresses lead to; an address of nobody's is itself."""
    return [places.get(_short(one), one) for one in addresses.split(",")]


def _cluster(config: str, places: dict[str, int]) -> Any:
    """Return what TF_CONFIG says: which pods each task has, and which this one is."""
    try:
        said = json.loads(config)
    except ValueError:
        return None
    tasks = {_task(task): [_led(one, places) for one in hosts] for task, hosts in trees.fields(said, "cluster").items()}
    tasks.pop("evaluator", None)  # who looks on from outside is listed by the old operator alone
    return tasks, _task(trees.text(said, "task", "type") or ""), trees.get(said, "task", "index")


def _task(name: str) -> str:
    return "chief" if name == "master" else name


def _short(host: str) -> str:
    return host.split(".", 1)[0].split(":", 1)[0]
