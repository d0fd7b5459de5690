"""The engines do today what is kept of them: every script is played on them again, at full size."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.simulation.recorder import ABREAST, RECORDED, engines, record_jobset, record_queue

if TYPE_CHECKING:
    from pathlib import Path

    from tests.suite import SuiteReport

RECORDS = {"jobset": record_jobset, "queue": record_queue}


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_the_engines_do_what_they_did(report: SuiteReport) -> None:
    paths = sorted(RECORDED.glob("*/*.json"))
    with engines(f"models-{os.getpid()}") as cluster, ThreadPoolExecutor(ABREAST) as pool:

        def differs(path: Path) -> str:
            kept = json.loads(path.read_text())["steps"]
            again = RECORDS[path.parent.name](cluster, [one["step"] for one in kept], kept)
            return next(
                (f"{path.stem}: {now} was {was}" for was, now in zip(kept, again, strict=True) if was != now), ""
            )

        differing = [one for one in pool.map(differs, paths) if one]
    report.figure("engine_histories", len(paths))
    assert not differing, differing[0]
