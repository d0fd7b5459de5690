"""A training does not outlive its supervisor, also if nobody looks (hub-and-sdk 15)."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from typing import TYPE_CHECKING, Any

import pytest

from lab.processes import wait_for
from tests.sdk.local.machine import processes_with, scratch_folders, supervisors_of
from tests.unit.client.code.stage import Notebook
from trainplane.client.backends.local.processes import MARK
from trainplane.client.client import TrainerClient
from trainplane.client.options import Name
from trainplane.client.types.backends import LocalProcessBackendConfig
from trainplane.client.types.trainers import CustomTrainer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.finding(
    "hub-and-sdk",
    15,
    "errors did not pickle, jobs left things to the next, watchers fetched all pods, and other small things",
)
PATIENCE = 60.0
LONG = """
def fit():
    import subprocess, sys, time
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    print("begins", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[TrainerClient, Path]]:
    """Return a client, and the folder of a job `lost` that trains, with a process of its own session in it."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    notebook = Notebook()
    notebook.run(LONG)
    with TrainerClient(LocalProcessBackendConfig(state=tmp_path / "state")) as client:
        client.train("xgboost-distributed", trainer=CustomTrainer(notebook["fit"]), options=[Name("lost")])
        assert next(client.get_job_logs("lost", follow=True)) == "begins"
        yield client, tmp_path / "state/process/jobs/lost"
        if client.list_jobs():
            client.delete_job("lost")
    assert supervisors_of(tmp_path / "state/process/jobs/lost") == []


def until(true: Callable[[], Any]) -> None:
    wait_for("what the test expects", lambda: bool(true()), seconds=PATIENCE)


def test_a_killed_supervisor_takes_the_training_along(job: tuple[TrainerClient, Path]) -> None:
    client, folder = job
    assert len(processes_with(f"{MARK}=lost")) >= 2
    os.kill(supervisors_of(folder)[-1], signal.SIGKILL)
    until(lambda: not supervisors_of(folder))  # nobody asks for the job
    assert processes_with(f"{MARK}=lost") == []
    assert scratch_folders() == []
    conditions = {entry["type"]: entry for entry in json.loads((folder / "status.json").read_text())["conditions"]}
    assert conditions["Failed"]["reason"] == "SupervisorEnded"
    assert client.get_job("lost").status == "Failed"


def test_where_both_were_killed_the_next_look_ends_it(job: tuple[TrainerClient, Path]) -> None:
    client, folder = job
    for pid in supervisors_of(folder):
        os.kill(pid, signal.SIGKILL)
    # A killed process has lost its command line a moment before it gives up its files, and with them the lock.
    until(lambda: not supervisors_of(folder) and client.get_job("lost").status == "Failed")
    found = client.get_job("lost")
    assert found.cause
    assert found.cause.reason == "SupervisorEnded"
    assert processes_with(f"{MARK}=lost") == []


def test_a_deleted_job_leaves_nobody_behind(job: tuple[TrainerClient, Path]) -> None:
    client, folder = job
    client.delete_job("lost")
    assert supervisors_of(folder) == []
    assert processes_with(f"{MARK}=lost") == []
    assert not folder.exists()


def test_who_waits_for_the_supervisor_never_has_the_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory is read: it is ours."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    from trainplane.client.types.secrets import SecretRef  # noqa: PLC0415 for this test alone

    secret = "drawn-" + os.urandom(12).hex()
    notebook = Notebook()
    notebook.run(LONG)
    config = LocalProcessBackendConfig(state=tmp_path / "state", secrets={"hub": {"token": secret}})
    with TrainerClient(config) as client:
        trainer = CustomTrainer(notebook["fit"], env={"T": SecretRef("hub", "token")})
        client.train("xgboost-distributed", trainer=trainer, options=[Name("kept")])
        assert next(client.get_job_logs("kept", follow=True)) == "begins"
        waits, supervises = supervisors_of(tmp_path / "state/process/jobs/kept")
        found = {pid: secret.encode() in memory(pid) for pid in (waits, supervises)}
        client.delete_job("kept")
    assert found == {waits: False, supervises: True}


def memory(pid: int) -> bytes:
    """Return what a process has written into its memory."""
    read = b""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as content:  # noqa: PTH123 a file of the kernel's
        for line in maps:
            span, rights, *_ = line.split()
            begin, end = (int(edge, 16) for edge in span.split("-"))
            if rights.startswith("rw") and end - begin < 1 << 28:
                try:
                    content.seek(begin)
                    read += content.read(end - begin)
                except (OSError, ValueError, OverflowError):
                    continue
    return read
