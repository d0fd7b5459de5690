"""Files on the volume, handled as if anybody could have put them there.

After a crash, a restore or on a bad disk they may be of any kind and any size, and stand anywhere. Nothing is followed
that leads elsewhere, nothing is opened that waits, nothing is read before its size is known. What cannot be read is
moved to a folder of its own (`SetAside`), counted and told of; it is never deleted for that, only, like everything
here, when there is more of it than retention allows.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import stat
from typing import TYPE_CHECKING, Final

from trainplane.hub.errors import RecordError
from trainplane.hub.logarchive.retention import FOLDER, NOTHING, Usage, of_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

log = logging.getLogger(__name__)

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""How a volume says that it is full."""
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
PARTIAL: Final = ".partial"
"""How the name of a file ends that is being written."""
_REMOVED: Final = ".removed"
_NAME_BYTES: Final = 180
_TOLD: Final = 100
"""Things set aside that are told of one by one; of more, only the number."""


def open_to_read(path: Path) -> int:
    """Return a descriptor of a file; raises OSError, also for what is no file of its own."""
    descriptor = os.open(path, _READ)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a file", str(path))
    return descriptor


def open_to_write(path: Path, *, new: bool = False) -> int:
    """Return a descriptor of a file that is made if there is none, or must be; raises OSError."""
    return os.open(path, _WRITE | (os.O_EXCL if new else 0), 0o600)


def read(path: Path, limit: int) -> bytes:
    """Return a file's content; raises OSError, and RecordError for one that is longer than a limit."""
    descriptor = open_to_read(path)
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise RecordError(f"it has more than {limit} bytes")
    return data


def write(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Put a file in its place, whole or not at all: a process that is killed leaves the one before, or none.

    `durable` waits for the disk, so that a machine that crashes does not lose both; what was new anyway may be left to
    a later `sync`.
    """
    partial = path.with_suffix(PARTIAL)
    descriptor = open_to_write(partial)
    try:
        os.ftruncate(descriptor, 0)
        write_all(descriptor, data)
        if durable:
            os.fsync(descriptor)
        partial.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
    finally:
        os.close(descriptor)


def sync(path: Path) -> None:
    """See that a file or folder is on the disk; one that is gone meanwhile needs not be."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        descriptor = os.open(path, _READ)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what is in a folder, by name; nothing of one that cannot be looked into."""
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []


def is_file(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a file and no link to one."""
    return entry.is_file(follow_symlinks=False)


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder and no link to one."""
    return entry.is_dir(follow_symlinks=False)


def usage_of(status: os.stat_result) -> Usage:
    """Return what a file or folder takes; of one with holes, only what is there."""
    if stat.S_ISDIR(status.st_mode):
        return FOLDER
    return of_file(min(status.st_size, status.st_blocks * 512))


def measure(path: Path) -> Usage:
    """Return what a file, or a folder with all that is in it, takes."""
    total, waiting = NOTHING, [path]
    while waiting:
        place = waiting.pop()
        with contextlib.suppress(OSError):
            status = place.lstat()
            total += usage_of(status)
            if stat.S_ISDIR(status.st_mode):
                waiting += [place / entry.name for entry in entries(place)]
    return total


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it, as far as we may and however deep that goes.

    A folder is gone at once under its name; what a killed process leaves of it is called so that `is_removed` knows it.
    """
    waiting, number = [_hidden(path, 0)], 0
    while waiting:
        place = waiting.pop()
        if place.is_symlink() or not place.is_dir():
            with contextlib.suppress(OSError):
                place.unlink()
            continue
        for entry in entries(place):
            if is_folder(entry):  # comes up beside the first, so that no path gets longer than the system takes
                number += 1
                waiting.append(_hidden(place / entry.name, number, beside=path))
            else:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)  # noqa: PTH108 an entry has its path as text
        with contextlib.suppress(OSError):
            place.rmdir()


def is_removed(name: str) -> bool:
    """Return whether a name is what `remove` calls a folder that it is about to remove."""
    return name.startswith(".") and name.endswith(_REMOVED)


def _hidden(path: Path, number: int, beside: Path | None = None) -> Path:
    target = (beside or path).with_name(f".{(beside or path).name[:_NAME_BYTES]}.{number}{_REMOVED}")
    try:
        return path.rename(target) if path.is_dir() and not path.is_symlink() else path
    except OSError:
        return path


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write data, however many calls that takes; raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


class SetAside:
    """Where things go that cannot be read, within `limit`: past it, those that came first go for good."""

    def __init__(self, folder: Path, limit: Usage) -> None:
        self.folder = folder
        self.limit = limit
        self.count = 0
        """How many things could not be read since the server began, whether or not they could be moved."""
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            with contextlib.suppress(OSError):
                folder.rename(folder.with_name(f"{folder.name}.unread"))
        self._kept = {entry.name: measure(folder / entry.name) for entry in entries(folder)}
        self.usage = sum(self._kept.values(), FOLDER if folder.is_dir() else NOTHING)
        numbers = (name.partition(".")[0] for name in self._kept)
        self._next = 1 + max((int(number) for number in numbers if number.isascii() and number.isdigit()), default=0)
        self.shrink()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._kept))

    def put(self, path: Path, why: str) -> bool:
        """Move something here; say whether that went well. What cannot be moved stays where it is."""
        self.tell(path, why)
        parts = path.parts[-3:]
        name = f"{self._next:08d}.{'~'.join(parts)[-_NAME_BYTES:]}"
        try:
            usage = measure(path)
            self.folder.mkdir(exist_ok=True)
            path.rename(self.folder / name)
        except OSError as error:
            log.warning("what cannot be read cannot be moved", extra={"path": str(path), "error": str(error)})
            return False
        self._next += 1
        self.usage = (FOLDER if self.usage == NOTHING else self.usage) + usage
        self._kept[name] = usage
        self.shrink()
        return True

    def tell(self, path: Path, why: str) -> None:
        """Count and tell of something that cannot be read and stays where it is."""
        self.count += 1
        if self.count <= _TOLD:
            log.warning("what is kept cannot be read and is set aside", extra={"path": str(path), "reason": why})
        elif self.count == _TOLD + 1:
            log.warning("more is set aside, and told of no longer one by one")

    def shrink(self) -> None:
        """Remove what came first until all is within the limit."""
        while self._kept and not self.usage.within(self.limit):
            name = min(self._kept)
            remove(self.folder / name)
            self.usage -= self._kept.pop(name)
