"""Files from the output folder to a destination, and the manifest last.

What the ledger knows is not sent again. A file that changes while it is read is read again; a checkpoint that changes
loses its manifest first. Before the final manifest the destination is asked for every file: it is written only if all
of them are there as they were sent.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, TypeVar

from trainplane.initializers.errors import ChangedError, NotFoundError, OccupiedError
from trainplane.initializers.outputs import manifest
from trainplane.initializers.outputs.ledger import Checkpoint, Entry
from trainplane.initializers.outputs.manifest import CHECKPOINT, FINAL, Manifest, Sent
from trainplane.initializers.patience import Patience
from trainplane.initializers.source import PauseError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from trainplane.initializers.destination import Destination, Outgoing
    from trainplane.initializers.outputs.folder import Found, OutputFolder
    from trainplane.initializers.outputs.ledger import Ledger
    from trainplane.initializers.progress import Progress
    from trainplane.initializers.request import Limits

T = TypeVar("T")

_LOOKS: Final = 5
"""How often the folder is looked at anew at the end, when something still writes to it."""


class Sender:
    """One output on its way."""

    def __init__(
        self,
        folder: OutputFolder,
        destination: Destination,
        ledger: Ledger,
        limits: Limits,
        progress: Progress,
        *,
        about: tuple[str, Mapping[str, Any]],
    ) -> None:
        self._folder = folder
        self._destination = destination
        self._ledger = ledger
        self._limits = limits
        self._progress = progress
        self._uri, self._provenance = about
        self._unpublished: dict[str, tuple[Outgoing, Entry]] = {}
        """Files that a destination has taken and does not keep before they are published."""
        self._begun = False

    async def checkpoint(self, name: str, files: Sequence[Outgoing]) -> None:
        """Send one checkpoint and its manifest; a `ChangedError` if it is not at rest after all."""
        fingerprint = fingerprint_of(files)
        known = self._ledger.checkpoints.get(name)
        if known is not None and known.fingerprint == fingerprint:
            return
        await self._begin()
        # An older job may have left one, too.
        await self._patiently(lambda: self._destination.withdraw(f"{name}/{CHECKPOINT}"))
        self._ledger.forget_checkpoint(name)
        await self._send(files)
        listed = _listed(files, self._entries(files), name)
        written = manifest.write(f"{self._uri}/{name}", listed, self._provenance)
        await self._publish(f"{name}/{CHECKPOINT}", written)
        self._ledger.add_checkpoint(name, Checkpoint(fingerprint, written.digest, written.files, written.size))

    async def final(self) -> Manifest:
        """Send all that is in the folder, and the final manifest."""
        for look in range(1, _LOOKS + 1):
            found = await asyncio.to_thread(self._folder.look)
            try:
                for name, files in found.checkpoints().items():
                    await self.checkpoint(name, files)
                if any(self._sent(file) is None for file in found.files):
                    await self._begin()
                await self._send(found.files)
                await self._ask_for(found.files)
            except ChangedError:
                if look == _LOOKS:
                    raise
                continue
            if not found.files and not found.refused:
                raise NotFoundError(
                    f"training wrote nothing to {self._folder.root}",
                    "write the model to the folder that OUTPUT_DIR names",
                )
            if found.refused:
                raise next(iter(found.refused.values()))
            if (await asyncio.to_thread(self._folder.look)).files == found.files:
                return await self._finish(found)
        raise ChangedError("files in the output folder change though training has ended")

    async def _finish(self, found: Found) -> Manifest:
        written = self._manifest(found.files, found.links)
        try:
            await self._publish(FINAL, written)
        except OccupiedError:
            if self._begun:
                raise
            # Nothing was left to send, so the one of before was still there.
            await self._begin()
            await self._publish(FINAL, written)
        return written

    def _manifest(self, files: Sequence[Outgoing], links: Mapping[str, str]) -> Manifest:
        checkpoints = [
            {"path": name, "files": checkpoint.files, "bytes": checkpoint.size, "digest": checkpoint.digest}
            for name, checkpoint in sorted(self._ledger.checkpoints.items())
        ]
        more: dict[str, Any] = {"checkpoints": checkpoints} if checkpoints else {}
        if links:
            more["links"] = dict(sorted(links.items()))
        return manifest.write(self._uri, _listed(files, self._entries(files)), self._provenance, **more)

    async def _begin(self) -> None:
        """Take away the final manifest that is there: what it lists may be replaced from now on."""
        if not self._begun:
            await self._patiently(lambda: self._destination.withdraw(FINAL))
            self._begun = True

    async def _send(self, files: Sequence[Outgoing]) -> None:
        """Send what was not sent: large files one at a time, each in parts, then small ones side by side."""
        missing = [file for file in files if self._sent(file) is None]
        self._progress.begin(sum(file.size for file in files), len(files))
        for file in files:
            if self._sent(file) is not None:
                self._progress.have(file.size)
                self._progress.add_file()
        limit = self._destination.large
        for file in missing:
            if file.size > limit:
                await self._send_one(file)
        queue = iter([file for file in missing if file.size <= limit])

        async def work() -> None:
            for file in queue:
                await self._send_one(file)

        await _all(work() for _ in range(self._limits.parallel))

    async def _send_one(self, file: Outgoing) -> None:
        patience = Patience(self._limits.retry_seconds, 0)

        async def once() -> None:
            at = 0

            def handed(count: int) -> None:
                nonlocal at
                at += count
                patience.note(at)
                self._progress.add(count)

            try:
                with closing(await asyncio.to_thread(self._folder.open, file, handed)) as content:
                    mark = await self._destination.send(content)
                entry = Entry(file.version, file.size, content.sha256, mark)
            except BaseException:
                self._progress.add(-at)
                raise
            if self._destination.lasting:
                self._ledger.add(file, entry)
            else:
                self._unpublished[file.path] = file, entry

        await self._patiently(once, patience)
        self._progress.add_file()

    async def _publish(self, name: str, written: Manifest) -> None:
        await self._patiently(lambda: self._destination.publish(name, written.text))
        for file, entry in self._unpublished.values():
            self._ledger.add(file, entry)
        self._unpublished.clear()

    async def _ask_for(self, files: Sequence[Outgoing]) -> None:
        """Ask the destination for all that was sent before; what it has no longer is sent again, next time."""
        queue = iter([(file, entry) for file in files if (entry := self._ledger.sent(file)) is not None])
        lost: list[str] = []

        async def work() -> None:
            for file, entry in queue:
                if not await self._patiently(lambda: self._destination.holds(file, entry.mark)):  # noqa: B023 awaited at once
                    self._ledger.forget(file.path)
                    lost.append(file.path)

        await _all(work() for _ in range(self._limits.parallel))
        if lost:
            raise ChangedError(
                f"{lost[0]!r} was sent, and the destination has another file or none",
                "see that nobody else writes there: give each job a path of its own",
            )

    def _sent(self, file: Outgoing) -> Entry | None:
        other, entry = self._unpublished.get(file.path, (None, None))
        return entry if other == file else self._ledger.sent(file)

    def _entries(self, files: Sequence[Outgoing]) -> dict[str, Entry]:
        entries = {file.path: self._sent(file) for file in files}
        return {path: entry for path, entry in entries.items() if entry is not None}

    async def _patiently(self, act: Callable[[], Awaitable[T]], patience: Patience | None = None) -> T:
        """Do something again and again while it is only a pause that the destination asks for."""
        patience = patience or Patience(self._limits.retry_seconds, 0)
        while True:
            try:
                return await act()
            except PauseError as error:
                self._progress.trouble(str(error))
                await asyncio.sleep(patience.pause(error.after))
                if patience.left <= 0:
                    raise error.final(patience.limit) from None


def fingerprint_of(files: Sequence[Outgoing]) -> str:
    """Return what changes when one of the files does, or when there are others."""
    return hashlib.sha256(repr(sorted((file.path, file.version) for file in files)).encode()).hexdigest()


def _listed(files: Sequence[Outgoing], entries: Mapping[str, Entry], below: str = "") -> list[Sent]:
    prefix = f"{below}/" if below else ""
    return [Sent(file.path.removeprefix(prefix), entries[file.path].size, entries[file.path].sha256) for file in files]


async def _all(works: Any) -> None:
    """Run all to their end; of several errors the first counts."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
