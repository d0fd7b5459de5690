"""The gate's script: what it runs, in which order, and what follows from a failure or a step that hangs."""

from __future__ import annotations

import importlib.util
import json
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
WHOLE_RUN_ONLY = {"bench", "bench-kube", "bench-life", "grants", "release"}
"""Suites that judge speed, which depends on the load of the machine, and the one that needs all requests of others."""
ON_DEMAND = {"hunt", "mutation"}
"""Suites that no run contains, because they take hours."""


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

    def run(*lines: str, whole: bool = False, seconds: float = 60) -> dict[str, str]:
        table = tmp_path / "steps"
        table.write_text("\n".join(["# a comment", "", *lines]))
        made = ci.Run(ci.read_steps(table, whole=whole), whole=whole, seconds=seconds)
        made.all()
        return {step.name: step.verdict for step in made.steps}

    return run


def clone_with(folder: Path, *steps: str) -> Path:
    """Return a folder with the script and a table of steps."""
    clone = folder / "clone"
    (clone / ".ci").mkdir(parents=True, exist_ok=True)
    for name in ("run", "run.py"):
        shutil.copy(REPOSITORY / ".ci" / name, clone / ".ci" / name)
    (clone / ".ci" / "steps").write_text("\n".join(steps))
    return clone


def reports(content: dict[str, Any]) -> str:
    """Return a step that reports something."""
    return f"reports gate first mkdir -p build/reports && echo '{json.dumps(content)}' > build/reports/a.json"


@pytest.mark.parametrize(
    "command", [["./.ci/run"], ["sh", ".ci/run"], ["bash", ".ci/run"], ["bash", "../clone/.ci/run"]]
)
def test_run_started_by_name_or_shell_counts_and_judges(tmp_path: Path, command: list[str]) -> None:
    for step, code in (("true", 0), ("false", 1)):
        clone = clone_with(tmp_path, reports({"passed": 3, "failed": 0}), f"one gate parallel {step}")
        ended = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stderr) == (code, "")
        assert ended.stdout.endswith("3 passed, 0 failed\n")
        assert ("FAILED step one: failed (1)" in ended.stdout) == bool(code)


@pytest.mark.parametrize("cold", [True, False])
def test_run_writes_table_and_figures_of_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cold: bool) -> None:
    monkeypatch.setenv("TRAINPLANE_LAB_CACHE", str(tmp_path / "cache"))
    if not cold:
        (tmp_path / "cache/engines/etcd").mkdir(parents=True)
    content = {"passed": 3, "failed": 0, "figures": {"planted": 8, "found": 6}, "rows": [{"racy": "a.py::test_b"}]}
    clone = clone_with(tmp_path, reports(content), "work gate parallel for i in $(seq 100000); do :; done")
    (clone / "build/reports").mkdir(parents=True)
    (clone / "build/reports/stale.json").write_text('{"passed": 1000, "failed": 1000}')
    ended = subprocess.run(["./.ci/run"], cwd=clone, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
    assert "\nRACY a.py::test_b\n" in ended.stdout
    report = json.loads((clone / "build/reports/gate.json").read_text())
    assert (report["passed"], report["failed"]) == (3, 0)
    figures = report["figures"]
    assert (figures["tests"], figures["gate_power"]) == (3, 0.75)
    assert figures.get("cold_seconds") == (figures["seconds"] if cold else None)
    (first, work, racy) = report["rows"]
    assert (first["step"], work["step"], work["verdict"], racy) == (
        "reports",
        "work",
        "passed",
        {"racy": "a.py::test_b"},
    )
    assert work["cpu_seconds"] > 0


def test_gate_leaves_out_steps_of_whole_run(make: Any) -> None:
    steps = ('one gate parallel test "$GATE$WHOLE$FULL" = 1', "speed whole alone true")
    assert make(*steps) == {"one": "passed"}


def test_whole_run_runs_everything_at_usual_size(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FULL", "1")
    steps = ('one gate parallel test "$WHOLE" = 1 -a -z "$GATE$FULL"', "speed whole alone true")
    assert make(*steps, whole=True) == {"one": "passed", "speed": "passed"}


def test_suite_of_makefile_is_step(ci: ModuleType) -> None:
    steps = ci.read_steps(REPOSITORY / ".ci" / "steps", whole=True)
    makefile = (REPOSITORY / "Makefile").read_text()
    suites = set(re.findall(r"^([a-z0-9-]+):.*##.*\n(?:\t.*\\\n)*\t.*\$\((?:PYTEST|LIVE)\)", makefile, re.MULTILINE))
    assert len(suites) > 9
    commands = {step.command for step in steps}
    assert {name for name in suites if f"make {name}" not in commands} == ON_DEMAND
    assert {step.name for step in steps if step.runs == "whole"} == WHOLE_RUN_ONLY
    assert {step.how for step in steps} == {"first", "parallel", "alone"}


def test_failed_suite_hides_no_other(make: Any) -> None:
    steps = ("setup gate first true", "one gate parallel exit 3", "two gate parallel true", "speed gate alone true")
    assert make(*steps) == {"setup": "passed", "one": "failed (3)", "two": "passed", "speed": "passed"}


def test_failed_first_step_ends_run(make: Any) -> None:
    assert make("setup gate first false", "one gate parallel true") == {"setup": "failed (1)", "one": "not run"}


def test_two_steps_run_at_the_same_time_and_third_waits(make: Any, tmp_path: Path) -> None:
    meet = f"touch {tmp_path}/$0; for i in $(seq 100); do [ -e {tmp_path}/$1 ] && exit 0; sleep 0.1; done; exit 1"
    (tmp_path / "meet").write_text(meet)
    verdicts = make(
        f"a gate parallel bash -c '. {tmp_path}/meet' a b",
        f"b gate parallel bash -c '. {tmp_path}/meet' b a",
        f"c gate parallel test -e {tmp_path}/a && test -e {tmp_path}/b",
        f"d gate alone test $(ls {tmp_path}/build/ci | wc -l) = 3",
    )
    assert set(verdicts.values()) == {"passed"}


@pytest.mark.parametrize("command", ["sleep 30", "trap '' TERM; while true; do sleep 1; done"])
def test_step_that_runs_at_the_end_of_the_gate_is_ended(make: Any, command: str) -> None:
    assert make(f"slow gate parallel {command}", seconds=1) == {"slow": "ended, out of time"}


def test_output_of_step_follows_its_verdict(make: Any, capfd: pytest.CaptureFixture[str]) -> None:
    make("one gate parallel echo hello")
    assert re.search(r"one: passed, \d+ s; it printed:\nhello\n", capfd.readouterr().out)
