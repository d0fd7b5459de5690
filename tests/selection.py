"""Which tests the gate runs: a fixed set, those whose files changed last, and a tenth of all others.

    fixed      what `tests/gate.txt` names: folders, files, single tests. They cover every capability on real engines
    changed    the test files that changed last, so that a landing runs the tests that it brings
    share      one in ten of the other files, drawn by the hash of the tree

The selection depends on the tree of HEAD and its history alone, so two runs of one tree run the same tests.

    python -m tests.selection     print the selection
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

REPOSITORY: Final = Path(__file__).resolve().parents[1]
FIXED: Final = "tests/gate.txt"
CHANGED_FILES: Final = 10
"""How many of the files that changed last the gate runs."""
COMMITS: Final = 200
"""Commits in which changed files are looked for."""
SHARE: Final = 10
"""One of how many other files the gate runs."""

Kind: TypeAlias = Literal["fixed", "changed", "share"]


@dataclass(frozen=True)
class Selection:
    """The entries of the fixed set, and the other files that the gate runs."""

    fixed: tuple[str, ...]
    changed: tuple[str, ...]
    share: tuple[str, ...]

    def kind(self, test: str) -> Kind | None:
        """Return why the gate runs a test, or None if it does not; `test` is pytest's node ID."""
        file = test.partition("::")[0]
        # The answer for a file is cached, and thousands of tests share one.
        if is_named(file, self.fixed) or is_named(test, self.fixed):
            return "fixed"
        if file in self.changed:
            return "changed"
        return "share" if file in self.share else None


def select(files: Iterable[str], fixed: Iterable[str], newest: Iterable[str], tree: str) -> Selection:
    """Return what the gate runs.

    Args:
        files: all test files.
        fixed: the entries of `tests/gate.txt`.
        newest: the files that changed last, newest first; files that are not tests may be among them.
        tree: the hash of the tree.
    """
    fixed = tuple(fixed)
    others = {file for file in files if not is_named(file, fixed)}
    changed = tuple(islice((file for file in newest if file in others), CHANGED_FILES))
    share = tuple(sorted(file for file in others - set(changed) if _is_drawn(file, tree)))
    return Selection(fixed, changed, share)


@cache
def is_named(test: str, entries: tuple[str, ...]) -> bool:
    """Return whether entries of `tests/gate.txt` name a test or a file: it, its file, its folder, or its function."""
    return any(test == entry or test.startswith((f"{entry}/", f"{entry}::", f"{entry}[")) for entry in entries)


def read() -> Selection:
    """Return what the gate runs for HEAD."""
    files = [path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "tests").rglob("test_*.py")]
    return select(files, read_fixed(), _newest(), _git("rev-parse", "HEAD^{tree}").strip())


def read_fixed() -> tuple[str, ...]:
    """Return the entries of `tests/gate.txt`."""
    lines = (REPOSITORY / FIXED).read_text().splitlines()
    return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def _is_drawn(file: str, tree: str) -> bool:
    return int.from_bytes(hashlib.sha256(f"{tree} {file}".encode()).digest()) % SHARE == 0


def _newest() -> list[str]:
    """Return the files below `tests` that changed last, newest first; of a shallow clone, none are known."""
    if _git("rev-parse", "--is-shallow-repository").strip() == "true":
        sys.stderr.write("gate: a shallow clone has no history, so no test runs because it changed\n")
        return []
    names = _git("log", "--name-only", "--format=", f"--max-count={COMMITS}", "--", "tests").splitlines()
    return list(dict.fromkeys(filter(None, names)))


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Print the selection, a line for each entry and file."""
    selection = read()
    sys.stdout.writelines(f"fixed    {entry}\n" for entry in selection.fixed)
    sys.stdout.writelines(f"changed  {file}\n" for file in selection.changed)
    sys.stdout.writelines(f"share    {file}\n" for file in selection.share)


if __name__ == "__main__":
    main()
