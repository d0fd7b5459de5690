"""Bad input at scale: whatever strangers send is answered or refused, in time, and leaves nothing behind.

The runs are processes of their own (`tests/security/fuzz`); here they are started, and what they report is counted. The
seed is fixed: SEED=day tries the inputs of today, and FUZZ_SEED=N those of any seed. FULL=1 runs all cases, with the
seed of today.
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
from tests.security.fuzz.campaign import seed_of_run
from tests.security.fuzz.decoders import CORPUS, DECODERS, RUNS
from tests.size import FULL, sized

if TYPE_CHECKING:
    from pathlib import Path

    from tests.suite import SuiteReport

SEED = seed_of_run()
SCALE = sized(1.0, full=60.0)
"""How many times `RUNS` each decoder is explored: a count and no time, so that a fast machine tries no more inputs."""
GROWTH_MB = 24.0
"""MB that a process may hold at its end beyond what it held after its warm-up: the noise of an allocator. A leak of
1 KB in each case is as much after 24,000 cases."""
CORPUS_BYTES = 200 << 10
EXPLORED = DECODERS if FULL else [DECODERS[(SEED + step) % len(DECODERS)] for step in (0, len(DECODERS) // 2)]
"""Decoders that are explored: two of them without FULL=1, by the seed, because it takes seconds to instrument one."""
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
        runs = dict(zip(EXPLORED, pool.map(_explored, EXPLORED), strict=True))
    for decoder, run in runs.items():
        tried = re.search(r"stat::number_of_executed_units: +(\d+)", run.stderr)
        assert run.returncode == 0, f"{decoder}:\n{run.stdout[-2000:]}\n{run.stderr[-4000:]}"
        assert tried is not None, run.stderr[-2000:]
        assert int(tried[1]) >= _runs(decoder) > len(list((CORPUS / decoder).iterdir()))
        report.row(fuzzed=f"{decoder} by coverage", cases=int(tried[1]), seed=SEED)


def _runs(decoder: str) -> int:
    return int(RUNS[decoder] * SCALE)


def _explored(decoder: str) -> subprocess.CompletedProcess[str]:
    options = [f"--runs={_runs(decoder)}", f"--seed={SEED}"]
    command = [sys.executable, "-m", "tests.security.fuzz.coverage", decoder, *options]
    return subprocess.run(command, cwd=REPOSITORY, env=_ENVIRONMENT, capture_output=True, text=True, check=False)


def test_the_corpus_is_small() -> None:
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert {path.parent.name for path in files} == set(DECODERS)
    assert sum(path.stat().st_size for path in files) < CORPUS_BYTES
