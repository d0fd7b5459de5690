"""A job of which something is kept, and its pods, as they are in memory and on the volume."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.hub.errors import ArchiveError, PodRefusedError, RecordError
from trainplane.hub.kinds import JobKey
from trainplane.hub.logarchive import records, volume
from trainplane.hub.logarchive.journal import Files, Journal, scan
from trainplane.hub.logarchive.pod import Name, Pod, parse
from trainplane.hub.logarchive.records import RECORD_BYTES, JobRecord, PodRecord
from trainplane.hub.logarchive.retention import FOLDER, NOTHING, Usage, of_file
from trainplane.kube.notifier import Notifier

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from trainplane.hub.logarchive.volume import SetAside

JOB_FILE: Final = "job.json"
POD_FILE: Final = "pod.json"
_RUN: Final = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?)\.(0|[1-9][0-9]{0,9})")


class KeptPod:
    """A pod and the journals of its containers.

    The pod itself is held while it is followed and read from the volume afterwards: of jobs long over, only what finds
    their logs stays in memory.
    """

    def __init__(self, folder: Path, cluster: str, pod: Pod, aside: SetAside, seen: float) -> None:
        self.folder = folder
        self.seen = seen
        """When the hub first kept it, by the hub's clock: those of workers may be wrong. 0: by an older release."""
        self.runs: dict[tuple[str, int], Journal] = {}
        """By container and run: 0 is the first, each restart counts one more."""
        self.record_usage = NOTHING
        self.is_dirty = False
        """Whether its record on the volume is not what it is now."""
        self._aside = aside
        self.put(cluster, pod)

    @classmethod
    def load(cls, folder: Path, job: str, aside: SetAside) -> KeptPod:
        """Read a pod's folder, and set aside what in it cannot be; raises OSError, RecordError."""
        record, pod = _read_pod(folder, job)
        kept = cls(folder, record.cluster, pod, aside, record.seen)
        kept.is_dirty = not record.job  # an older release wrote more of it than is kept now
        journals, others = scan(folder, aside)
        for path in others:
            if path.suffix == volume.PARTIAL and path.is_file() and not path.is_symlink():
                path.unlink(missing_ok=True)
            elif path.name == POD_FILE:
                kept.record_usage = volume.usage_of(path.lstat())
            else:
                aside.put(path, "it is nothing that is kept of a pod")
        for name, files in journals.items():
            found = _RUN.fullmatch(name)
            if found is None:
                for path in Journal(folder, name, aside, files).paths:
                    aside.put(path, "it is called after no run of a container")
                continue
            journal = Journal(folder, name, aside, files)
            if not journal.is_empty:
                kept.runs[found[1], int(found[3])] = journal
        kept.rest()
        return kept

    def put(self, cluster: str, pod: Pod) -> None:
        """Take the pod as it is now."""
        self._pod: Pod | None = pod
        self.is_held = True
        """Whether somebody follows it, so that it may still print."""
        self.cluster = cluster
        self.name = pod.name
        self.step = pod.step
        self.index = pod.index
        self.created = pod.metadata.creation_timestamp or ""
        """When it was made, by its own cluster's clock and as its API server writes it."""
        self.containers = pod.containers
        self.init_containers = pod.init_containers

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.folder.name

    @property
    def pod(self) -> Pod:
        """The pod as last seen; raises OSError and RecordError where the volume does not tell."""
        return self._pod or _read_pod(self.folder, self.folder.parent.name)[1]

    @property
    def usage(self) -> Usage:
        """What it takes of the volume."""
        return sum((journal.usage for journal in self.runs.values()), FOLDER + self.record_usage)

    def encode(self) -> bytes:
        """Return its record."""
        pod = msgspec.Raw(msgspec.json.encode(self.pod))
        return records.encode(PodRecord(self.cluster, pod, self.folder.parent.name, self.seen))

    def written(self) -> None:
        """Its record is on the volume."""
        self.is_dirty = False
        if not self.is_held:
            self._pod = None

    def rest(self) -> None:
        """Hold the pod no longer: nobody follows it any more."""
        self.is_held = False
        if not self.is_dirty:
            self._pod = None

    def journal(self, container: str, run: int) -> Journal:
        """Return the journal of a run, a new one if there is none; raises ArchiveError for a name that is no name."""
        known = self.runs.get((container, run))
        if known is None:
            name = f"{container}.{run}"
            if not _RUN.fullmatch(name) or len(container) > 63:
                raise ArchiveError(f"{name!r} is no name or uid that Kubernetes gives")
            known = self.runs[container, run] = Journal(self.folder, name, self._aside, Files())
        return known

    def newest_run(self, container: str) -> int:
        """Return the number of a container's last run; -1 before there is one."""
        return max((run for name, run in self.runs if name == container), default=-1)


