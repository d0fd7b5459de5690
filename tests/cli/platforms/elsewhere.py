"""Run a command of ours as on a machine that is not Linux: `python -m tests.cli.platforms.elsewhere win32 list`.

Everything that other systems do not have is taken away from this process before anything of ours is imported: modules,
calls, signals, handlers of signals, /proc. So is whatever the SDK does not bring along when it is installed. What the
standard library and our dependencies need of it on this very machine is imported before: they have other code there.
"""

from __future__ import annotations

import asyncio
import asyncio.unix_events
import importlib
import importlib.abc
import multiprocessing
import os
import pkgutil
import signal
import ssl
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Final, NoReturn

import aiohttp
import msgspec
import rich.console
import rich.live
import rich.markup
import typer
import typer.core
import typer.main
import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from importlib.machinery import ModuleSpec

PREPARED: Final = (aiohttp, asyncio, msgspec, multiprocessing, rich, ssl, subprocess, tempfile, typer, yaml)

ONLY_LINUX: Final = (
    "memfd_create",
    "sched_getaffinity",
    "sched_setaffinity",
    "pidfd_open",
    "prlimit",
    "setns",
    "eventfd",
)
"""Of `os`, missing on a Mac as well."""
ONLY_UNIX: Final = (
    *("fork", "forkpty", "setsid", "killpg", "getpgid", "setpgid", "getpgrp", "wait", "waitid", "posix_spawn"),
    *("getuid", "geteuid", "getgid", "getegid", "chown", "fchown", "lchown", "uname", "mkfifo", "nice", "getloadavg"),
    *("sysconf", "statvfs", "pread", "pwrite", "ttyname", "openpty", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "sync"),
)
"""Of `os`, missing on Windows."""
SIGNALS: Final = ("SIGKILL", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGPIPE", "SIGALRM", "SIGWINCH")
"""Missing on Windows."""
MODULES: Final = {
    "darwin": frozenset({"_posixshmem", "spwd"}),
    "win32": frozenset({"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "readline", "syslog", "curses"}),
}
NOT_BROUGHT: Final = frozenset(
    {"cryptography", "prometheus_client", "uvloop", "httpx2", "huggingface_hub", "obstore", "pyarrow", "torch"}
)
"""What `pip install trainplane` does not bring."""
HIDDEN_FOLDERS: Final = ("/proc", "/sys", "/dev/shm", "/dev/fd")


class _Hidden(importlib.abc.MetaPathFinder):
    """Finds that some modules are not there."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        del path, target
        if name.partition(".")[0] in self._names:
            raise ModuleNotFoundError(f"No module named {name!r} (hidden)", name=name)
        return None


def move_to(system: str) -> None:
    """Take away what a system does not have; there is no way back."""
    windows = system == "win32"
    hidden = MODULES[system] | NOT_BROUGHT
    for name in [name for name in sys.modules if name.partition(".")[0] in hidden]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Hidden(hidden))
    for name in (*ONLY_LINUX, *(ONLY_UNIX if windows else ())):
        if hasattr(os, name):
            delattr(os, name)
    if windows:
        for name in SIGNALS:
            delattr(signal, name)
        asyncio.unix_events._UnixSelectorEventLoop.add_signal_handler = _no_handlers  # type: ignore[assignment] # as there
    sys.addaudithook(_without_folders)
    sys.platform = system


def _no_handlers(*_: object) -> NoReturn:
    raise NotImplementedError


def _without_folders(event: str, arguments: tuple[object, ...]) -> None:
    if event in {"open", "os.listdir", "os.scandir"} and str(arguments[0]).startswith(HIDDEN_FOLDERS):
        raise FileNotFoundError(2, "no such folder on this system", str(arguments[0]))


ROOMS: Final = tuple(
    f"trainplane.{room}"
    for room in ("api", "cli", "client", "explain", "hub.check", "legacy", "lifecycle", "lint", "render")
)
"""What people have on their machines; of `kube` and `hub` only what these ask for."""
LOCAL: Final = tuple(f"trainplane.client.backends.{name}" for name in ("container", "local", "process", "supervision"))
"""What only Linux runs; `open_backend` says so before any of it is imported."""


def modules_of(*packages: str) -> Iterator[str]:
    """Iterate over the modules of packages, but for those of local jobs, and programs."""
    for package in packages:
        found = importlib.import_module(package)
        yield package
        for one in pkgutil.walk_packages(found.__path__, f"{package}.", onerror=lambda _: None):
            if not one.name.startswith(LOCAL) and not one.name.endswith("__main__"):
                yield one.name


def main(system: str, words: Sequence[str]) -> int:
    """Run a command elsewhere; without one, import everything that people have on their machines."""
    move_to(system)
    if words:
        from trainplane.cli import main as run  # noqa: PLC0415 what is under test must not be imported before

        return run(words)
    broken = {}
    for name in modules_of(*ROOMS):
        try:
            importlib.import_module(name)
        except (ImportError, AttributeError, NotImplementedError, OSError) as error:
            broken[name] = repr(error)
    print(broken or "all imported")  # noqa: T201 what it is for
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
