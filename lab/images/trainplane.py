"""Our own image on the lab's Python: `python -m lab.images.trainplane`, which `make image` calls.

Built by podman in a store that is removed afterwards; what stays is an archive, which a node takes (`lab.node.load`).
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from lab.images import IMAGES
from lab.images.containerd_root import write_archive
from lab.paths import REPOSITORY

NAME = "lab.trainplane.dev/operator:1"
OUTPUT = REPOSITORY / "build/image"
_RUNTIME = ("--runtime", "runc", "--cgroup-manager", "cgroupfs", "--storage-driver", "overlay")


def build(output: Path = OUTPUT, base: str = "python") -> dict[str, Any]:
    """Build the image; return its name, digest and megabytes, as images/build.py says them."""
    with tempfile.TemporaryDirectory() as folder:
        engine = ["podman", "--root", f"{folder}/root", "--runroot", f"{folder}/run", *_RUNTIME]
        try:
            with subprocess.Popen(
                [*engine, "load", "--quiet"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
            ) as load:
                if load.stdin is not None:
                    write_archive(IMAGES[base], load.stdin)
                    load.stdin.close()
            script = [sys.executable, str(REPOSITORY / "images/build.py"), f"--base={IMAGES[base].reference}"]
            options = [f"--output={output}", f"--name={NAME}", f"--engine={' '.join(engine)}"]
            subprocess.run([*script, *options], check=True)
        finally:
            subprocess.run(["umount", f"{folder}/root/overlay"], capture_output=True, check=False)
    built: dict[str, Any] = json.loads((output / "image.json").read_text())
    shutil.rmtree(output / "context")
    return built


def main() -> int:
    """Build into build/image, or into the folder that is given."""
    parser = argparse.ArgumentParser("python -m lab.images.trainplane", description="Build our image in the lab.")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    build(parser.parse_args().output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
