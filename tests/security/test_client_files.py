"""Another user of the machine on which somebody trains: what the local backends write must be out of their reach."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import pytest

from trainplane.client.backends.local import runtimes
from trainplane.client.backends.local.keys import make_kept
from trainplane.client.backends.local.rendering import render
from trainplane.client.backends.process import ProcessBackend
from trainplane.client.client import TrainerClient
from trainplane.client.errors import InvalidError, TrainplaneError
from trainplane.client.options import Name
from trainplane.client.types.backends import LocalProcessBackendConfig
from trainplane.client.types.trainers import ScriptTrainer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OTHER = "another user of the machine"
LOOK = """
import os, stat, tempfile
for path in (tempfile.gettempdir(), os.path.dirname(tempfile.gettempdir()), os.getcwd()):
    found = os.lstat(path)
    print(path, oct(stat.S_IMODE(found.st_mode)), found.st_uid)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the machine keeps temporary files, and a workspace with a script that looks around."""
    for name in ("tmp", "work", "victim"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "work" / "look.py").write_text(LOOK)
    return tmp_path


@pytest.fixture
def clients(folder: Path) -> Iterator[dict[bool, TrainerClient]]:
    """Return clients of the process backend, by whether packages are kept."""
    made = {
        keep: TrainerClient(LocalProcessBackendConfig(state=folder / "state", cleanup_venv=not keep))
        for keep in (True, False)
    }
    yield made
    for job in made[True].list_jobs():
        made[True].delete_job(job.name)
    for client in made.values():
        client.close()


def run(client: TrainerClient, folder: Path, name: str) -> list[str]:
    client.train(
        "xgboost-distributed", trainer=ScriptTrainer("look.py", workspace=folder / "work"), options=[Name(name)]
    )
    client.wait_for_job_status(name, timeout=120)
    return list(client.get_job_logs(name))


@pytest.mark.attack(OTHER, "to run code as the one who trains, from a temporary folder whose name can be foreseen")
def test_no_temporary_folder_can_be_laid_out_beforehand(clients: dict[bool, TrainerClient], folder: Path) -> None:
    for name in (f"tp-kept-{os.getuid()}", f"trainplane-{os.getuid()}", "tp-"):
        (folder / "tmp" / name).symlink_to(folder / "victim")
    seen = [run(clients[keep], folder, f"look-{number}") for number, keep in enumerate((True, True, False))]
    assert list((folder / "victim").iterdir()) == []
    roots = [lines[1].split()[0] for lines in seen]
    assert len(set(roots)) == len(roots)


@pytest.mark.attack(OTHER, "to read code, tokens and checkpoints in the folders of somebody's training")
def test_folders_of_a_training_are_closed_to_others(clients: dict[bool, TrainerClient], folder: Path) -> None:
    before = os.umask(0o000)
    try:
        for path, mode, owner in (line.split() for line in run(clients[True], folder, "closed")[:2]):
            assert (mode, owner) == ("0o700", str(os.getuid())), path
    finally:
        os.umask(before)
    assert (folder / "state/process/jobs/closed").stat().st_mode & 0o077 == 0


@pytest.mark.attack(OTHER, "jobs, with the secrets that they are given, in a folder that others can write into")
def test_a_state_folder_that_others_can_write_is_refused(folder: Path) -> None:
    jobs = folder / "state" / "process" / "jobs"
    jobs.mkdir(parents=True)
    jobs.chmod(0o777)
    job: dict[str, Any] = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "a"},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"command": ["true"]}},
    }
    backend = ProcessBackend(LocalProcessBackendConfig(state=folder / "state"))
    with pytest.raises(InvalidError, match=r"state: .* is not yours alone"):
        asyncio.run(backend.submit(job))
    assert list(jobs.iterdir()) == []


@pytest.mark.attack(
    "whoever reaches a Flux broker", "to be trusted, because its certificate is an SSH key that is none"
)
def test_flux_never_gets_an_ssh_key_for_a_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    job: dict[str, Any] = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "a", "uid": "u"},
        "spec": {"runtimeRef": {"name": "flux"}, "trainer": {"command": ["true"], "numNodes": 2}},
    }
    (kept,) = render(job, runtimes.load("flux-distributed", ())).kept
    assert set(make_kept(kept)["data"]) == {"curve.cert"}
    for name in ("cryptography", *(name for name in sys.modules if name.startswith("cryptography."))):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(TrainplaneError, match="pip install cryptography"):
        make_kept(kept)
