"""A node that is lost under a TrainJob: its kubelet says no more, and an admin gives up what was on it.

It is told while the pod is still there by name, in a cluster that never hears how it ended.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lab import node
from tests.explain.failures import NAMESPACE, Failure
from tests.explain.making import PATIENCE, explained_later, is_right, make

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster
    from tests.sdk.kubernetes.stage import Stage
    from tests.suite import SuiteReport

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""What Kubernetes' own page on nodes that are shut down without a word says to taint them with."""
LOST = Failure("node-lost", "NodeLost", pod={"terminationGracePeriodSeconds": 30})


async def test_a_lost_node_is_named(stages: dict[str, Stage], cluster: Cluster, report: SuiteReport) -> None:
    stage = stages[NAMESPACE]
    await make(stage, LOST)
    await stage.wait(LOST.name, "Running")
    with _node_lost(cluster):
        async with asyncio.timeout(PATIENCE):
            while (told := await explained_later(stage, LOST)).state != "Failed":  # noqa: ASYNC110 nobody tells
                await asyncio.sleep(1)
    report.row(
        failure=LOST.name,
        expected=LOST.cause,
        named=told.cause,
        certainty=told.certainty,
        says=told.summary,
        right=is_right(LOST, told),
    )
    assert is_right(LOST, told), str(told)
    assert OUT_OF_SERVICE in told.detail or "taint" in told.detail, str(told)


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
