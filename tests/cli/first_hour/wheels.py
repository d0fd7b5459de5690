"""Wheels for a fresh environment: ours, built from this checkout, and a torch of no size.

The stand-in has `torchrun` alone, for a node with one process: enough to begin a run, and none of torch's gigabytes is
downloaded, unpacked or measured. Pods of the lab have the real one.
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

from lab.paths import REPOSITORY

UV: Final = Path(sys.executable).with_name("uv")
_TORCHRUN: Final = '''\
"""A torchrun of one process a node: the variables that a script finds, and the script."""

import os
import runpy
import sys


def main() -> None:
    words = sys.argv[1:]
    while words and words[0].startswith("-"):
        words = words[1 if "=" in words[0] else 2 :]
    rank, nodes = os.environ.get("PET_NODE_RANK", "0"), os.environ.get("PET_NNODES", "1")
    os.environ.update(RANK=rank, WORLD_SIZE=nodes, LOCAL_RANK="0", LOCAL_WORLD_SIZE="1")
    sys.argv = words
    runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main()
'''


def build_ours(folder: Path) -> Path:
    """Build the wheel of this checkout."""
    command: list[str | Path] = [UV, "build", "--quiet", "--wheel", "--no-build-isolation", "--python", sys.executable]
    subprocess.run([*command, "--out-dir", folder, REPOSITORY], check=True, stdin=subprocess.DEVNULL)
    (wheel,) = folder.glob("trainplane-*.whl")
    return wheel


def make_torch(folder: Path) -> Path:
    """Write the stand-in's wheel."""
    about = "torch-99.0.dist-info"
    files = {
        "torch/__init__.py": "",
        "torch/distributed/__init__.py": "",
        "torch/distributed/run.py": _TORCHRUN,
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: torch\nVersion: 99.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": "[console_scripts]\ntorchrun = torch.distributed.run:main\n",
    }
    record = [f"{name},sha256={_digest(text)},{len(text.encode())}" for name, text in files.items()]
    files[f"{about}/RECORD"] = "\n".join([*record, f"{about}/RECORD,,", ""])
    wheel = folder / "torch-99.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return wheel


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
