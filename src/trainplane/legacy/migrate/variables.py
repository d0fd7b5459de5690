"""The variables by which older jobs' programs find each other, for programs that go on reading them.

TrainJobs tell a program the same things under today's names. What the old operators told under other names is added, so
that a program need not change on the day it is moved. A variable without a value is one that the TrainJob's framework
sets itself, under the same name: the user's own of that name goes, as it did before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api.legacy import kinds
from trainplane.legacy.migrate.outcome import RefusedError
from trainplane.render.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.api.legacy.kinds import Kind
    from trainplane.api.tree import Tree

_UNBUFFERED: Final = {"name": "PYTHONUNBUFFERED", "value": "1"}
_PADDLE: Final = (
    *sorted(names.PADDLE_RESERVED),
    "PADDLE_SERVER_NUM",
    "PADDLE_TRAINER_NUM",
    "POD_IP_DUMMY",
)
_LONGEST: Final = 128 * 1024
"""Bytes that Linux passes to a process in one variable."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where the pods of a job meet, and how each knows its place."""

    hosts: tuple[str, ...]
    """The address of each pod by its rank."""
    port: int
    rank_field: str
    """The field of a pod that holds its rank."""
    processes: int = 1
    """Processes of each pod, as far as the older kind counted them."""
    has_master: bool = True
    set_by_framework: bool = True
    """Whether the TrainJob's framework sets today's variables; False if nobody else does."""

    @property
    def size(self) -> int:
        """How many pods there are."""
        return len(self.hosts)

    def rank(self, name: str) -> Tree:
        """Return a variable that holds a pod's rank."""
        return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": self.rank_field}}}


def variables_of(kind: Kind, meeting: Meeting, *, nproc: str = "") -> list[Tree]:
    """Return the variables of an older kind, for where its pods meet now."""
    if kind is kinds.PYTORCH:
        return _torch(meeting, nproc)
    if kind is kinds.XGBOOST:
        return _xgboost(meeting)
    if kind is kinds.JAX:
        values = {"COORDINATOR_PORT": str(meeting.port), "COORDINATOR_ADDRESS": meeting.hosts[0]}
        counted = {"NUM_PROCESSES": str(meeting.size)}
        return [_UNBUFFERED, *_valued(values | counted), meeting.rank("PROCESS_ID")]
    if kind is kinds.PADDLE:
        return [_UNBUFFERED, *_bare(_PADDLE)]
    return list(_bare(sorted(names.TENSORFLOW_RESERVED)))


def _torch(meeting: Meeting, nproc: str) -> list[Tree]:
    address = {names.MASTER_ADDR: meeting.hosts[0], names.MASTER_PORT: str(meeting.port)}
    found = [_UNBUFFERED]
    if meeting.set_by_framework:
        found += _bare(sorted({*names.TORCH_RESERVED, *address} if meeting.has_master else names.TORCH_RESERVED))
    else:
        found += _valued(address | {f"PET_{name}": value for name, value in address.items()})
        found += _valued({names.TORCH_NNODES: str(meeting.size), names.TORCH_NPROC_PER_NODE: nproc})
        found.append(meeting.rank(names.TORCH_NODE_RANK))
    if meeting.has_master:
        found += [*_valued({"WORLD_SIZE": str(meeting.size * meeting.processes)}), meeting.rank("RANK")]
    return found


def _xgboost(meeting: Meeting) -> list[Tree]:
    values = {
        "MASTER_PORT": str(meeting.port),
        "MASTER_ADDR": meeting.hosts[0],
        "WORLD_SIZE": str(meeting.size),
    }
    if meeting.size > 1:
        _judge_length(meeting)
        values |= {"WORKER_PORT": str(meeting.port), "WORKER_ADDRS": ",".join(meeting.hosts[1:])}
    reserved = sorted(names.XGBOOST_RESERVED) if meeting.set_by_framework else ()
    return [_UNBUFFERED, *_bare(reserved), *_valued(values), meeting.rank("RANK")]


def _judge_length(meeting: Meeting) -> None:
    length = sum(map(len, meeting.hosts)) + meeting.size
    if length > _LONGEST:
        problem = f"WORKER_ADDRS lists every worker and would have {length} bytes, of which Linux takes {_LONGEST}"
        raise RefusedError([Finding("spec", f"{problem}: use fewer workers")])


def _valued(values: dict[str, str]) -> list[Tree]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _bare(variables: Iterable[str]) -> list[Tree]:
    return [{"name": name} for name in variables]
