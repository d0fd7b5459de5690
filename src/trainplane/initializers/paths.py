"""Names from a server, made paths below a folder, or refused.

A bucket's keys and a hub's file names are any bytes that somebody uploaded; joined to a folder as they are, they write
wherever they like. A name is refused rather than mended: a mended name is a file that training will not find.
"""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from typing import IO, TYPE_CHECKING, Final

from trainplane.initializers.errors import HostileError, VolumeError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

OURS: Final = ".trainplane"
"""The folder in a target where state lies; no file of a source may be named so."""
_MAX_NAME: Final = 255
"""Bytes of one name: NAME_MAX of every Linux volume."""
_MAX_PATH: Final = 2048
"""Bytes of a relative path: half of PATH_MAX, so that a mount's own path fits before it."""
_MAX_DEPTH: Final = 64


def safe(name: str) -> str:
    """Return a relative path that stays below any folder; a `HostileError` says why it would not."""
    shown = ascii(name[:120])
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        raise HostileError(f"the source has a file whose name is no text: {shown}") from None
    parts = name.split("/")
    if not name or len(encoded) > _MAX_PATH or len(parts) > _MAX_DEPTH:
        raise HostileError(f"the source has a file whose name is empty, too long or too deep: {shown}")
    for part in parts:
        if part in ("", ".", "..") or "\\" in part:
            raise HostileError(f"the source has a file whose name leads out of the folder: {shown}")
        if len(part.encode()) > _MAX_NAME:
            raise HostileError(f"the source has a file with a part of its name over {_MAX_NAME} bytes: {shown}")
        if any(ord(letter) < 32 or ord(letter) == 127 for letter in part):
            raise HostileError(f"the source has a file with control characters in its name: {shown}")
    if parts[0].casefold() == OURS:
        raise HostileError(f"the source has a file in {OURS}, where the initializer keeps its state: {shown}")
    return name


def check_collisions(paths: Iterable[str], *, case_matters: bool) -> None:
    """Refuse two files in one place: a path twice, a file that is also a folder, names that a volume takes for one."""

    def fold(path: str) -> str:
        return path if case_matters else unicodedata.normalize("NFC", path).casefold()

    seen: dict[str, str] = {}
    for path in paths:
        folded = fold(path)
        if folded in seen:
            raise HostileError(f"two files of the source are one on this volume: {seen[folded]!r} and {path!r}")
        seen[folded] = path
    for folded, path in seen.items():
        folder = folded
        while "/" in folder:
            folder = folder.rpartition("/")[0]
            if folder in seen:
                raise HostileError(f"{seen[folder]!r} is a file and, because of {path!r}, a folder too")


def case_matters(folder: Path) -> bool:
    """Return whether the volume tells `a` from `A`."""
    probe = folder / f"case-{os.getpid()}"
    try:
        probe.touch()
        return not probe.with_name(probe.name.upper()).exists()
    finally:
        probe.unlink(missing_ok=True)


def make_parents(folder: Path, path: str) -> None:
    """Make the folders above a path; what is there and is a link leads elsewhere and is refused."""
    current = folder
    for part in path.split("/")[:-1]:
        current = current / part
        try:
            current.mkdir()
        except FileExistsError:
            if not stat.S_ISDIR(current.lstat().st_mode):
                raise VolumeError(
                    f"{current} on the volume is no folder, and {path!r} must go below it",
                    "remove it from the volume, or use another claim",
                ) from None


def open_plain(path: Path) -> IO[bytes]:
    """Open a file that others may have replaced: no link is followed, and no pipe waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileNotFoundError(errno.ENOENT, "it is no file", str(path))
    return os.fdopen(descriptor, "rb")


def append_plain(path: Path, *, anew: bool) -> IO[bytes]:
    """Open such a file to write at its end, or from its beginning; without a buffer."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags | (os.O_TRUNC if anew else 0), 0o644)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileNotFoundError(errno.ENOENT, "it is no file", str(path))
    return os.fdopen(descriptor, "wb", buffering=0)


def size_there(folder: Path, path: str) -> int | None:
    """Return the size of a plain file that is there, not through links; None if it is not."""
    current = folder
    *parents, name = path.split("/")
    try:
        for part in parents:
            current = current / part
            if not stat.S_ISDIR(current.lstat().st_mode):
                return None
        found = (current / name).lstat()
    except FileNotFoundError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
