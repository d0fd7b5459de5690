"""Run a suite's tests several times on one core, next to a busy process: `make slow SUITE=fleet TIMES=10`.

A test that depends on the speed of the machine fails in one of these runs. The suite's command is the one that `make`
runs; the report and the audit logs of the suite itself stay as they are.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.suite import REPORTS, SuiteReport

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BUSY = (sys.executable, "-c", "while True: pass")
_FAILURE = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_SUITE = re.compile(r"--suite \S+ ")
_OF_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")
"""Variables of the make that runs this script: they would change what the other make prints."""
_END_SECONDS = 60


class UsageError(Exception):
    """The arguments name no suite or no tests."""


@dataclass(frozen=True)
class Commands:
    """What `make` runs for a suite."""

    preparation: str
    """Shell lines that build what the suite needs; empty if there are none."""
    tests: str
    """The shell line that runs pytest."""

    @classmethod
    def read(cls, suite: str) -> Commands:
        """Ask make what it would run for a suite; `UsageError` if that runs no tests."""
        environment = {name: value for name, value in os.environ.items() if name not in _OF_MAKE}
        asked = ["make", "--dry-run", "--no-print-directory", suite]
        printed = subprocess.run(asked, capture_output=True, text=True, check=False, env=environment)
        lines = printed.stdout.replace("\\\n", " ").splitlines()
        found = [number for number, line in enumerate(lines) if _SUITE.search(line)]
        if printed.returncode or not found:
            raise UsageError(
                f"SUITE={suite}: not a target that runs tests: {printed.stderr.strip() or 'see make help'}"
            )
        return cls("\n".join(lines[: found[-1]]), lines[found[-1]])

    def limited(self, suite: str, tests: str) -> str:
        """Return the line that runs only some tests: paths and node ids, or else an expression for `-k`."""
        line = _SUITE.sub(f"--suite slow-{suite} ", self.tests)
        line = line.replace(f"build/audit/{suite}", f"build/audit/slow-{suite}")
        if not tests:
            return line
        words = tests.split()
        if all(Path(word.partition("::")[0]).exists() for word in words):
            kept = re.sub(r"(?<=\s)(?:--ignore[ =])?tests/\S+", "", line)
            return f"{kept.rstrip()} {shlex.join(words)}"
        if any("/" in word for word in words):
            raise UsageError(f"TESTS={tests}: no such file: name files and tests, or give an expression for -k")
        return f"{line} -k {shlex.quote(tests)}"


@contextmanager
def busy(core: int) -> Iterator[None]:
    """Keep a core busy with a process that only computes."""
    process = subprocess.Popen(["taskset", "--cpu-list", str(core), *BUSY])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def run_once(line: str, core: int, log: Path) -> list[str] | None:
    """Run a shell line on one core; return None if it passed, otherwise the names of the tests that failed."""
    with log.open("wb") as sink:
        process = subprocess.Popen(
            ["taskset", "--cpu-list", str(core), "bash", "-c", line], stdout=sink, stderr=subprocess.STDOUT
        )
        try:
            code = process.wait()
        except BaseException:
            process.send_signal(signal.SIGINT)  # pytest stops its clusters
            try:
                process.wait(_END_SECONDS)
            finally:
                process.kill()
            raise
    if code == 0:
        return None
    return list(dict.fromkeys(_FAILURE.findall(log.read_text(errors="replace")))) or [f"exit code {code}"]


def run(suite: str, times: int, tests: str, *, keep_going: bool) -> bool:
    """Run a suite's tests so many times, stop at the first failure unless told otherwise; return whether all passed."""
    if times < 1:
        raise UsageError(f"TIMES={times}: must be at least 1")
    if not re.fullmatch(r"[a-z0-9-]+", suite) or suite == "slow":
        raise UsageError(f"SUITE={suite}: must be a target of make, such as SUITE=fleet")
    commands = Commands.read(suite)
    line = commands.limited(suite, tests)
    core = max(os.sched_getaffinity(0))
    if commands.preparation:
        subprocess.run(["bash", "-ec", commands.preparation], check=True)
    report = SuiteReport("slow")
    logs = REPORTS.parent / "slow"
    logs.mkdir(parents=True, exist_ok=True)
    try:
        with busy(core):
            for number in range(1, times + 1):
                log, start = logs / f"{suite}-{number}.log", time.monotonic()
                failures = run_once(line, core, log)
                seconds = round(time.monotonic() - start, 1)
                report.passed += failures is None
                report.failed += failures is not None
                report.row(suite=suite, tests=tests, run=number, seconds=seconds, failures=failures or [])
                said = "passed" if failures is None else f"failed: {' '.join(failures)}; its output: {log}"
                _say(f"run {number} of {times}: {seconds:.0f} s, {said}")
                if failures is not None and not keep_going:
                    break
    finally:
        (REPORTS / f"slow-{suite}.json").unlink(missing_ok=True)
        report.write()
    _say(f"{report.passed} passed, {report.failed} failed")
    return not report.failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the arguments and run; return the exit code."""
    parser = argparse.ArgumentParser(prog="make slow", description="Run tests slowly, several times")
    parser.add_argument("--suite", required=True, help="target of make that runs the suite")
    parser.add_argument("--times", type=int, default=10, help="number of runs (default: 10)")
    parser.add_argument(
        "--tests", default="", help="paths of tests, or an expression for -k (default: the whole suite)"
    )
    parser.add_argument("--keep-going", action="store_true", help="continue after a failure")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the busy process too
    try:
        return 0 if run(given.suite, given.times, given.tests, keep_going=given.keep_going) else 1
    except UsageError as error:
        print(error, file=sys.stderr)  # noqa: T201 for the caller of make
        return 2


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 the lines are what `make slow` is for


if __name__ == "__main__":
    sys.exit(main())
