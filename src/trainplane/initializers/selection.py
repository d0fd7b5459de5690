"""Which of the listed files are fetched: those with safe names that patterns want, and not more than a bound."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from trainplane.initializers import paths
from trainplane.initializers.errors import HostileError, NotFoundError
from trainplane.initializers.secrets import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainplane.initializers.request import Request
    from trainplane.initializers.source import File, Source

_MAX_SIZE = 1 << 50
"""A PiB: a file that says it is larger is no file."""


def wanted(file: File, allow: Sequence[str], ignore: Sequence[str]) -> bool:
    """Return whether a file is to be fetched; patterns match its path or what its source calls it."""

    def matches(patterns: Sequence[str]) -> bool:
        return any(fnmatchcase(name, pattern) for name in (file.path, file.key) for pattern in map(_whole, patterns))

    return (not allow or matches(allow)) and not matches(ignore)


def _whole(pattern: str) -> str:
    """Return a pattern that means all of a folder if it names one, as the hub's own tools take it."""
    return f"{pattern}*" if pattern.endswith("/") else pattern


async def select(source: Source, request: Request) -> list[File]:
    """Return the files to fetch, in the order of the source; empty objects that only mark a folder are none."""
    chosen: list[File] = []
    listed = 0
    async for file in source.list():
        listed += 1
        if listed > request.limits.max_files:
            raise HostileError(
                f"the source lists more than {request.limits.max_files} files",
                "name a sub-path, or raise MAX_FILES if it truly has so many",
            )
        if not wanted(file, request.allow, request.ignore):
            continue
        paths.safe(file.path)
        if file.size is not None and not 0 <= file.size <= _MAX_SIZE:
            raise HostileError(f"the source says that {file.path!r} has {file.size} bytes")
        chosen.append(file)
    if not listed:
        raise NotFoundError(f"there is nothing at {shown(request.uri)}")
    if not chosen:
        raise NotFoundError(
            f"none of the {listed} files at {shown(request.uri)} is wanted by the patterns",
            "check ALLOW_PATTERNS and IGNORE_PATTERNS",
        )
    folders = {parent for file in chosen for parent in _parents(file.path)}
    return [file for file in chosen if file.size or file.path not in folders]


def _parents(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
