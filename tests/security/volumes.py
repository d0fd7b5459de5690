"""An archive with several teams' jobs, what its lines are, and ways in which a volume comes to harm."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import stat
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tests.unit.hub.kept import parsed, pod
from tests.unit.hub.kubelet import START, line
from trainplane.hub.logarchive.archive import Archive
from trainplane.hub.logarchive.collector import LogCollector
from trainplane.hub.logarchive.jobs import Jobs
from trainplane.hub.logarchive.lines import NOTE
from trainplane.hub.logarchive.retention import Retention
from trainplane.kube.testing.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from random import Random

    from trainplane.hub.logarchive.journal import Journal
    from trainplane.kube.client import Client

TEAMS = {"red": 2, "blue": 1}
"""Teams with the number of their jobs."""
_COPIED = 1 << 20
"""Bytes of a file from which on it is not copied: one with holes would fill a real disk."""
RETENTION = Retention(total_bytes=64 << 20, job_bytes=1 << 20)


class Log(NamedTuple):
    """Whose lines they are."""

    job: str
    pod: str
    container: str
    run: int


Lines = dict[Log, list[bytes]]


def job_uid(team: str, number: int) -> str:
    return f"{team}-job-{number}"


def build(folder: Path) -> Lines:
    """Keep jobs of two teams; return all lines. No two of them are alike, and each says whose it is."""
    archive = Archive(folder, RETENTION, FakeClock())
    lines: Lines = {}
    for team, jobs in TEAMS.items():
        for number in range(jobs):
            job = archive.admit(job_uid(team, number), team, f"job-{number}", f"ns-{team}")
            for index in range(2 - number):
                tree = pod(f"{team}-{number}-pod-{index}", index=index)
                kept = archive.put_pod(job, "worker1", parsed(tree))
                for run in range(2):
                    log = Log(job.record.uid, kept.uid, "node", run)
                    lines[log] = _print(archive, job, kept.journal("node", run), log)
                    if run == 0 or number == 0:
                        archive.finish(job, kept.journal("node", run), "ended")
                kept.rest()
            if number == 0:
                archive.mark(job, finished=True)
    archive.close()
    return lines


def _print(archive: Archive, job: Any, journal: Journal, log: Log) -> list[bytes]:
    """Fill some frames, of which the first run has several."""
    printed = []
    name = "/".join(map(str, log))
    for batch in range(1 + 2 * (log.run == 0)):
        some = [
            line(START + 100 * batch + number, f"{name} {batch} {number:05d}".ljust(900, ".")) for number in range(19)
        ]
        archive.append(job, journal, some)
        printed += some
    return printed


def text_of(journal: Journal) -> list[bytes]:
    """Return the lines of a journal without remarks."""
    data, offset = b"", journal.begin
    while True:
        block, offset = journal.read(offset, 1 << 14)
        if not block:
            return [each for each in data.split(b"\n")[:-1] if not each.startswith(NOTE)]
        data += block


def read(archive: Archive) -> Lines:
    """Return all lines that an archive shows."""
    return {
        Log(job.record.uid, kept.uid, container, run): text_of(journal)
        for job in archive
        for kept in job.pods.values()
        for (container, run), journal in kept.runs.items()
    }


@dataclass
class Damage:
    """What is done to a volume. Each way returns the files that it touched; a job's and a pod's own count for all."""

    folder: Path
    random: Random
    outside: Path
    """A file that is no part of the volume."""
    touched: set[Path] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.jobs = self.folder / "jobs"
        self.files: list[Path] = []
        self.folders: list[Path] = []

    def do(self) -> str:
        """Do some damage; return what."""
        names = []
        for _ in range(self.random.choice((1, 1, 1, 2, 4))):
            self._look()
            way = self.random.choice(WAYS)
            names.append(way.__name__)
            try:
                self.touched.update(way(self))
            except (OSError, ValueError, IndexError, KeyError):  # what was done before left nothing for it to do
                self.touched.add(self.folder)
        return ", ".join(names)

    def _look(self) -> None:
        """Find out what there is that is as it was: later damage is to that, and to nothing outside."""
        inside = [Path(root) for root, _, _ in os.walk(self.jobs)] if not self.jobs.is_symlink() else []
        self.folders = [path for path in inside if path != self.jobs and len(path.relative_to(self.jobs).parts) < 3]
        found = (path for folder in sorted(self.folders) for path in sorted(folder.iterdir()))
        self.files = [path for path in found if stat.S_ISREG(path.lstat().st_mode) and path.stat().st_size < _COPIED]
        self.folders.sort()

    def is_touched(self, log: Log) -> bool:
        """Return whether anything was done to what a log needs to be shown."""
        job = self.jobs / log.job
        pod_folder = job / log.pod
        needed = {self.folder, self.jobs, job, job / "job.json", pod_folder, pod_folder / "pod.json"}
        prefix = f"{log.container}.{log.run}."
        return any(
            path in needed or (path.parent == pod_folder and path.name.startswith(prefix)) for path in self.touched
        )

    def file(self) -> Path:
        return self.random.choice(self.files)

    def bytes(self, most: int) -> bytes:
        return self.random.randbytes(self.random.randrange(1, most))


def flip_bits(damage: Damage) -> Iterable[Path]:
    path = damage.file()
    data = bytearray(path.read_bytes())
    for _ in range(damage.random.choice((1, 1, 8, 64))):
        if data:
            data[damage.random.randrange(len(data))] ^= 1 << damage.random.randrange(8)
    path.write_bytes(data)
    return {path}


def truncate(damage: Damage) -> Iterable[Path]:
    path = damage.file()
    os.truncate(path, damage.random.choice((0, damage.random.randrange(1 + path.stat().st_size))))
    return {path}


def extend(damage: Damage) -> Iterable[Path]:
    path = damage.file()
    with path.open("ab") as file:
        file.write(damage.bytes(5000))
    return {path}


def make_sparse(damage: Damage) -> Iterable[Path]:
    path = damage.file()
    os.truncate(path, 1 << 26)  # a copy of it is not sparse: 64 MiB fit any machine
    return {path}


def overwrite(damage: Damage) -> Iterable[Path]:
    path = damage.file()
    path.write_bytes(damage.bytes(20_000))
    return {path}


def swap_files(damage: Damage) -> Iterable[Path]:
    one = damage.file()
    other = damage.random.choice([path for path in damage.files if path.suffix == one.suffix])
    return _swap(one, other)


def swap_logs(damage: Damage) -> Iterable[Path]:
    """Two segments with their checksums, of two teams mostly."""
    lines = [path for path in damage.files if path.suffix == ".lines"]
    one, other = damage.random.sample(lines, 2)
    return {*_swap(one, other), *_swap(one.with_suffix(".sum"), other.with_suffix(".sum"))}


def swap_folders(damage: Damage) -> Iterable[Path]:
    one, other = damage.random.sample(damage.folders, 2)
    if one in other.parents or other in one.parents:
        return set()
    return _swap(one, other)


def copy_file(damage: Damage) -> Iterable[Path]:
    """Over another one, or under a name of its own."""
    one, other = damage.file(), damage.file()
    if one == other or damage.random.random() < 0.5:
        other = one.with_name(_changed(one.name, damage.random))
    shutil.copyfile(one, other)
    return {other}


def copy_log(damage: Damage) -> Iterable[Path]:
    """A segment with its checksums, as another run, another container or another offset."""
    lines = damage.random.choice([path for path in damage.files if path.suffix == ".lines"])
    container, run, offset, _ = lines.name.split(".")
    name = damage.random.choice((f"{container}.7.{offset}", f"web.{run}.{offset}", f"{container}.{run}.{500:012d}"))
    target = damage.random.choice([path for path in damage.folders if path.parent != damage.jobs])
    for suffix in (".lines", ".sum"):
        shutil.copyfile(lines.with_suffix(suffix), target / f"{name}{suffix}")
    return set()  # what is beside it must not suffer


def copy_folder(damage: Damage) -> Iterable[Path]:
    one = damage.random.choice(damage.folders)
    into = damage.random.choice([damage.jobs, *damage.folders])
    target = into / damage.random.choice((one.name, _changed(one.name, damage.random)))
    if one not in target.parents and not target.exists():
        shutil.copytree(one, target, symlinks=True, ignore_dangling_symlinks=True, copy_function=_copy_plain)
    return set()


def rename_file(damage: Damage) -> Iterable[Path]:
    path = damage.file()
    return {path, path.rename(path.with_name(_changed(path.name, damage.random)))}


def rename_folder(damage: Damage) -> Iterable[Path]:
    path = damage.random.choice(damage.folders)
    return {path, path.rename(path.with_name(_changed(path.name, damage.random)))}


def link_out(damage: Damage) -> Iterable[Path]:
    """A link in a file's or folder's place, to something outside, to another team's or to itself."""
    path = damage.random.choice([*damage.files, *damage.folders, damage.folder / "lock"])
    targets = [damage.outside, damage.outside.parent, damage.file(), damage.random.choice(damage.folders), path]
    _take_away(path)
    path.symlink_to(damage.random.choice(targets))
    return {path}


