"""Failures with real pods, explained by a user who sees no more than a user does.

All are made at once, on one node. Each must be named: class, step, pod, node, and what to do; and again when its pods
are gone, where it is over.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from tests.explain.failures import FAILURES, NAMESPACE, WITH_TORCH
from tests.explain.making import explained, explained_later, is_right, make, remove_pods, stage_of
from tests.explain.peers import is_named
from tests.explain.recorded import RECORDED
from tests.sdk.kubernetes.stage import Stage
from tests.size import sized
from trainplane.client.errors import RefusedError
from trainplane.explain.creation import class_by_words
from trainplane.explain.faults import fault_of

if TYPE_CHECKING:
    from tests.suite import SuiteReport

CATALOGUE = sized(FAILURES, full=(*FAILURES, *WITH_TORCH))
OVER = [one for one in CATALOGUE if one.ends]


@pytest.mark.timeout(600)
async def test_each_failure_is_named(stages: dict[str, Stage], report: SuiteReport) -> None:
    await asyncio.gather(*(make(stage_of(stages, one), one) for one in CATALOGUE))
    told = await asyncio.gather(*(explained(stage_of(stages, one), one) for one in CATALOGUE))
    async with Stage(stages[NAMESPACE].cluster, NAMESPACE) as admin:
        too_big = await explained_later(admin, next(one for one in CATALOGUE if one.name == "unschedulable"))
    assert too_big.detail.startswith("it asks for 100 cpu, and the largest node has "), "who may read nodes is told"
    await remove_pods(stages[NAMESPACE], OVER)
    later = await asyncio.gather(*(explained_later(stages[NAMESPACE], one) for one in OVER))
    for stage in stages.values():  # those that wait or crash for ever are in the way of whoever measures
        stage.cluster.kubectl("delete", "trainjobs", "--all", "--wait=false", f"--namespace={stage.namespace}")
    gone = dict(zip((one.name for one in OVER), later, strict=True))
    right = wrong = 0
    for failure, explanation in zip(CATALOGUE, told, strict=True):
        named = is_right(failure, explanation)
        kept = gone.get(failure.name, explanation)
        right += named
        wrong += sum(one.certainty == "certain" and not is_right(failure, one) for one in {explanation, kept})
        report.row(
            failure=failure.name,
            expected=failure.cause,
            named=explanation.cause,
            certainty=explanation.certainty,
            says=explanation.summary,
            remedy=explanation.remedy,
            right=named,
            right_when_gone=is_right(failure, kept),
            says_when_gone=kept.summary,
        )
    missing = await _refusal(stages[NAMESPACE])
    right += missing == "RuntimeMissing"
    report.row(failure="runtime-missing", expected="RuntimeMissing", named=missing, right=missing == "RuntimeMissing")
    recorded = {name: fault.cause for name, (pod, lines, _) in RECORDED.items() if (fault := fault_of(pod, lines))}
    right += sum(recorded.get(name) == expected for name, (_, _, expected) in RECORDED.items())
    count = len(CATALOGUE) + 1 + len(RECORDED)
    kept_right = sum(is_right(failure, gone[failure.name]) for failure in OVER)
    report.figure("failures", count)
    report.figure("named_right", right)
    report.figure("confidently_wrong", wrong)
    report.figure("gone", len(gone))
    report.figure("named_right_when_gone", kept_right)
    said = {one.name: explanation for one, explanation in zip(CATALOGUE, told, strict=True)}
    for figure, answers in (("explain_named_with_pods", said), ("explain_named", said | gone)):
        report.figure(figure, sum(is_named(one, [str(answers[one.name])]) for one in CATALOGUE))  # as others are judged
    lost = [row for row in report.rows if False in (row.get("right"), row.get("right_when_gone"))]
    assert wrong == 0, json.dumps(lost, indent=1)
    assert right >= count - 2, json.dumps(lost, indent=1)
    assert kept_right >= len(gone) - 2, json.dumps(lost, indent=1)


async def _refusal(stage: Stage) -> str:
    """Return the class of what the cluster says to a TrainJob of no runtime."""
    job = {**FAILURES[0].trainjob(), "metadata": {"name": "runtimeless"}}
    job["spec"] = {**job["spec"], "runtimeRef": {"name": "no-such", "kind": "TrainingRuntime"}}
    try:
        await stage.backend.submit(job)
    except RefusedError as refusal:
        return class_by_words(str(refusal)) or "Unknown"
    return ""
