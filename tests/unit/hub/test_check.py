from __future__ import annotations

import json

import pytest

from tests.unit.hub.check_objects import altered, cluster_facts, content, fleet_facts, hub_facts, worker_facts
from trainplane.hub.check.facts import Unseen, WorkerFacts
from trainplane.hub.check.judge import judge
from trainplane.hub.check.report import Check, ClusterReport, Finding, Report
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, LOCAL_QUEUES, NAMESPACES


def finding(level: str) -> Finding:
    return Finding(level, "p", "r")  # type: ignore[arg-type] # parametrised


@pytest.mark.parametrize(
    ("levels", "worst", "ready"),
    [
        ([], None, True),
        (["warns"], "warns", True),
        (["warns", "unseen"], "unseen", False),
        (["unseen", "stops", "warns"], "stops", False),
    ],
)
def test_the_worst_finding_decides(levels: list[str], worst: str | None, ready: bool) -> None:
    check = Check("queues", "s", tuple(finding(level) for level in levels))
    cluster = ClusterReport("worker1", (check,))
    report = Report(ClusterReport("hub", ()), (cluster,))
    assert (check.level, cluster.level, report.level, report.ready) == (worst, worst, worst, ready)


def test_an_area_that_was_not_looked_at_is_no_answer() -> None:
    with pytest.raises(LookupError, match="queues was not looked at on worker1"):
        ClusterReport("worker1", ()).check("queues")


def test_a_fleet_in_which_all_is_well_has_no_findings() -> None:
    report = judge(fleet_facts(worker_facts("worker1"), worker_facts("worker2")))
    assert report.level is None
    assert [worker.name for worker in report.workers] == ["worker1", "worker2"]
    areas = ["connection", "credentials", "versions", "runtimes", "namespaces", "queues", "priorities"]
    assert [check.area for check in report.workers[0].checks] == areas
    assert [check.area for check in report.hub.checks] == ["versions", "dispatch"]


def test_a_worker_that_does_not_answer_is_judged_no_further() -> None:
    silent = WorkerFacts(name="worker2", place="Secret a/b", trouble="no route to host", active={"status": "True"})
    report = judge(fleet_facts(worker_facts("worker1"), silent))
    assert [check.area for check in report.worker("worker2").checks] == ["connection", "credentials"]
    assert report.worker("worker1").level is None
    assert not report.ready


def test_a_refused_kubeconfig_is_told_as_such_and_not_as_silence() -> None:
    refused = WorkerFacts(name="worker1", place="Secret a/b", trouble="not used", refusals=("runs a program",))
    (check,) = judge(fleet_facts(refused)).worker("worker1").checks
    assert check.area == "credentials"
    assert "runs a program" in check.findings[0].problem


def test_one_missing_namespace_is_one_finding() -> None:
    cluster = altered(altered(cluster_facts(content()), NAMESPACES), LOCAL_QUEUES)
    report = judge(fleet_facts(worker_facts(cluster=cluster)))
    assert [one.problem for one in report.worker("worker1").findings] == ["namespace research does not exist here"]


def test_a_hub_without_workers_is_said_by_its_dispatch() -> None:
    report = judge(fleet_facts(hub=hub_facts("worker1"), trainjob=None))
    assert report.hub.level is None
    empty = altered(hub_facts(), LOCAL_QUEUES)
    assert judge(fleet_facts(hub=empty)).hub.level == "warns"


def test_a_report_is_plain_data() -> None:
    cluster = altered(cluster_facts(content()), CLUSTER_TRAINING_RUNTIMES, Unseen("forbidden", "403"))
    tree = judge(fleet_facts(worker_facts(cluster=cluster))).tree()
    assert json.loads(json.dumps(tree)) == tree
    assert tree["ready"] is False
    (worker,) = tree["workers"]
    assert worker["level"] == "unseen"
    (runtimes,) = [check for check in worker["checks"] if check["area"] == "runtimes"]
    assert set(runtimes["findings"][0]) == {"level", "problem", "remedy"}
