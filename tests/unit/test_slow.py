"""`make slow`: what it runs, how often, and what it prints, with a stub in place of make."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import slow

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = Path(__file__).resolve().parents[2]
HERE = "tests/unit/test_slow.py"


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that makes `make --dry-run` print a recipe."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(slow, "REPORTS", tmp_path / "build/reports")
    monkeypatch.setattr("tests.suite.REPORTS", tmp_path / "build/reports")

    def prints(recipe: str) -> None:
        (tmp_path / "recipe").write_text(recipe)
        (tmp_path / "make").write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/asked\ncat {tmp_path}/recipe\n')
        (tmp_path / "make").chmod(0o755)

    return prints


def rows(tmp_path: Path) -> Any:
    return json.loads((tmp_path / "build/reports/slow.json").read_text())


def test_suite_that_passes_runs_as_often_as_told_on_one_core(
    target: Callable[[str], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = tmp_path / "seen"
    target(f"echo built >>{seen}\ntaskset --cpu-list --pid $$ >>{seen} # python -m pytest --suite e2e tests/e2e\n")
    assert slow.main(["--suite", "e2e", "--times", "3"]) == 0
    assert (tmp_path / "asked").read_text().split() == ["--dry-run", "--no-print-directory", "e2e"]
    built, *cores = seen.read_text().splitlines()
    assert built == "built", "what the suite needs is built once"
    assert [line.rpartition(" ")[2] for line in cores] == [str(max(os.sched_getaffinity(0)))] * 3
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in said[:-1]] == ["run 1 of 3", "run 2 of 3", "run 3 of 3"]
    assert said[-1] == "3 passed, 0 failed"
    written = rows(tmp_path)
    assert (written["passed"], written["failed"], len(written["rows"])) == (3, 0, 3)
    assert written["rows"][2] | {"seconds": 0} == {"suite": "e2e", "tests": "", "run": 3, "seconds": 0, "failures": []}


@pytest.mark.parametrize(("options", "runs"), [((), 1), (("--keep-going",), 2)])
def test_failure_ends_the_runs_unless_told_to_keep_going(
    target: Callable[[str], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    runs: int,
) -> None:
    target("echo 'FAILED tests/e2e/test_x.py::test_y - assert 0'; false # --suite e2e tests/e2e\n")
    assert slow.main(["--suite", "e2e", "--times", "2", *options]) == 1
    said = capsys.readouterr().out.splitlines()
    assert "failed: tests/e2e/test_x.py::test_y" in said[0]
    assert said[-1] == f"0 passed, {runs} failed"
    assert [row["failures"] for row in rows(tmp_path)["rows"]] == [["tests/e2e/test_x.py::test_y"]] * runs


def test_busy_process_computes_while_tests_run_and_ends_with_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    noted = tmp_path / "pid"
    program = f"import os, pathlib; pathlib.Path({str(noted)!r}).write_text(str(os.getpid()))\nwhile True: pass"
    monkeypatch.setattr(slow, "BUSY", (sys.executable, "-c", program))
    with slow.busy(max(os.sched_getaffinity(0))):
        subprocess.run(["bash", "-c", f"until test -s {noted}; do sleep 0.05; done"], check=True)
        process = Path("/proc", noted.read_text())
        assert process.exists()
    assert not process.exists()


LINE = (
    "rm -rf build/audit/e2e; A=build/audit/e2e python -m pytest -p x --suite e2e --timeout=600 --ignore tests/e2e/z"
    " tests/e2e"
)


@pytest.mark.parametrize(
    ("tests", "end"),
    [
        ("", "--timeout=600 --ignore tests/e2e/z tests/e2e"),
        (HERE, f"--timeout=600   {HERE}"),
        (f"{HERE}::test_x {HERE}::test_y", f"--timeout=600   {HERE}::test_x {HERE}::test_y"),
        ("kill and not mpi", "--timeout=600 --ignore tests/e2e/z tests/e2e -k 'kill and not mpi'"),
    ],
)
def test_tests_limits_the_suite_to_paths_or_an_expression(
    tests: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    made = slow.Commands("", LINE).limited("e2e", tests)
    words = made.split("--suite slow-e2e ")[1].split()
    assert words == end.split()
    assert made.startswith("rm -rf build/audit/slow-e2e; A=build/audit/slow-e2e python"), "e2e's own logs stay"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--suite", "e2e", "--times", "0"), "TIMES=0: must be at least 1"),
        (("--suite", ""), "SUITE=: must be a target of make, such as SUITE=fleet"),
        (("--suite", "slow"), "SUITE=slow: must be a target"),
        (("--suite", "format"), "SUITE=format: not a target that runs tests"),
        (("--suite", "e2e", "--tests", "tests/nowhere.py"), "TESTS=tests/nowhere.py: no such file"),
    ],
)
def test_arguments_that_name_nothing_are_refused(
    target: Callable[[str], None], capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    target("ruff format .\n" if "format" in arguments else "false # --suite e2e tests/e2e\n")
    assert slow.main(arguments) == 2
    assert message in capsys.readouterr().err
