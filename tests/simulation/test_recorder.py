"""The engines do today what is kept of them: every script is played on them again, at full size."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.simulation.fleet import recorder as fleet_recorder
from tests.simulation.recorder import ABREAST, engines, record_jobset, record_queue
from tests.simulation.recordings import RECORDED, read_recording

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulation.recordings import Observation
    from tests.suite import SuiteReport

RECORDS = {"jobset": record_jobset, "queue": record_queue}


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_the_engines_do_what_they_did(report: SuiteReport) -> None:
    paths = sorted(path for kind in RECORDS for path in (RECORDED / kind).glob("*.jsonl"))
    with engines(f"models-{os.getpid()}") as cluster, ThreadPoolExecutor(ABREAST) as pool:

        def differs(path: Path) -> str:
            _, kept = read_recording(path)
            return _difference(path.stem, kept, RECORDS[path.parent.name](cluster, [one.step for one in kept], kept))

        differing = [one for one in pool.map(differs, paths) if one]
    report.figure("engine_histories", len(paths))
    assert not differing, differing[0]


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_the_engines_of_a_fleet_do_what_they_did(report: SuiteReport) -> None:
    kept = dict(map(read_recording, sorted((RECORDED / "fleet").glob("*.jsonl"))))
    with fleet_recorder.engines(f"models-{os.getpid()}") as fleet:
        again = fleet_recorder.record_all(fleet, kept)
    report.figure("fleet_engine_histories", len(kept))
    differing = [one for name in kept if (one := _difference(name, kept[name], again[name]))]
    assert not differing, differing[0]


def _difference(name: str, kept: list[Observation], again: list[Observation]) -> str:
    """Describe the first observation that differs from the recording; empty if none differs."""
    return next((f"{name}: {now} was {was}" for was, now in zip(kept, again, strict=True) if was != now), "")