def change_kind(damage: Damage) -> Iterable[Path]:
    """A folder where a file should be, a file where a folder should be, something that is neither."""
    path = damage.random.choice([*damage.files, *damage.folders])
    was_file = path.is_file()
    _take_away(path)
    kind = damage.random.choice(("other", "pipe", "socket"))
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        _listen(path)
    elif was_file:
        path.mkdir()
    else:
        path.write_bytes(damage.bytes(200))
    return {path}


def nest_folders(damage: Damage) -> Iterable[Path]:
    folder = damage.random.choice([damage.folder, damage.jobs, *damage.folders])
    deep = folder / "/".join(["d"] * damage.random.choice((3, 120)))
    deep.mkdir(parents=True, exist_ok=True)
    (deep / "file").write_bytes(damage.bytes(100))
    return set()


def add_strangers(damage: Damage) -> Iterable[Path]:
    folder = damage.random.choice([damage.folder, damage.jobs, *damage.folders])
    for name in damage.random.sample(
        ["lost+found", ".hidden", "²", "node.²." + "0" * 12 + ".lines", "x.end", "UP", "a b"], 3
    ):
        (folder / name).write_bytes(damage.bytes(300))
    return set()


def be_newer(damage: Damage) -> Iterable[Path]:
    path = damage.random.choice([path for path in damage.files if path.suffix in {".json", ".end"}])
    path.write_bytes(b'{"version":99,"digest":"sha256:0","record":{"all":"new"}}')
    return {path}


