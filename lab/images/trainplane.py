"""Our own images on the lab's Python: `python -m lab.images.trainplane`, which `make image` calls.

Built by podman in a store that is removed afterwards; what stays are archives, which a node takes (`lab.node.give`).
What is there from the same files and the same commit's time is not built again, and of two who build, one waits.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from lab.images import IMAGES, REGISTRY
from lab.images.containerd_root import write_archive
from lab.paths import REPOSITORY

PROGRAMS: Final = ("operator", "initializers")
"""What `make image` builds; the data cache's, `cache`, is larger, and built for who names it."""
OUTPUT: Final = REPOSITORY / "build/image"
_SOURCES: Final = ("src/trainplane", "runtimes", "images", "pyproject.toml", "README.md", "LICENSE")
"""What wheel and image are made of, beside a program's list of requirements."""
_RUNTIME: Final = ("--runtime", "runc", "--cgroup-manager", "cgroupfs", "--storage-driver", "overlay")


def name(program: str) -> str:
    """Return the name by which pods ask for the image of a program."""
    return f"{REGISTRY}/{program}:1"


def archive(program: str) -> Path:
    """Return where `make image` leaves the image of a program."""
    return OUTPUT / program / "trainplane.tar"


def build(output: Path = OUTPUT, programs: tuple[str, ...] = PROGRAMS, base: str = "python") -> dict[str, Any]:
    """Build images into folders of their names; return name, digest and megabytes of each, as images/build.py does."""
    output.mkdir(parents=True, exist_ok=True)
    with (output / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stale = [program for program in programs if _kept(output / program) != _key(program, base)]
        if stale:
            _build_all(output, stale, base)
    return {program: json.loads((output / program / "image.json").read_text()) for program in programs}


def _key(program: str, base: str) -> str:
    """Return the hash of all that decides what is in an image."""
    sources = [path for name in _SOURCES for path in (REPOSITORY / name, *(REPOSITORY / name).rglob("*"))]
    files = sorted(path for path in sources if path.is_file() and "__pycache__" not in path.parts)
    parts = [IMAGES[base].key(), _epoch(), program]
    for path in (*files, REPOSITORY / f"requirements/{program}.txt"):
        parts += [str(path.relative_to(REPOSITORY)), hashlib.sha256(path.read_bytes()).hexdigest()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _epoch() -> str:
    """Return the time that all files of an image have: the last commit's."""
    words = ["git", "log", "-1", "--format=%ct"]
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return given or subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.strip()


def _kept(folder: Path) -> str:
    """Return the key of the image that is there; empty if none is."""
    key = folder / "key"
    return key.read_text() if key.exists() and (folder / "trainplane.tar").exists() else ""


def _build_all(output: Path, programs: list[str], base: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        engine = ["podman", "--root", f"{folder}/root", "--runroot", f"{folder}/run", *_RUNTIME]
        try:
            with subprocess.Popen(
                [*engine, "load", "--quiet"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
            ) as load:
                if load.stdin is not None:
                    write_archive(IMAGES[base], load.stdin)
                    load.stdin.close()
            for program in programs:
                _build(program, output / program, engine, base)
        finally:
            subprocess.run(["umount", f"{folder}/root/overlay"], capture_output=True, check=False)


def _build(program: str, output: Path, engine: list[str], base: str) -> None:
    (output / "key").unlink(missing_ok=True)
    key = _key(program, base)
    script = [sys.executable, str(REPOSITORY / "images/build.py"), f"--base={IMAGES[base].reference}"]
    options = [f"--program={program}", f"--output={output}", f"--name={name(program)}", f"--engine={' '.join(engine)}"]
    subprocess.run([*script, *options], check=True)
    shutil.rmtree(output / "context")
    (output / "key").write_text(key)


def main() -> int:
    """Build into build/image, or into the folder that is given; all, or those that are named."""
    parser = argparse.ArgumentParser("python -m lab.images.trainplane", description="Build our images in the lab.")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"{' and '.join(PROGRAMS)}, if none is named")
    options = parser.parse_args()
    build(options.output, tuple(options.programs) or PROGRAMS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
