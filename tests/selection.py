"""Which tests the gate runs: a fixed set, those whose files changed last, and a tenth of all others.

    fixed      what `tests/gate.txt` names: folders, files, single tests. They cover every capability on real engines
    changed    test files that changed last, newest first, up to `CHANGED_SECONDS`: a landing runs the tests it brings
    share      files with a tenth of the seconds of all others, drawn by the hash of the tree

The selection depends on the tree of HEAD and its history alone, so two runs of one tree run the same tests. The seconds
of each file are in `tests/durations.txt`.

    python -m tests.selection           print the selection
    python -m tests.selection record    write `tests/durations.txt` from what the suites of this checkout took
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

REPOSITORY: Final = Path(__file__).resolve().parents[1]
FIXED: Final = "tests/gate.txt"
DURATIONS: Final = "tests/durations.txt"
CHANGED_SECONDS: Final = 150.0
COMMITS: Final = 200
"""Commits in which changed files are looked for."""
SHARE: Final = 10
"""One of how many seconds of the other files the gate runs."""
UNKNOWN_SECONDS: Final = 30.0
"""Seconds of a file that no whole run has measured."""

Kind: TypeAlias = Literal["fixed", "changed", "share"]


@dataclass(frozen=True)
class Selection:
    """Which files and tests the gate runs, and the seconds of each file."""

    fixed: tuple[str, ...]
    changed: tuple[str, ...]
    share: tuple[str, ...]
    seconds: Mapping[str, float]

    def kind(self, test: str) -> Kind | None:
        """Return why the gate runs a test, or None if it does not; `test` is pytest's node ID."""
        file = test.partition("::")[0]
        if is_named(file, self.fixed) or is_named(test, self.fixed):
            return "fixed"
        if file in self.changed:
            return "changed"
        return "share" if file in self.share else None


def select(
    files: Iterable[str], fixed: Iterable[str], newest: Iterable[str], seconds: Mapping[str, float], tree: str
) -> Selection:
    """Return what the gate runs.

    Args:
        files: all test files.
        fixed: the entries of `tests/gate.txt`.
        newest: the files that changed last, newest first; files that are not tests may be among them.
        seconds: how long each file takes.
        tree: the hash of the tree.
    """
    fixed = tuple(fixed)
    others = {file for file in files if not is_named(file, fixed)}
    changed = tuple(_until(CHANGED_SECONDS, (file for file in newest if file in others), seconds))
    others -= set(changed)
    drawn = sorted(others, key=lambda file: hashlib.sha256(f"{tree} {file}".encode()).digest())
    bound = sum(_seconds(file, seconds) for file in others) / SHARE
    return Selection(fixed, changed, tuple(_until(bound, drawn, seconds)), seconds)


@cache
def is_named(test: str, entries: tuple[str, ...]) -> bool:
    """Return whether entries of `tests/gate.txt` name a test or a file: it, its file, its folder, or its function."""
    return any(test == entry or test.startswith((f"{entry}/", f"{entry}::", f"{entry}[")) for entry in entries)


def read() -> Selection:
    """Return what the gate runs for HEAD."""
    files = [path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "tests").rglob("test_*.py")]
    tree = _git("rev-parse", "HEAD^{tree}").strip()
    return select(files, read_fixed(), _newest(), read_durations(), tree)


def read_fixed() -> tuple[str, ...]:
    """Return the entries of `tests/gate.txt`."""
    lines = (REPOSITORY / FIXED).read_text().splitlines()
    return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def read_durations() -> dict[str, float]:
    """Return the seconds of each test file, by `tests/durations.txt`."""
    lines = (line.split() for line in (REPOSITORY / DURATIONS).read_text().splitlines() if not line.startswith("#"))
    return {file: float(seconds) for seconds, file in lines}


def record(folder: Path) -> None:
    """Write `tests/durations.txt`: measured files get their new seconds, others keep theirs, and lost files go."""
    measured: dict[str, float] = defaultdict(float)
    for path in sorted(folder.glob("*.json")):
        for test, seconds in json.loads(path.read_text()).items():
            measured[test.partition("::")[0]] += seconds
    known = {file: one for file, one in (read_durations() | measured).items() if (REPOSITORY / file).exists()}
    lines = (f"{seconds:.1f} {file}\n" for file, seconds in sorted(known.items()))
    (REPOSITORY / DURATIONS).write_text("# Seconds of each test file: `make durations` writes them.\n" + "".join(lines))


def _newest() -> list[str]:
    """Return the files below `tests` that changed last, newest first; of a shallow clone, none are known."""
    if _git("rev-parse", "--is-shallow-repository").strip() == "true":
        sys.stderr.write("gate: a shallow clone has no history, so no test runs because it changed\n")
        return []
    names = _git("log", "--name-only", "--format=", f"--max-count={COMMITS}", "--", "tests").splitlines()
    return list(dict.fromkeys(filter(None, names)))


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout


def _seconds(file: str, seconds: Mapping[str, float]) -> float:
    return seconds.get(file, UNKNOWN_SECONDS)


def _until(bound: float, files: Iterable[str], seconds: Mapping[str, float]) -> Iterator[str]:
    """Yield files in order until their seconds reach a bound."""
    total = 0.0
    for file in files:
        if total >= bound:
            return
        total += _seconds(file, seconds)
        yield file


def listed(selection: Selection) -> Iterator[str]:
    """Yield lines that name what the gate runs, and why."""
    known = sum(seconds for file, seconds in selection.seconds.items() if is_named(file, selection.fixed))
    yield f"fixed: {len(selection.fixed)} entries of {FIXED}, their whole files {known:.0f} s"
    for kind, files in (("changed", selection.changed), ("share", selection.share)):
        total = sum(_seconds(file, selection.seconds) for file in files)
        yield f"{kind}: {len(files)} files, {total:.0f} s"
        yield from (f"  {_seconds(file, selection.seconds):6.0f}  {file}" for file in files)


if __name__ == "__main__":
    if sys.argv[1:] == ["record"]:
        record(REPOSITORY / "build" / "durations")
    else:
        sys.stdout.writelines(f"{line}\n" for line in listed(read()))
