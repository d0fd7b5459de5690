"""What stands on the hub's volume, damaged: the server starts over it, and reads what is whole.

Pods of a cluster go the same way in: `put_pod` must take them or refuse them, and whatever it took must load again.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from tests.security.fuzz.mutations import Mutator, encode
from tests.security.fuzz.target import BrokenPromiseError, Target
from tests.unit.hub.kept import keep, numbered, pod
from tests.unit.hub.kubelet import START
from trainplane.hub.errors import HubError
from trainplane.hub.kept.archive import Archive
from trainplane.hub.kept.bounds import Bounds
from trainplane.hub.served import logs
from trainplane.hub.served.logquery import LogQuery
from trainplane.kube.testing.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

Tree = dict[str, Any]

_RECORDS: Final = ("job.json", "pod.json", "node.0.000000000000.log", "node.0.end")
_SHM: Final = Path("/dev/shm")  # noqa: S108 memory, where there is such a folder: a million small files


def temporary_folder() -> Path:
    """Return a folder of one's own, in memory where that is to be had."""
    return Path(tempfile.mkdtemp(prefix="fuzz-archive-", dir=_SHM if _SHM.is_dir() else None))


class Archives(Target):
    """One record of a volume, changed: `FILE NAME`, a newline, and its bytes."""

    name: ClassVar[str] = "archives"
    cases: ClassVar[int] = 60_000

    def __init__(self) -> None:
        self._root = temporary_folder()
        self._data = self._root / "data"
        self._number = 0
        archive = Archive(self._data, Bounds(), FakeClock())
        keep(archive, pod(), numbered(5))
        archive.close()
        files = {path.name: path for path in self._data.rglob("*.*")}
        self._files = {path.relative_to(self._data): path.read_bytes() for path in files.values()}
        self._places = {path.name: path for path in self._files}
        self._places["node.0.end"] = self._places["pod.json"].with_name("node.0.end")
        shutil.rmtree(self._data)

    def close(self) -> None:
        shutil.rmtree(self._root)

    def generate(self, random: Random) -> bytes:
        mutator = Mutator(random)
        name = mutator.pick(_RECORDS)
        content = self._files.get(self._places[name], b"the pod is gone")
        if name.endswith(".json") and mutator.chance(0.7):
            content = encode(mutator.tree(msgspec.json.decode(content)))
        else:
            content = mutator.bytes(content)
        return name.encode() + b"\n" + content

    def run(self, data: bytes) -> str:
        name, _, content = data.partition(b"\n")
        place = self._places.get(name.decode("latin-1"))
        if place is None:
            return "no record"
        self._number += 1  # a folder of its own: a server that does not start over it keeps it locked
        self._data = self._root / str(self._number)
        for path, kept in {**self._files, place: content}.items():
            (self._data / path).parent.mkdir(parents=True, exist_ok=True)
            (self._data / path).write_bytes(kept)
        try:
            archive = Archive(self._data, Bounds(), FakeClock())
            try:
                return self._use(archive)
            finally:
                archive.close()
        finally:
            shutil.rmtree(self._data)

    def _use(self, archive: Archive) -> str:
        """Do what the server does with it."""
        said = "set aside"
        for job in archive:
            said = "loaded"
            for kept in job.pods.values():
                msgspec.json.encode(kept.record.pod)
            try:
                said = "read" if sum(map(len, logs.read(job, LogQuery(rank=None), START))) else "empty"
            except HubError:
                said = "nothing to read"
            archive.latest(job.record.namespace, job.record.name)
        archive.size  # noqa: B018 a property that adds up
        archive.enforce()
        return said

    def seeds(self) -> Iterable[bytes]:
        """Return the records as they are when whole."""
        return [path.name.encode() + b"\n" + content for path, content in self._files.items()]


class KeptPods(Target):
    """Pods as a worker shows them, kept and loaded again."""

    name: ClassVar[str] = "kept-pods"
    cases: ClassVar[int] = 50_000

    def __init__(self) -> None:
        self._root = temporary_folder()
        self._seed = msgspec.json.encode(pod(annotations={"a": "b"}))

    def close(self) -> None:
        shutil.rmtree(self._root)

    def generate(self, random: Random) -> bytes:
        mutator = Mutator(random)
        return encode(mutator.tree(msgspec.json.decode(self._seed)))

    def run(self, data: bytes) -> str:
        try:
            tree = msgspec.json.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return "no JSON"
        folder = self._root / "data"
        archive = Archive(folder, Bounds(), FakeClock())
        try:
            job = archive.admit("job-1", "team", "x")
            try:
                kept = archive.put_pod(job, "worker1", tree)
                archive.append(job, kept.journal("node", 0), numbered(2))
            except HubError:
                return "refused"
            archive.close()
            archive = Archive(folder, Bounds(), FakeClock())
            again = archive.job("job-1")
            if again is None or len(again.pods) != 1:
                raise BrokenPromiseError("a pod that was kept is not there after a restart")
            self._read(archive)
        finally:
            archive.close()
            shutil.rmtree(folder)
        return "kept"

    def _read(self, archive: Archive) -> None:
        for job in archive:
            try:
                for _ in logs.read(job, LogQuery(rank=None), START):
                    pass
            except HubError:
                continue

    def seeds(self) -> Iterable[bytes]:
        """Return a good pod."""
        return (self._seed,)
