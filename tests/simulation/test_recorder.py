"""The engines do today what is kept of them: every script is played on them again, at full size."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.simulation.fleet import recorder as fleet_recorder
from tests.simulation.recorder import ABREAST, RECORDED, engines, record_jobset, record_queue

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulation.playing import Noted
    from tests.suite import SuiteReport

RECORDS = {"jobset": record_jobset, "queue": record_queue}


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_the_engines_do_what_they_did(report: SuiteReport) -> None:
    paths = sorted(path for kind in RECORDS for path in (RECORDED / kind).glob("*.json"))
    with engines(f"models-{os.getpid()}") as cluster, ThreadPoolExecutor(ABREAST) as pool:

        def differs(path: Path) -> str:
            kept = json.loads(path.read_text())["steps"]
            return _difference(path.stem, kept, RECORDS[path.parent.name](cluster, [one["step"] for one in kept], kept))

        differing = [one for one in pool.map(differs, paths) if one]
    report.figure("engine_histories", len(paths))
    assert not differing, differing[0]


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_the_engines_of_a_fleet_do_what_they_did(report: SuiteReport) -> None:
    told = [json.loads(path.read_text()) for path in sorted((RECORDED / "fleet").glob("*.json"))]
    kept = {one["name"]: one["steps"] for one in told}
    with fleet_recorder.engines(f"models-{os.getpid()}") as fleet:
        again = fleet_recorder.record_all(fleet, kept)
    report.figure("fleet_engine_histories", len(kept))
    differing = [one for name in kept if (one := _difference(name, kept[name], again[name]))]
    assert not differing, differing[0]


def _difference(name: str, kept: list[Noted], again: list[Noted]) -> str:
    """Return the first step after which engines stand otherwise than they did; empty if there is none."""
    return next((f"{name}: {now} was {was}" for was, now in zip(kept, again, strict=True) if was != now), "")
