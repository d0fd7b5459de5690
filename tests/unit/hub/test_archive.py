from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.unit.hub.kept import NAMESPACE_UID, keep, numbered, parsed, pod
from trainplane.hub.errors import ArchiveError, PodRefusedError
from trainplane.hub.logarchive.archive import Archive
from trainplane.hub.logarchive.retention import FOLDER, Retention
from trainplane.hub.logarchive.volume import measure
from trainplane.kube.testing.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def archive(tmp_path: Path, clock: FakeClock) -> Iterator[Archive]:
    opened = Archive(tmp_path, Retention(), clock)
    yield opened
    opened.close()


def reopened(archive: Archive, tmp_path: Path, clock: FakeClock, retention: Retention | None = None) -> Archive:
    archive.close()
    archive.close = lambda: None  # type: ignore[method-assign] # the fixture's own close would come second
    return Archive(tmp_path, retention or Retention(), clock)


def text(job_archive: Archive) -> dict[tuple[str, str, int], bytes]:
    return {
        (kept.name, container, run): journal.read(0)[0]
        for job in job_archive
        for kept in job.pods.values()
        for (container, run), journal in kept.runs.items()
    }


def test_everything_is_there_after_a_restart(archive: Archive, tmp_path: Path, clock: FakeClock) -> None:
    first, second = pod("x-node-0-0-aaaaa"), pod("x-node-0-1-bbbbb", index=1)
    job, _ = keep(archive, first, numbered(3))
    keep(archive, first, numbered(2, 3), run=1)
    keep(archive, second, numbered(4))
    archive.mark(job, finished=True)
    before = text(archive)
    again = reopened(archive, tmp_path, clock)
    assert text(again) == before
    assert len(before) == 3
    (found,) = again
    assert found.record == job.record
    assert {kept.pod.uid for kept in found.pods.values()} == set(found.pods)
    assert {kept.cluster for kept in found.pods.values()} == {"worker1"}
    assert (again.usage, again.set_aside.count) == (measure(tmp_path / "jobs") - FOLDER, 0)
    again.close()


def test_a_killed_process_leaves_nothing_half(archive: Archive, tmp_path: Path, clock: FakeClock) -> None:
    keep(archive, pod(), numbered(3))
    jobs = tmp_path / "jobs"
    (jobs / "job-2").mkdir()
    (jobs / "job-3").mkdir()
    (jobs / "job-3" / "job.json").write_text('{"uid":')
    (jobs / "job-1" / "uid-half").mkdir()
    (jobs / "job-1" / "job.partial").write_text("{")
    again = reopened(archive, tmp_path, clock)
    assert [job.record.uid for job in again] == ["job-1"]
    assert list(text(again)) == [("x-node-0-0-abcde", "node", 0)]
    assert sorted(path.name for path in jobs.iterdir()) == ["job-1"]
    again.close()


def test_a_volume_has_one_server(archive: Archive, tmp_path: Path, clock: FakeClock) -> None:
    with pytest.raises(ArchiveError, match=r"--data: .* is in use by another hub server"):
        Archive(tmp_path, Retention(), clock)


@pytest.mark.parametrize("name", ["..", "a/b", "", "UPPER", ".hidden", "a\n"])
def test_names_that_are_none_never_become_files(archive: Archive, name: str) -> None:
    with pytest.raises(ArchiveError, match="is no name or uid"):
        archive.admit(name, "team", "x", NAMESPACE_UID)
    job = archive.admit("job-1", "team", "x", NAMESPACE_UID)
    tree = pod()
    tree["metadata"]["uid"] = name
    with pytest.raises(PodRefusedError):
        archive.put_pod(job, "worker1", parsed(tree))
    with pytest.raises(ArchiveError):
        archive.put_pod(job, "worker1", parsed(pod())).journal(name, 0)


async def test_a_namesake_is_another_job(archive: Archive, clock: FakeClock) -> None:
    keep(archive, pod("x-node-0-0-aaaaa"), numbered(1), uid="job-1")
    await clock.advance(60)
    keep(archive, pod("x-node-0-0-bbbbb"), numbered(1), uid="job-2")
    latest = archive.latest("team", "x", NAMESPACE_UID)
    assert latest is not None
    assert latest.record.uid == "job-2"
    assert archive.latest("team", "y", NAMESPACE_UID) is None
    assert archive.latest("other", "x", NAMESPACE_UID) is None
    assert archive.latest("team", "x", "ns-2") is None, "a namespace that is made again is another"
    assert archive.latest("team", "x", "") is None


