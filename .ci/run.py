"""CI: every step of .ci/steps, each within its budget, then a table of where the time went.

A suite that fails does not hide another one's verdict; what others stand on ends the run. Works on a machine with
nothing installed but Go, Python and Debian's package manager; caches make it quick. Standard library only, for it
runs before anything is installed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

REPOSITORY = Path(__file__).resolve().parent.parent
LANES = 2
"""Steps that run at a time: one per core of CI's machine."""
COLD_SECONDS = 600
"""First steps that took longer than this found no caches: the suites then run at their smaller size."""
WARM_SECONDS = 3600
"""How long a run with caches may be expected to take: if those steps that ended foretell more, the rest is smaller."""
POLL_SECONDS = 0.5
"""How often the processes are looked at."""
PATIENCE = 3
"""How many times its budget a step may take before it is ended: a machine that others use is slow, for an hour or for a
minute, and the total bounds them all.

What took longer than its budget is told in the table, and passes.
"""
GRACE_SECONDS = 30
"""What a step that is ended gets to stop its clusters before it is killed."""


def cores_seconds() -> float:
    """Return the seconds that all cores of the machine have been busy."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


@dataclass
class Step:
    """One line of the table, and how it went."""

    name: str
    budget: int
    how: str
    command: str
    seconds: float = 0.0
    busy: float = 0.0
    verdict: str = "not run"


@dataclass
class Running:
    """A step's process, with the file that its output goes to, if it does not go to ours."""

    step: Step
    process: subprocess.Popen[bytes]
    log: Path | None
    deadline: float
    begin: float = field(default_factory=time.monotonic)
    used: float = field(default_factory=cores_seconds)
    late: bool = False


def read_steps(path: Path) -> tuple[int, list[Step]]:
    """Return the total budget and the steps, in the table's order."""
    total, steps = 0, []
    for line in path.read_text().splitlines():
        words = line.split(maxsplit=3)
        if not words or words[0].startswith("#"):
            continue
        if words[0] == "total":
            total = int(words[1])
        else:
            steps.append(Step(words[0], int(words[1]), words[2], words[3]))
    return total, steps


