"""What a review costs. Every write of every TrainJob waits for two of them."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.unit.admission.objects import KUEUE, Plain, entry, runtime, trainjob
from trainplane.admission import default_trainjob, json_patch, validate_trainjob
from trainplane.render.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.suite import SuiteReport

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LIMIT_US = 300.0

JOB = trainjob(
    trainer={
        "numNodes": 4,
        "image": "pytorch",
        "command": ["torchrun", "train.py"],
        "args": ["--epochs", "10"],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "resourcesPerNode": {"requests": {"cpu": "4", "memory": "8Gi"}, "limits": {"nvidia.com/gpu": "1"}},
    },
    runtimePatches=[entry(KUEUE)],
)


def microseconds(work: Callable[[], object], times: int) -> float:
    """Return CPU time of one run: the best of several rounds, so that neighbours do not count."""
    rounds = []
    for _ in range(7):
        start = time.process_time()
        for _ in range(times):
            work()
        rounds.append((time.process_time() - start) / times * 1e6)
    return min(rounds)


def review(known: Any, pipeline: Any) -> None:
    stored = default_trainjob(JOB, None, now=NOW)
    assert json_patch(JOB, stored.tree)
    verdict = validate_trainjob(stored.tree, None, runtime=known, runtime_source="live", jobset=None, pipeline=pipeline)
    assert verdict.allowed


def test_both_reviews_of_a_create(report: SuiteReport) -> None:
    """Our own rules keep far below the limit; what the plugins take with a rehearsed rendering is reported."""
    known, plugins, none = runtime(), Pipeline.default(), Plain()
    own = microseconds(lambda: review(known, none), 200)
    report.figure("admission_own_us", own)
    report.figure("admission_review_us", microseconds(lambda: review(known, plugins), 100))
    assert own < LIMIT_US
