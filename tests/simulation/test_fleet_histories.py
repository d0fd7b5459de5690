"""Drawn histories of a fleet: whatever people do and whatever breaks between the clusters, the promises hold."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.simulation.day import SEED
from tests.simulation.fleet.history import draw
from tests.simulation.fleet.machine import run
from tests.simulation.history import History
from tests.simulation.shrink import shrink
from tests.size import sized

if TYPE_CHECKING:
    from tests.suite import SuiteReport

ROOT = Path(__file__).resolve().parents[2]
HISTORIES = sized(24, full=2000)
PARTS = 3
KEPT = sorted((Path(__file__).parent / "kept" / "fleet").glob("*.json"))
FAILED = Path("build/simulation")
SEEDS = (7, 23)
PROGRAM = f"""
from tests.simulation.fleet.machine import run
from tests.simulation.fleet.history import draw
print(*(run(draw(seed)).digest for seed in {SEEDS}))
"""


def _broken(history: History) -> set[str]:
    return {one.rule for one in run(history).violations}


@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("part", range(PARTS))
def test_the_promises_of_a_fleet_hold_in_every_drawn_history(part: int, report: SuiteReport) -> None:
    began, seeds = time.perf_counter(), range(SEED + part, SEED + HISTORIES, PARTS)
    broken = {seed: violations for seed in seeds if (violations := run(draw(seed)).violations)}
    seconds = time.perf_counter() - began
    report.row(fleet_part=part, fleet_histories=len(seeds), seconds=round(seconds, 3), violations=len(broken))
    for seed, violations in broken.items():
        small = shrink(draw(seed), violations[0].rule, _broken)
        FAILED.mkdir(parents=True, exist_ok=True)
        path = FAILED / f"fleet-{seed}.json"
        path.write_text(json.dumps(small.plain(), indent=1))
        shrunk = f"shrunk to {len(small.actions)} actions in {path}; also {sorted(broken.keys() - {seed})}"
        pytest.fail(f"history {seed} of a fleet: {violations[0]}; {shrunk}")


@pytest.mark.parametrize("path", KEPT, ids=lambda path: str(path.stem))
def test_what_was_found_once_in_a_fleet_stays_mended(path: Path) -> None:
    assert run(History.read(json.loads(path.read_text()))).violations == ()


def _digests(hash_seed: str) -> list[str]:
    env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_a_seed_is_one_history_of_a_fleet_in_every_process() -> None:
    first = _digests("1")
    assert len(set(first)) == len(SEEDS)
    assert first == _digests("2")