def be_of_other_types(damage: Damage) -> Iterable[Path]:
    path = damage.random.choice([path for path in damage.files if path.suffix in {".json", ".end"}])
    record = msgspec.json.decode(path.read_bytes())["record"]
    name = damage.random.choice(sorted(record))
    record[name] = damage.random.choice(
        ([], {}, ["x"], True, *((None, 5, -1.5) if isinstance(record[name], str) else ("²",)))
    )
    path.write_bytes(msgspec.json.encode(record))
    return {path}


def spoil_the_top(damage: Damage) -> Iterable[Path]:
    """The folders that the server itself has."""
    aside, lock = damage.folder / "set-aside", damage.folder / "lock"
    match damage.random.randrange(4):
        case 0:
            aside.symlink_to(damage.outside.parent)
        case 1:
            aside.write_bytes(damage.bytes(100))
        case 2:
            lock.unlink(missing_ok=True)
            lock.mkdir()
        case _:
            kept = damage.folder / "elsewhere"
            damage.jobs.rename(kept)
            damage.jobs.symlink_to(kept)
            return {damage.jobs}
    return set()


WAYS: tuple[Callable[[Damage], Iterable[Path]], ...] = (
    *(flip_bits,) * 6,
    *(truncate,) * 3,
    extend,
    make_sparse,
    overwrite,
    swap_files,
    swap_logs,
    swap_folders,
    copy_file,
    copy_log,
    copy_folder,
    rename_file,
    rename_folder,
    *(link_out,) * 2,
    change_kind,
    nest_folders,
    add_strangers,
    be_newer,
    be_of_other_types,
    spoil_the_top,
)


def _swap(one: Path, other: Path) -> set[Path]:
    if one == other:
        return set()
    between = one.with_name("between")
    one.rename(between)
    other.rename(one)
    between.rename(other)
    return {one, other}


def _changed(name: str, random: Random) -> str:
    place = random.randrange(len(name))
    return random.choice(
        (name[:place] + random.choice("0a²Z.-") + name[place + 1 :], name + "x", f"9{name}", name[1:] or "x")
    )


def _copy_plain(source: str, target: str) -> None:
    if os.path.isfile(source) and os.path.getsize(source) < _COPIED:  # noqa: PTH113, PTH202 copytree gives texts
        shutil.copyfile(source, target, follow_symlinks=False)


def _take_away(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _listen(path: Path) -> None:
    """Make a socket; its path may be longer than sockets take, so it is made beside and moved."""
    short = path.parents[len(path.parents) - 3] / f"s{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(short))
    short.rename(path)


# -- starting on one ----------------------------------------------------------------------------------------------


class NoWorkers:
    async def names(self) -> tuple[str, ...]:
        return ()


async def start(folder: Path, client: Client) -> Archive:
    """Open a volume as the server does at its start, up to where it would answer."""
    clock = FakeClock()
    archive = Archive(folder, RETENTION, clock)
    jobs = Jobs(client, clock)
    for reflector in jobs.reflectors:
        reflector.synced.set()
        reflector.known.set()
    collector = LogCollector(client, NoWorkers(), jobs, archive, clock=clock)  # type: ignore[arg-type]
    running = asyncio.create_task(collector.run())
    looking = asyncio.create_task(collector.looked.wait())
    await asyncio.wait((running, looking), return_when=asyncio.FIRST_COMPLETED)
    assert not running.done(), running.exception()
    await archive.flush()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return archive


def inodes(folder: Path) -> dict[int, Path]:
    """Return all files below a folder, by what they are and not by what they are called."""
    paths = (Path(root) / name for root, _, files in os.walk(folder) for name in files)
    return {path.lstat().st_ino: path for path in paths if path.lstat().st_size}


@contextlib.contextmanager
def mounted(folder: Path, size: str) -> Iterator[Path]:
    """Make a folder that is a volume of its own, no larger than a size."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(path: Path) -> None:
    """Write a file until nothing more can be written."""
    ballast = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(ballast, b"\0" * 4096)
    except OSError:
        os.close(ballast)
