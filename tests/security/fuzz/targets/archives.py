"""What stands on the hub's volume, damaged: the server starts over it, and reads what is whole.

Pods of a cluster go the same way in: they are taken or refused, and whatever was taken must load again.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from tests.security.fuzz.mutations import Mutator, encode
from tests.security.fuzz.target import BrokenPromiseError, Target
from tests.unit.hub.kept import NAMESPACE_UID, keep, numbered, pod
from tests.unit.hub.kubelet import START
from trainplane.hub.apiserver import logs
from trainplane.hub.apiserver.logquery import LogQuery
from trainplane.hub.errors import HubError
from trainplane.hub.logarchive.archive import Archive
from trainplane.hub.logarchive.pod import parse
from trainplane.hub.logarchive.retention import Retention
from trainplane.kube.testing.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

Tree = dict[str, Any]

_SHM: Final = Path("/dev/shm")  # memory, where there is such a folder: a million small files


def temporary_folder() -> Path:
    """Return a folder of one's own, in memory where that is to be had."""
    return Path(tempfile.mkdtemp(prefix="fuzz-archive-", dir=_SHM if _SHM.is_dir() else None))


class Archives(Target):
    """One file of a volume, changed: its name, a newline, and its bytes."""

    name: ClassVar[str] = "archives"
    cases: ClassVar[int] = 60_000

    def __init__(self) -> None:
        self._root = temporary_folder()
        self._number = 0
        data = self._root / "data"
        archive = Archive(data, Retention(), FakeClock())
        job, kept = keep(archive, pod(), numbered(5))
        archive.finish(job, kept.journal("node", 0), "the pod is gone")
        archive.close()
        found = [path for path in data.rglob("*") if path.is_file() and path.name != "lock"]
        self._files = {path.relative_to(data): path.read_bytes() for path in found}
        self._places = {path.name: path for path in self._files}
        shutil.rmtree(data)

    def close(self) -> None:
        shutil.rmtree(self._root)

    def generate(self, random: Random) -> bytes:
        mutator = Mutator(random)
        name = mutator.pick(sorted(self._places))
        content = self._files[self._places[name]]
        if name.endswith((".json", ".end")) and mutator.chance(0.8):
            content = self._record(mutator, msgspec.json.decode(content))
        else:
            content = mutator.bytes(content)
        return name.encode() + b"\n" + content

    def _record(self, mutator: Mutator, envelope: Tree) -> bytes:
        """Return a record that is changed: with a digest that fits it, without any as version 1, or as damaged."""
        form = mutator.below(3)
        if form == 0:
            return encode(mutator.tree(envelope))
        text = encode(mutator.tree(envelope["record"]))
        if mutator.chance(0.2):
            text = mutator.bytes(text, 1)
        if form == 1:
            return text
        digest = hashlib.sha256(text).hexdigest().encode()
        return b'{"version":2,"digest":"sha256:%s","record":%s}\n' % (digest, text)

    def run(self, data: bytes) -> str:
        name, _, content = data.partition(b"\n")
        place = self._places.get(name.decode("latin-1"))
        if place is None:
            return "no file"
        self._number += 1  # a folder of its own: a server that does not start over it keeps it locked
        folder = self._root / str(self._number)
        for path, kept in {**self._files, place: content}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(kept)
        try:
            archive = Archive(folder, Retention(), FakeClock())
            try:
                return self._use(archive)
            finally:
                archive.close()
        finally:
            shutil.rmtree(folder)

    def _use(self, archive: Archive) -> str:
        """Do what the server does with it."""
        said = "set aside"
        for job in archive:
            said = "loaded"
            for kept in job.pods.values():
                try:
                    msgspec.json.encode(kept.pod.to_tree())
                except HubError:
                    said = "unreadable pod"
            said = f"{said}, {read(job)}"
            archive.latest(job.record.namespace, job.record.name, NAMESPACE_UID)
        archive.enforce()
        return said

    def seeds(self) -> Iterable[bytes]:
        """Return the files as they are when whole."""
        return [path.name.encode() + b"\n" + content for path, content in self._files.items()]


class KeptPods(Target):
    """Pods as a worker shows them, kept and loaded again."""

    name: ClassVar[str] = "kept-pods"
    cases: ClassVar[int] = 60_000

    def __init__(self) -> None:
        self._root = temporary_folder()
        self._number = 0
        self._seed = msgspec.json.encode(pod(annotations={"a": "b"}))

    def close(self) -> None:
        shutil.rmtree(self._root)

    def generate(self, random: Random) -> bytes:
        mutator = Mutator(random)
        data = encode(mutator.tree(msgspec.json.decode(self._seed)))
        return mutator.bytes(data, 1) if mutator.chance(0.1) else data

    def run(self, data: bytes) -> str:
        try:
            found = parse(data)
        except HubError:
            return "refused"
        self._number += 1
        folder = self._root / str(self._number)
        archive = Archive(folder, Retention(), FakeClock())
        try:
            job = archive.admit("job-1", "team", "x", NAMESPACE_UID)
            kept = archive.put_pod(job, "worker1", found)
            archive.append(job, kept.journal("node", 0), numbered(2))
            archive.close()
            archive = Archive(folder, Retention(), FakeClock())
            again = archive.job("job-1")
            if again is None or [kept.pod for kept in again.pods.values()] != [found]:
                raise BrokenPromiseError("a pod that was kept is not there, or another, after a restart")
            return f"kept, {read(again)}"
        finally:
            archive.close()
            shutil.rmtree(folder)

    def seeds(self) -> Iterable[bytes]:
        """Return a good pod."""
        return (self._seed,)


def read(job: Any) -> str:
    """Read all that is kept of a job's training, as a reader of its log does."""
    try:
        return "read" if sum(map(len, logs.read(job, LogQuery(rank=None), START))) else "empty"
    except HubError:
        return "nothing"
