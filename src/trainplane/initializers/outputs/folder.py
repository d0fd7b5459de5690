"""The folder that training writes to: what is in it, and the bytes of one file.

Whoever trains may put anything there, and the sender has credentials and files that training has not: links are
resolved once, must stay in the folder, and what is opened is opened without following any.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trainplane.initializers import paths
from trainplane.initializers.destination import Content, Outgoing
from trainplane.initializers.errors import ChangedError, DeniedError, HostileError, InitializerError, InvalidError
from trainplane.initializers.outputs.manifest import CHECKPOINT, FINAL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

_READ: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass
class Found:
    """What a look at the folder found."""

    files: list[Outgoing] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    """Links to folders inside: they are told of, and what they point to is sent under its own name."""
    refused: dict[str, InitializerError] = field(default_factory=dict)
    """Why a path cannot be sent; the rest is sent all the same, but without the manifest that would list it."""

    def checkpoints(self) -> dict[str, list[Outgoing]]:
        """Return the files of each direct subfolder that can be sent whole."""
        broken = {path.partition("/")[0] for path in self.refused}
        grouped: dict[str, list[Outgoing]] = {}
        for file in self.files:
            name, stroke, _ = file.path.partition("/")
            if stroke and name not in broken:
                grouped.setdefault(name, []).append(file)
        return grouped


class OutputFolder:
    """The folder, looked at as often as one likes."""

    def __init__(self, root: Path, max_files: int, refuses: Callable[[str], str] = lambda _: "") -> None:
        self.root = root
        self._max_files = max_files
        self._refuses = refuses
        """Why a path cannot be stored where the files go; empty if it can."""

    def look(self) -> Found:
        """Return what there is to send now; what goes while one looks is gone."""
        found = Found()
        count = 0
        for path in self._walk(found):
            count += 1
            if count > self._max_files:
                raise InvalidError(
                    f"there are more than {self._max_files} files in {self.root}",
                    "pack them, or raise MAX_FILES in the Secret or environment of the sender",
                )
            try:
                file = self._file(path, found)
            except FileNotFoundError:
                continue
            except OSError as error:
                found.refused[path] = _unreadable(path, error)
            except InitializerError as error:
                found.refused[path] = error
            else:
                if file is not None:
                    found.files.append(file)
        return found

    def _walk(self, found: Found) -> Iterator[str]:
        """Yield the paths of all that is no folder, without our own."""

        def refuse(error: OSError) -> None:
            if not isinstance(error, FileNotFoundError):
                path = os.path.relpath(str(error.filename), self.root)
                found.refused[path] = _unreadable(path, error)

        for folder, folders, names in os.walk(self.root, onerror=refuse):
            below = os.path.relpath(folder, self.root)
            prefix = "" if below == "." else f"{below}/"
            links = [name for name in folders if Path(folder, name).is_symlink()]
            if not prefix and paths.OURS in folders:
                folders.remove(paths.OURS)
            folders.sort()
            for name in sorted([*names, *links]):
                ours = name == FINAL if not prefix else name == CHECKPOINT and prefix.count("/") == 1
                if not ours:
                    yield prefix + name

    def _file(self, path: str, found: Found) -> Outgoing | None:
        paths.safe(path)
        if refusal := self._refuses(path):
            raise HostileError(refusal, "give the file a shorter or plainer name")
        here = self.root / path
        status = here.lstat()
        real = path
        if stat.S_ISLNK(status.st_mode):
            root = self.root.resolve()
            # Not `resolve`: that raises where links go in a circle.
            target = Path(os.path.realpath(here))
            if not target.is_relative_to(root) or target == root or target.is_relative_to(root / paths.OURS):
                raise HostileError(
                    f"{path!r} is a link that leads out of the output", "copy what it points to into the output folder"
                )
            real = target.relative_to(root).as_posix()
            try:
                status = target.lstat()
            except FileNotFoundError:
                raise InvalidError(f"{path!r} is a link to nothing", "remove it before training ends") from None
            if stat.S_ISDIR(status.st_mode):
                found.links[path] = real
                return None
        if not stat.S_ISREG(status.st_mode):
            raise InvalidError(f"{path!r} is neither file nor folder", "remove it before training ends")
        return Outgoing(path, status.st_size, _version(status), real)

    def open(self, file: Outgoing, handed: Callable[[int], None]) -> FileContent:
        """Open a file, if it is still the one that was found."""
        return FileContent(self.root, file, handed)


class FileContent(Content):
    """An opened file."""

    def __init__(self, root: Path, file: Outgoing, handed: Callable[[int], None]) -> None:
        self.file = file
        self._handed = handed
        self._sha256 = hashlib.sha256()
        try:
            self.descriptor = _opened(root, file.real)
        except PermissionError as error:
            raise _unreadable(file.path, error) from None
        except OSError as error:
            raise ChangedError(f"{file.path!r} was there and is not: {error.strerror}") from None
        try:
            self.check()
        except ChangedError:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        os.close(self.descriptor)

    async def blocks(self, size: int) -> AsyncIterator[bytes]:
        """Yield blocks and digest them on the way."""
        at = 0
        if not self.file.size:
            yield b""
        while at < self.file.size:
            block = await asyncio.to_thread(self._read, at, min(size, self.file.size - at))
            at += len(block)
            if at == self.file.size:
                self.check()
            self._handed(len(block))
            yield block

    def _read(self, at: int, size: int) -> bytes:
        block = os.pread(self.descriptor, size, at)
        while len(block) < size:
            piece = os.pread(self.descriptor, size - len(block), at + len(block))
            if not piece:
                raise ChangedError(f"{self.file.path!r} became shorter while it was read")
            block += piece
        self._sha256.update(block)
        return block

    def check(self) -> None:
        """Raise a `ChangedError` if the file was written since."""
        if _version(os.fstat(self.descriptor)) != self.file.version:
            raise ChangedError(f"{self.file.path!r} was written while it was read")

    @property
    def sha256(self) -> str:
        """The digest of what was read."""
        return self._sha256.hexdigest()


def _opened(root: Path, path: str) -> int:
    """Open a file below a folder, through folders alone: a link anywhere in the path is an error."""
    folder = os.open(root, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        *parents, name = path.split("/")
        for parent in parents:
            below = os.open(parent, _READ | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = below
        return os.open(name, _READ, dir_fd=folder)
    finally:
        os.close(folder)


def _version(status: os.stat_result) -> str:
    """Return what changes with every write: the time of the last change of the inode cannot be set back."""
    return f"{status.st_size}-{status.st_mtime_ns}-{status.st_ctime_ns}-{status.st_ino}"


def _unreadable(path: str, error: OSError) -> DeniedError:
    return DeniedError(
        f"{path!r} cannot be read by the sender: {error.strerror}",
        "let training write files that its group may read, and set fsGroup in the pod's securityContext",
    )
