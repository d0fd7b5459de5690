"""`python -m trainplane.api.crds [--check] [FOLDER]`: write the CRDs, or say whether the committed ones are stale."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trainplane.api.crds import emit, legacy

if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDERS: Final = {"crds": emit.KINDS, "crds-legacy": legacy.KINDS}
"""Which kinds are installed together: ours, and those that an admin asks for."""


def write(folder: Path, kinds: Iterable[emit.Kind] = emit.KINDS) -> None:
    """Write the CRDs of some kinds into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in emit.files(kinds).items():
        (folder / name).write_text(text)


def stale(folder: Path, kinds: Iterable[emit.Kind] = emit.KINDS) -> str:
    """Return a diff from the files in a folder to what the types say; empty if they agree.

    A file of the folder that no type stands behind counts as stale: it would be installed with the rest.
    """
    wanted = emit.files(kinds)
    present = {path.name: path.read_text() for path in sorted(folder.glob("*.yaml"))} if folder.is_dir() else {}
    lines: list[str] = []
    for name in sorted(wanted.keys() | present.keys()):
        before, after = present.get(name, ""), wanted.get(name, "")
        if before != after:
            lines += difflib.unified_diff(
                before.splitlines(keepends=True), after.splitlines(keepends=True), f"{folder / name}", "types", n=2
            )
    return "".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Write or check; 1 if the committed files are stale."""
    parser = argparse.ArgumentParser(prog="python -m trainplane.api.crds", description="Emit the CRDs from the types.")
    parser.add_argument("--check", action="store_true", help="write nothing; print a diff and end with 1 if stale")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("manifests"))
    options = parser.parse_args(arguments)
    if not options.check:
        for name, kinds in FOLDERS.items():
            write(options.folder / name, kinds)
        return 0
    diff = "".join(stale(options.folder / name, kinds) for name, kinds in FOLDERS.items())
    if diff:
        sys.stdout.write(diff)
        sys.stderr.write("the CRDs are stale: run `make manifests` and commit what it writes\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
