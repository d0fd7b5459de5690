"""What this machine has: processors, GPUs, the name of its loopback device."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from trainplane.api.jobset import Container
from trainplane.client.errors import InvalidError
from trainplane.render.resources import gpus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.api.podindex import PodIndex
    from trainplane.api.tree import Tree
    from trainplane.client.backends.local.pods import LocalJobSet


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


def must_have_gpus(plan: LocalJobSet) -> None:
    """Refuse a job that asks for more GPUs than there are, all nodes together.

    Raises:
        InvalidError: it does.
    """
    wanted = sum(gpus(Container(container)) * job.replicas * job.completions for job, container in plan.containers)
    there = gpu_count() if wanted else 0
    if wanted > there:
        raise InvalidError(
            f"spec.trainer.resourcesPerNode: all nodes together ask for {wanted} GPUs; this machine has {there}: "
            "ask for fewer, or for none to train on processors"
        )


def gpu_numbers(plan: LocalJobSet, place: PodIndex, container: Tree) -> range:
    """Return which GPUs a container may use: those that ask for some take their shares one after the other."""
    taken = 0
    for other in plan.places:
        for job, one in plan.containers:
            if job.name == other.replicated_job:
                count = gpus(Container(one))
                if (other, one["name"]) == (place, container["name"]):
                    return range(taken, taken + count)
                taken += count
    return range(0)


def loopback(interfaces: Iterable[tuple[int, str]] | None = None) -> str:
    """Return the name of the loopback device: `lo` on Linux, `lo0` on macOS."""
    there = [name for _, name in (socket.if_nameindex() if interfaces is None else interfaces)]
    return "lo0" if "lo0" in there and "lo" not in there else "lo"