class Run:
    """All steps of the table, and the clock that bounds them."""

    def __init__(self, total: int, steps: list[Step]) -> None:
        self.steps = steps
        self.environment = dict(os.environ)
        self._running = list[Running]()
        self._begin = time.monotonic()
        self._end = self._begin + total

    def seconds(self) -> float:
        """Return how long the run has taken so far."""
        return time.monotonic() - self._begin

    def all(self) -> None:
        """Run the first steps one by one, then the others; end where a first one fails."""
        for step in self._of("first"):
            self._finish(self._start(step, aside=False))
            if step.verdict != "passed":
                return
        if self.seconds() > COLD_SECONDS:
            self._shrink(f"the first steps took {self.seconds():.0f} s: no caches here")
        self._two_at_a_time(self._of("beside"))
        for step in self._of("alone"):
            self._finish(self._start(step, aside=False))

    def stop(self) -> None:
        """Ask what still runs to end: steps are sessions of their own and would outlive us."""
        for one in self._running:
            _signal(one, signal.SIGTERM)

    def _of(self, how: str) -> list[Step]:
        return [step for step in self.steps if step.how == how]

    def _two_at_a_time(self, steps: list[Step]) -> None:
        waiting = list(steps)
        while waiting or self._running:
            while waiting and len(self._running) < LANES:
                expected = self._expected_seconds(waiting)
                if expected > WARM_SECONDS:
                    self._shrink(f"{self._slowness():.1f} times the budgets so far foretell {expected:.0f} s")
                self._start(waiting.pop(0), aside=True)
            time.sleep(POLL_SECONDS)
            for one in [one for one in self._running if self._has_ended(one)]:
                self._finish(one)

    def _shrink(self, why: str) -> None:
        """Let suites that start from now on run at their smaller size."""
        if self.environment.get("SMALL") != "1":
            say(f"{why}, so suites run with SMALL=1")
            self.environment["SMALL"] = "1"

    def _slowness(self) -> float:
        """Return how many times their budgets the steps took that ran beside others."""
        done = [step for step in self._of("beside") if step.verdict != "not run"]
        return sum(step.seconds for step in done) / sum(step.budget for step in done) if done else 1.0

    def _expected_seconds(self, waiting: list[Step]) -> float:
        """Return how long the run will have taken if the steps that wait are as slow as those before them."""
        left = sum(step.budget for step in waiting) / LANES + sum(step.budget for step in self._of("alone"))
        return self.seconds() + self._slowness() * left

    def _start(self, step: Step, *, aside: bool) -> Running:
        say(f"=== {step.name} (budget {step.budget} s): {step.command}")
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
            env=self.environment,
            start_new_session=True,
        )
        if output:
            output.close()
        one = Running(step, process, log, min(time.monotonic() + PATIENCE * step.budget, self._end))
        self._running.append(one)
        return one

    def _has_ended(self, one: Running) -> bool:
        """Return whether the step's process is gone; end it if its time is over."""
        if one.process.poll() is not None:
            return True
        over = time.monotonic() - one.deadline
        if over > GRACE_SECONDS:
            _signal(one, signal.SIGKILL)
        elif over > 0 and not one.late:
            one.late = True
            _signal(one, signal.SIGTERM)
        return False

    def _finish(self, one: Running) -> None:
        """Wait for the step's end, and write down how it went."""
        while not self._has_ended(one):
            time.sleep(POLL_SECONDS)
        self._running.remove(one)
        step, code = one.step, one.process.returncode
        step.seconds = time.monotonic() - one.begin
        step.busy = (cores_seconds() - one.used) / max(step.seconds, 0.1) / (os.cpu_count() or 1)
        step.verdict = "ended, out of time" if one.late else "passed" if code == 0 else f"failed ({code})"
        if one.log:
            say(f"=== {step.name}: {step.verdict}, {step.seconds:.0f} s; what it printed:")
            sys.stdout.write(one.log.read_text(errors="replace"))
            sys.stdout.flush()


def _signal(one: Running, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(one.process.pid, number)


def say(line: str) -> None:
    """Print a line of CI's own, at once."""
    print(f"\n{line}", flush=True)


def table(run: Run) -> str:
    """Return where the time went; `busy` is the share of all cores in use, by whatever ran at that time."""
    lines = [f"{'step':<16} {'seconds':>8} {'budget':>8} {'busy':>6}  verdict"]
    lines += [
        f"{step.name:<16} {step.seconds:>8.0f} {step.budget:>8} {step.busy:>6.0%}  {step.verdict}"
        + (", over its budget" if step.seconds > step.budget else "")
        for step in run.steps
    ]
    return "\n".join([*lines, f"{'total':<16} {run.seconds():>8.0f}"])


def count() -> tuple[int, int]:
    """Return how many tests of all suites passed and failed, by their reports."""
    reports = [json.loads(path.read_text()) for path in sorted((REPOSITORY / "build" / "reports").glob("*.json"))]
    return sum(report["passed"] for report in reports), sum(report["failed"] for report in reports)


def main() -> int:
    """Run everything; return 0 only if every step passed and there were tests."""
    run = Run(*read_steps(REPOSITORY / ".ci" / "steps"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        run.all()
    finally:
        run.stop()
    python = REPOSITORY / ".venv" / "bin" / "python"
    if python.exists():
        subprocess.run([python, "-m", "lab", "down", "--all"], cwd=REPOSITORY, capture_output=True, check=False)
    say(table(run))
    for step in run.steps:
        if step.verdict != "passed":
            print(f"FAILED step {step.name}: {step.verdict}")
    passed, failed = count()
    print(f"{passed} passed, {failed} failed", flush=True)
    return 0 if passed and not failed and all(step.verdict == "passed" for step in run.steps) else 1


if __name__ == "__main__":
    sys.exit(main())
