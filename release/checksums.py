"""SHA256SUMS: which files are of a release, and their digests. `sha256sum --check SHA256SUMS` reads it, too."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

from release.errors import UntrustedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

NAME: Final = "SHA256SUMS"
_LINE: Final = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9][A-Za-z0-9._+-]*)")
"""A digest and a plain name: no folder, nothing hidden, nothing that a shell or a terminal would read otherwise."""


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def of(paths: Iterable[Path]) -> dict[str, str]:
    """Return the digest of each file by its name, in order."""
    return {path.name: digest(path) for path in sorted(paths)}


def text(sums: Mapping[str, str]) -> str:
    """Return the file's text."""
    return "".join(f"{value}  {name}\n" for name, value in sums.items())


def parse(content: str) -> dict[str, str]:
    """Read the file's text.

    Raises:
        UntrustedError: a line is no digest and plain name, or a name stands twice.
    """
    sums: dict[str, str] = {}
    for number, line in enumerate(content.splitlines(), 1):
        found = _LINE.fullmatch(line)
        if not found or found[2] in sums:
            raise UntrustedError(f"{NAME}:{number}: is no digest and plain name, each name once")
        sums[found[2]] = found[1]
    if not sums:
        raise UntrustedError(f"{NAME}: names no file")
    return sums


def problems(folder: Path, sums: Mapping[str, str], beside: Iterable[str]) -> Iterator[str]:
    """Return what differs between a folder and its sums; `beside` may lie there without a sum."""
    there = {path.name: path for path in folder.iterdir()}
    for name, value in sums.items():
        path = there.get(name)
        if path is None:
            yield f"{name}: is missing"
        elif path.is_symlink() or not path.is_file():
            yield f"{name}: is no plain file"
        elif digest(path) != value:
            yield f"{name}: has been changed: its SHA-256 is not the one in {NAME}"
    for name in sorted(there.keys() - sums.keys() - set(beside)):
        yield f"{name!r}: is not of this release: {NAME} does not name it"
