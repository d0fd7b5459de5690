"""What a node has: the script that `get_runtime_packages` ships, alone, for images that know nothing of trainplane."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "JAX_PROCESS_ID")
"""Where launchers put a process's number; only the first process prints."""


def print_inventory() -> None:
    """Print Python's version, its packages, and the GPUs if there are any."""
    if any(os.environ.get(name, "0") != "0" for name in RANKS):
        return
    print(f"Python: {sys.version}", flush=True)  # noqa: T201 its purpose
    print("Packages:", flush=True)  # noqa: T201
    subprocess.run([sys.executable, "-m", "pip", "list"], check=False)
    gpus = shutil.which("nvidia-smi")
    if gpus:
        print("GPUs:", flush=True)  # noqa: T201
        subprocess.run([gpus], check=False)


if __name__ == "__main__":
    print_inventory()
