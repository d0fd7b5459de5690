"""The gate: the steps of .ci/steps, two at a time, then a table of where the time went. FULL=1 runs everything.

In the gate, each suite runs what tests/selection.py chooses (GATE=1). With FULL=1, it runs every test, checks the
recorded answers of the reference against the reference itself (WHOLE=1), and the benchmarks follow.

A suite that fails does not hide the verdict of another. A first step that fails ends the run. Works on a machine with
Go, Python, and Debian's package manager. Standard library only, because it runs before anything is installed.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

REPOSITORY = Path(__file__).resolve().parent.parent
LANES = 2
"""Steps that run at a time: one per core of the gate's machine."""
POLL_SECONDS = 0.5
"""How often the processes are looked at."""
GATE_SECONDS = 88 * 60
"""When the gate ends what still runs: its machine ends it at 90 minutes."""
GRACE_SECONDS = 30
"""What a step that is ended gets to stop its clusters before it is killed."""
IS_WHOLE = os.environ.get("FULL") == "1"


@dataclass
class Step:
    """One line of .ci/steps, and how it went."""

    name: str
    runs: str
    how: str
    command: str
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    verdict: str = "not run"


@dataclass
class Running:
    """A step's process, with the file that its output goes to, if it does not go to ours."""

    step: Step
    process: subprocess.Popen[bytes]
    log: Path | None
    begin: float = field(default_factory=time.monotonic)
    late: bool = False


def read_steps(path: Path, *, whole: bool) -> list[Step]:
    """Return the steps of the gate, or those of the whole run."""
    steps = []
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            name, runs, how, command = line.split(maxsplit=3)
            steps.append(Step(name, runs, how, command))
    return [step for step in steps if whole or step.runs == "gate"]


def children_cpu_seconds() -> float:
    """Return the CPU seconds of all children that have ended, with those of their own."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Run:
    """All steps, and the time at which the run ends."""

    def __init__(self, steps: list[Step], *, whole: bool = False, seconds: float | None = None) -> None:
        self.steps = steps
        # FULL=1 would let each suite run at its full size, which takes a day.
        chosen = ("FULL", "SEED", "GATE", "WHOLE")
        self._environment = {name: value for name, value in os.environ.items() if name not in chosen}
        self._environment |= {"WHOLE" if whole else "GATE": "1", "TRAINPLANE_SHARED": "gate"}
        self._running = list[Running]()
        self._begin = time.monotonic()
        self._end = self._begin + seconds if seconds is not None else float("inf")

    def seconds(self) -> float:
        """Return how long the run has taken so far."""
        return time.monotonic() - self._begin

    def all(self) -> None:
        """Run the first steps one by one, then the others; end if a first one fails."""
        for step in self._of("first"):
            self._finish(self._start(step, aside=False))
            if step.verdict != "passed":
                return
        self._run_lanes(self._of("parallel"))
        for step in self._of("alone"):
            self._finish(self._start(step, aside=False))

    def stop(self) -> None:
        """Ask what still runs to end: steps are sessions of their own and would outlive us."""
        for one in self._running:
            _signal(one, signal.SIGTERM)

    def _of(self, how: str) -> list[Step]:
        return [step for step in self.steps if step.how == how]

    def _run_lanes(self, steps: list[Step]) -> None:
        waiting = list(steps)
        while waiting or self._running:
            while waiting and len(self._running) < LANES:
                self._start(waiting.pop(0), aside=True)
            time.sleep(POLL_SECONDS)
            for one in self._running[:]:
                if self._has_ended(one):
                    self._record_end(one)

    def _start(self, step: Step, *, aside: bool) -> Running:
        say(f"=== {self.seconds():.0f} s: {step.name}: {step.command}")
        log = REPOSITORY / "build" / "ci" / f"{step.name}.log" if aside else None
        output: TextIO | None = None
        if log:
            log.parent.mkdir(parents=True, exist_ok=True)
            output = log.open("w")
        process = subprocess.Popen(
            ["bash", "-c", step.command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT if output else None,
            cwd=REPOSITORY,
            env=self._environment,
            start_new_session=True,
        )
        if output:
            output.close()
        one = Running(step, process, log)
        self._running.append(one)
        return one

    def _has_ended(self, one: Running) -> bool:
        """Return whether the step's process has ended; end it if the run is over."""
        before = children_cpu_seconds()
        if one.process.poll() is not None:
            one.step.cpu_seconds = children_cpu_seconds() - before
            return True
        over = time.monotonic() - self._end
        if over > GRACE_SECONDS:
            _signal(one, signal.SIGKILL)
        elif over > 0 and not one.late:
            one.late = True
            _signal(one, signal.SIGTERM)
        return False

    def _finish(self, one: Running) -> None:
        """Wait for the step's end."""
        while not self._has_ended(one):
            time.sleep(POLL_SECONDS)
        self._record_end(one)

    def _record_end(self, one: Running) -> None:
        """Record the verdict of a step that ended, and print its log."""
        self._running.remove(one)
        step, code = one.step, one.process.returncode
        step.seconds = time.monotonic() - one.begin
        step.verdict = "ended, out of time" if one.late else "passed" if code == 0 else f"failed ({code})"
        if one.log:
            say(f"=== {self.seconds():.0f} s: {step.name}: {step.verdict}, {step.seconds:.0f} s; it printed:")
            sys.stdout.write(one.log.read_text(errors="replace"))
            sys.stdout.flush()