async def test_news_of_a_job_wake_who_waits(archive: Archive) -> None:
    begun = archive.news.next
    job, kept = keep(archive, pod(state="waiting"), [])
    assert begun.is_set()

    news = job.news.next
    archive.put_pod(job, "worker1", parsed(pod()))
    assert news.is_set()
    news = job.news.next
    archive.put_pod(job, "worker1", parsed(pod()))
    assert not news.is_set(), "nothing changed"
    archive.append(job, kept.journal("node", 0), numbered(1))
    assert news.is_set()
    news = job.news.next
    archive.mark(job, finished=True)
    assert news.is_set()


async def test_the_first_finish_counts(archive: Archive, clock: FakeClock) -> None:
    job, _ = keep(archive, pod(), numbered(1))
    archive.mark(job, finished=True)
    first = job.record
    await clock.advance(100)
    archive.mark(job, finished=True)
    assert job.record == first
    archive.mark(job, deleted=True)
    assert job.record.deleted == clock.now().timestamp()


async def test_what_changes_while_records_are_written_is_written_too(archive: Archive) -> None:
    job, kept = keep(archive, pod(), numbered(1))

    def change(phase: str) -> asyncio.Task[None]:
        archive.put_pod(job, f"worker-{phase}", kept.pod)
        return asyncio.create_task(archive.flush())

    for turn in range(20):
        first = change(f"{turn}-a")
        await asyncio.sleep(0)
        await asyncio.gather(first, change(f"{turn}-b"), archive.flush())
        assert f'"worker-{turn}-b"' in (kept.folder / "pod.json").read_text()


async def test_what_is_over_its_time_goes_from_the_volume(tmp_path: Path, clock: FakeClock) -> None:
    archive = Archive(tmp_path, Retention(seconds=100), clock)
    done, _ = keep(archive, pod(), numbered(1), uid="job-1")
    keep(archive, pod("other"), numbered(1), uid="job-2")
    archive.mark(done, finished=True)
    await clock.advance(99)
    archive.enforce()
    assert len(list(archive)) == 2
    await clock.advance(2)
    archive.enforce()
    assert [job.record.uid for job in archive] == ["job-2"]
    assert [path.name for path in (tmp_path / "jobs").iterdir()] == ["job-2"]
    archive.close()


def test_a_job_stays_within_its_bytes_and_keeps_what_is_newest(tmp_path: Path, clock: FakeClock) -> None:
    archive = Archive(tmp_path, Retention(job_bytes=400_000), clock)
    loud, quiet = pod("loud"), pod("quiet", index=1)
    lines = numbered(40_000)
    job, _ = keep(archive, quiet, numbered(100))
    for start in range(0, len(lines), 100):
        keep(archive, loud, lines[start : start + 100])
        assert job.usage.bytes <= 400_000
    kept = {pod.name: next(iter(pod.runs.values())) for pod in job.pods.values()}
    assert kept["quiet"].read(0)[0].count(b"\n") == 100
    assert kept["loud"].begin > 0
    assert kept["loud"].size > 250_000
    assert next(kept["loud"].backward())[1] == lines[-1]
    archive.close()


def test_all_jobs_stay_within_their_bytes(tmp_path: Path, clock: FakeClock) -> None:
    archive = Archive(tmp_path, Retention(total_bytes=200_000), clock)
    done, _ = keep(archive, pod("done"), numbered(1000), uid="job-1")
    archive.mark(done, finished=True)
    for uid in ("job-2", "job-3"):
        for start in range(0, 5000, 100):
            keep(archive, pod(f"runs-{uid}"), numbered(100, start), uid=uid)
    archive.enforce()
    assert [job.record.uid for job in archive] == ["job-2", "job-3"]
    assert all(job.size > 45_000 for job in archive)
    assert archive.usage.bytes <= 200_000
    assert archive.usage == measure(tmp_path / "jobs") - FOLDER
    archive.close()


def test_where_a_pod_stands(archive: Archive) -> None:
    _, kept = keep(archive, pod("a", step="launcher", index=3, job_index=2), [])
    assert (kept.index, kept.name) == (("launcher", 2, 3), "a")
    bare = pod("b")
    del bare["metadata"]["labels"]
    _, kept = keep(archive, bare, [])
    assert kept.index == ("", 0, 0)
