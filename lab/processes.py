"""Processes of the lab: how they are run, named, measured and ended.

A process is named by its id and its start time, so that a recycled id is never taken for ours.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lab.errors import CommandError, StartError

if TYPE_CHECKING:
    from collections.abc import Callable

_PAUSE = 0.05
"""Seconds between two looks at something that is waited for, at least."""
_CHILDREN: dict[int, subprocess.Popen[bytes]] = {}
"""Processes started here: ours to reap until we exit, init's afterwards."""


@dataclass(frozen=True)
class Process:
    """One process, for ever: ids are recycled, an id with a start time is not."""

    pid: int
    started: int
    """Clock ticks since boot, as the kernel counts them."""

    @classmethod
    def of(cls, pid: int) -> Process:
        """Name the process that has this id now."""
        return cls(pid, start_time(pid) or 0)

    def alive(self) -> bool:
        """Tell if this very process still runs; a zombie does not."""
        return start_time(self.pid) == self.started

    def signal(self, number: int) -> None:
        """Send a signal, unless the process is gone.

        `nsenter` stops itself with what it runs, and would stay as a stopped process that never ends.
        """
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
                if number == signal.SIGCONT and (wrapper := _wrapper(self.pid)):
                    os.kill(wrapper, number)

    def wait_gone(self, seconds: float) -> bool:
        """Wait until it has ended; tell if it has."""
        deadline = time.monotonic() + seconds
        while self.alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def rss_mb(self) -> float:
        """Return its resident memory in MB, 0 when it is gone."""
        return _status_kb(self.pid, "VmRSS:") / 1024

    def peak_rss_mb(self) -> float:
        """Return the highest resident memory it ever had in MB, 0 when it is gone."""
        return _status_kb(self.pid, "VmHWM:") / 1024

    def cpu_seconds(self) -> float:
        """Return the CPU time it has used, user and system, 0 when it is gone."""
        fields = _stat(self.pid)
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


@dataclass(frozen=True)
class Result:
    """What a command said."""

    code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        """Both streams."""
        return self.stdout + self.stderr


def run(
    command: list[str], *, stdin: str | None = None, check: bool = True, environment: dict[str, str] | None = None
) -> Result:
    """Run a command to its end and return what it said; `CommandError` when it failed and `check` is on."""
    done = subprocess.run(
        command,
        input=stdin if stdin is not None else "",
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | (environment or {}),
    )
    if check and done.returncode:
        raise CommandError(command, done.returncode, done.stdout + done.stderr)
    return Result(done.returncode, done.stdout, done.stderr)


def spawn(
    command: list[str], *, log: Path, environment: dict[str, str] | None = None, pass_fds: tuple[int, ...] = ()
) -> Process:
    """Start a process in the background with its output in a log."""
    with log.open("ab") as sink:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
            env=os.environ | (environment or {}),
            pass_fds=pass_fds,
        )
    _CHILDREN[child.pid] = child
    return Process.of(child.pid)


def only_child(parent: Process, *, seconds: float = 10.0) -> Process:
    """Return the child that a forking launcher (nsenter, unshare) made; `StartError` when it made none."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
            if children:
                return Process.of(int(children[0]))
        if start_time(parent.pid) is None:
            break
        time.sleep(0.005)
    message = "the launcher ended before its process began; its log says why"
    raise StartError(message)


def wait_for(what: str, ready: Callable[[], bool], *, seconds: float, log: Path | None = None) -> float:
    """Wait until `ready` holds; return how long it took, or raise `StartError` with the last lines of the log.

    A look that takes long, as kubectl's do, is followed by as long a pause: what is waited for needs the machine too.
    """
    start = looked = time.monotonic()
    while not ready():
        now = time.monotonic()
        if now - start > seconds:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:]) if log and log.exists() else ""
            message = f"{what} was not ready after {seconds:.0f} s.\n{tail}"
            raise StartError(message)
        time.sleep(max(_PAUSE, now - looked))
        looked = time.monotonic()
    return time.monotonic() - start


def start_time(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None when it is gone or a zombie."""
    if child := _CHILDREN.get(pid):
        child.poll()
    fields = _stat(pid)
    # A killed process shows as a zombie while its last threads still close its sockets: it is not gone yet.
    ended = not fields or (fields[0] == "Z" and int(fields[17]) <= 1)
    return None if ended else int(fields[19])


def _wrapper(pid: int) -> int | None:
    """Return the `nsenter` that runs a process, if one does."""
    fields = _stat(pid)
    parent = int(fields[1]) if fields else 0
    with contextlib.suppress(OSError):
        if Path(f"/proc/{parent}/comm").read_text().strip() == "nsenter":
            return parent
    return None


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on; empty when the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _status_kb(pid: int, field: str) -> int:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1])
    return 0
