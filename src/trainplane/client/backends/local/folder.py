"""The folder of a local job: documents that its supervisor writes and clients read.

```
STATE/process/jobs/NAME/
  trainjob.json     apiVersion, kind, metadata, spec; written by clients, one at a time (`locked`)
  status.json       the TrainJob's status; written by the supervisor
  runtime.json      the runtime as it was when the job began
  settings.json     what the runner must know; never a secret
  objects.json      ConfigMaps and Secrets that belong to the job; readable to its user alone
  pods/POD.json     Pods, without what their containers run
  events.jsonl      core/v1 Events, one a line
  log               what all containers printed (`logs`)
  alive             held locked by the supervisor as long as it lives
  wake              a named pipe: a byte makes the supervisor look at trainjob.json again
  version           grows with each change that a client can see
  work/             working directories and volumes
  work/progress/    what the training reports of its progress; the training's own, so nobody believes what is in it
```

A file is replaced as a whole, so a reader sees the old or the new one. That the supervisor lives is told by the lock,
which the kernel takes away however it ended; a process id could be somebody else's by then.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from trainplane.api.tree import Tree

_PRIVATE: Final = 0o600
_PROGRESS_BYTES: Final = 64 << 10
"""Bytes of a report of progress, as on a cluster."""
_OTHERS: Final = 0o077
_WRITABLE_TO_OTHERS: Final = 0o022


def is_own(path: Path, *, private: bool = True) -> bool:
    """Return whether a path is a folder of this user's, no link, that others cannot read, or at least not change."""
    try:
        status = path.lstat()
    except OSError:
        return False
    kept_from_others = _OTHERS if private else _WRITABLE_TO_OTHERS
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & kept_from_others


