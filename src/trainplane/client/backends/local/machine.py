"""What this machine has: processors, GPUs, the name of its loopback device."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def processors() -> list[int]:
    """Return the numbers of the processors that this process may use; empty where that cannot be told or set."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    return sorted(os.sched_getaffinity(0))


def share(there: list[int], wanted: int, first: int) -> list[int]:
    """Return so many processors, beginning with a certain one and going round; all, if there are not more."""
    if wanted >= len(there):
        return there
    return sorted(there[(first + offset) % len(there)] for offset in range(wanted))


def gpu_count(devices: Path = Path("/dev")) -> int:
    """Return how many NVIDIA GPUs there are."""
    found = sum(entry.name.removeprefix("nvidia").isdecimal() for entry in devices.glob("nvidia*"))
    if found or not shutil.which("nvidia-smi"):
        return found
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    return sum(line.startswith("GPU ") for line in listed.stdout.splitlines())


def loopback(interfaces: Iterable[tuple[int, str]] | None = None) -> str:
    """Return the name of the loopback device: `lo` on Linux, `lo0` on macOS."""
    there = [name for _, name in (socket.if_nameindex() if interfaces is None else interfaces)]
    return "lo0" if "lo0" in there and "lo" not in there else "lo"