def _signal(one: Running, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(one.process.pid, number)


def say(line: str) -> None:
    """Print a line of the gate's own, at once."""
    print(f"\n{line}", flush=True)


def table(run: Run) -> str:
    """Return the table of steps; the CPU seconds are those of a step's processes that it waited for."""
    lines = [f"{'step':<16} {'seconds':>8} {'CPU':>8}  verdict"]
    lines += [f"{one.name:<16} {one.seconds:>8.0f} {one.cpu_seconds:>8.0f}  {one.verdict}" for one in run.steps]
    return "\n".join([*lines, f"{'total':<16} {run.seconds():>8.0f} {children_cpu_seconds():>8.0f}"])


class Reports:
    """The reports of all suites."""

    def __init__(self, folder: Path) -> None:
        self._reports = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
        self.passed, self.failed = (
            sum(report[outcome] for report in self._reports) for outcome in ("passed", "failed")
        )

    def racy(self) -> list[str]:
        """Return the tests that failed and then passed three times."""
        return [row["racy"] for report in self._reports for row in report.get("rows", ()) if "racy" in row]

    def power(self) -> float | None:
        """Return the share of the planted faults that the suites found, if any were planted."""
        figures = [report.get("figures", {}) for report in self._reports]
        planted, found = (sum(one.get(name, 0) for one in figures) for name in ("planted", "found"))
        return found / planted if planted else None


def write_report(folder: Path, run: Run, reports: Reports, *, is_cold: bool) -> None:
    """Write gate.json."""
    figures: dict[str, float] = {"seconds": round(run.seconds(), 1), "tests": reports.passed + reports.failed}
    if is_cold:
        figures["cold_seconds"] = figures["seconds"]
    if (power := reports.power()) is not None:
        figures["gate_power"] = round(power, 4)
    rows: list[dict[str, Any]] = [
        {"step": one.name, "seconds": round(one.seconds, 1), "cpu_seconds": round(one.cpu_seconds, 1)}
        | {"verdict": one.verdict}
        for one in run.steps
    ]
    rows += [{"racy": test} for test in reports.racy()]
    content = {"passed": reports.passed, "failed": reports.failed, "figures": figures, "rows": rows}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gate.json").write_text(json.dumps(content, indent=2) + "\n")


def has_caches() -> bool:
    """Return whether an earlier run left built engines in the lab's cache (`lab.paths.cache_root`)."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    root = Path(os.environ.get("TRAINPLANE_LAB_CACHE") or f"{base}/trainplane-lab")
    return any(root.glob("engines/*"))


def main() -> int:
    """Run everything; return 0 only if every step passed and there were tests."""
    folder = REPOSITORY / "build" / "reports"
    shutil.rmtree(folder, ignore_errors=True)
    is_cold = not has_caches()
    steps = read_steps(REPOSITORY / ".ci" / "steps", whole=IS_WHOLE)
    run = Run(steps, whole=IS_WHOLE, seconds=None if IS_WHOLE else GATE_SECONDS)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        run.all()
    finally:
        run.stop()
    python = REPOSITORY / ".venv" / "bin" / "python"
    if python.exists():
        subprocess.run([python, "-m", "lab", "down", "--all"], cwd=REPOSITORY, capture_output=True, check=False)
    reports = Reports(folder)
    write_report(folder, run, reports, is_cold=is_cold)
    say(table(run))
    for test in reports.racy():
        print(f"RACY {test}")
    failed_steps = [step for step in run.steps if step.verdict != "passed"]
    for step in failed_steps:
        print(f"FAILED step {step.name}: {step.verdict}")
    print(f"{reports.passed} passed, {reports.failed} failed", flush=True)
    return 0 if reports.passed and not reports.failed and not failed_steps else 1


if __name__ == "__main__":
    sys.exit(main())
