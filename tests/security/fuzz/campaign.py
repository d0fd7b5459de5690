"""A run: every target's cases, shared out to processes of their own, watched from outside, and added up.

A process takes one chunk of one target and ends, so what a chunk leaves behind (memory, caches) is its own. It says
which case it begins; one that does not come back, deep in C where no alarm reaches, is ended, and its case is a hang.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from tests.day import day
from tests.security.fuzz.findings import Finding
from tests.security.fuzz.worker import Report, case, work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from multiprocessing.connection import Connection
    from multiprocessing.sharedctypes import Synchronized

    from tests.security.fuzz.target import Target

SILENT_SECONDS: Final = 60.0
"""Seconds on the wall without a new case after which a process counts as hung: far beyond what a busy machine takes."""
LARGEST_CHUNK: Final = 25_000
"""Cases of one process: small enough to share the work evenly, large enough for a leak to show."""

_EPOCH: Final = date(1970, 1, 1)
_PATIENCE: Final = 10
"""How many times longer a process may take to begin: it loads what it fuzzes."""
_context = multiprocessing.get_context("fork")


def seed_of_run(environ: Mapping[str, str] = os.environ) -> int:
    """Return N of FUZZ_SEED=N, otherwise the days from 1970 to the day of `tests.day`."""
    return int(environ.get("FUZZ_SEED") or (day(environ) - _EPOCH).days)


@dataclass
class _Chunk:
    make: Callable[[], Target]
    name: str
    numbers: range


@dataclass
class _Process:
    chunk: _Chunk
    process: Any
    answer: Connection
    began: Synchronized[int]
    seen: int = -1
    since: float = 0.0


def run(
    targets: Mapping[str, Callable[[], Target]],
    counts: Mapping[str, int],
    seed: int,
    *,
    processes: int = 2,
    say: Callable[[str], None] = print,
) -> dict[str, Report]:
    """Run so many cases of each target; return what became of them, by target."""
    waiting = list(_chunks(targets, counts, processes))
    running: list[_Process] = []
    reports = {name: Report(name) for name in targets}
    while waiting or running:
        while waiting and len(running) < processes:
            running.append(_start(waiting.pop(0), seed))
        for one in list(running):
            part = _look(one, seed)
            if part is not None:
                running.remove(one)
                _tell(reports[one.chunk.name], part, counts[one.chunk.name], say)
        time.sleep(0.01)
    return reports


def _tell(whole: Report, part: Report, cases: int, say: Callable[[str], None]) -> None:
    for finding in part.findings:
        if finding.mark not in whole.hits:
            say(str(finding))
    whole.add(part)
    say(f"{whole.target}: {whole.cases:,} of {cases:,}, {whole.seconds:.0f} s, {sum(whole.hits.values())} faults")


def _chunks(targets: Mapping[str, Callable[[], Target]], counts: Mapping[str, int], processes: int) -> Iterator[_Chunk]:
    """Yield the work, the chunks of all targets of about the same length of time, in turn."""
    for name, make in targets.items():
        count = counts[name]
        parts = max(processes if count >= 2 * processes else 1, -(-count // LARGEST_CHUNK))
        for part in range(parts):
            yield _Chunk(make, name, range(part, count, parts))


def _start(chunk: _Chunk, seed: int) -> _Process:
    answer, theirs = _context.Pipe(duplex=False)
    began = _context.Value("q", -1)
    process = _context.Process(target=_serve, args=(chunk, seed, theirs, began), daemon=True)
    process.start()
    theirs.close()
    return _Process(chunk, process, answer, began, since=time.monotonic())


def _serve(chunk: _Chunk, seed: int, answer: Connection, began: Synchronized[int]) -> None:
    def note(number: int) -> None:
        began.value = number

    answer.send(work(chunk.make, seed, chunk.numbers, began=note))
    answer.close()


def _look(one: _Process, seed: int) -> Report | None:
    """Return the report of a process that has ended, or was ended; None while it works."""
    if one.answer.poll():
        try:
            report: Report = one.answer.recv()
        except EOFError:
            one.process.join()
            return _lost(one, seed, "crash", f"the process ended with {one.process.exitcode}")
        one.process.join()
        return report
    now, number = time.monotonic(), one.began.value
    if number != one.seen:
        one.seen, one.since = number, now
    elif now - one.since > SILENT_SECONDS * (_PATIENCE if number < 0 else 1):
        one.process.kill()
        one.process.join()
        return _lost(one, seed, "hang", f"no end within {SILENT_SECONDS:g} s")
    return None


def _lost(one: _Process, seed: int, kind: str, what: str) -> Report:
    """Return the report of a process that made none: its last case is to blame, the rest of its cases did not run."""
    number = one.began.value
    target = one.chunk.make()
    data = case(target, seed, number) if number >= 0 else b""
    target.close()
    finding = Finding(one.chunk.name, kind, "outside", f"case {number}: {what}", data)
    finding.save()
    done = one.chunk.numbers.index(number) if number >= 0 else 0
    return Report(one.chunk.name, done, findings=[finding], hits={finding.mark: 1})
