"""CI's own script: what it runs, in which order, and what a failure or a step that hangs does."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType

REPOSITORY = Path(__file__).resolve().parents[3]
NOT_IN_THE_GATE = {"bench", "bench-kube", "bench-life"}
"""Suites that judge speed, which depends on the load of the machine. They run on demand."""


@pytest.fixture(scope="module")
def ci() -> ModuleType:
    loader = SourceFileLoader("ci_run", str(REPOSITORY / ".ci" / "run.py"))
    spec = importlib.util.spec_from_loader("ci_run", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    sys.modules["ci_run"] = module
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


@pytest.fixture
def make(ci: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(ci, "REPOSITORY", tmp_path)
    monkeypatch.setattr(ci, "GRACE_SECONDS", 1)
    monkeypatch.setattr(ci, "POLL_SECONDS", 0.05)
    monkeypatch.delenv("SMALL", raising=False)

    def run(*lines: str, total: int = 60) -> dict[str, str]:
        table = tmp_path / "steps"
        table.write_text("\n".join([f"total {total}", "# a comment", "", *lines]))
        made = ci.Run(*ci.read_steps(table))
        made.all()
        return {step.name: step.verdict for step in made.steps}

    return run


@pytest.mark.parametrize(
    "command", [["./.ci/run"], ["sh", ".ci/run"], ["bash", ".ci/run"], ["bash", "../clone/.ci/run"]]
)
def test_it_starts_by_its_name_and_by_a_shell(tmp_path: Path, command: list[str]) -> None:
    clone = tmp_path / "clone"
    (clone / ".ci").mkdir(parents=True)
    for name in ("run", "run.py"):
        shutil.copy(REPOSITORY / ".ci" / name, clone / ".ci" / name)
    (clone / "one.json").write_text('{"passed": 3, "failed": 0}')
    report = "mkdir -p build/reports && cp one.json build/reports/"
    for step, code in (("true", 0), ("false", 1)):
        (clone / ".ci" / "steps").write_text(f"total 60\nsetup 9 first {report}\none 9 beside {step}\n")
        ended = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stderr) == (code, "")
        assert ended.stdout.endswith("3 passed, 0 failed\n")
        assert ("FAILED step one: failed (1)" in ended.stdout) == bool(code)


def test_the_budgets_fit_into_85_minutes_and_what_is_late_is_ended_before_cis_own_end(ci: ModuleType) -> None:
    total, steps = ci.read_steps(REPOSITORY / ".ci" / "steps")
    assert {step.how for step in steps} == {"first", "beside", "alone"}
    lanes = [0] * ci.LANES
    for step in steps:
        if step.how == "beside":
            lanes[lanes.index(min(lanes))] += step.budget
    one_by_one = sum(step.budget for step in steps if step.how != "beside")
    assert one_by_one + max(lanes) <= 85 * 60
    assert 85 * 60 <= total <= 90 * 60 - 2 * ci.GRACE_SECONDS


def test_suite_of_the_makefile_unless_listed_is_a_step(ci: ModuleType) -> None:
    _, steps = ci.read_steps(REPOSITORY / ".ci" / "steps")
    makefile = (REPOSITORY / "Makefile").read_text()
    suites = set(re.findall(r"^([a-z0-9-]+):.*##.*\n(?:\t.*\\\n)*\t\$\((?:PYTEST|LIVE)\)", makefile, re.MULTILINE))
    assert len(suites) > 9
    commands = {step.command for step in steps}
    assert {name for name in suites if f"make {name}" not in commands} == NOT_IN_THE_GATE


def test_a_suite_that_fails_hides_no_other(make: Any) -> None:
    verdicts = make("setup 9 first true", "one 9 beside exit 3", "two 9 beside true", "speed 9 alone true")
    assert verdicts == {"setup": "passed", "one": "failed (3)", "two": "passed", "speed": "passed"}


def test_nothing_runs_on_a_foundation_that_failed(make: Any) -> None:
    assert make("setup 9 first false", "one 9 beside true") == {"setup": "failed (1)", "one": "not run"}


def test_two_run_beside_each_other_and_a_third_waits(make: Any, tmp_path: Path) -> None:
    meet = f"touch {tmp_path}/$0; for i in $(seq 100); do [ -e {tmp_path}/$1 ] && exit 0; sleep 0.1; done; exit 1"
    (tmp_path / "meet").write_text(meet)
    verdicts = make(
        f"a 20 beside bash -c '. {tmp_path}/meet' a b",
        f"b 20 beside bash -c '. {tmp_path}/meet' b a",
        f"c 20 beside test -e {tmp_path}/a && test -e {tmp_path}/b",
        f"d 20 alone test $(ls {tmp_path}/build/ci | wc -l) = 3",
    )
    assert set(verdicts.values()) == {"passed"}


@pytest.mark.parametrize("command", ["sleep 30", "trap '' TERM; while true; do sleep 1; done"])
def test_a_step_far_over_its_budget_is_ended(make: Any, command: str) -> None:
    verdicts = make(f"slow 1 beside {command}", "next 9 alone true")
    assert verdicts == {"slow": "ended, out of time", "next": "passed"}


def test_a_step_over_its_budget_passes_and_is_told(ci: ModuleType, tmp_path: Path) -> None:
    table = tmp_path / "steps"
    table.write_text("total 60\nslow 1 alone sleep 1.2")
    run = ci.Run(*ci.read_steps(table))
    run.all()
    assert re.search(r"slow +\d +1 +\d+%  passed, over its budget", ci.table(run))


def test_the_total_bounds_what_a_budget_allows(make: Any) -> None:
    assert make("slow 50 alone sleep 30", total=1) == {"slow": "ended, out of time"}


def test_suites_are_smaller_where_the_first_steps_took_long(
    make: Any, ci: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ci, "COLD_SECONDS", 0)
    assert make("setup 9 first true", "small 9 beside test $SMALL = 1") == {"setup": "passed", "small": "passed"}


@pytest.mark.parametrize(("seconds", "small"), [("0", ""), ("2.2", "1")])
def test_suites_are_smaller_where_those_before_took_too_long(
    make: Any, ci: ModuleType, monkeypatch: pytest.MonkeyPatch, seconds: str, small: str
) -> None:
    monkeypatch.setattr(ci, "WARM_SECONDS", 20)
    before = (f"one 1 beside sleep {seconds}", f"two 1 beside sleep {seconds}")
    assert make(*before, f'rest 20 beside test "$SMALL" = "{small}"')["rest"] == "passed"


def test_what_a_step_printed_follows_its_verdict(make: Any, capfd: pytest.CaptureFixture[str]) -> None:
    make("one 9 beside echo hello")
    assert re.search(r"one: passed, \d+ s; what it printed:\nhello\n", capfd.readouterr().out)
