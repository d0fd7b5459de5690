"""Volumes that came to harm: the server starts, shows what is whole and nothing else, and says what it set aside."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.security.volumes import Damage, Lines, build, inodes, read, start
from tests.size import sized
from trainplane.hub.apiserver import logs
from trainplane.hub.apiserver.logquery import LogQuery
from trainplane.kube.testing.server import FakeServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.suite import SuiteReport
    from trainplane.hub.logarchive.archive import Archive

CASES = sized(500, full=10_000)
SECRET = b"2026-01-01T00:00:00Z classified\n"


def deleted(before: dict[int, Path], after: dict[int, Path], archive: Archive) -> list[Path]:
    """Return what is no longer there, but for records that were read and then written anew."""
    known = {job.folder / "job.json" for job in archive}
    return [path for inode, path in before.items() if inode not in after and path not in known]


def judge(archive: Archive, damage: Damage, good: Lines) -> None:
    """See that what is shown is part of what was kept, and that what was not touched is all there."""
    shown = read(archive)
    for log, lines in shown.items():
        place = iter(good.get(log, ()))
        assert all(line in place for line in lines), f"{log}: shows what is not its own, or in another order"
    for log, lines in good.items():
        if not damage.is_touched(log):
            assert shown.get(log) == lines, f"{log}: was not touched and is not whole"
    lost = any(shown.get(log) != lines for log, lines in good.items())
    assert archive.set_aside.count > 0 or not lost, "lines are gone, and nothing was said"


def judge_views(archive: Archive) -> None:
    """See that readers get through, and what they get."""
    for job in archive:
        if not job.pods or not any(pod.runs for pod in job.pods.values()):
            continue
        text = b"".join(logs.read(job, LogQuery(rank=None), 0))
        for line in text.splitlines():
            assert b"[trainplane] " in line or job.record.uid.encode() in line
        assert SECRET.split()[-1] not in text


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder in memory: thousands of volumes, each synced, would wait for the disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as path:
        yield Path(path)


@pytest.mark.attack(
    "a bad disk, a restore by hand, whoever has the volume",
    "a hub that never starts again, or shows other teams' lines",
)
async def test_a_damaged_volume_neither_stops_the_server_nor_shows_what_is_not_whole(
    folder: Path, report: SuiteReport
) -> None:
    good = build(folder / "good")
    outside = folder / "outside" / "secret"
    outside.parent.mkdir()
    outside.write_bytes(SECRET)
    async with FakeServer() as server, server.client() as client:
        for seed in range(CASES):
            volume = folder / "volume"
            shutil.copytree(folder / "good", volume)
            damage = Damage(volume, Random(seed), outside)  # noqa: S311 cases that can be repeated
            done = damage.do()
            before = inodes(volume)
            try:
                archive = await start(volume, client)
                judge(archive, damage, good)
                if seed % 10 == 0:
                    judge_views(archive)
                archive.close()
                assert deleted(before, inodes(volume), archive) == []
                assert (outside.read_bytes(), len(list(outside.parent.iterdir()))) == (SECRET, 1)
            except BaseException as error:
                error.add_note(f"seed {seed}: {done}: {sorted(map(str, damage.touched))}")
                raise
            shutil.rmtree(volume)
    report.figure("archives_damaged", CASES)
