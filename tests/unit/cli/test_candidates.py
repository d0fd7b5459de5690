"""What a shell offers, and the scripts by which it asks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.served import Served
from tests.unit.client.reading.documents import NAMESPACE, train_job
from trainplane.cli import completing, main
from trainplane.cli.candidates import candidates
from trainplane.kube.testing.faults import Hang
from trainplane.resources import TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).resolve().parents[3] / "src"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path, NAMESPACE)
    served.put(TRAIN_JOBS, train_job("mnist"), train_job("cifar"))
    yield served
    served.close()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["fle"], ["fleet"]),
        (["fleet", ""], ["check", "sync"]),
        (["nonsense", ""], []),
        (["list", "--al"], ["--all-namespaces"]),
        (["list", "-o", "j"], ["json"]),
        (["fleet", "check", "--output", ""], ["text", "json"]),
        (["completion", "z"], ["zsh"]),
        (["bundle", "--output", ""], []),
    ],
)
def test_commands_options_and_values_are_offered(words: list[str], offered: list[str]) -> None:
    assert candidates(words) == offered


def test_every_command_is_offered() -> None:
    assert {"list", "logs", "fleet", "version"} <= set(candidates([""]))


def test_names_of_jobs_are_offered_once(served: Served) -> None:
    where = ["--kubeconfig", str(served.kubeconfig)]
    assert candidates(["logs", *where, "m"]) == ["mnist"]
    assert sorted(candidates(["explain", *where, ""])) == ["cifar", "mnist"]
    assert candidates(["logs", *where, "mnist", ""]) == []


def test_a_cluster_that_does_not_answer_offers_nothing(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completing, "PATIENCE_SECONDS", 0.05)
    served.change(lambda: served.server.add_fault(Hang(times=None)))
    assert candidates(["logs", "--kubeconfig", str(served.kubeconfig), ""]) == []
    assert candidates(["logs", "--kubeconfig", "/nowhere", ""]) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_a_script_for_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "_TRAINPLANE_COMPLETE" in capsys.readouterr().out


def test_bash_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["completion", "bash"])
    (tmp_path / "script").write_text(capsys.readouterr().out)
    program = tmp_path / "trainplane"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m trainplane.cli "$@"\n')
    program.chmod(0o755)
    words = f". {tmp_path}/script; COMP_WORDS=(trainplane fleet ''); COMP_CWORD=2; _trainplane; echo ${{COMPREPLY[@]}}"
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "check sync\n"
