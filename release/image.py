"""The image of operator and hub as an OCI archive: what `skopeo copy` and a node take."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

from release.errors import MissingToolError, ReleaseError

if TYPE_CHECKING:
    from pathlib import Path

    from release.order import Order

NAME: Final = "trainplane-{version}-image.tar"
_BUILD: Final = "images/build.py"
_LAB: Final = "lab/images/trainplane.py"


def build(order: Order, base: str) -> tuple[Path, dict[str, Any]]:
    """Build the image on a base, or on the lab's if none is named; return its facts, too.

    Raises:
        MissingToolError: there is no recipe, or nothing that builds it.
        ReleaseError: the build failed; it has said why.
    """
    if not (order.tree / _BUILD).exists():
        raise MissingToolError(f"{_BUILD}: this commit has no image")
    if shutil.which("podman") is None:
        raise MissingToolError("podman: is not on PATH: run `make packages`, as root")
    if not base and not (order.tree / _LAB).exists():
        raise MissingToolError("BASE: names no image to build on, and this commit's lab has none")
    work, named = order.work / "image", f"--name=trainplane/operator:v{order.version}"
    words = [_BUILD, f"--base={base}", named] if base else ["-m", "lab.images.trainplane"]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(order.epoch)}
    done = subprocess.run([sys.executable, *words, f"--output={work}"], cwd=order.tree, env=environment, check=False)
    if done.returncode:
        raise ReleaseError(f"image: the build ended with {done.returncode}: see above")
    facts: dict[str, Any] = json.loads((work / "image.json").read_text())
    return shutil.copyfile(work / "trainplane.tar", order.output / NAME.format(version=order.version)), facts
