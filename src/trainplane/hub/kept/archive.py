"""What is kept of TrainJobs on the volume: their pods as last seen, and their logs.

    DATA/jobs/UID/job.json                        who it is, when it finished
    DATA/jobs/UID/POD-UID/pod.json                the pod, and the cluster it was on
    DATA/jobs/UID/POD-UID/CONTAINER.RUN.*         a journal per run of a container (`journal`)

Jobs and pods are found by uid, never by name: a TrainJob of the same name is another one, and so is the pod that takes
another's place. Records are written whole or not at all (a rename); one server at a time holds the volume (a lock).
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import re
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.hub.errors import ArchiveError
from trainplane.hub.kept.bounds import Bounds, JobRecord, ended_at, expired, surplus
from trainplane.hub.kept.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from trainplane.api.tree import Tree
    from trainplane.kube.clock import Clock

log = logging.getLogger(__name__)

_SEGMENT: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


class PodRecord(msgspec.Struct, frozen=True):
    """A pod as last seen, and where."""

    cluster: str
    """The worker; empty for the hub itself."""
    pod: dict[str, Any]


class KeptPod:
    """A pod and the journals of its containers.

    The pod itself is held while it is followed and read from the volume afterwards: of jobs long over, only what finds
    their logs stays in memory.
    """

    def __init__(self, folder: Path, record: PodRecord) -> None:
        self.folder = folder
        self.put(record)
        self.runs: dict[tuple[str, int], Journal] = {}
        """By container and run: 0 is the first, each restart counts one more."""
        found = {entry.name.rsplit(".", 2)[0] for entry in folder.glob("*.log")}
        for name in found | {entry.stem for entry in folder.glob("*.end")}:
            container, _, run = name.rpartition(".")
            if run.isdigit():
                self.runs[container, int(run)] = Journal(folder, name)

    def put(self, record: PodRecord) -> None:
        """Take the pod as it is now."""
        pod = record.pod
        self._record: PodRecord | None = record
        self.cluster = record.cluster
        self.name = str(pod["metadata"]["name"])
        self.step = str(_label(pod, names.LABEL_REPLICATED_JOB) or "")
        """The part of the TrainJob that it is: the name of its replicated job."""
        index = _label(pod, names.ANNOTATION_COMPLETION_INDEX)
        self.place = _number(_label(pod, names.LABEL_JOB_INDEX)), _number(index)
        """Its Job among the step's, and its index in the Job."""
        self.created = str(pod["metadata"].get("creationTimestamp") or "")
        """When it was made, as the API server writes it; orders the pods that took one place in turn."""
        spec = pod.get("spec") or {}
        self.containers = tuple(str(each["name"]) for each in spec.get("containers") or ())
        self.init_containers = tuple(str(each["name"]) for each in spec.get("initContainers") or ())

    @property
    def record(self) -> PodRecord:
        """The pod as last seen."""
        return self._record or _read_pod(self.folder)

    def rest(self) -> None:
        """Hold the pod no longer: nobody follows it any more."""
        self._record = None

    def journal(self, container: str, run: int) -> Journal:
        """Return the journal of a run, a new one if there is none; raises ArchiveError for a name that is no name."""
        known = self.runs.get((container, run))
        if known is None:
            known = self.runs[container, run] = Journal(self.folder, f"{_safe(container)}.{run}")
        return known

    def adopt(self, container: str, journal: Journal, first: bytes) -> bool:
        """Give an empty journal what the run before it has, if that begins with this line and so is the same run.

        A status that lags behind the kubelet can make the lines of a run be taken for those of the one before, where
        that had printed nothing. Times of nanoseconds make sure that it is the same line.
        """
        run = next(number for (name, number), known in self.runs.items() if known is journal)
        former = self.runs.get((container, run - 1))
        if former is None or former.begin or former.read(0, 1)[0] != first + b"\n":
            return False
        former.close()
        for path in self.folder.glob(f"{former.name}.*.log"):
            path.rename(path.with_name(path.name.replace(former.name, journal.name, 1)))
        (self.folder / f"{former.name}.end").write_text("ended")
        self.runs[container, run] = Journal(self.folder, journal.name)
        self.runs[container, run - 1] = Journal(self.folder, former.name)
        return True


