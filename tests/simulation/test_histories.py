"""Drawn histories: whatever people do and whatever breaks, the promises hold."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.simulation.day import HISTORIES, SEED
from tests.simulation.history import History, draw
from tests.simulation.machine import run
from tests.simulation.shrink import shrink
from tests.simulation.throughput import Span, seconds_busy
from tests.size import sized

if TYPE_CHECKING:
    from tests.suite import SuiteReport

PARTS = sized(20, full=400)
"""Tests that share the histories: at full size each is a matter of half a minute, so that one sees them come."""
KEPT = sorted((Path(__file__).parent / "kept").glob("*.json"))
FAILED = Path("build/simulation")


@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("part", range(PARTS))
def test_the_promises_hold_in_every_drawn_history(part: int, report: SuiteReport) -> None:
    seeds = range(SEED + part, SEED + HISTORIES, PARTS)
    began, cpu = time.monotonic(), time.process_time()
    broken = {seed: violations for seed in seeds if (violations := run(draw(seed)).violations)}
    report.row(
        part=part,
        histories=len(seeds),
        began=round(began, 3),
        ended=round(time.monotonic(), 3),
        cpu_seconds=round(time.process_time() - cpu, 3),
        violations=len(broken),
    )
    for seed, violations in broken.items():
        small = shrink(draw(seed), violations[0].rule)
        FAILED.mkdir(parents=True, exist_ok=True)
        path = FAILED / f"{seed}.json"
        path.write_text(json.dumps(small.plain(), indent=1))
        more = sorted(broken.keys() - {seed})
        pytest.fail(f"history {seed}: {violations[0]}; shrunk to {len(small.actions)} actions in {path}; also {more}")


@pytest.mark.parametrize("path", KEPT, ids=lambda path: str(path.stem))
def test_what_was_found_once_stays_mended(path: Path) -> None:
    assert run(History.read(json.loads(path.read_text()))).violations == ()


def test_kept_histories_are_as_they_are_written() -> None:
    assert draw(11) == History.read(json.loads(json.dumps(draw(11).plain())))


def test_what_runs_side_by_side_takes_its_time_once() -> None:
    together = [Span(3.0, 9.0), Span(1.0, 5.0), Span(4.0, 6.0)]
    assert seconds_busy(together) == 8.0
    assert seconds_busy([*together, Span(20.0, 21.5)]) == 9.5
    assert seconds_busy([]) == 0.0
