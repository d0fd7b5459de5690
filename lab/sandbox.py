"""The sandbox of one cluster: network, mount and process namespaces of its own, held open by one process.

Everything that a cluster runs, down to the shims and containers that containerd leaves behind, lives in the process
namespace of the holder. Ending the holder makes the kernel end all of it, and with the last process go the network
namespace, its links, and every mount: no list of things to clean can be incomplete. What remains are a folder and
cgroups under a name of ours.

A sandbox that belongs to a test run also ends when that run is killed: the holder's launcher asks the kernel for that.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lab.engines import binary
from lab.paths import state_root
from lab.processes import Process, Result, only_child, run, spawn

if TYPE_CHECKING:
    from collections.abc import Iterator

_CGROUPS = Path("/sys/fs/cgroup")
_CLONE_NEWNET = 0x40000000
_SETUP = """
set -eu
ip link set lo up
for folder in etc var/lib var/log; do
  changes={disk}/overlay/$folder
  mkdir -p $changes/upper $changes/work
  mount -t overlay overlay -o lowerdir=/$folder,upperdir=$changes/upper,workdir=$changes/work /$folder
done
mount -t tmpfs tmpfs /run
"""
"""Private /etc, /var/lib, /var/log and /run: engines keep their usual paths, and the machine's stay as they are.

A kubelet removes the logs of pods that it does not know, so two nodes must not share a folder of logs."""


@dataclass(frozen=True)
class Sandbox:
    """The namespaces of a cluster, found again by the holder's id."""

    name: str
    holder: Process

    @classmethod
    def create(cls, name: str, *, owned: bool) -> Sandbox:
        """Make the namespaces; an owned sandbox ends with the process that made it."""
        folder = state_root() / name
        folder.mkdir(parents=True)
        leash = ["setpriv", "--pdeathsig", "KILL"] if owned else []
        namespaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
        launcher = spawn([*leash, "unshare", *namespaces, binary("pause")], log=folder / "sandbox.log")
        sandbox = cls(name, only_child(launcher))
        (folder / "sandbox.json").write_text(json.dumps({"pid": sandbox.holder.pid, "started": sandbox.holder.started}))
        sandbox.run(["sh", "-c", _SETUP.format(disk=folder)])
        return sandbox

    @classmethod
    def find(cls, name: str) -> Sandbox | None:
        """Return the sandbox of that name, its holder running or not; None when there is no folder of it."""
        record = state_root() / name / "sandbox.json"
        if not record.exists():
            return cls(name, Process(0, -1)) if record.parent.exists() else None
        return cls(name, Process(**json.loads(record.read_text())))

    @property
    def folder(self) -> Path:
        """Where the cluster keeps its files."""
        return state_root() / self.name

    @property
    def cgroup(self) -> str:
        """The cgroup below which the cluster's pods live, in every hierarchy."""
        return f"/tplab-{self.name}"

    def _enter(self, *, fork: bool) -> list[str]:
        inside = ["--pid"] if fork else []
        return ["nsenter", f"--target={self.holder.pid}", "--net", "--mount", *inside, "--"]

    def run(self, command: list[str], *, stdin: str | None = None, check: bool = True) -> Result:
        """Run a command inside to its end."""
        return run([*self._enter(fork=False), *command], stdin=stdin, check=check)

    def command(self, command: list[str]) -> list[str]:
        """Return the command line that runs a command inside."""
        return [*self._enter(fork=False), *command]

    def spawn(
        self,
        name: str,
        command: list[str],
        environment: dict[str, str] | None = None,
        pass_fds: tuple[int, ...] = (),
    ) -> Process:
        """Start an engine inside, in the background; its output goes to `logs/NAME.log`."""
        logs = self.folder / "logs"
        logs.mkdir(exist_ok=True)
        entered = [*self._enter(fork=True), *command]
        launcher = spawn(entered, log=logs / f"{name}.log", environment=environment, pass_fds=pass_fds)
        return only_child(launcher)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Put the calling thread into the cluster's network: sockets made meanwhile are the cluster's."""
        with (
            Path(f"/proc/{self.holder.pid}/ns/net").open("rb") as there,
            Path(f"/proc/{os.getpid()}/task/{threading.get_native_id()}/ns/net").open("rb") as here,
        ):
            _setns(there.fileno())
            try:
                yield
            finally:
                _setns(here.fileno())

    def make_cgroups(self, node: str) -> None:
        """Make the cgroup of a node's pods in every hierarchy, below the cluster's."""
        for hierarchy in _CGROUPS.iterdir():
            if hierarchy.is_dir() and not hierarchy.is_symlink():
                (hierarchy / self.cgroup.lstrip("/") / node).mkdir(parents=True, exist_ok=True)

    def destroy(self) -> None:
        """End everything inside and remove what outlives processes: cgroups and the folder."""
        inside = _in_network(self.holder)
        self.holder.signal(signal.SIGKILL)
        for process in (self.holder, *inside):
            process.wait_gone(30)
        for hierarchy in _CGROUPS.iterdir():
            _remove_cgroup(hierarchy / self.cgroup.lstrip("/"))
        shutil.rmtree(self.folder, ignore_errors=True)


def _in_network(holder: Process) -> list[Process]:
    """Return all processes in the holder's network: those inside, and the launchers that wait for them."""
    if not holder.alive():
        return []
    network = Path(f"/proc/{holder.pid}/ns/net").stat().st_ino
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "ns/net").stat().st_ino == network:
                found.append(Process.of(int(entry.name)))
    return found


def _remove_cgroup(top: Path) -> None:
    for folder, _, _ in os.walk(top, topdown=False):
        with contextlib.suppress(FileNotFoundError):
            Path(folder).rmdir()


def _setns(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