@dataclass
class KeptJob:
    """A TrainJob and its pods."""

    folder: Path
    record: JobRecord
    pods: dict[str, KeptPod] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Set at the next change of a pod, a run or the job itself. Take it before looking, then wait for it."""

    @property
    def journals(self) -> Iterator[Journal]:
        """All its journals."""
        for pod in self.pods.values():
            yield from pod.runs.values()

    @property
    def size(self) -> int:
        """Bytes of its logs."""
        return sum(journal.size for journal in self.journals)

    def tell(self) -> None:
        """Wake who waits for news."""
        news, self.news = self.news, asyncio.Event()
        news.set()


class Archive:
    """Everything kept. Use within one event loop; `close` gives the volume up."""

    def __init__(self, folder: Path, bounds: Bounds, clock: Clock) -> None:
        self.bounds = bounds
        self.news = asyncio.Event()
        self._clock = clock
        self._jobs: dict[str, KeptJob] = {}
        self._by_name: dict[tuple[str, str], set[str]] = {}
        self._folder = folder / "jobs"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._lock = _hold(folder / "lock")
        for entry in sorted(self._folder.iterdir()):
            self._load(entry)

    def close(self) -> None:
        """Close all files and let another server have the volume."""
        for job in self._jobs.values():
            for journal in job.journals:
                journal.close()
        os.close(self._lock)

    def __iter__(self) -> Iterator[KeptJob]:
        return iter(list(self._jobs.values()))

    @property
    def size(self) -> int:
        """Bytes of all logs."""
        return sum(job.size for job in self._jobs.values())

    def job(self, uid: str) -> KeptJob | None:
        """Return what is kept of a TrainJob."""
        return self._jobs.get(uid)

    def latest(self, namespace: str, name: str) -> KeptJob | None:
        """Return what is kept of the last TrainJob of that name, which may be deleted already."""
        found = [self._jobs[uid] for uid in self._by_name.get((namespace, name), ())]
        return max(found, key=lambda job: job.record.seen, default=None)

    def admit(self, uid: str, namespace: str, name: str) -> KeptJob:
        """Return what is kept of a TrainJob, and begin to keep it if there is nothing yet."""
        known = self._jobs.get(uid)
        if known is not None:
            return known
        folder = self._folder / _safe(uid)
        folder.mkdir(exist_ok=True)
        record = JobRecord(uid=uid, namespace=namespace, name=name, seen=self._clock.now().timestamp())
        _write(folder / "job.json", record)
        job = self._add(KeptJob(folder, record))
        self._tell()
        return job

    def mark(self, job: KeptJob, *, finished: bool = False, deleted: bool = False) -> None:
        """Note that a TrainJob has finished or is deleted, now unless that is known already."""
        now, record = self._clock.now().timestamp(), job.record
        if finished and record.finished is None:
            record = msgspec.structs.replace(record, finished=now)
        if deleted and record.deleted is None:
            record = msgspec.structs.replace(record, deleted=now)
        if record != job.record:
            _write(job.folder / "job.json", record)
            job.record = record
            job.tell()

    def put_pod(self, job: KeptJob, cluster: str, pod: Tree) -> KeptPod:
        """Keep a pod as it is now."""
        uid = str(pod["metadata"]["uid"])
        record = PodRecord(cluster, pod)
        known = job.pods.get(uid)
        if known is None:
            folder = job.folder / _safe(uid)
            folder.mkdir(exist_ok=True)
            _write(folder / "pod.json", record)
            known = job.pods[uid] = KeptPod(folder, record)
            job.tell()
        elif known.record != record:
            _write(known.folder / "pod.json", record)
            known.put(record)
            job.tell()
        return known

    def append(self, job: KeptJob, journal: Journal, lines: Sequence[bytes]) -> None:
        """Keep lines of a job, and no more of it than the bounds allow."""
        if journal.append(lines, segment_bytes=self.bounds.segment_bytes(len(job.pods))):
            job.tell()
            _shrink([job], self.bounds.job_bytes)

    def enforce(self) -> None:
        """Remove what is over the bounds, of time first, then of bytes."""
        records = [job.record for job in self]
        for record in expired(records, self.bounds, self._clock.now().timestamp()):
            self.remove(record.uid)
        sizes = {job.record: job.size for job in self}
        for record in surplus(sizes, self.bounds):
            self.remove(record.uid)
        _shrink([job for job in self if ended_at(job.record) is None], self.bounds.total_bytes)

    def remove(self, uid: str) -> None:
        """Forget a job."""
        job = self._jobs.pop(uid)
        self._by_name[job.record.namespace, job.record.name].discard(uid)
        for journal in job.journals:
            journal.close()
        shutil.rmtree(job.folder, ignore_errors=True)
        job.tell()
        log.info("kept logs removed", extra={"trainjob": f"{job.record.namespace}/{job.record.name}", "uid": uid})

    def _add(self, job: KeptJob) -> KeptJob:
        self._jobs[job.record.uid] = job
        self._by_name.setdefault((job.record.namespace, job.record.name), set()).add(job.record.uid)
        return job

    def _tell(self) -> None:
        news, self.news = self.news, asyncio.Event()
        news.set()

    def _load(self, folder: Path) -> None:
        """Read a job's folder; one that was killed in the making has no record, and goes."""
        try:
            record = msgspec.json.decode((folder / "job.json").read_bytes(), type=JobRecord)
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("a folder without a job is removed", extra={"folder": folder.name, "error": str(error)})
            shutil.rmtree(folder, ignore_errors=True)
            return
        job = self._add(KeptJob(folder, record))
        for entry in sorted(path for path in folder.iterdir() if path.is_dir()):
            with contextlib.suppress(OSError, msgspec.MsgspecError):
                job.pods[entry.name] = KeptPod(entry, _read_pod(entry))
                job.pods[entry.name].rest()


def _shrink(jobs: Sequence[KeptJob], limit: int) -> None:
    """Drop the oldest segments of the longest logs until all jobs together are within a limit, as far as that goes."""
    over = sum(job.size for job in jobs) - limit
    while over > 0:
        journals = [journal for job in jobs for journal in job.journals if journal.segments > 1]
        longest = max(journals, key=lambda journal: journal.size, default=None)
        if longest is None:
            return
        over -= longest.drop_oldest()


def _hold(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise ArchiveError(
            f"--data: {path.parent} is in use by another hub server: give each a volume of its own"
        ) from error
    return descriptor


def _read_pod(folder: Path) -> PodRecord:
    return msgspec.json.decode((folder / "pod.json").read_bytes(), type=PodRecord)


def _write(path: Path, record: msgspec.Struct) -> None:
    partial = path.with_suffix(".partial")
    partial.write_bytes(msgspec.json.encode(record))
    partial.replace(path)


def _safe(name: str) -> str:
    """Return a name that may be a file's; raises ArchiveError for what no API server gives out."""
    if not _SEGMENT.fullmatch(name):
        raise ArchiveError(f"{name!r} is no name or uid that Kubernetes gives")
    return name


def _label(pod: Tree, name: str) -> Any:
    found = trees.get(pod, "metadata", "labels", name)
    return trees.get(pod, "metadata", "annotations", name) if found is None else found


def _number(text: Any) -> int:
    return int(text) if isinstance(text, str) and text.isdigit() else 0
