"""How failures are made on a cluster, and what a user is told of each once it is there."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lab import node
from tests.explain.failures import NAMESPACE
from trainplane.explain.bundle import read_bundle, write_bundle
from trainplane.explain.explain import explain
from trainplane.explain.faults import kept_fault, step_of
from trainplane.explain.phrasing import of_fault
from trainplane.explain.pods import ENDED, phase_of
from trainplane.lifecycle.conditions import conditions_of, is_finished

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.explain.failures import Failure
    from tests.sdk.kubernetes.stage import Stage
    from trainplane.explain.explanation import Explanation
    from trainplane.explain.facts import Facts

PATIENCE = 180.0
"""Seconds that a failure may take to show, on a busy machine."""
_OWNER = "jobset.sigs.k8s.io/jobset-name"


def stage_of(stages: dict[str, Stage], failure: Failure) -> Stage:
    """Return the namespace that a failure is made in."""
    return stages[failure.namespace or NAMESPACE]


async def make(stage: Stage, failure: Failure) -> None:
    """Submit the TrainJob that fails so."""
    await asyncio.to_thread(stage.apply, failure.runtime())
    await stage.backend.submit(failure.trainjob())


async def explained(stage: Stage, failure: Failure) -> Explanation:
    """Return what is said of a failure as soon as it is there: over, or its cause seen twice."""
    if failure.gone:
        await stage.wait(failure.name, "Failed")
        await remove_pods(stage, [failure])
    if failure.evicts:
        await _evict_pods(stage, failure)
    before, deadline = "", time.monotonic() + PATIENCE
    while True:
        explanation, over = await _look(stage, failure)
        seen = over if failure.ends else before == explanation.cause != ""
        if seen or time.monotonic() > deadline:
            return explanation
        before = explanation.cause
        await asyncio.sleep(2)


async def explained_later(stage: Stage, failure: Failure) -> Explanation:
    """Return what is said of a failure that was there before."""
    return (await _look(stage, failure))[0]


async def remove_pods(stage: Stage, failures: Iterable[Failure]) -> None:
    """Take the pods away when failures are over, as a node that is scaled down does; return when they are gone."""
    names = ",".join(failure.name for failure in failures if failure.ends)
    if names:
        command = ("delete", "pods", "-n", stage.namespace, "-l", f"{_OWNER} in ({names})", "--now")
        await asyncio.to_thread(stage.cluster.kubectl, *command)


def is_right(failure: Failure, told: Explanation) -> bool:
    """Return whether a failure is named: class, step, pod, node, and what to do."""
    if (told.cause, told.step) != (failure.cause, failure.step) or not told.remedy:
        return False
    return not told.step or (bool(told.pod) and (told.node == node.NAME or not failure.ends))


async def _look(stage: Stage, failure: Failure) -> tuple[Explanation, bool]:
    """Return what is said of a failure now, out of a bundle, and whether it is over."""
    facts = await stage.backend.collect(failure.name)
    if failure.evicts:
        return _restarted(facts), False
    over = is_finished(conditions_of(facts.job)) and all(phase_of(pod) in ENDED for pod in facts.pods)
    return explain(read_bundle(write_bundle(facts)), datetime.now(UTC)), over


def _restarted(facts: Facts) -> Explanation:
    """Return what the status keeps of the disruption after which a TrainJob restarted."""
    kept = kept_fault(facts.job)
    if kept is None:
        return explain(facts, datetime.now(UTC))
    return of_fault(kept, step_of(kept), "certain", ())


async def _evict_pods(stage: Stage, failure: Failure) -> None:
    """Ask for the eviction of the pods, as `kubectl drain` does."""
    job = await stage.wait(failure.name, "Running")
    for step in job.steps:
        meta = {"name": step.pod_name, "namespace": stage.namespace}
        eviction = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta})
        path = f"/api/v1/namespaces/{stage.namespace}/pods/{step.pod_name}/eviction"
        with stage.cluster.connection() as connection:
            await asyncio.to_thread(connection.send, "POST", path, eviction, "application/json")
