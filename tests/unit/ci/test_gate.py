"""The gate's pytest plugin, in pytest runs of its own: what it leaves out, and when it runs a test again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
CONFTEST = """
from pathlib import Path
from tests import gate, selection, suite

suite.REPORTS = Path(__file__).parent
files = ("fixed", "changed", "share")
gate.read = lambda: selection.Selection(*((f"test_{name}.py",) for name in files))
"""
FLAKY = """
from pathlib import Path

def test_flaky(request):
    runs = Path(__file__).with_suffix(".runs")
    runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
    assert len(runs.read_text()) not in FAILS
"""


@dataclass
class Outcome:
    """How a run of pytest ended."""

    code: int
    output: str
    report: dict[str, Any]
    runs: int


def run(folder: Path, file: str, text: str, *options: str) -> Outcome:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / file).write_text(text)
    environ = os.environ | {"GATE": "1", "PYTHONPATH": f"{REPOSITORY}"}
    command = [sys.executable, "-m", "pytest", "-p", "tests.suite", "-p", "no:cacheprovider", "--suite=x", *options]
    ended = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    runs = folder / f"{Path(file).stem}.runs"
    assert (folder / "x.json").exists(), ended.stdout + ended.stderr
    report = json.loads((folder / "x.json").read_text())
    return Outcome(ended.returncode, ended.stdout, report, len(runs.read_text()) if runs.exists() else 0)


@pytest.mark.parametrize(("file", "passed"), [("test_fixed.py", 1), ("test_changed.py", 1), ("test_share.py", 1)])
def test_selected_test_runs(tmp_path: Path, file: str, passed: int) -> None:
    ended = run(tmp_path, file, FLAKY.replace("FAILS", "()"))
    assert (ended.code, ended.report["passed"], ended.runs) == (0, passed, 1)


def test_suite_without_selected_tests_passes(tmp_path: Path) -> None:
    ended = run(tmp_path, "test_other.py", FLAKY.replace("FAILS", "(1,)"))
    assert (ended.code, ended.report["passed"], ended.report["failed"], ended.runs) == (0, 0, 0, 0)


@pytest.mark.parametrize("options", [(), ("--numprocesses=1",)], ids=["alone", "xdist"])
def test_share_test_that_fails_once_is_racy(tmp_path: Path, options: tuple[str, ...]) -> None:
    ended = run(tmp_path, "test_share.py", FLAKY.replace("FAILS", "(1,)"), *options)
    assert (ended.code, ended.report["passed"], ended.report["failed"], ended.runs) == (0, 1, 0, 4)
    assert ended.report["figures"]["racy"] == 1
    assert ended.report["rows"] == [{"racy": "test_share.py::test_flaky"}]
    assert "RACY test_share.py::test_flaky failed" in ended.output
    assert "assert 1 not in (1,)" in ended.output


@pytest.mark.parametrize(("fails", "runs"), [("(1, 2)", 2), ("(1, 4)", 4)])
def test_share_test_that_fails_again_fails(tmp_path: Path, fails: str, runs: int) -> None:
    ended = run(tmp_path, "test_share.py", FLAKY.replace("FAILS", fails))
    assert (ended.code, ended.report["passed"], ended.report["failed"], ended.runs) == (1, 0, 1, runs)


@pytest.mark.parametrize("file", ["test_fixed.py", "test_changed.py"])
def test_other_test_that_fails_once_fails(tmp_path: Path, file: str) -> None:
    ended = run(tmp_path, file, FLAKY.replace("FAILS", "(1,)"))
    assert (ended.code, ended.report["failed"], ended.runs) == (1, 1, 1)
