"""Logs of real pods while the API server is killed and started again, on a cluster of the test's own."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from tests import shared
from tests.sdk.kubernetes.stage import PATIENCE, count_late, runtime, texts, train_job

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster
    from tests.sdk.kubernetes.stage import Stage
    from tests.suite import SuiteReport
    from trainplane.client.types.jobs import LogLine

STEADY = "i=0; while [ ! -e /tmp/go ]; do i=$((i+1)); echo line $i; sleep 0.02; done; echo end $i; sleep 1"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with shared.own_node_cluster("logs") as cluster:
        yield cluster


async def test_followed_logs_api_server_killed_no_line_lost_or_repeated(stage: Stage, report: SuiteReport) -> None:
    stage.apply(runtime("shell", STEADY))
    await stage.backend.submit(train_job("steady", trainer={"numNodes": 2}))
    found: list[LogLine] = []
    lines = stage.backend.read_logs("steady", None, follow=True)
    async with aclosing(lines):
        await stage.until(lines, found, 200)
        stage.cluster.kill("kube-apiserver")
        stage.cluster.revive("kube-apiserver")
        await asyncio.to_thread(stage.cluster.wait_ready, seconds=PATIENCE)
        await stage.until(lines, found, len(found) + 600)
        await stage.tell("steady")
        async with asyncio.timeout(PATIENCE):
            found += [line async for line in lines]
    for step in ("node-0", "node-1"):
        *counted, end = texts(found, step)
        assert counted == [f"line {number}" for number in range(1, len(counted) + 1)]
        assert end == f"end {len(counted)}"
    late = count_late(found)
    assert late == 0
    report.figure("sdk_log_lines_through_a_killed_api_server", len(found))
    report.figure("sdk_log_lines_out_of_order", late)
