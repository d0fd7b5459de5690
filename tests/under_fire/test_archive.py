"""What the hub keeps: never deleted because it cannot be read, and no full volume keeps the server from starting."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.security.volumes import fill, inodes, mounted, start
from tests.unit.hub.kept import keep, numbered, pod
from tests.unit.hub.test_archive_old import leave
from trainplane.hub.logarchive import records
from trainplane.hub.logarchive.archive import Archive
from trainplane.hub.logarchive.retention import FOLDER, Retention
from trainplane.hub.logarchive.volume import measure
from trainplane.kube.testing.clock import FakeClock
from trainplane.kube.testing.server import FakeServer

if TYPE_CHECKING:
    from collections.abc import Iterator

UNREAD = ("hub-and-sdk", 5, "the hub deleted kept logs whose record it could not read, and fsynced none")
FULL = ("hub-and-sdk", 8, "a full volume kept the hub from starting, and records were not counted")


@pytest.mark.finding(*UNREAD)
@pytest.mark.parametrize("harm", ["emptied", "made a folder", "of a later release", "of another schema"])
def test_lines_whose_record_cannot_be_read_stay_on_the_volume(tmp_path: Path, harm: str) -> None:
    archive = Archive(tmp_path, Retention(), FakeClock())
    job, _ = keep(archive, pod(), numbered(3))
    record = job.folder / "job.json"
    archive.close()
    written = {
        "emptied": b"",
        "of a later release": record.read_bytes().replace(b'"version":%d' % records.VERSION, b'"version":99'),
        "of another schema": b'{"id":"job-1"}',
    }
    record.unlink()
    if harm == "made a folder":
        record.mkdir()
    else:
        record.write_bytes(written[harm])
    before = inodes(tmp_path)
    for _ in range(2):  # the second start finds it where the first put it
        again = Archive(tmp_path, Retention(), FakeClock())
        again.enforce()
        assert list(again) == []
        assert len(list(again.set_aside)) == 1
        again.close()
    assert inodes(tmp_path).keys() >= before.keys(), "not one file was deleted"


@pytest.mark.finding(*UNREAD)
async def test_records_are_on_the_disk_and_say_their_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = list[str]()
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    archive = Archive(tmp_path, Retention(), FakeClock())
    job, kept = keep(archive, pod(), numbered(3))
    archive.mark(job, finished=True)
    await archive.flush()
    archive.close()
    assert f'"version":{records.VERSION}'.encode() in (job.folder / "job.json").read_bytes()
    places = {path.replace(".partial", ".json") for path in synced}
    assert places >= {str(job.folder / "job.json"), str(kept.folder / "pod.json"), str(job.folder), str(kept.folder)}


@pytest.fixture
def small_volume(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a volume of 1 MiB."""
    with mounted(tmp_path / "data", "1m") as folder:
        yield folder


@pytest.mark.finding(*FULL)
async def test_a_server_starts_on_a_full_volume(small_volume: Path) -> None:
    for number in range(12):
        leave(small_volume, uid=f"gone-{number}")
    fill(small_volume / "ballast")
    async with FakeServer() as server, server.client() as client:  # which knows none of these jobs: each record says so
        archive = await start(small_volume, client)
        assert len(list(archive)) > 0
        keep(archive, pod("new-node-0-0-abcde"), numbered(100), uid="new")
        assert archive.job("new") is not None, "room was made for it"
        archive.close()


@pytest.mark.finding(*FULL)
def test_everything_on_the_volume_is_counted(tmp_path: Path) -> None:
    archive = Archive(tmp_path, Retention(), FakeClock())
    for number in range(20):
        keep(archive, pod(f"x-node-0-{number}-abcde", index=number), numbered(1))
    assert archive.usage == measure(tmp_path / "jobs") - FOLDER
    assert archive.usage.bytes > 20 * 4096, "a record for each pod, not only its line"
    archive.close()