@dataclass(frozen=True)
class JobFolder:
    """One job's folder."""

    path: Path

    @property
    def name(self) -> str:
        """The TrainJob's name."""
        return self.path.name

    @property
    def work(self) -> Path:
        """Where working directories and volumes lie."""
        return self.path / "work"

    @property
    def progress(self) -> Path:
        """The file in which the training reports its progress; alone in a folder that a container may have."""
        return self.work / "progress" / "progress.json"

    @property
    def log(self) -> Path:
        """What all containers printed."""
        return self.path / "log"

    @property
    def alive(self) -> Path:
        """The file that the supervisor holds locked."""
        return self.path / "alive"

    @property
    def wake(self) -> Path:
        """The pipe that the supervisor listens to."""
        return self.path / "wake"

    # -- making and removing

    @classmethod
    def create(cls, path: Path, documents: Mapping[str, Tree]) -> tuple[JobFolder, int]:
        """Make the folder of a new job, whole or not at all; return it with `alive` open and locked.

        Raises:
            FileExistsError: there is a job of that name.
            PermissionError: the folder of jobs is another user's, or others can write into it.
        """
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not is_own(path.parent, private=False):
            raise PermissionError(path.parent)
        draft = cls(path.with_name(f".{path.name}.{os.getpid()}"))
        shutil.rmtree(draft.path, ignore_errors=True)
        for folder in (draft.path, draft.path / "pods", draft.work):
            folder.mkdir(mode=0o700)
        draft.progress.parent.mkdir()
        draft.progress.parent.chmod(0o777)  # a container's user may be any, and others do not get as far as here
        for name, document in documents.items():
            draft.write(name, document)
        os.mkfifo(draft.wake, _PRIVATE)
        lock = os.open(draft.alive, os.O_RDWR | os.O_CREAT, _PRIVATE)
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            draft.path.rename(path)
        except OSError as error:
            os.close(lock)
            shutil.rmtree(draft.path, ignore_errors=True)
            raise FileExistsError(path) from error
        return cls(path), lock

    def remove(self) -> None:
        """Remove the job for all readers at once, then its files."""
        gone = self.path.with_name(f".{self.name}.gone")
        with contextlib.suppress(FileNotFoundError):
            self.path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    @staticmethod
    def all_in(path: Path) -> list[JobFolder]:
        """Return the jobs below a folder; one that is being made or removed has a dot before its name."""
        if not path.is_dir():
            return []
        return [JobFolder(entry) for entry in sorted(path.iterdir()) if not entry.name.startswith(".")]

    def exists(self) -> bool:
        """Return whether the job is there."""
        return (self.path / "trainjob.json").exists()

    # -- documents

    def read(self, name: str) -> Tree | None:
        """Return a document, or None if there is none."""
        try:
            document: Tree = json.loads((self.path / f"{name}.json").read_bytes())
        except FileNotFoundError:
            return None
        return document

    def write(self, name: str, document: Any) -> None:
        """Replace a document."""
        target = self.path / f"{name}.json"
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE), "w") as file:
            json.dump(document, file)
        partial.rename(target)

    def read_job(self) -> Tree | None:
        """Return the TrainJob with its status, or None if it is gone."""
        job = self.read("trainjob")
        status = self.read("status") if job else None
        told = self._read_progress() if job else None
        if told is not None:
            status = {**(status or {}), "trainerStatus": told}
        return {**job, "status": status} if job and status else job

    def _read_progress(self) -> Tree | None:
        """Return what the training reported, if that is a small file with an object in it: it may be anything."""
        try:
            file = os.open(self.progress, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            content = os.read(file, _PROGRESS_BYTES + 1) if stat.S_ISREG(os.fstat(file).st_mode) else b""
        finally:
            os.close(file)
        try:
            told = json.loads(content) if len(content) <= _PROGRESS_BYTES else None
        except (ValueError, RecursionError):
            return None
        return told if isinstance(told, dict) else None

    def read_pods(self) -> list[Tree]:
        """Return the Pods, oldest first."""
        folder = self.path / "pods"
        names = [entry.stem for entry in folder.glob("*.json")] if folder.is_dir() else []
        pods = [pod for name in names if not name.startswith(".") and (pod := self.read(f"pods/{name}"))]
        return sorted(pods, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))

    def drop_pod(self, name: str) -> None:
        """Remove a Pod."""
        (self.path / "pods" / f"{name}.json").unlink(missing_ok=True)

    def append_event(self, event: Tree) -> None:
        """Add an Event."""
        with (self.path / "events.jsonl").open("a") as file:
            file.write(json.dumps(event) + "\n")

    def read_events(self) -> list[Tree]:
        """Return the Events in the order in which they came."""
        try:
            lines = (self.path / "events.jsonl").read_text().splitlines(keepends=True)
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines if line.endswith("\n")]  # the last may be half written

    # -- between clients and the supervisor

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only client that changes the TrainJob."""
        with (self.path / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def is_supervised(self) -> bool:
        """Return whether the supervisor lives."""
        with self.watched() as is_supervised:
            return is_supervised()

    @contextlib.contextmanager
    def watched(self) -> Iterator[Callable[[], bool]]:
        """Give a function that says whether the supervisor lives, also when it has removed the job."""
        try:
            file = self.alive.open()
        except FileNotFoundError:
            yield lambda: False
            return

        def is_supervised() -> bool:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            fcntl.flock(file, fcntl.LOCK_UN)
            return False

        with file:
            yield is_supervised

    def ring(self) -> None:
        """Let the supervisor look at the TrainJob again; nobody hears it if there is none."""
        with contextlib.suppress(OSError):
            pipe = os.open(self.wake, os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(pipe, b"!")
            finally:
                os.close(pipe)

    def touch(self) -> None:
        """Tell watching clients that something changed."""
        with (self.path / "version").open("a") as file:
            file.write(".")

    def version(self) -> tuple[int, int]:
        """Return what differs after each change that a client can see."""
        try:
            return (self.path / "version").stat().st_size, (self.path / "trainjob.json").stat().st_mtime_ns
        except FileNotFoundError:
            return 0, 0
