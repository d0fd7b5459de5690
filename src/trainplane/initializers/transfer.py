"""Bytes from a source to a folder: whole or not at all, in bounded memory, and never twice.

A file is cut into parts, and a few are read at once. Each goes to its place in a file in `.trainplane/partial`, is
synced and noted in the journal; a file whose parts are all there is checked and only then gets its name, so nobody
ever sees half of one. What a kill leaves is taken up by the next run.

A sync takes as long for many parts as for one, so nobody waits for it but one worker of each file: while it does, the
others go on, and what they bring meanwhile is the next sync's.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from trainplane.initializers import paths
from trainplane.initializers.errors import ChecksumError, InitializerError, NoSpaceError
from trainplane.initializers.patience import Patience
from trainplane.initializers.progress import readable
from trainplane.initializers.source import PauseError, ThreadedSource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Sequence
    from pathlib import Path

    from trainplane.initializers.journal import Journal, State
    from trainplane.initializers.progress import Progress
    from trainplane.initializers.request import Limits
    from trainplane.initializers.source import File, Piece, Source

_T = TypeVar("_T")

_PIECE: Final = 1 << 20
"""Bytes that are gathered before a write, and read at once for a checksum."""
_MANY: Final = 1024
"""Pieces that are gathered before a write, however small."""
_RESERVE: Final = 1 << 20
"""Bytes of a volume left for names, journal and marker."""
_TRIES_OF_A_FILE: Final = 2
"""A file with a wrong checksum is fetched once more: what lies on the disk may be of a machine that died."""


@dataclass
class _Fetch:
    """One file on its way."""

    file: File
    identity: str
    """What it is in the journal: the same in every run while the source does not change."""
    partial: str
    """Its parts in the journal, and the name of the file that they are put together in."""
    missing: set[int] = field(default_factory=set)
    written: list[int] = field(default_factory=list)
    """Parts of `missing` that are written and wait for a sync."""
    syncing: bool = False
    size: int = 0
    tries: int = 1


class Transfer:
    """One run over the files of a source."""

    def __init__(self, source: Source, state: State, journal: Journal, limits: Limits, progress: Progress) -> None:
        self._source = source
        self._state = state
        self._journal = journal
        self._limits = limits
        self._part = limits.part_mib << 20
        self._progress = progress
        self._room = 0
        self._threads = ThreadPoolExecutor(limits.parallel, "part")
        self._ended = False
        """Set when no thread shall go on."""

    async def run(self, files: Sequence[File]) -> None:
        """Bring all files."""
        sensitive = await asyncio.to_thread(paths.case_matters, self._state.home)
        paths.check_collisions((file.path for file in files), case_matters=sensitive)
        sizes = [file.size for file in files]
        total = sum(size or 0 for size in sizes)
        self._progress.begin(None if None in sizes else total, len(files))
        fetches = await asyncio.to_thread(self._plan, files)
        self._check_room(fetches)
        queue: asyncio.Queue[tuple[_Fetch, int | None] | None] = asyncio.Queue(self._limits.parallel)
        try:
            async with asyncio.TaskGroup() as group:
                ticker = group.create_task(self._tick())
                workers = [group.create_task(self._work(queue)) for _ in range(self._limits.parallel)]
                for fetch in fetches:
                    # Without parts to come (it is empty, or was killed before its check) it only lacks its name.
                    for index in sorted(fetch.missing) or (None,):
                        await queue.put((fetch, index))
                for _ in workers:
                    await queue.put(None)
                await asyncio.gather(*workers)
                ticker.cancel()
        except BaseExceptionGroup as group_error:
            raise _first(group_error) from None
        finally:
            self._ended = True
            self._threads.shutdown()
        self._journal.sync()

    def _plan(self, files: Sequence[File]) -> list[_Fetch]:
        """Return what is still to come, and remove what an earlier run brought and the source no longer has."""
        fetches = []
        current = {}
        partials = set()
        for file in files:
            fetch = self._begin(file)
            current[fetch.identity] = file.path
            partials.add(fetch.partial)
            if self._arrived(fetch):
                self._progress.add_file()
                self._progress.have(fetch.size)
            else:
                fetches.append(fetch)
        kept = set(current.values())
        for identity, (path, _) in list(self._journal.files.items()):
            if identity not in current:
                self._journal.forget(identity)
                if path not in kept and paths.size_there(self._state.folder, path) is not None:
                    (self._state.folder / path).unlink()
        self._state.partial.mkdir(exist_ok=True)
        for partial in self._state.partial.iterdir():
            if partial.name not in partials:
                partial.unlink()
        for fetch in fetches:
            self._resume(fetch)
        return fetches

    def _begin(self, file: File) -> _Fetch:
        decisive = (file.path, file.size, file.version, file.algorithm, file.digest)
        identity = hashlib.sha256(repr(decisive).encode()).hexdigest()[:32]
        return _Fetch(file, identity, f"{identity}-{self._limits.part_mib}", size=file.size or 0)

    def _arrived(self, fetch: _Fetch) -> bool:
        """Return whether a file is there already, by the word of the journal and the size on the disk."""
        noted = self._journal.files.get(fetch.identity)
        if noted is None:
            return False
        if fetch.file.size is None:
            # Nobody knows if it is the same today.
            self._journal.forget(fetch.identity)
            return False
        if paths.size_there(self._state.folder, fetch.file.path) == fetch.size:
            return True
        partial = self._state.partial / fetch.partial
        if partial.exists() and partial.stat().st_size == fetch.size:
            # Killed between the journal and the name.
            self._name(fetch)
            return True
        self._journal.forget(fetch.identity)
        return False

    def _resume(self, fetch: _Fetch) -> None:
        """Make the partial file, and note which of its parts are still to come."""
        partial = self._state.partial / fetch.partial
        there = self._journal.parts.get(fetch.partial, set())
        if fetch.file.whole or fetch.file.size is None:
            fetch.missing = {0}
            partial.unlink(missing_ok=True)
            there = set()
        else:
            fetch.missing = set(range(-(-fetch.size // self._part)))
        if there and not (partial.exists() and partial.stat().st_size == fetch.size):
            self._journal.forget(fetch.partial)
            there = set()
        if not there:
            with _opened(partial, os.O_CREAT | os.O_TRUNC) as descriptor:
                os.ftruncate(descriptor, fetch.size)
        self._progress.have(sum(self._length(fetch, index) for index in there & fetch.missing))
        fetch.missing -= there

    def _length(self, fetch: _Fetch, index: int) -> int:
        return min(self._part, fetch.size - index * self._part)

    def _check_room(self, fetches: Sequence[_Fetch]) -> None:
        """Refuse before the first byte what the volume cannot hold."""
        volume = os.statvfs(self._state.folder)
        self._room = max(volume.f_bavail * volume.f_frsize - _RESERVE, 0)
        needed = 0
        for fetch in fetches:
            if fetch.file.whole:
                needed += fetch.size
            else:
                needed += sum(self._length(fetch, index) for index in fetch.missing)
        if needed > self._room:
            raise NoSpaceError(
                f"{readable(needed)} are still to come, and {self._state.folder} has room for {readable(self._room)}"
            )

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(1)
            self._progress.tick()

    async def _work(self, queue: asyncio.Queue[tuple[_Fetch, int | None] | None]) -> None:
        while (task := await queue.get()) is not None:
            fetch, index = task
            whole = index is None or await self._bring(fetch, index)
            while whole and not await self._finish(fetch):
                for again in sorted(fetch.missing):
                    whole = await self._bring(fetch, again)

    async def _bring(self, fetch: _Fetch, index: int) -> bool:
        """Bring one part, trying again while it gets on; True to the one caller after whom none is missing."""
        whole = fetch.file.whole or fetch.file.size is None
        part = _Part(
            self._state.partial / fetch.partial,
            0 if whole else index * self._part,
            None
            if fetch.file.size is None
            else fetch.size
            if whole
            else index * self._part + self._length(fetch, index),
            self._room,
        )
        patience = Patience(self._limits.retry_seconds, part.at)
        while True:
            try:
                await self._stream(fetch.file, part, patience)
                break
            except PauseError as error:
                self._progress.trouble(str(error))
                await asyncio.sleep(patience.pause(error.after))
                if patience.left <= 0:
                    raise error.final(patience.limit) from None
                if whole:
                    self._progress.add(-part.at)
                    part.at = 0
        if part.stop is None:
            await asyncio.to_thread(part.end)
            fetch.size = part.at
        fetch.written.append(index)
        return not fetch.syncing and await self._sync(fetch)

    async def _sync(self, fetch: _Fetch) -> bool:
        """Have written parts on the disk, then in the journal, until none waits; return whether none is missing."""
        fetch.syncing = True
        while fetch.written:
            batch, fetch.written = fetch.written, []
            await asyncio.to_thread(_sync, self._state.partial / fetch.partial)
            if fetch.file.size is not None and not fetch.file.whole:
                for index in batch:
                    self._journal.add_part(fetch.partial, index)
            fetch.missing.difference_update(batch)
        fetch.syncing = False
        return not fetch.missing

    async def _stream(self, file: File, part: _Part, patience: Patience) -> None:
        """Read from where the part stands to its end."""
        if part.at == part.stop:
            return
        if isinstance(self._source, ThreadedSource):
            await self._pour(self._source, file, part, patience)
        else:
            await self._gather(file, part, patience)
        if part.stop is not None and part.at != part.stop:
            raise PauseError(f"{file.path!r} broke off at byte {part.at} of {part.stop}")

    async def _pour(self, source: ThreadedSource, file: File, part: _Part, patience: Patience) -> None:
        """Have a thread read and write."""
        loop = asyncio.get_running_loop()
        pieces = await self._patiently(source.ask(file, part.at, part.stop))

        def pour() -> None:
            for piece in pieces:
                if self._ended:
                    return
                loop.call_soon_threadsafe(self._progress.add, part.write([piece]))
                patience.note(part.at)
                if patience.left <= 0:
                    raise PauseError(f"{file.path!r} comes too slowly")

        await loop.run_in_executor(self._threads, pour)

    async def _gather(self, file: File, part: _Part, patience: Patience) -> None:
        """Read here, and have a thread write what has come together."""
        async with aclosing(self._source.read(file, part.at, part.stop)) as pieces:  # type: ignore[type-var] # generators
            gathered: list[Piece] = []
            size = 0
            try:
                while (piece := await self._patiently(anext(pieces, None))) is not None:
                    gathered.append(piece)
                    size += len(piece)
                    patience.note(part.at + size)
                    if patience.left <= 0:
                        raise PauseError(f"{file.path!r} comes too slowly")
                    if size >= _PIECE or len(gathered) >= _MANY:
                        written, gathered, size = gathered, [], 0
                        self._progress.add(await asyncio.to_thread(part.write, written))
            finally:
                if gathered:
                    self._progress.add(part.write(gathered))

    async def _patiently(self, awaited: Awaitable[_T]) -> _T:
        try:
            async with asyncio.timeout(self._limits.stall_seconds):
                return await awaited
        except TimeoutError:
            raise PauseError(f"nothing came for {self._limits.stall_seconds} s") from None

    async def _finish(self, fetch: _Fetch) -> bool:
        """Check a file and give it its name; False if it must be brought once more."""
        file = fetch.file
        partial = self._state.partial / fetch.partial
        if file.algorithm:
            digest = await asyncio.to_thread(_digest, partial, file.algorithm, fetch.size)
            if digest != file.digest and not await self._source.verdict(file, digest):
                if fetch.tries >= _TRIES_OF_A_FILE:
                    raise ChecksumError(
                        f"{file.path!r} has {file.algorithm} {digest}, and the source says {file.digest[:128]}"
                    )
                fetch.tries += 1
                self._journal.forget(fetch.partial)
                self._progress.add(-fetch.size)
                await asyncio.to_thread(self._resume, fetch)
                return False
        self._journal.add_file(fetch.identity, file.path, fetch.size)
        await asyncio.to_thread(self._name, fetch)
        self._progress.add_file()
        return True

    def _name(self, fetch: _Fetch) -> None:
        paths.make_parents(self._state.folder, fetch.file.path)
        (self._state.partial / fetch.partial).replace(self._state.folder / fetch.file.path)


class _Part:
    """A stretch of a partial file, and how far it is."""

    def __init__(self, path: Path, start: int, stop: int | None, room: int) -> None:
        self._path = path
        self.at = start
        self.stop = stop
        self._room = room
        """Bytes that a file of unknown size may grow to."""

    def write(self, pieces: Sequence[Piece]) -> int:
        """Write bytes at their place; return how many.

        It opens the file each time: a thread whose worker is gone must not write to what has its number then.
        """
        view = memoryview(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        size = len(view)
        if self.stop is None and self.at + size > self._room:
            raise NoSpaceError(f"the source sends without end: the volume had room for {readable(self._room)}")
        with _opened(self._path) as descriptor:
            while view:
                written = os.pwrite(descriptor, view, self.at)
                self.at += written
                view = view[written:]
        return size

    def end(self) -> None:
        """Cut off what an earlier reading left behind the last byte of this one."""
        with _opened(self._path) as descriptor:
            os.ftruncate(descriptor, self.at)


def _sync(path: Path) -> None:
    """Have a file's bytes on the disk, whoever wrote them."""
    with _opened(path) as descriptor:
        os.fdatasync(descriptor)


@contextmanager
def _opened(path: Path, flags: int = 0) -> Iterator[int]:
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | flags, 0o644)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _digest(path: Path, algorithm: str, size: int) -> str:
    """Return a file's checksum; `git` is that of git's blobs."""
    hashed = hashlib.new("sha1" if algorithm == "git" else algorithm, usedforsecurity=False)
    if algorithm == "git":
        hashed.update(f"blob {size}\0".encode())
    with path.open("rb", buffering=0) as opened:
        while block := opened.read(_PIECE):
            hashed.update(block)
    return hashed.hexdigest()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error of a group that says most: ours before others."""
    leaves: list[BaseException] = []
    pending: list[BaseException] = [group]
    while pending:
        error = pending.pop(0)
        if isinstance(error, BaseExceptionGroup):
            pending.extend(error.exceptions)
        else:
            leaves.append(error)
    with suppress(StopIteration):
        return next(error for error in leaves if isinstance(error, InitializerError))
    return leaves[0]
