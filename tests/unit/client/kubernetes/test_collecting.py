"""All that a cluster tells of one TrainJob, by a user who may not read all of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tests.unit.client.reading.documents import condition, ended
from trainplane.client.errors import NotFoundError
from trainplane.explain.explain import explain
from trainplane.explain.facts import MOST_LOGS
from trainplane.resources import NODES

if TYPE_CHECKING:
    from tests.unit.client.kubernetes.stage import Stage

FAILED = condition("Failed", "FailedJobs", "failed")
TRACEBACK = ["Traceback (most recent call last):", '  File "x.py", line 1, in f', "KeyError: 'x'"]
LOST = [*TRACEBACK[:2], "RuntimeError: [pair.cc:547] Connection closed by peer [10.0.0.7]:1"]


async def test_logs_of_all_ranks_find_the_first_fault(stage: Stage) -> None:
    stage.job(FAILED)
    for index, lines in enumerate((LOST, TRACEBACK, LOST)):
        log = stage.pod(index, spec={"nodeName": "a", "containers": [{"name": "node"}]})
        stage.print(log, *lines)
        stage.end(log, index, 1, spec={"nodeName": "a", "containers": [{"name": "node"}]})
    stage.server.put(NODES, {"metadata": {"name": "a"}})
    facts = await stage.backend.collect("a")
    assert [node["metadata"]["name"] for node in facts.nodes] == ["a"]
    told = explain(facts, datetime.now(UTC))
    assert (told.cause, told.step, told.certainty) == ("PythonError", "node-1", "certain")
    cause = (await stage.backend.get_job("a")).cause
    assert cause is not None
    assert (cause.step, cause.kind, cause.log_tail) == ("node-1", "PythonError", tuple(TRACEBACK))


async def test_what_cannot_be_read_is_named_and_left_out(stage: Stage) -> None:
    stage.job(FAILED)
    stage.pod(0, "Failed", state=ended(3), spec={"nodeName": "gone", "containers": [{"name": "node"}]})
    facts = await stage.backend.collect("a")
    assert (facts.jobset, facts.nodes, facts.workload) == (None, [], None)
    assert {one.partition(":")[0] for one in facts.unread} >= {"jobsets", "nodes"}
    assert explain(facts, datetime.now(UTC)).cause == "ExitCode"
    with pytest.raises(NotFoundError):
        await stage.backend.collect("b")


async def test_of_very_many_pods_not_all_logs_are_read(stage: Stage) -> None:
    stage.job(FAILED)
    for index in range(MOST_LOGS + 20):
        stage.pod(index, "Succeeded")
    log = stage.pod(MOST_LOGS + 20)
    stage.print(log, *TRACEBACK)
    stage.end(log, MOST_LOGS + 20, 1)
    facts = await stage.backend.collect("a")
    assert explain(facts, datetime.now(UTC)).step == f"node-{MOST_LOGS + 20}"
    assert sum("/log" in asked.path for asked in stage.server.requests) == MOST_LOGS


async def test_a_fault_that_is_kept_spares_the_logs(stage: Stage) -> None:
    kept = {"cause": "PythonError", "step": "node", "index": 0, "pod": "a-node-0-0-abcde", "log": TRACEBACK}
    stage.job(FAILED, status={"firstFault": kept})
    stage.pod(0, "Failed", state=ended(1))
    before = len(stage.server.requests)
    cause = (await stage.backend.get_job("a")).cause
    assert cause is not None
    assert (cause.kind, cause.log_tail) == ("PythonError", tuple(TRACEBACK))
    assert len(stage.server.requests) - before == 3


async def test_where_a_pod_waits_for_a_node_all_nodes_are_looked_at(stage: Stage) -> None:
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available"}
    asks = {"name": "node", "resources": {"requests": {"cpu": "100", "memory": "1Gi"}}}
    stage.job()
    stage.pod(0, "Pending", spec={"containers": [asks]}, status={"conditions": [waits]})
    for name, cpu in (("a", "7910m"), ("b", "4")):
        room = {"allocatable": {"cpu": cpu, "memory": "8Gi"}}
        stage.server.put(NODES, {"metadata": {"name": name}, "status": room})
    told = explain(await stage.backend.collect("a"), datetime.now(UTC))
    assert (told.cause, told.step) == ("Unschedulable", "node-0")
    assert told.detail.startswith("it asks for 100 cpu, and the largest of 2 nodes has 7910m: 0/2 nodes")
