"""`python3 rootfs.py PACKAGES TARGET`: gather what the image is made of into a folder, the same in every run.

Runs inside the base image, as root, with that image's Python and nothing but its standard library. What a Python
process opens is copied to where it was: the interpreter, the standard library, and the shared libraries that these and
our packages are linked against. So the base may be any distribution's.
"""  # noqa: INP001 runs alone, inside the base image

from __future__ import annotations

import compileall
import os
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

UNUSED = ("test", "idlelib", "tkinter", "turtledemo", "turtle.py", "ensurepip", "lib2to3", "pydoc_data", "__phello__")
"""Parts of the standard library that no server runs; lib-dynload's tests go with their names."""
SITE = ("site-packages", "dist-packages", "__pycache__")
PACKAGES = "opt/trainplane"
USER = 65532
_LINKED = re.compile(r"(?:=> )?(/\S+) \(0x")


def main(packages: Path, target: Path) -> None:
    """Copy interpreter, library and packages, then what they are linked against; then compile, and fix modes."""
    interpreter = Path(sys.executable).resolve()
    library = Path(sysconfig.get_path("stdlib"))
    _copy(interpreter, target)
    for name in ("python", "python3"):
        link = target / interpreter.parent.relative_to("/") / name
        link.symlink_to(interpreter.name)
    shutil.copytree(library, target / library.relative_to("/"), symlinks=False, ignore=_left_out)
    shutil.copytree(packages, target / PACKAGES, symlinks=False, ignore=shutil.ignore_patterns("__pycache__", "bin"))
    for file in sorted(_linked([interpreter, *target.rglob("*.so"), *target.rglob("*.so.*")])):
        _copy(file, target)
    _write(target / "etc/passwd", f"nonroot:x:{USER}:{USER}:nonroot:/:/sbin/nologin\n")
    _write(target / "etc/group", f"nonroot:x:{USER}:\n")
    _write(target / "etc/nsswitch.conf", "hosts: files dns\n")
    for folder in ("tmp", "etc/ssl/certs"):
        (target / folder).mkdir(parents=True, exist_ok=True)
    _compile(target)
    _settle(target)


def _left_out(folder: str, names: list[str]) -> set[str]:
    at_top = Path(folder) == Path(sysconfig.get_path("stdlib"))
    left = {name for name in names if name in SITE or name.startswith(("config-3", "_test", "_ctypes_test", "_xxtest"))}
    return left | {name for name in names if at_top and name in UNUSED}


def _copy(file: Path, target: Path) -> None:
    """Copy a file to where it was, under the name by which it is asked for."""
    copy = target / file.relative_to("/")
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file, copy)


def _linked(files: list[Path]) -> set[Path]:
    """Return the shared libraries outside of the packages that files are linked against, the loader among them."""
    found: set[Path] = set()
    for file in files:
        listed = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=False).stdout
        found |= {Path(path) for path in _LINKED.findall(listed)}
    # Looked up by name when a host is: glibc opens these itself.
    folders = {library.parent for library in found}
    found |= {
        path for folder in folders for name in ("libnss_dns.so.2", "libnss_files.so.2") for path in folder.glob(name)
    }
    return {path for path in found if path.exists() and "/rootfs/" not in str(path)}


def _compile(target: Path) -> None:
    """Compile every module: the root is read-only, and no process should do it again. By content, not by time."""
    for folder in (target / sysconfig.get_path("stdlib").lstrip("/"), target / PACKAGES):
        compileall.compile_dir(
            folder,
            quiet=1,
            stripdir=str(target),
            prependdir="/",
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _settle(target: Path) -> None:
    """Give everything the modes that it would have with any umask; times are the build's to set."""
    for folder, folders, files in os.walk(target):
        for name in folders:
            (Path(folder) / name).chmod(0o755)
        for name in files:
            path = Path(folder) / name
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
    (target / "tmp").chmod(0o1777)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
