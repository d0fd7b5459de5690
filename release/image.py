"""Our images as OCI archives: what `skopeo copy` and a node take."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

from release.errors import MissingToolError, ReleaseError

if TYPE_CHECKING:
    from release.order import Order

NAMES: Final = {
    "operator": "trainplane-{version}-image.tar",
    "initializers": "trainplane-{version}-initializers-image.tar",
    "cache": "trainplane-{version}-cache-image.tar",
}
"""Each program that has an image, and the file that is published."""
_BUILD: Final = "images/build.py"
_LAB: Final = "lab/images/trainplane.py"


def build(order: Order, base: str) -> dict[str, Any]:
    """Build the images on a base, or on the lab's if none is named; return the facts of each program's.

    Raises:
        MissingToolError: there is no recipe, or nothing that builds it.
        ReleaseError: a build failed; it has said why.
    """
    if not (order.tree / _BUILD).exists():
        raise MissingToolError(f"{_BUILD}: this commit has no image")
    if shutil.which("podman") is None:
        raise MissingToolError("podman: is not on PATH: run `make packages`, as root")
    if not base and not (order.tree / _LAB).exists():
        raise MissingToolError("BASE: names no image to build on, and this commit's lab has none")
    work = order.work / "image"
    if base:
        for program in NAMES:
            name = f"--name=trainplane/{program}:v{order.version}"
            _run(order, _BUILD, f"--base={base}", f"--program={program}", name, f"--output={work / program}")
    else:
        _run(order, "-m", "lab.images.trainplane", f"--output={work}", *NAMES)
    for program, file in NAMES.items():
        shutil.copyfile(work / program / "trainplane.tar", order.output / file.format(version=order.version))
    return {program: json.loads((work / program / "image.json").read_text()) for program in NAMES}


def _run(order: Order, *words: str) -> None:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(order.epoch)}
    done = subprocess.run([sys.executable, *words], cwd=order.tree, env=environment, check=False)
    if done.returncode:
        raise ReleaseError(f"image: the build ended with {done.returncode}: see above")
