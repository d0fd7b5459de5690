"""What is in the SDK and in the images, in CycloneDX: every library, its version, licence and what needs it.

Libraries are unpacked by their hashes for the image's Python and platform, not for the Python that runs this, and read
by cyclonedx-py: it sees what a node will run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from release.errors import MissingToolError, ReleaseError

if TYPE_CHECKING:
    from pathlib import Path

    from release.order import Order

LISTS: Final = {"base": "sdk", "operator": "operator", "initializers": "initializers", "cache": "cache"}
"""Which list of requirements is whose."""
PYTHON: Final = "3.13"
PLATFORM: Final = "x86_64-manylinux_2_28"


def build(order: Order) -> list[Path]:
    """Write an SBOM for each list of requirements that is shipped; return the files.

    Raises:
        MissingToolError: cyclonedx-py is not installed.
        ReleaseError: a library cannot be had, or cannot be described.
    """
    program = order.tools / "cyclonedx-py"
    if not program.exists():
        raise MissingToolError(f"{program.name}: is not installed: run `make release`, which installs it")
    return [_one(order, program, name, whose) for name, whose in LISTS.items()]


def _one(order: Order, program: Path, name: str, whose: str) -> Path:
    tree, work = order.tree, order.work / "sbom" / name
    target = order.output / f"trainplane-{order.version}-{whose}.cdx.json"
    uv = [sys.executable, "-m", "uv"]
    _run([*uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(work)], tree)
    (packages,) = work.glob("lib/python*/site-packages")
    how = ["--quiet", "--no-deps", "--only-binary=:all:", f"--python-version={PYTHON}", f"--python-platform={PLATFORM}"]
    what = ["--require-hashes", f"--requirement=requirements/{name}.txt"]
    _run([*uv, "pip", "install", *how, f"--target={packages}", *what], tree)
    flags = ["--pyproject=pyproject.toml", "--output-reproducible", "--spec-version=1.6", "--output-format=JSON"]
    words = [str(program), "environment", *flags, f"--output-file={target}", str(work / "bin/python")]
    _run(words, tree, SOURCE_DATE_EPOCH=str(order.epoch))
    return target


def _run(words: list[str], tree: Path, **environment: str) -> None:
    done = subprocess.run(
        words, cwd=tree, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ReleaseError(f"`{' '.join(words[:4])} …` ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
