"""Processes of this machine: which belong together, how much memory they have, and how to end them.

A program may put its children into groups and sessions of their own, as torchrun does with its workers. So those of a
container are found by three traces: descent from its first process, that process's group, and a variable that all
inherit (`MARK`). Linux shows all three; elsewhere `ps` shows the first two.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MARK: Final = "TRAINPLANE_CONTAINER"
"""The variable that every process of a container has: the container's own id."""
_PROC: Final = Path("/proc")
_KIB: Final = 1024


@dataclass(frozen=True)
class Seen:
    """A process as it was seen."""

    pid: int
    parent: int
    group: int
    started: str
    """What tells it from a later one with the same id."""


def table(proc: Path = _PROC) -> dict[int, Seen]:
    """Return all processes that run; those that ended and wait to be noticed are left out."""
    if not (proc / "self").exists() and proc == _PROC:
        return _table_by_ps()
    entries = (_seen(entry) for entry in proc.iterdir() if entry.name.isdecimal())
    return {seen.pid: seen for seen in entries if seen}


def _seen(entry: Path) -> Seen | None:
    try:
        # The name stands in parentheses and may hold anything.
        fields = (entry / "stat").read_text().rpartition(")")[2].split()
        if fields[0] in "ZX":
            return None
        return Seen(int(entry.name), int(fields[1]), int(fields[2]), fields[19])
    except (OSError, IndexError, ValueError):
        return None


def _table_by_ps() -> dict[int, Seen]:
    listed = subprocess.run(
        ["ps", "-axo", "pid=,ppid=,pgid=,stat=,lstart="], capture_output=True, text=True, check=False
    )
    seen = {}
    for line in listed.stdout.splitlines():
        pid, parent, group, state, started = line.split(None, 4)
        if not state.startswith("Z"):
            seen[int(pid)] = Seen(int(pid), int(parent), int(group), started)
    return seen


def started_at(pid: int) -> str:
    """Return what tells a process from a later one with the same id; empty if it is gone."""
    seen = _seen(_PROC / str(pid)) if (_PROC / "self").exists() else _table_by_ps().get(pid)
    return seen.started if seen else ""


def members(first: int, mark: str, processes: Mapping[int, Seen] | None = None, proc: Path = _PROC) -> set[int]:
    """Return the processes of a container: by descent from its first process, by its group, and by their mark."""
    processes = table(proc) if processes is None else processes
    found = {seen.pid for seen in processes.values() if first in {seen.group, seen.pid}}
    needle = f"{MARK}={mark}".encode()
    for pid in processes.keys() - found:
        with contextlib.suppress(OSError):
            if needle in (proc / str(pid) / "environ").read_bytes().split(b"\0"):
                found.add(pid)
    while True:
        born = {seen.pid for seen in processes.values() if seen.parent in found} - found
        if not born:
            return found
        found |= born


def memory(pids: Iterable[int], proc: Path = _PROC) -> int:
    """Return the bytes that processes have for themselves: what is mapped from files can be given back."""
    if not (proc / "self").exists() and proc == _PROC:
        return _memory_by_ps(pids)
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in (proc / str(pid) / "status").read_text().splitlines():
                if line.startswith(("RssAnon:", "RssShmem:")):
                    total += int(line.split()[1]) * _KIB
    return total


def _memory_by_ps(pids: Iterable[int]) -> int:
    listed = subprocess.run(
        ["ps", "-o", "rss=", "-p", ",".join(map(str, pids))], capture_output=True, text=True, check=False
    )
    return sum(int(line) * _KIB for line in listed.stdout.split())


def tell(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to processes by their ids; those that are gone are no matter."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def end_recorded(first: int, started: str, mark: str, *, seconds: float = 5.0) -> None:
    """End what is left of a container whose supervisor is gone, at once; never another that has its id by now."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        processes = table()
        seen = processes.get(first)
        same = seen is not None and seen.started == started
        left = members(first if same else -1, mark, processes)
        if not left:
            return
        tell(left, signal.SIGKILL)
        time.sleep(0.02)
