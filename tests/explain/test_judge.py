"""Faults that nobody looked at before, with real processes: how many are named right, and how many confidently wrong.

A fault is named right if its class and its rank are. Confidently wrong is what is called certain and is not so.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.explain.drawing import draw
from tests.sdk.local.documents import printed
from tests.size import sized
from trainplane.api.moments import read_moment
from trainplane.explain.bundle import read_bundle, write_bundle
from trainplane.explain.explain import explain
from trainplane.explain.facts import Facts, Line
from trainplane.explain.failure import faults_in
from trainplane.explain.faults import first
from trainplane.explain.pods import index_of

if TYPE_CHECKING:
    from tests.explain.drawing import Case
    from tests.suite import SuiteReport
    from trainplane.client.backends.local.backend import LocalBackend
    from trainplane.explain.explanation import Explanation

FIRST = 20_261_116
"""The first seed: the rules were written against none of these."""
COUNT = sized(29, full=200)
TOGETHER = 4
"""Jobs at once."""
SHARE, WRONG = 0.95, 0.01


@pytest.mark.timeout(1800)
async def test_generated_faults_are_named_right(backend: LocalBackend, report: SuiteReport) -> None:
    turn = asyncio.Semaphore(TOGETHER)

    async def judged(case: Case) -> tuple[Case, Explanation, Explanation]:
        async with turn:
            name = await backend.submit(case.trainjob())
            await printed(backend, name)  # returns when all processes have ended
            facts = skewed(await backend.collect(name), case)
            await backend.delete_job(name)
        now = datetime.now(UTC)
        return case, explain(read_bundle(write_bundle(facts)), now), explain(remembered(facts), now)

    results = await asyncio.gather(*(judged(draw(seed)) for seed in range(FIRST, FIRST + COUNT)))
    right = [is_right(case, told) for case, told, _ in results]
    wrong = [told.certainty == "certain" and not is_right(case, told) for case, told, _ in results]
    kept = [is_right(case, told) for case, _, told in results if case.kind not in {"hang", "world_size"}]
    for case, told, _ in results:
        if not is_right(case, told):
            report.row(fault=case.kind, told=case.told, rank=case.rank, got=told.cause, step=told.step, why=str(told))
    report.figure("generated", len(right))
    report.figure("generated_right", sum(right) / len(right))
    report.figure("generated_confidently_wrong", sum(wrong) / len(wrong))
    report.figure("generated_right_when_pods_are_gone", sum(kept) / len(kept))
    assert sum(right) / len(right) >= SHARE, report.rows
    assert sum(wrong) <= WRONG * len(wrong), report.rows
    assert sum(kept) / len(kept) >= SHARE


def is_right(case: Case, told: Explanation) -> bool:
    return (told.cause, told.step) == (case.expected, f"node-{case.rank}")


def remembered(facts: Facts) -> Facts:
    """Return what is left when pods and logs are gone: the fault that the operator keeps in the status."""
    kept = first(told.fault for told in faults_in(facts))
    assert kept is not None
    status = {**facts.job["status"], "firstFault": msgspec.to_builtins(kept)}
    return Facts({**facts.job, "status": status})


def skewed(facts: Facts, case: Case) -> Facts:
    """Return facts as nodes with wrong clocks would have written them."""
    by = {f"node-{rank}": timedelta(seconds=seconds) for rank, seconds in enumerate(case.skew)}
    pods = [_shifted(pod, by[f"node-{place.completion_index}"]) for pod in facts.pods if (place := index_of(pod))]
    logs = {
        step: [Line(line.text, line.time + by[step] if line.time else None) for line in lines]
        for step, lines in facts.logs.items()
    }
    return Facts(facts.job, pods, facts.events, logs=logs)


def _shifted(tree: Any, by: timedelta) -> Any:
    """Return what a kubelet with a wrong clock writes into a pod's status; the API server's times are its own."""
    status = tree.get("status")
    return {**tree, "status": _moved(status, by)}


def _moved(tree: Any, by: timedelta) -> Any:
    if isinstance(tree, dict):
        return {key: _moved(value, by) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_moved(value, by) for value in tree]
    moment = read_moment(tree) if isinstance(tree, str) and "T" in tree else None
    return (moment + by).isoformat().replace("+00:00", "Z") if moment else tree
