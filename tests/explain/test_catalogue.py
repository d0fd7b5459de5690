"""Failures with real pods, explained by a user who sees no more than a user does.

All are made at once, on one node. Each must be named: class, step, pod, node, and what to do. Beside each stands what
the JobSet's own condition says of it, which is all that the reference's status has.
"""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from lab import node
from tests.explain.failures import FAILURES, NAMESPACE, WITH_TORCH
from tests.explain.recorded import RECORDED
from tests.size import sized
from trainplane.api import tree as trees
from trainplane.client.errors import RefusedError
from trainplane.explain.bundle import read_bundle, write_bundle
from trainplane.explain.creation import class_by_words
from trainplane.explain.explain import explain
from trainplane.explain.faults import fault_of
from trainplane.explain.pods import ENDED, phase_of
from trainplane.lifecycle.conditions import conditions_of, is_finished

if TYPE_CHECKING:
    from tests.explain.failures import Failure
    from tests.sdk.kubernetes.stage import Stage
    from tests.suite import SuiteReport
    from trainplane.explain.explanation import Explanation
    from trainplane.explain.facts import Facts

CATALOGUE = sized(FAILURES, full=(*FAILURES, *WITH_TORCH))
PATIENCE = 90.0
"""Seconds that a failure may take to show, on a busy machine."""


@pytest.mark.timeout(600)
async def test_each_failure_is_named(stages: dict[str, Stage], report: SuiteReport) -> None:
    await asyncio.gather(*(_make(_stage(stages, one), one) for one in CATALOGUE))
    told = await asyncio.gather(*(_explained(_stage(stages, one), one) for one in CATALOGUE))
    right = wrong = 0
    for failure, (explanation, facts) in zip(CATALOGUE, told, strict=True):
        named = _is_right(failure, explanation)
        right += named
        wrong += explanation.certainty == "certain" and not named
        report.row(
            failure=failure.name,
            expected=failure.cause,
            named=explanation.cause,
            certainty=explanation.certainty,
            says=explanation.summary,
            remedy=explanation.remedy,
            reference=_reference(facts),
            right=named,
        )
    missing = await _refusal(stages[NAMESPACE])
    right += missing == "RuntimeMissing"
    report.row(failure="runtime-missing", expected="RuntimeMissing", named=missing, right=missing == "RuntimeMissing")
    recorded = {name: fault.cause for name, (pod, lines, _) in RECORDED.items() if (fault := fault_of(pod, lines))}
    right += sum(recorded.get(name) == expected for name, (_, _, expected) in RECORDED.items())
    count = len(CATALOGUE) + 1 + len(RECORDED)
    report.figure("failures", count)
    report.figure("named_right", right)
    report.figure("confidently_wrong", wrong)
    lost = [row for row in report.rows if row.get("right") is False]
    assert wrong == 0, json.dumps(lost, indent=1)
    assert right >= count - 2, json.dumps(lost, indent=1)


def _stage(stages: dict[str, Stage], failure: Failure) -> Stage:
    return stages[failure.namespace or NAMESPACE]


async def _make(stage: Stage, failure: Failure) -> None:
    await asyncio.to_thread(stage.apply, failure.runtime())
    await stage.backend.submit(failure.trainjob())


async def _explained(stage: Stage, failure: Failure) -> tuple[Explanation, Facts]:
    """Return what is said of a failure as soon as it is there: over, or its cause seen twice."""
    if failure.gone:
        await _remove_pods(stage, failure)
    if failure.evicts:
        await _evict_pods(stage, failure)
    before, deadline = "", time.monotonic() + PATIENCE
    while True:
        facts = await stage.backend.collect(failure.name)
        explanation = explain(read_bundle(write_bundle(facts)), datetime.now(UTC))
        over = is_finished(conditions_of(facts.job)) and all(phase_of(pod) in ENDED for pod in facts.pods)
        seen = over if failure.ends else before == explanation.cause != ""
        if seen or time.monotonic() > deadline:
            return explanation, facts
        before = explanation.cause
        await asyncio.sleep(2)


async def _remove_pods(stage: Stage, failure: Failure) -> None:
    """Take the pods away when the failure is over, as a node that is scaled down does."""
    await stage.wait(failure.name, "Failed")
    labels = f"jobset.sigs.k8s.io/jobset-name={failure.name}"
    await asyncio.to_thread(stage.cluster.kubectl, "delete", "pods", "-n", stage.namespace, "-l", labels, "--now")


async def _evict_pods(stage: Stage, failure: Failure) -> None:
    """Ask for the eviction of the pods, as `kubectl drain` does."""
    job = await stage.wait(failure.name, "Running")
    for step in job.steps:
        meta = {"name": step.pod_name, "namespace": stage.namespace}
        eviction = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta})
        path = f"/api/v1/namespaces/{stage.namespace}/pods/{step.pod_name}/eviction"
        with stage.cluster.connection() as connection:
            await asyncio.to_thread(connection.send, "POST", path, eviction, "application/json")


def _is_right(failure: Failure, told: Explanation) -> bool:
    if (told.cause, told.step) != (failure.cause, failure.step) or not told.remedy:
        return False
    return not told.step or (bool(told.pod) and (told.node == node.NAME or not failure.ends))


async def _refusal(stage: Stage) -> str:
    """Return the class of what the cluster says to a TrainJob of no runtime."""
    job = {**FAILURES[0].trainjob(), "metadata": {"name": "runtimeless"}}
    job["spec"] = {**job["spec"], "runtimeRef": {"name": "no-such", "kind": "TrainingRuntime"}}
    try:
        await stage.backend.submit(job)
    except RefusedError as refusal:
        return class_by_words(str(refusal)) or "Unknown"
    return ""


def _reference(facts: Facts) -> str:
    """Return what the JobSet's condition says: the reference copies it, and has no other words."""
    conditions = trees.entries(facts.jobset, "status", "conditions")
    said = [str(one.get("message")) for one in conditions if one.get("status") == "True"]
    return "; ".join(said) or "(nothing)"
