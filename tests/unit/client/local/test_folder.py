from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from trainplane.client.backends.local.folder import JobFolder

if TYPE_CHECKING:
    from pathlib import Path


def test_a_folder_is_made_once_and_private(tmp_path: Path) -> None:
    folder, lock = JobFolder.create(tmp_path / "jobs/a", {"trainjob": {"spec": {}}, "runtime": {}})
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert folder.is_supervised()
    with pytest.raises(FileExistsError):
        JobFolder.create(tmp_path / "jobs/a", {"trainjob": {}})
    assert [entry.name for entry in (tmp_path / "jobs").iterdir()] == ["a"]
    os.close(lock)
    assert not folder.is_supervised()
    assert [found.name for found in JobFolder.all_in(tmp_path / "jobs")] == ["a"]
    folder.remove()
    assert JobFolder.all_in(tmp_path / "jobs") == []
    assert JobFolder.all_in(tmp_path / "nowhere") == []


def test_whoever_watches_sees_the_end_of_a_supervisor_that_removed_the_job(tmp_path: Path) -> None:
    folder, lock = JobFolder.create(tmp_path / "a", {"trainjob": {}})
    with folder.watched() as is_supervised:
        folder.remove()
        assert is_supervised()
        os.close(lock)
        assert not is_supervised()
    with folder.watched() as is_supervised:
        assert not is_supervised()


def test_documents_are_read_as_they_were_written(tmp_path: Path) -> None:
    folder, lock = JobFolder.create(tmp_path / "a", {"trainjob": {"spec": {"x": 1}}})
    assert folder.read("status") is None
    assert folder.read_job() == {"spec": {"x": 1}}
    before = folder.version()
    folder.write("status", {"conditions": []})
    folder.touch()
    assert folder.version() != before
    assert folder.read_job() == {"spec": {"x": 1}, "status": {"conditions": []}}
    for name, time in (("b", "2"), ("a", "2"), ("c", "1")):
        folder.write(f"pods/{name}", {"metadata": {"name": name, "creationTimestamp": time}})
    folder.drop_pod("b")
    folder.drop_pod("b")
    assert [pod["metadata"]["name"] for pod in folder.read_pods()] == ["c", "a"]
    assert folder.read_events() == []
    folder.append_event({"reason": "One"})
    folder.append_event({"reason": "Two"})
    assert [event["reason"] for event in folder.read_events()] == ["One", "Two"]
    with (folder.path / "events.jsonl").open("a") as file:
        file.write('{"reason": "Thr')
    assert [event["reason"] for event in folder.read_events()] == ["One", "Two"], "half a line is none yet"
    folder.ring()  # nobody listens
    pipe = os.open(folder.wake, os.O_RDONLY | os.O_NONBLOCK)
    folder.ring()
    assert os.read(pipe, 10) == b"!"
    os.close(pipe)
    os.close(lock)


def test_progress_is_read_beside_the_status(tmp_path: Path) -> None:
    folder, lock = JobFolder.create(tmp_path / "a", {"trainjob": {"spec": {}}, "status": {"conditions": []}})
    folder.progress.write_text('{"progressPercentage": 5}')
    assert folder.read_job() == {"spec": {}, "status": {"conditions": [], "trainerStatus": {"progressPercentage": 5}}}
    os.close(lock)


@pytest.mark.parametrize("content", ["", "{", "[]", "5", '{"a": "' + "x" * 70_000 + '"}', "[" * 60_000, "\xff"])
def test_what_is_no_report_of_progress_is_none(tmp_path: Path, content: str) -> None:
    folder, lock = JobFolder.create(tmp_path / "a", {"trainjob": {"spec": {}}})
    folder.progress.write_bytes(content.encode("latin-1"))
    assert folder.read_job() == {"spec": {}}
    os.close(lock)


def test_a_training_leads_nobody_to_another_file_nor_keeps_them_waiting(tmp_path: Path) -> None:
    folder, lock = JobFolder.create(tmp_path / "a", {"trainjob": {"spec": {}}})
    (tmp_path / "secret.json").write_text('{"password": "x"}')
    folder.progress.symlink_to(tmp_path / "secret.json")
    assert folder.read_job() == {"spec": {}}
    folder.progress.unlink()
    os.mkfifo(folder.progress)
    assert folder.read_job() == {"spec": {}}
    folder.progress.unlink()
    folder.progress.mkdir()
    assert folder.read_job() == {"spec": {}}
    os.close(lock)
