"""Local jobs leave nothing for the next one to find (audit hub-and-sdk 15)."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pytest

from trainplane.client.client import TrainerClient
from trainplane.client.options import Name
from trainplane.client.types.backends import LocalProcessBackendConfig
from trainplane.client.types.trainers import ScriptTrainer

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.finding(
    "hub-and-sdk",
    15,
    "errors did not pickle, jobs left things to the next, watchers fetched all pods, and other small things",
)
STATE = """
import pathlib
state = pathlib.Path("state.txt")
print("found earlier state:", state.exists())
state.write_text("x")
"""


@pytest.mark.parametrize("cleanup_venv", [True, False])
def test_a_job_does_not_begin_in_the_working_directory_of_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cleanup_venv: bool
) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "work" / "train.py").write_text(STATE)
    config = LocalProcessBackendConfig(state=tmp_path / "state", cleanup_venv=cleanup_venv)
    with TrainerClient(config) as client:
        for name in ("first", "second"):
            trainer = ScriptTrainer("train.py", workspace=tmp_path / "work")
            client.train("xgboost-distributed", trainer=trainer, options=[Name(name)])
            client.wait_for_job_status(name, timeout=120)
            assert list(client.get_job_logs(name)) == ["found earlier state: False"]
            client.delete_job(name)
    assert list((tmp_path / "tmp").iterdir()) == []
