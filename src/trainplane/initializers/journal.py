"""What has arrived, written so that a kill at any point loses at most the parts under way.

`.trainplane/journal` is a line of JSON for each part and each file that is whole on the disk: data is synced before its
line is written. The first line says for which request it is. The last line may be torn, which costs one part.
`.trainplane/complete` is the marker, written last: with it there is nothing left to do.

Both lie on a volume that others may write to: lines are bounded and parsed, and a path in them is checked before use.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from trainplane.initializers import paths
from trainplane.initializers.errors import HostileError, OccupiedError
from trainplane.initializers.secrets import shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Self

    from trainplane.initializers.request import Request

Parts: TypeAlias = "dict[str, set[int]]"
Files: TypeAlias = "dict[str, tuple[str, int]]"

_MAX_LINE: Final = 16_384
_MAX_MARKER: Final = 65_536


class State:
    """The folder `.trainplane` in a target, and the paths in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / paths.OURS
        self.lock = self.home / "lock"
        self.journal = self.home / "journal"
        self.complete = self.home / "complete"
        self.partial = self.home / "partial"

    def prepare(self) -> None:
        """Make what must be there before anything is locked."""
        self.folder.mkdir(parents=True, exist_ok=True)
        paths.make_parents(self.folder, f"{paths.OURS}/partial/x")

    def marker(self) -> dict[str, Any] | None:
        """Return what the marker says, None without one that can be read."""
        try:
            with self.complete.open("rb") as opened:
                read = json.loads(opened.read(_MAX_MARKER))
        except (FileNotFoundError, ValueError):
            return None
        return read if isinstance(read, dict) else None

    def whole(self, request: Request) -> dict[str, Any] | None:
        """Return the marker if all that it stands for is there; an `OccupiedError` if it stands for something else."""
        marker = self.marker()
        if marker is None:
            return None
        if marker.get("identity") != request.identity:
            raise OccupiedError(
                f"{self.folder} holds {str(marker.get('uri'))[:300]!r}, and {shown(request.uri)!r} is wanted"
            )
        _, files = _load(self.journal, request.identity) or ({}, {})
        there = all(paths.size_there(self.folder, path) == size for path, size in files.values())
        return marker if there and len(files) == marker.get("files") else None

    def finish(self, request: Request, files: Files, revision: str) -> None:
        """Write the marker: the very last thing."""
        shutil.rmtree(self.partial, ignore_errors=True)
        marker = {
            "identity": request.identity,
            "uri": shown(request.uri),
            "revision": revision,
            # Of names, sizes and versions: what a later look at the source can be compared with.
            "digest": hashlib.sha256("\n".join(sorted(files)).encode()).hexdigest(),
            "files": len(files),
            "bytes": sum(size for _, size in files.values()),
        }
        written = self.complete.with_name("complete.partial")
        with written.open("w") as opened:
            opened.write(json.dumps(marker) + "\n")
            opened.flush()
            os.fsync(opened.fileno())
        written.replace(self.complete)
        paths.sync_folder(self.home)


class Journal:
    """The open journal of one run."""

    def __init__(self, state: State, request: Request) -> None:
        known = _load(state.journal, request.identity)
        self.parts: Parts = known[0] if known else {}
        """Parts that are on the disk, by the file's id."""
        self.files: Files = known[1] if known else {}
        """Files that are whole, with path and size, by id."""
        state.complete.unlink(missing_ok=True)
        if known:
            self._opened = state.journal.open("ab")
            # A torn last line must not swallow the next one.
            self._opened.write(b"\n")
        else:
            self._clear(state)
            self._opened = state.journal.open("wb")
            self._write({"request": request.identity})

    @staticmethod
    def _clear(state: State) -> None:
        """Remove what a run for something else brought and did not finish: nobody trains from a half."""
        _, files = _load(state.journal, None) or ({}, {})
        for path, size in files.values():
            if paths.size_there(state.folder, path) == size:
                (state.folder / path).unlink()
        shutil.rmtree(state.partial, ignore_errors=True)
        state.partial.mkdir(exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def add_part(self, identity: str, index: int) -> None:
        """Note that a part is on the disk."""
        self.parts.setdefault(identity, set()).add(index)
        self._write({"part": [identity, index]})

    def add_file(self, identity: str, path: str, size: int) -> None:
        """Note that a file is whole; written before it gets its name, so a kill between the two loses nothing."""
        self.files[identity] = path, size
        self._write({"file": [identity, path, size]})

    def forget(self, identity: str) -> None:
        """Take back what was said of a file."""
        self.parts.pop(identity, None)
        self.files.pop(identity, None)
        self._write({"forget": identity})

    def sync(self) -> None:
        """Have all lines on the disk."""
        self._opened.flush()
        os.fsync(self._opened.fileno())

    def _write(self, record: dict[str, Any]) -> None:
        self._opened.write(json.dumps(record).encode() + b"\n")
        self._opened.flush()


def _load(path: Path, identity: str | None) -> tuple[Parts, Files] | None:
    """Return the parts and files of an earlier run, None if there was none for this request (None: for any)."""
    lines = records(path)
    if next(lines, {}).get("request") != identity and identity is not None:
        return None
    parts: Parts = {}
    files: Files = {}
    for record in lines:
        match record:
            case {"part": [str(file), int(index)]}:
                parts.setdefault(file, set()).add(index)
            case {"file": [str(file), str(name), int(size)]}:
                with suppress(HostileError):
                    files[file] = paths.safe(name), size
            case {"forget": str(file)}:
                parts.pop(file, None)
                files.pop(file, None)
    return parts, files


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a journal that can be read; what one says that cannot is done again."""
    try:
        opened = paths.open_plain(path)
    except FileNotFoundError:
        return
    with opened:
        while line := opened.readline(_MAX_LINE):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                yield record
