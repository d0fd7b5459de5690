"""Files that are not what they should be, records that cannot be believed, and what is done with them."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainplane.hub.errors import RecordError
from trainplane.hub.logarchive import records, volume
from trainplane.hub.logarchive.records import EndRecord, JobRecord
from trainplane.hub.logarchive.retention import BLOCK, FOLDER, NOTHING, Retention, Usage
from trainplane.hub.logarchive.volume import SetAside, measure

if TYPE_CHECKING:
    from pathlib import Path

RECORD = JobRecord(uid="job-1", namespace="team", name="x", seen=1.5, namespace_uid="ns-1", finished=2.0)


def aside(folder: Path, limit: Usage | None = None) -> SetAside:
    return SetAside(folder / "set-aside", limit or Retention().set_aside)


# -- records ------------------------------------------------------------------------------------------------------


def test_records_come_back_as_they_were() -> None:
    assert records.decode(records.encode(RECORD), JobRecord) == RECORD


def test_records_of_the_first_version_are_read() -> None:
    old = b'{"uid":"job-1","namespace":"team","name":"x","seen":1.5,"finished":2.0,"deleted":null}'
    assert records.decode(old, JobRecord) == JobRecord(
        uid="job-1", namespace="team", name="x", seen=1.5, finished=2.0, namespace_uid=""
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it is no record"),
        (b"\0" * 300, "it is no record"),
        (b'{"uid":"job-1"}', "it is no JobRecord"),
        (b'{"version":3,"digest":"","record":{}}', "it is of version 3, and this release reads up to 2"),
        (records.encode(RECORD).replace(b"team", b"meat"), "it does not fit its digest"),
        (records.encode(EndRecord("a", "b", 1)), "it is no JobRecord"),
        (b'{"uid":"../..","namespace":"team","name":"x","seen":1}', "it is no JobRecord"),
    ],
)
def test_records_that_cannot_be_believed(data: bytes, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        records.decode(data, JobRecord)


@given(st.integers(0, 10_000), st.integers(0, 7))
def test_no_flipped_bit_is_believed(place: int, bit: int) -> None:
    data = bytearray(records.encode(RECORD))
    data[place % len(data)] ^= 1 << bit
    try:
        found = records.decode(bytes(data), JobRecord)
    except RecordError:
        return
    assert found == RECORD, "only what means nothing may differ, such as the last newline"


# -- files --------------------------------------------------------------------------------------------------------


def test_only_files_are_read_and_none_that_is_too_long(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert volume.read(tmp_path / "file", 5) == b"12345"
    with pytest.raises(RecordError, match="more than 4 bytes"):
        volume.read(tmp_path / "file", 4)
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    os.truncate(tmp_path / "file", 1 << 34)
    for name in ("link", "folder", "pipe", "none"):
        with pytest.raises(OSError):  # noqa: PT011 whichever it is
            volume.read(tmp_path / name, 5)
    with pytest.raises(RecordError):
        volume.read(tmp_path / "file", 5)


def test_a_file_is_written_whole_and_never_through_a_link(tmp_path: Path) -> None:
    path, other = tmp_path / "job.json", tmp_path / "other"
    volume.write(path, b"one", durable=True)
    assert path.read_bytes() == b"one"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    other.write_bytes(b"kept")
    (tmp_path / "job.partial").symlink_to(other)
    with pytest.raises(OSError):  # noqa: PT011 whichever it is
        volume.write(path, b"two")
    assert (path.read_bytes(), other.read_bytes()) == (b"one", b"kept")
    (tmp_path / "job.partial").unlink()
    path.unlink()
    path.symlink_to(other)
    volume.write(path, b"three")
    assert (path.read_bytes(), path.is_symlink(), other.read_bytes()) == (b"three", False, b"kept")


def test_what_takes_how_much(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "file").write_bytes(b"x" * (BLOCK + 1))
    (tmp_path / "a" / "b" / "link").symlink_to("/")
    holes = tmp_path / "a" / "b" / "holes"
    holes.write_bytes(b"x")
    os.truncate(holes, 1 << 34)
    assert measure(tmp_path / "a") == FOLDER + FOLDER + Usage(2 * BLOCK, 1) + Usage(BLOCK, 1) + Usage(0, 1)
    assert measure(tmp_path / "none") == NOTHING


def test_anything_can_be_removed_and_nothing_beside_it(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"kept")
    folder = tmp_path / "volume" / "job"
    folder.mkdir(parents=True)
    here = os.open(folder, os.O_RDONLY)
    for _ in range(1200):  # deeper than recursion goes, and than a path may be long
        os.mkdir("d" * 9, dir_fd=here)
        inner = os.open("d" * 9, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    (folder / "link").symlink_to(outside)
    (folder / "file").write_bytes(b"x")
    volume.remove(folder)
    assert list((tmp_path / "volume").iterdir()) == []
    (tmp_path / "link").symlink_to(outside)
    volume.remove(tmp_path / "link")
    volume.remove(tmp_path / "none")
    assert (outside / "file").read_bytes() == b"kept"


def test_a_folder_that_was_not_removed_to_its_end_is_known(tmp_path: Path) -> None:
    assert volume.is_removed(".job-1.0.removed")
    assert not volume.is_removed("job-1")
    assert not volume.is_removed(".hidden")


# -- what is set aside --------------------------------------------------------------------------------------------


def test_what_is_set_aside_is_moved_counted_and_kept_over_a_restart(tmp_path: Path) -> None:
    (tmp_path / "jobs" / "job-1").mkdir(parents=True)
    (tmp_path / "jobs" / "job-1" / "job.json").write_bytes(b"?")
    first = aside(tmp_path)
    assert first.put(tmp_path / "jobs" / "job-1", "it is no record")
    assert (first.count, first.usage) == (1, measure(tmp_path / "set-aside"))
    (name,) = first
    assert name.endswith("jobs~job-1")
    assert (tmp_path / "set-aside" / name / "job.json").read_bytes() == b"?"
    again = aside(tmp_path)
    assert (list(again), again.usage, again.count) == ([name], first.usage, 0)


def test_what_cannot_be_moved_stays_and_counts(tmp_path: Path) -> None:
    found = aside(tmp_path)
    assert not found.put(tmp_path / "none", "it is gone")
    assert (found.count, list(found)) == (1, [])


def test_there_is_no_more_of_it_than_may_be(tmp_path: Path) -> None:
    found = aside(tmp_path, Usage(8 * BLOCK, 100))
    for number in range(20):
        path = tmp_path / f"file-{number}"
        path.write_bytes(b"x" * BLOCK)
        assert found.put(path, "bad")
        assert found.usage.within(found.limit)
    assert [name.partition("file-")[2] for name in found] == ["13", "14", "15", "16", "17", "18", "19"]
    assert found.usage == measure(tmp_path / "set-aside")


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_folder_for_it_that_is_none_is_not_used(tmp_path: Path, kind: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    place = tmp_path / "set-aside"
    place.symlink_to(outside) if kind == "link" else place.write_bytes(b"x")
    found = aside(tmp_path)
    (tmp_path / "bad").write_bytes(b"x")
    assert found.put(tmp_path / "bad", "bad")
    assert place.is_dir()
    assert not place.is_symlink()
    assert list(outside.iterdir()) == []
