"""A node that is lost under a TrainJob: its kubelet says no more, and an admin gives up what was on it.

It is told while the pod is still there by name and nobody hears how it ended, and when the TrainJob has failed of it,
which Kubernetes puts off until the pod is gone.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from lab import node
from tests import shared
from tests.explain.failures import NAMESPACE, Failure
from tests.explain.making import PATIENCE, explained_later, is_right, make

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lab.cluster import Cluster
    from tests.sdk.kubernetes.stage import Stage
    from tests.suite import SuiteReport
    from trainplane.explain.explanation import Explanation

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""What Kubernetes' own page on nodes that are shut down without a word says to taint them with."""
LOST = Failure("node-lost", "NodeLost", pod={"terminationGracePeriodSeconds": 30})


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Return a cluster of this module's own, because its test kills the kubelet."""
    with shared.own_node_cluster("node-lost") as cluster:
        yield cluster


@pytest.mark.full
async def test_a_lost_node_is_named(stages: dict[str, Stage], cluster: Cluster, report: SuiteReport) -> None:
    stage = stages[NAMESPACE]
    await make(stage, LOST)
    await stage.wait(LOST.name, "Running")
    with _node_lost(cluster):
        early = await _until(stage, lambda told: told.cause == LOST.cause)
    told = await _until(stage, lambda told: told.state == "Failed")
    report.row(
        failure=LOST.name,
        expected=LOST.cause,
        named=told.cause,
        certainty=told.certainty,
        says=told.summary,
        right=is_right(LOST, told),
    )
    assert (early.step, early.node, is_right(LOST, told)) == (LOST.step, node.NAME, True), f"{early}\n{told}"


async def _until(stage: Stage, holds: Callable[[Explanation], bool]) -> Explanation:
    """Return what is said of it as soon as that is so, or at the last."""
    deadline = time.monotonic() + PATIENCE
    while not holds(told := await explained_later(stage, LOST)) and time.monotonic() < deadline:  # noqa: ASYNC110 nobody tells
        await asyncio.sleep(1)
    return told


@contextmanager
def _node_lost(cluster: Cluster) -> Iterator[None]:
    """Take the node away for a while."""
    cluster.kill("kubelet")
    try:
        cluster.kubectl("taint", "node", node.NAME, f"{OUT_OF_SERVICE}=nodeshutdown:NoExecute")
        yield
    finally:
        cluster.kubectl("taint", "node", node.NAME, f"{OUT_OF_SERVICE}-")
        cluster.revive("kubelet")
        node.wait_ready(cluster)
