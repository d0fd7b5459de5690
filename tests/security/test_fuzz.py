"""Bad input at scale: whatever strangers send is answered or refused, in time, and leaves nothing behind.

The runs are processes of their own (`tests/security/fuzz`); here they are started, and what they report is counted. A
short run takes the day's seed, so each day tries other inputs; FUZZ_SEED repeats a day. FULL=1 runs the whole.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from lab.paths import REPOSITORY
from tests.security.fuzz.campaign import seed_of_today
from tests.security.fuzz.decoders import CORPUS, DECODERS
from tests.size import FULL, sized

if TYPE_CHECKING:
    from pathlib import Path

    from tests.suite import SuiteReport

SEED = seed_of_today()
SECONDS = sized(2, full=120, small=1)
"""Seconds of coverage-guided fuzzing of each decoder."""
GROWTH_MB = 24.0
"""MB that a process may hold at its end beyond what it held after its warm-up: the noise of an allocator. A leak of
1 KB in each case is as much after 24,000 cases."""
CORPUS_BYTES = 200 << 10
TODAYS = DECODERS if FULL else [DECODERS[(SEED + step) % len(DECODERS)] for step in (0, len(DECODERS) // 2)]
"""Decoders that are explored: two of them in CI, on each day others, for each takes seconds to be instrumented."""
PROCESSES = 2
"""At once: as many as CI has cores."""
_ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join((str(REPOSITORY / "src"), str(REPOSITORY)))}


@pytest.mark.timeout(3600 if FULL else 300)
@pytest.mark.attack("whoever can send bytes to a server of ours", "crash it, hang it, fill its memory, or get past it")
def test_bad_input_is_answered_or_refused(tmp_path: Path, report: SuiteReport) -> None:
    path = tmp_path / "report.json"
    command = [sys.executable, "-m", "tests.security.fuzz", f"--seed={SEED}", f"--report={path}"]
    run = subprocess.run(command, cwd=REPOSITORY, env=_ENVIRONMENT, capture_output=True, text=True, check=False)
    assert path.exists(), f"{run.stdout}\n{run.stderr}"
    targets: list[dict[str, Any]] = json.loads(path.read_text())["targets"]
    for target in targets:
        told = {name: target[name] for name in ("target", "cases", "crashes", "hangs", "bombs", "outcomes")}
        report.row(fuzzed=told.pop("target"), seed=SEED, slowest_s=round(target["slowest"], 3), **told)
    report.figure("fuzzed", sum(target["cases"] for target in targets))
    report.figure("crashes", sum(target["crashes"] + target["bombs"] for target in targets))
    report.figure("fuzz_hangs", sum(target["hangs"] for target in targets))
    report.figure("fuzz_rss_growth_mb", max(target["growth_mb"] for target in targets))
    report.figure("fuzz_slowest_s", max(target["slowest"] for target in targets))
    assert run.returncode == 0, run.stdout
    grown = {target["target"]: target["growth_mb"] for target in targets if target["growth_mb"] > GROWTH_MB}
    assert not grown, f"memory is not given back: {grown} MB"


@pytest.mark.timeout(1800)
@pytest.mark.attack("whoever can send bytes to a decoder of ours", "a way through it that nobody thought of")
def test_no_way_through_a_decoder_crashes_it(report: SuiteReport) -> None:
    with ThreadPoolExecutor(PROCESSES) as pool:
        runs = dict(zip(TODAYS, pool.map(_explored, TODAYS), strict=True))
    for decoder, run in runs.items():
        tried = re.search(r"stat::number_of_executed_units: +(\d+)", run.stderr)
        assert run.returncode == 0, f"{decoder}:\n{run.stdout[-2000:]}\n{run.stderr[-4000:]}"
        assert tried is not None, run.stderr[-2000:]
        assert int(tried[1]) > len(list((CORPUS / decoder).iterdir()))
        report.row(fuzzed=f"{decoder} by coverage", cases=int(tried[1]), seed=SEED)


def _explored(decoder: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.security.fuzz.coverage", decoder, f"--seconds={SECONDS}", f"--seed={SEED}"]
    return subprocess.run(command, cwd=REPOSITORY, env=_ENVIRONMENT, capture_output=True, text=True, check=False)


def test_the_corpus_is_small() -> None:
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert {path.parent.name for path in files} == set(DECODERS)
    assert sum(path.stat().st_size for path in files) < CORPUS_BYTES
