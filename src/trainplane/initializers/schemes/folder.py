"""`pvc://claim/path` and `file:///path`: a file or folder on a volume that the step mounts, read or written.

A claim is looked for where the step mounts it: `/pvc/CLAIM`, or below `PVC_ROOT`.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from trainplane.initializers import paths
from trainplane.initializers.destination import Destination
from trainplane.initializers.errors import (
    ChangedError,
    DeniedError,
    HostileError,
    InvalidError,
    NotFoundError,
    OccupiedError,
)
from trainplane.initializers.source import File, PauseError, Source

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from trainplane.initializers.destination import Content, Outgoing
    from trainplane.initializers.request import Request

_PIECE = 1 << 20


class Folder(Source):
    """Files of a volume."""

    def __init__(self, root: Path, remedy: str) -> None:
        self._root = root
        self._remedy = remedy

    async def list(self) -> AsyncIterator[File]:
        """Walk the folder; links are followed as far as they stay in it."""
        if not self._root.exists():
            raise NotFoundError(f"there is no {self._root}", self._remedy)
        walk = self._walk()
        while (file := await asyncio.to_thread(next, walk, None)) is not None:
            yield file

    def _walk(self) -> Iterator[File]:
        if self._root.is_file():
            yield self._file(self._root, self._root.name)
            return

        def refuse(error: OSError) -> None:
            raise DeniedError(f"{error.filename} cannot be read: {error.strerror}", self._remedy)

        for folder, folders, names in os.walk(self._root, onerror=refuse):
            folders[:] = sorted(name for name in folders if name != paths.OURS)
            for name in sorted(names) + [name for name in folders if Path(folder, name).is_symlink()]:
                path = Path(folder, name)
                if path.is_symlink() and not path.resolve().is_relative_to(self._root.resolve()):
                    raise HostileError(
                        f"{path} is a link that leads out of the folder", "copy what it points to into the folder"
                    )
                if path.is_dir():
                    raise InvalidError(f"{path} is a link to a folder", "copy what it points to into its place")
                yield self._file(path, path.relative_to(self._root).as_posix())

    def _file(self, path: Path, name: str) -> File:
        try:
            found = path.stat()
        except OSError as error:
            raise NotFoundError(f"{path} cannot be read: {error.strerror}", "remove the link or mend it") from None
        if not stat.S_ISREG(found.st_mode):
            raise InvalidError(f"{path} is neither file nor folder", "remove it, or leave it out with IGNORE_PATTERNS")
        return File(name, found.st_size, str(path), _version(found))

    async def read(self, file: File, start: int, stop: int | None) -> AsyncIterator[bytes]:
        """Read a range of one file."""
        try:
            opened = Path(file.key).open("rb", buffering=0)  # noqa: SIM115, ASYNC230 closed below; a volume's open is short
        except PermissionError as error:
            raise DeniedError(f"{file.key} cannot be read: {error.strerror}", self._remedy) from None
        except OSError as error:
            raise ChangedError(f"{file.key} was there and is not: {error.strerror}") from None
        with opened:
            if _version(os.fstat(opened.fileno())) != file.version:
                raise ChangedError(f"{file.key} is another file than at the start")
            end = stop if stop is not None else file.size or 0
            while start < end:
                try:
                    piece = await asyncio.to_thread(os.pread, opened.fileno(), min(_PIECE, end - start), start)
                except OSError as error:
                    raise PauseError(f"{file.key} cannot be read: {error.strerror}") from error
                if not piece:
                    raise ChangedError(f"{file.key} became shorter while it was read")
                start += len(piece)
                yield piece
            if _version(os.fstat(opened.fileno())) != file.version:
                raise ChangedError(f"{file.key} was written while it was read")


def _version(found: os.stat_result) -> str:
    return f"{found.st_size}-{found.st_mtime_ns}"


class Target(Destination):
    """A folder of a volume that is written to: files get their names when they are whole and on the disk."""

    def __init__(self, root: Path, mount: Path, remedy: str) -> None:
        self._root = root
        self._mount = mount
        """What must be there already: a claim that is not mounted is no folder to be made."""
        self._remedy = remedy

    async def send(self, content: Content) -> str:
        """Write a file beside its place, then rename it."""
        path = content.file.path
        partial = await asyncio.to_thread(self._begin, path)
        try:
            with os.fdopen(partial[0], "wb") as opened:
                async for block in content.blocks(_PIECE):
                    await asyncio.to_thread(opened.write, block)
                await asyncio.to_thread(opened.flush)
                await asyncio.to_thread(os.fsync, opened.fileno())
            await asyncio.to_thread(self._name, partial[1], path)
        except BaseException:
            partial[1].unlink(missing_ok=True)
            raise
        return f"{content.sha256}"

    def _begin(self, path: str) -> tuple[int, Path]:
        if not self._mount.is_dir():
            raise NotFoundError(f"there is no {self._mount}", self._remedy)
        self._root.mkdir(parents=True, exist_ok=True)
        paths.make_parents(self._root, f"{paths.OURS}/x")
        partial = self._root / paths.OURS / f"{hashlib.sha256(path.encode()).hexdigest()[:32]}-{os.getpid()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(partial, flags, 0o644), partial

    def _name(self, partial: Path, path: str) -> None:
        paths.make_parents(self._root, path)
        partial.replace(self._root / path)
        paths.sync_folder((self._root / path).parent)

    async def holds(self, file: Outgoing, mark: str) -> bool:
        """Compare the size; bytes of a volume of ours do not change by themselves."""
        del mark
        return await asyncio.to_thread(paths.size_there, self._root, file.path) == file.size

    async def withdraw(self, name: str) -> None:
        """Remove a manifest."""
        with suppress(FileNotFoundError, NotADirectoryError):
            (self._root / name).unlink()
            await asyncio.to_thread(paths.sync_folder, (self._root / name).parent)

    async def publish(self, name: str, manifest: bytes) -> None:
        """Write a manifest beside its place, then link it: only one of two gets the name."""
        await asyncio.to_thread(self._publish, name, manifest)

    def _publish(self, name: str, manifest: bytes) -> None:
        descriptor, partial = self._begin(name)
        place = self._root / name
        try:
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(manifest)
                opened.flush()
                os.fsync(opened.fileno())
            paths.make_parents(self._root, name)
            _link(partial, place)
        except FileExistsError:
            if not place.is_file() or place.is_symlink() or place.read_bytes() != manifest:
                raise OccupiedError(f"somebody else has put a {name} there meanwhile") from None
        finally:
            partial.unlink(missing_ok=True)
        paths.sync_folder(place.parent)
        with suppress(OSError):
            # Empty, unless another sender is at work.
            (self._root / paths.OURS).rmdir()


def _link(partial: Path, place: Path) -> None:
    """Give a file a name that nobody has; where a volume has no links, by a rename."""
    try:
        place.hardlink_to(partial)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(place):
            raise FileExistsError from None
        partial.replace(place)


def _place(request: Request) -> tuple[Path, Path, str]:
    """Return the folder that a URI names, what must be mounted for it, and what to do if that is not."""
    parts = urlsplit(request.uri)
    path = unquote(parts.path)
    if "\0" in path or ".." in path.split("/"):
        raise InvalidError(f"{request.variable} has .. or NUL in its path")
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or not path.startswith("/"):
            raise InvalidError(f"{request.variable} must read file:///path, with three strokes")
        return Path(path), Path("/"), "mount a volume there in the step, by the runtime or runtimePatches"
    claim = parts.netloc
    if not claim or "@" in claim or ":" in claim:
        raise InvalidError(f"{request.variable} must read pvc://CLAIM/path")
    mount = Path(request.env.get("PVC_ROOT", "/pvc")) / claim
    remedy = f"check the path in the claim {claim}, and that the step mounts it at {mount}"
    return mount / path.strip("/"), mount, remedy


def open_source(request: Request) -> Source:
    """Return the folder that is read."""
    root, _, remedy = _place(request)
    return Folder(root, remedy)


def open_destination(request: Request) -> Destination:
    """Return the folder that is written to."""
    root, mount, remedy = _place(request)
    if root.resolve().is_relative_to(request.folder.resolve()):
        raise InvalidError(f"{request.variable} names a folder in {request.folder}, which is what is sent")
    return Target(root, mount, remedy)
