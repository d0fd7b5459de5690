"""`python -m deploy [--check]`: write what is installed from its sources, or say which committed files are stale."""

from __future__ import annotations

import argparse
import difflib
import sys
from typing import TYPE_CHECKING

from deploy import chart, dashboard, legacy, schema, values

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS = tuple(chart.TEMPLATES / name for name in ("crds", "runtimes", "operator", "hub", "legacy"))
"""Folders in which every file is written here: one that is not would be installed with the rest."""


def wanted() -> dict[Path, str]:
    """Return every file that is written here."""
    return {**chart.files(), **legacy.files(), **schema.files(), **dashboard.files(), **values.files()}


def stale() -> dict[Path, tuple[str, str]]:
    """Return each file whose text is not what its source says, with both texts."""
    made = wanted()
    present = {path for folder in FOLDERS for path in _listed(folder)} | made.keys()
    texts = {path: _text(chart.REPOSITORY / path) for path in sorted(present)}
    return {path: (text, made.get(path, "")) for path, text in texts.items() if text != made.get(path, "")}


def _listed(folder: Path) -> list[Path]:
    return [path.relative_to(chart.REPOSITORY) for path in (chart.REPOSITORY / folder).glob("*")]


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def main(arguments: list[str] | None = None) -> int:
    """Write or check; 1 if a committed file is stale."""
    parser = argparse.ArgumentParser("python -m deploy", description="Write the chart's and the manifests' made parts.")
    parser.add_argument("--check", action="store_true", help="write nothing; print a diff and end with 1 if stale")
    options = parser.parse_args(arguments)
    for path, (before, after) in stale().items():
        if options.check:
            lines = (before.splitlines(keepends=True), after.splitlines(keepends=True))
            sys.stdout.writelines(difflib.unified_diff(*lines, str(path), "its source", n=2))
        elif after:
            (chart.REPOSITORY / path).parent.mkdir(parents=True, exist_ok=True)
            (chart.REPOSITORY / path).write_text(after)
        else:
            (chart.REPOSITORY / path).unlink()
    if options.check and stale():
        sys.stderr.write("installed files are stale: run `make manifests` and commit what it writes\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
