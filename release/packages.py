"""Wheel and sdist, the same from the same commit: built of its files alone, with the commit's time on each."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from release.errors import ReleaseError

if TYPE_CHECKING:
    from pathlib import Path


def build(tree: Path, output: Path, epoch: int, *targets: str) -> list[Path]:
    """Build the targets (`sdist`, `wheel`) of a folder of sources; return what was made.

    Raises:
        ReleaseError: the build failed; it says how.
    """
    flags = [flag for target in targets for flag in ("--target", target)]
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", *flags, "--directory", str(output)],
        cwd=tree,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ReleaseError(f"hatchling build ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    return sorted([*output.glob("trainplane-*.whl"), *output.glob("trainplane-*.tar.gz")])
