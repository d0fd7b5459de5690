"""What is kept of jobs on the volume: their pods as last seen, and their logs.

    DATA/jobs/UID/job.json                        who it is, when it finished
    DATA/jobs/UID/POD-UID/pod.json                the pod, and the cluster it was on
    DATA/jobs/UID/POD-UID/CONTAINER.RUN.*         a journal per run of a container (`journal`)
    DATA/set-aside/                               what could not be read

Jobs and pods are found by uid, never by name: a job of the same name is another one, and so are the pod that takes
another's place and a namespace that is made again. One server at a time holds the volume (a lock).

- **What is written fits.** Each write says first what it costs; where that is over a bound, something goes before, by
  the rules of `retention`. So bounds hold at any time, and not only after a look.
- **What cannot be read never ends the server.** It is set aside, counted and told of (`volume.SetAside`).
- **A full volume is a volume with another bound.** The namespace that has the most pays there too; a record that still
  cannot be written counts in memory and is written with a later `flush`.
- **A machine that crashes** costs what came after the last `flush`: a record is replaced by one that is on the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.api import names
from trainplane.hub.errors import ArchiveError, FullError, NotKeptError, RecordError
from trainplane.hub.logarchive import records, volume
from trainplane.hub.logarchive.keptjob import JOB_FILE, POD_FILE, KeptJob, KeptPod, is_name, set_folder_aside
from trainplane.hub.logarchive.records import JobRecord
from trainplane.hub.logarchive.retention import FOLDER, NOTHING, Usage, expired, lowered, of_file
from trainplane.hub.logarchive.room import Room
from trainplane.hub.logarchive.volume import FULL, SetAside
from trainplane.kube.notifier import Notifier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from trainplane.hub.logarchive.journal import Journal
    from trainplane.hub.logarchive.pod import Pod
    from trainplane.hub.logarchive.retention import Retention
    from trainplane.hub.logarchive.testimony import Testimony
    from trainplane.kube.clock import Clock

log = logging.getLogger(__name__)

_TOMBSTONES: Final = 4096
"""Jobs gone by retention that are remembered, so that a pod of theirs that is still there does not bring them back."""
_TRIES: Final = 3
"""How often something is written to a volume that is full, each time after something went."""
_COPY: Final = 1 << 18


class Archive:
    """Everything kept. Use within one event loop; `close` gives the volume up."""

    def __init__(self, folder: Path, retention: Retention, clock: Clock) -> None:
        self.retention = retention
        self.news = Notifier()
        self._clock = clock
        self._jobs: dict[str, KeptJob] = {}
        self._by_name: dict[tuple[str, str, str], set[str]] = {}
        self._tombstones: OrderedDict[str, None] = OrderedDict()
        self._dirty: dict[Path, KeptJob | KeptPod] = {}
        self._unsynced: dict[Path, None] = {}
        self._storing = threading.Lock()
        self._flushing = asyncio.Lock()
        self._folder = folder / "jobs"
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = _hold(folder / "lock")
        self.set_aside = SetAside(folder / "set-aside", retention.set_aside)
        self._room = Room(retention, self._jobs, self.set_aside, self.remove)
        if self._folder.is_symlink() or (self._folder.exists() and not self._folder.is_dir()):
            self.set_aside.put(self._folder, "it is no folder")
        self._folder.mkdir(exist_ok=True)
        for entry in volume.entries(self._folder):
            self._load(entry)

    def close(self) -> None:
        """Write what is not written yet, close all files and let another server have the volume."""
        self._note(self._store(*self._take_unwritten()))
        for job in self._jobs.values():
            for journal in job.journals:
                journal.close()
        os.close(self._lock)

    def __iter__(self) -> Iterator[KeptJob]:
        return iter(list(self._jobs.values()))

    @property
    def usage(self) -> Usage:
        """What all takes of the volume, with what is set aside."""
        return self._room.usage

    @property
    def namespaces(self) -> dict[tuple[str, str], Usage]:
        """What each namespace takes, by name and uid."""
        return dict(self._room.usages)

    def job(self, uid: str) -> KeptJob | None:
        """Return what is kept of a job."""
        return self._jobs.get(uid)

    def is_over(self, uid: str) -> bool:
        """Return whether what was kept of a job is gone by retention."""
        return uid in self._tombstones

    def named(self, namespace: str, name: str, kind: str = names.TRAIN_JOB) -> list[KeptJob]:
        """Return what is kept of all jobs of a kind that ever had a name."""
        return [self._jobs[uid] for uid in self._by_name.get((namespace, name, kind), ())]

    def latest(self, namespace: str, name: str, namespace_uid: str, kind: str = names.TRAIN_JOB) -> KeptJob | None:
        """Return what is kept of the last job of a name in this very namespace; it may be deleted already."""
        found = [job for job in self.named(namespace, name, kind) if job.record.namespace_uid == namespace_uid != ""]
        return max(found, key=lambda job: job.record.seen, default=None)

    def admit(self, uid: str, namespace: str, name: str, namespace_uid: str, kind: str = names.TRAIN_JOB) -> KeptJob:
        """Return what is kept of a job, and begin to keep it if there is nothing yet.

        Raises NotKeptError for one that went by retention, FullError, ArchiveError, OSError.
        """
        known = self._jobs.get(uid)
        if known is not None:
            self._complete(known, namespace_uid)
            return known
        if uid in self._tombstones:
            raise NotKeptError(f"{kind} {namespace}/{name} is over, and its logs went by retention")
        if not all(map(is_name, (uid, namespace, name))):
            raise ArchiveError(f"{uid!r} is no name or uid that Kubernetes gives")
        seen = self._clock.now().timestamp()
        record = JobRecord(uid=uid, namespace=namespace, name=name, seen=seen, namespace_uid=namespace_uid, kind=kind)
        job = KeptJob(self._folder / uid, record)
        data = records.encode(record)
        job.record_usage = of_file(len(data))
        self._room.evict(job.namespace, FOLDER + job.record_usage, None)
        self._write(lambda: _make(job.folder, JOB_FILE, data), None)
        self._sync_later(job.folder / JOB_FILE)
        self._add(job)
        self._room.charge(job, FOLDER + job.record_usage)
        self.news.notify()
        return job

    def mark(self, job: KeptJob, *, finished: bool = False, deleted: bool = False) -> None:
        """Note that a job has finished or is deleted, now unless that is known already."""
        now, record = self._clock.now().timestamp(), job.record
        if finished and record.finished is None:
            record = msgspec.structs.replace(record, finished=now)
        if deleted and record.deleted is None:
            record = msgspec.structs.replace(record, deleted=now)
        if record != job.record:
            self._set_record(job, record)
            job.news.notify()

    def tell(self, job: KeptJob, told: Testimony) -> None:
        """Keep what is told of a job in place of what was before. Raises NotKeptError, FullError, OSError."""
        self._require(job)
        if not told or told == job.record.told:
            return
        record = msgspec.structs.replace(job.record, told=told)
        usage = of_file(len(records.encode(record)))
        if usage != job.record_usage:
            self._room.make(job, usage - job.record_usage)
            self._room.charge(job, usage - job.record_usage)
            job.record_usage = usage
        self._set_record(job, record)

    def put_pod(self, job: KeptJob, cluster: str, pod: Pod) -> KeptPod:
        """Keep a pod as it is now. Raises NotKeptError, FullError, OSError."""
        self._require(job)
        known = job.pods.get(pod.uid)
        if known is None:
            return self._add_pod(job, cluster, pod)
        before = None
        with contextlib.suppress(OSError, RecordError):
            before = known.cluster, known.pod
        known.put(cluster, pod)
        if before != (cluster, pod):
            usage = of_file(len(known.encode()))
            if usage != known.record_usage:
                self._room.make(job, usage - known.record_usage)
                self._room.charge(job, usage - known.record_usage)
                known.record_usage = usage
            self._write_later(known, known.folder / POD_FILE)
            job.news.notify()
        return known

    def append(self, job: KeptJob, journal: Journal, lines: Sequence[bytes]) -> None:
        """Keep lines of a job, and no more of it than is allowed. Raises NotKeptError, FullError, OSError."""
        self._require(job)
        segment_bytes = self.retention.segment_bytes(len(job.pods))
        half = self.retention.job.bytes // 2
        size = sum(map(len, lines)) + len(lines)
        while lines and size > half:  # what alone is more than a job may have
            size -= len(lines[0]) + 1
            lines = lines[1:]
        if not lines:
            return

        def write() -> None:
            cost = journal.cost(size, segment_bytes=segment_bytes)
            while cost is not NOTHING and not self._room.make(job, cost):
                # What went may be the segment that was to be written to.
                cost = journal.cost(size, segment_bytes=segment_bytes)
            self._require(job, journal)
            begun = journal.append(lines, segment_bytes=segment_bytes)
            if cost is not NOTHING:
                self._room.charge(job, cost)
            if begun:
                job.news.notify()

        self._write(write, job)

    def finish(self, job: KeptJob, journal: Journal, reason: str) -> None:
        """Note that a log was read to its end. Where that cannot be written, it is looked at after the next start."""
        if journal.ended is not None:
            return
        try:
            self._room.make(job, of_file(1))
            self._require(job, journal)
            self._write(lambda: self._room.charge(job, journal.finish(reason)), job)
        except NotKeptError:
            journal.finish(reason, write=False)
        except (OSError, FullError) as error:
            journal.finish(reason, write=False)
            log.warning("end of a log cannot be noted", extra={"journal": str(journal.folder), "error": str(error)})
        self._sync_later(*journal.paths)

    def adopt(self, job: KeptJob, pod: KeptPod, container: str, journal: Journal, first: bytes) -> bool:
        """Give an empty journal what the run before it has, if that begins with this line and so is the same run.

        A status that lags behind the kubelet can make the lines of a run be taken for those of the one before, where
        that had printed nothing. Times of nanoseconds make sure that it is the same line.
        """
        run = next(number for (name, number), known in pod.runs.items() if name == container and known is journal)
        former = pod.runs.get((container, run - 1))
        if former is None or former.begin or former.read(0, 1)[0] != first + b"\n":
            return False
        offset = 0
        while True:
            data, offset = former.read(offset, _COPY)
            if not data:
                break
            self.append(job, journal, data[:-1].split(b"\n"))
        self._room.charge(job, NOTHING - former.drop(mark=True))
        self.finish(job, former, "ended")
        return True

    def enforce(self) -> None:
        """Remove what is over its time, and what is over the bounds where they are lower than they were."""
        for record in expired([job.record for job in self], self.retention, self._clock.now().timestamp()):
            self.remove(record.uid)
        for job in self:
            if not job.usage.within(self.retention.job):
                self._room.shrink(job, lowered(self.retention.job))
        self.set_aside.shrink()
        with contextlib.suppress(FullError):
            self._room.evict(None, NOTHING, None)

    async def flush(self) -> None:
        """Write records that changed and see that what was written is on the disk, without holding up the loop."""
        async with self._flushing:  # or an older record may be written over a newer one
            unwritten = self._take_unwritten()
            if any(unwritten) and self._note(await asyncio.to_thread(self._store, *unwritten)):
                self._room.squeeze(None)

    def remove(self, uid: str) -> None:
        """Forget a job."""
        job = self._jobs.pop(uid)
        self._tombstones[uid] = None
        while len(self._tombstones) > _TOMBSTONES:
            self._tombstones.popitem(last=False)
        self._by_name[job.key].discard(uid)
        if not self._by_name[job.key]:
            del self._by_name[job.key]
        for journal in job.journals:
            journal.close()
        volume.remove(job.folder)
        self._room.release(job)
        job.news.notify()
        log.info("kept logs removed", extra={"job": str(job.key), "uid": uid})

    # -- reading the volume ---------------------------------------------------------------------------------------

    def _load(self, entry: os.DirEntry[str]) -> None:
        folder = self._folder / entry.name
        if volume.is_removed(entry.name):
            volume.remove(folder)
        elif not volume.is_folder(entry) or not is_name(entry.name):
            self.set_aside.put(folder, "it is no folder of a job")
        else:
            try:
                job = KeptJob.load(folder, self.set_aside)
            except (OSError, RecordError) as error:
                set_folder_aside(folder, self.set_aside, str(error))
                return
            usage, job.usage = job.usage, NOTHING
            self._add(job)
            self._room.charge(job, usage)
            self._dirty.update({kept.folder / POD_FILE: kept for kept in job.pods.values() if kept.is_dirty})

    def _add(self, job: KeptJob) -> None:
        self._jobs[job.record.uid] = job
        self._by_name.setdefault(job.key, set()).add(job.record.uid)

    def _add_pod(self, job: KeptJob, cluster: str, pod: Pod) -> KeptPod:
        seen = max(self._clock.now().timestamp(), job.last_seen)
        kept = KeptPod(job.folder / pod.uid, cluster, pod, self.set_aside, seen)
        data = kept.encode()
        kept.record_usage = of_file(len(data))
        self._room.make(job, FOLDER + kept.record_usage)
        self._write(lambda: _make(kept.folder, POD_FILE, data), job)
        self._sync_later(kept.folder / POD_FILE)
        job.pods[pod.uid] = kept
        job.last_seen = seen
        self._room.charge(job, FOLDER + kept.record_usage)
        job.news.notify()
        return kept

    def _require(self, job: KeptJob, journal: Journal | None = None) -> None:
        is_gone = journal is not None and journal.folder.name not in job.pods
        if is_gone or self._jobs.get(job.record.uid) is not job:
            raise NotKeptError(f"the logs of TrainJob {job.record.namespace}/{job.record.name} went by retention")

    def _complete(self, job: KeptJob, namespace_uid: str) -> None:
        """Note the namespace's uid of a job that an older release kept."""
        if namespace_uid and not job.record.namespace_uid:
            usage = job.usage
            self._room.release(job)
            self._set_record(job, msgspec.structs.replace(job.record, namespace_uid=namespace_uid))
            self._room.charge(job, usage)

    def _set_record(self, job: KeptJob, record: JobRecord) -> None:
        job.record = record
        self._write_later(job, job.folder / JOB_FILE)

    # -- writing --------------------------------------------------------------------------------------------------

    def _write(self, write: Callable[[], None], writer: KeptJob | None) -> None:
        """Write something, where the volume is full after something went; raises OSError if that does not help."""
        for attempt in range(1, _TRIES + 1):
            try:
                write()
            except OSError as error:
                if error.errno not in FULL or attempt == _TRIES or not self._room.squeeze(writer):
                    raise
            else:
                return

    def _write_later(self, thing: KeptJob | KeptPod, path: Path) -> None:
        thing.is_dirty = True
        self._dirty[path] = thing

    def _sync_later(self, *paths: Path) -> None:
        self._unsynced.update(dict.fromkeys(paths))

    def _take_unwritten(self) -> tuple[dict[Path, bytes], list[Path]]:
        """Return the records that have changed, and files that may not be on the disk yet."""
        unsynced, self._unsynced = list(self._unsynced), {}
        changed: dict[Path, bytes] = {}
        for path, thing in self._dirty.items():
            with contextlib.suppress(OSError, RecordError):
                changed[path] = thing.encode()
        return changed, unsynced

    def _store(self, changed: dict[Path, bytes], unsynced: list[Path]) -> dict[Path, bytes | OSError]:
        """Write and sync; return what was written, or why it was not. Runs in a thread."""
        results: dict[Path, bytes | OSError] = {}
        with self._storing:
            for path, data in changed.items():
                try:
                    volume.write(path, data, durable=True)
                    results[path] = data
                except OSError as error:
                    results[path] = error
            folders = {folder: None for path in (*changed, *unsynced) for folder in path.parents[:2]}
            for path in (*unsynced, *folders):
                with contextlib.suppress(OSError):
                    volume.sync(path)
        return results

    def _note(self, results: dict[Path, bytes | OSError]) -> bool:
        """Take note of which records are written; say whether the volume is full."""
        full = False
        for path, result in results.items():
            thing = self._dirty[path]
            if isinstance(result, OSError) and path.parent.exists():
                full |= result.errno in FULL
                log.warning("record cannot be written now", extra={"path": str(path), "error": str(result)})
            elif isinstance(result, OSError) or thing.encode() == result:
                del self._dirty[path]
                thing.written()
        return full


def _make(folder: Path, file: str, data: bytes) -> None:
    """Make a folder with a record in it, or nothing; raises OSError."""
    try:
        folder.mkdir()
    except FileExistsError:
        folder.rmdir()  # a process was killed before it wrote the record; anything else stays, and this raises
        folder.mkdir()
    try:
        volume.write(folder / file, data)
    except OSError:
        with contextlib.suppress(OSError):
            folder.rmdir()
        raise


def _hold(path: Path) -> int:
    if path.is_symlink() or path.is_dir():
        path.rename(path.with_name(f"{path.name}.unread"))
    descriptor = volume.open_to_write(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise ArchiveError(
            f"--data: {path.parent} is in use by another hub server: give each a volume of its own"
        ) from error
    return descriptor