@dataclass
class KeptJob:
    """A job and its pods."""

    folder: Path
    record: JobRecord
    pods: dict[str, KeptPod] = field(default_factory=dict)
    news: Notifier = field(default_factory=Notifier)
    """Set at the next change of a pod, a run or the job itself. Take it before looking, then wait for it."""
    usage: Usage = NOTHING
    """What it takes of the volume: kept up by the archive."""
    record_usage: Usage = NOTHING
    is_dirty: bool = False
    """Whether its record on the volume is not what it is now."""
    last_seen: float = 0.0
    """When its last pod was first kept; the next is not before it, whatever happens to the hub's clock."""

    @classmethod
    def load(cls, folder: Path, aside: SetAside) -> KeptJob:
        """Read a job's folder, and set aside what in it cannot be; raises OSError, RecordError."""
        data = volume.read(folder / JOB_FILE, RECORD_BYTES)
        record = records.decode(data, JobRecord)
        if record.uid != folder.name:
            raise RecordError(f"its record is of {record.uid}")
        job = cls(folder, record)
        job.record_usage = of_file(len(data))
        for entry in volume.entries(folder):
            path = folder / entry.name
            if entry.name == JOB_FILE:
                continue
            if volume.is_folder(entry) and is_name(entry.name):
                job._load_pod(path, aside)
            elif volume.is_removed(entry.name) or (path.suffix == volume.PARTIAL and volume.is_file(entry)):
                volume.remove(path)
            else:
                aside.put(path, "it is nothing that is kept of a job")
        job.usage = sum((pod.usage for pod in job.pods.values()), FOLDER + job.record_usage)
        return job

    def _load_pod(self, folder: Path, aside: SetAside) -> None:
        try:
            pod = self.pods[folder.name] = KeptPod.load(folder, self.folder.name, aside)
            self.last_seen = max(self.last_seen, pod.seen)
        except (OSError, RecordError) as error:
            set_folder_aside(folder, aside, str(error))

    @property
    def key(self) -> JobKey:
        """Which job it is; one that is made again under its name has the same."""
        return JobKey(self.record.namespace, self.record.name, self.record.kind)

    @property
    def namespace(self) -> tuple[str, str]:
        """Its namespace: one that is made again under its name is another."""
        return self.record.namespace, self.record.namespace_uid

    @property
    def journals(self) -> Iterator[Journal]:
        """All its journals."""
        for pod in self.pods.values():
            yield from pod.runs.values()

    @property
    def size(self) -> int:
        """Bytes of its logs."""
        return sum(journal.size for journal in self.journals)

    def encode(self) -> bytes:
        """Return its record."""
        return records.encode(self.record)

    def written(self) -> None:
        """Its record is on the volume."""
        self.is_dirty = False


def in_turn(pods: Iterable[KeptPod]) -> list[KeptPod]:
    """Return pods in the order in which they came.

    That is the order in which the hub first saw them, for no two clusters' clocks agree. Those that came from one
    cluster without another's between them are in that cluster's own order: after a start the hub sees many at once.
    """
    by_sight = sorted(pods, key=lambda pod: (pod.seen, pod.created, pod.name))
    stays = groupby(by_sight, key=lambda pod: pod.cluster)
    return [pod for _, stay in stays for pod in sorted(stay, key=lambda pod: (pod.created, pod.name))]


def is_name(text: str) -> bool:
    """Return whether a text is a name or uid as Kubernetes gives them, and so may be a file's."""
    try:
        msgspec.convert(text, Name)
    except msgspec.ValidationError:
        return False
    return True


def set_folder_aside(folder: Path, aside: SetAside, why: str) -> None:
    """Set a folder aside, unless it is empty: then a process was killed before there was anything to read."""
    try:
        folder.rmdir()
    except OSError:
        aside.put(folder, why)


def _read_pod(folder: Path, job: str) -> tuple[PodRecord, Pod]:
    record = records.decode(volume.read(folder / POD_FILE, RECORD_BYTES), PodRecord)
    try:
        pod = parse(record.pod)
    except PodRefusedError as error:
        raise RecordError(f"its pod is none: {error}") from error
    if pod.uid != folder.name or record.job not in {"", job}:
        raise RecordError(f"its record is of pod {pod.uid} of job {record.job or job}")
    return record, pod
