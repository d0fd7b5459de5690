"""How fast data comes and goes, beside other tools, from one S3 server in one run; and what memory it takes.

Server and tools share the machine's cores, so a tool that computes less is faster here by what the server gains, too.
"""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.initializers.speed import contest
from tests.initializers.speed.contest import Contest
from tests.size import sized

if TYPE_CHECKING:
    from pathlib import Path

    from tests.suite import SuiteReport
    from tests.unit.initializers.versity import Store

MIB = 1 << 20
FILES = 4
BYTES = sized(256 * MIB, full=5_000_000_000) // FILES // MIB * MIB
ROUNDS = 3
WIDEST_MIB = 64
SHARE = sized(0.5, full=0.9)
"""Of the best other tool that does the same: the goal on a quiet machine, a guard where other suites run beside."""


@pytest.fixture(scope="module")
def source(room: Path) -> Path:
    """Return a folder with files as large as a model's."""
    folder = room / "source"
    folder.mkdir()
    block = random.Random(7).randbytes(16 * MIB)  # noqa: S311 no secret
    for index in range(FILES):
        with (folder / f"model-{index}.safetensors").open("wb") as opened:
            for start in range(0, BYTES, len(block)):
                # No two blocks are the same: one at a wrong place is seen.
                opened.write((start + index).to_bytes(8, "big"))
                opened.write(block[: min(len(block), BYTES - start) - 8])
    return folder


IN = {"curl": contest.curl, "aws": contest.aws, "reference": contest.reference, "ours": contest.ours}
OUT = {"curl": contest.curl_out, "aws": contest.aws_out, "ours": contest.ours_out}


def test_data_comes_as_fast_as_with_the_best_other_tool(
    store: Store, source: Path, room: Path, report: SuiteReport
) -> None:
    Contest(store, source, store.root / "bucket" / contest.MODEL).run({"aws": contest.aws_out}, 1)
    race = Contest(store, source, room / "target")
    race.run(IN, ROUNDS)
    rates = judge(race, "in", report)
    report.figure("ours_mb_per_s", rates["ours"])
    report.figure("reference_mb_per_s", rates["reference"])
    report.figure("best_mb_per_s", max(rates["aws"], rates["reference"]))
    for done in (race.target, store.root / "bucket" / contest.MODEL):
        shutil.rmtree(done)


def test_data_goes_as_fast_as_with_the_best_other_tool(store: Store, source: Path, report: SuiteReport) -> None:
    race = Contest(store, source, store.root / "bucket" / contest.OUTPUT)
    race.run(OUT, ROUNDS)
    judge(race, "out", report)
    shutil.rmtree(race.target)


def judge(race: Contest, direction: str, report: SuiteReport) -> dict[str, float]:
    """Report what was measured, and hold ours to its goals; return megabytes in a second by tool.

    curl is no tool for it but the limit: it lists nothing, checks nothing and cannot go on after a break.
    """
    assert race.arrived()
    rates = {name: race.rate(name) for name in race.seconds}
    report.row(direction=direction, megabytes=race.megabytes, rounds=ROUNDS, **{k: round(v) for k, v in rates.items()})
    for name, rate in rates.items():
        report.figure(f"{name}_{direction}_mb_per_s", rate)
    report.figure(f"share_of_curl_{direction}", rates["ours"] / rates["curl"])
    report.figure(f"peak_rss_mb_{direction}", race.grown_mib)
    report.figure("peak_rss_mb", max(report.figures.get("peak_rss_mb", 0), race.grown_mib))
    assert race.grown_mib <= WIDEST_MIB
    best = max(rate for name, rate in rates.items() if name not in ("ours", "curl"))
    assert rates["ours"] >= SHARE * best, rates
    return rates
