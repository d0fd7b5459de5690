"""What was sent already, written on the volume that training writes to, so that a killed sender goes on where it was.

`.trainplane/sent` in the output folder is a line of JSON for each file and checkpoint. Whoever trains may write there:
lines are bounded and parsed, and what they say is compared with the destination before the final manifest. Where the
volume may not be written to, it is all kept in memory.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from trainplane.initializers import paths
from trainplane.initializers.errors import VolumeError
from trainplane.initializers.journal import records

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Self

    from trainplane.initializers.destination import Outgoing


@dataclass(frozen=True, slots=True)
class Entry:
    """One file that was sent."""

    version: str
    """The file's, when it was read."""
    size: int
    sha256: str
    mark: str
    """What the destination calls it."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint that was published."""

    fingerprint: str
    """Of its files as they were."""
    digest: str
    """Of its manifest."""
    files: int
    size: int


class Ledger:
    """The open ledger of one sender."""

    def __init__(self, folder: Path, identity: str, say: Callable[[str], None]) -> None:
        self._entries: dict[str, Entry] = {}
        self.checkpoints: dict[str, Checkpoint] = {}
        self._opened: IO[bytes] | None = None
        self._say = say
        path = folder / paths.OURS / "sent"
        try:
            known = self._load(path, identity)
            paths.make_parents(folder, f"{paths.OURS}/sent")
            self._opened = paths.append_plain(path, anew=not known)
            # A torn last line must not swallow the next one.
            self._line(b"\n" if known else json.dumps({"request": identity}).encode() + b"\n")
        except (OSError, VolumeError) as error:
            self._give_up(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._opened is not None:
            self._opened.close()

    def sent(self, file: Outgoing) -> Entry | None:
        """Return how a file was sent, if it is still the same."""
        entry = self._entries.get(file.path)
        return entry if entry is not None and entry.version == file.version else None

    def add(self, file: Outgoing, entry: Entry) -> None:
        """Note a file that the destination has."""
        self._entries[file.path] = entry
        self._write("sent", [file.path, entry.version, entry.size, entry.sha256, entry.mark])

    def forget(self, path: str) -> None:
        """Take back what was said of a file."""
        self._entries.pop(path, None)
        self._write("forget", path)

    def add_checkpoint(self, name: str, checkpoint: Checkpoint) -> None:
        """Note a checkpoint whose manifest is there."""
        self.checkpoints[name] = checkpoint
        self._write("checkpoint", [name, checkpoint.fingerprint, checkpoint.digest, checkpoint.files, checkpoint.size])

    def forget_checkpoint(self, name: str) -> None:
        """Take back what was said of a checkpoint."""
        self.checkpoints.pop(name, None)
        self._write("withdrawn", name)

    def _write(self, kind: str, record: Any) -> None:
        try:
            self._line(json.dumps({kind: record}).encode() + b"\n")
        except OSError as error:
            self._give_up(error)

    def _line(self, line: bytes) -> None:
        if self._opened is not None:
            self._opened.write(line)

    def _give_up(self, error: Exception) -> None:
        """Go on without: a volume that is full must not keep an output from being sent."""
        self._opened = None
        self._say(f"what was sent cannot be noted ({error}): after a kill it would all be sent again")

    def _load(self, path: Path, identity: str) -> bool:
        """Take in what an earlier sender noted; return whether there was one for the same destination and job."""
        lines = records(path)
        if next(lines, {}).get("request") != identity:
            return False
        for record in lines:
            match record:
                case {"sent": [str(name), str(version), int(size), str(sha256), str(mark)]}:
                    self._entries[name] = Entry(version, size, sha256, mark)
                case {"forget": str(name)}:
                    self._entries.pop(name, None)
                case {"checkpoint": [str(name), str(fingerprint), str(digest), int(files), int(size)]}:
                    self.checkpoints[name] = Checkpoint(fingerprint, digest, files, size)
                case {"withdrawn": str(name)}:
                    self.checkpoints.pop(name, None)
        return True
