from __future__ import annotations

from typing import Any

import pytest

from tests.unit.hub.check_objects import QUEUE, altered, cluster_facts, cluster_queue, content, hub_facts, local_queue
from trainplane.hub.check.facts import ClusterFacts, Unseen
from trainplane.hub.check.queues import judge_namespaces, judge_queues
from trainplane.resources import CLUSTER_QUEUES, LOCAL_QUEUES, NAMESPACES

INACTIVE = {"conditions": [{"type": "Active", "status": "False", "message": "flavor default is not found"}]}


def well() -> ClusterFacts:
    return cluster_facts(content())


def problems(worker: ClusterFacts) -> list[tuple[str, str]]:
    return [(one.level, one.problem) for one in judge_queues(hub_facts(), worker, (QUEUE,)).findings]


def test_namespaces_and_queues_that_are_there_are_listed() -> None:
    assert judge_namespaces(well(), ("research",)).summary == "research"
    assert judge_namespaces(well(), ("research",)).findings == ()
    assert judge_namespaces(well(), ()).summary == "none sends jobs here"
    check = judge_queues(hub_facts(), well(), (QUEUE,))
    assert (check.summary, check.findings) == ("research/gpu", ())
    assert judge_queues(hub_facts(), well(), ()).summary == "none leads here"


def test_a_fleet_of_many_namespaces_lists_a_few() -> None:
    many = tuple(f"team-{number}" for number in range(9))
    assert judge_namespaces(well(), many).summary == "team-0, team-1, team-2, team-3, team-4, team-5 and 3 more"


def test_a_missing_namespace_is_named_once_and_its_queues_are_not() -> None:
    worker = altered(altered(well(), NAMESPACES), LOCAL_QUEUES)
    (finding,) = judge_namespaces(worker, ("research",)).findings
    assert finding.problem == "namespace research does not exist here"
    assert finding.remedy.endswith("kubectl create namespace research")
    assert problems(worker) == []


def test_namespaces_that_may_not_be_seen_are_known_by_their_queues() -> None:
    blind = altered(well(), NAMESPACES, Unseen("forbidden", "403"))
    assert judge_namespaces(blind, ("research",)).findings == ()
    (finding,) = judge_namespaces(altered(blind, LOCAL_QUEUES), ("research",)).findings
    assert finding.level == "unseen"


def test_a_missing_queue_is_named_with_what_the_hub_has() -> None:
    (finding,) = judge_queues(hub_facts(), altered(well(), LOCAL_QUEUES), (QUEUE,)).findings
    assert (finding.level, finding.problem) == ("stops", "LocalQueue research/gpu does not exist here")
    assert "on the hub it is shared" in finding.remedy


def test_a_queue_that_leads_nowhere_is_named() -> None:
    worker = altered(well(), LOCAL_QUEUES, local_queue(cluster_queue="gone"))
    assert problems(worker) == [
        ("stops", "LocalQueue research/gpu leads to ClusterQueue gone, which does not exist here")
    ]


@pytest.mark.parametrize(
    ("resource", "queue", "text"),
    [
        (
            CLUSTER_QUEUES,
            cluster_queue(stopPolicy="Hold"),
            "ClusterQueue shared is stopped here (spec.stopPolicy: Hold)",
        ),
        (LOCAL_QUEUES, local_queue(stopPolicy="HoldAndDrain"), "LocalQueue research/gpu is stopped here"),
        (
            CLUSTER_QUEUES,
            cluster_queue() | {"status": INACTIVE},
            "ClusterQueue shared is not active here: flavor default",
        ),
        (LOCAL_QUEUES, local_queue() | {"status": INACTIVE}, "LocalQueue research/gpu is not active here"),
        (CLUSTER_QUEUES, cluster_queue(namespaceSelector=None), "has no namespaceSelector"),
        (CLUSTER_QUEUES, cluster_queue(namespaceSelector={"matchLabels": {"team": "b"}}), "does not select it"),
    ],
)
def test_what_keeps_a_queue_from_admitting_is_said(resource: Any, queue: Any, text: str) -> None:
    ((level, problem),) = problems(altered(well(), resource, queue))
    assert level == "stops"
    assert text in problem


def test_a_selector_that_selects_is_fine_and_one_of_an_unseen_namespace_is_not_judged() -> None:
    selective = altered(well(), CLUSTER_QUEUES, cluster_queue(namespaceSelector={"matchLabels": {"team": "a"}}))
    assert problems(selective) == []
    strict = altered(well(), CLUSTER_QUEUES, cluster_queue(namespaceSelector=None))
    assert problems(altered(strict, NAMESPACES, Unseen("forbidden", "403"))) == []


def test_a_resource_that_only_the_hub_has_quota_for_is_worth_a_look() -> None:
    worker = altered(well(), CLUSTER_QUEUES, cluster_queue(resourceGroups=[]))
    ((level, problem),) = problems(worker)
    assert level == "warns"
    assert "has no quota for cpu" in problem


def test_two_queues_of_one_cluster_queue_do_not_tell_its_trouble_twice() -> None:
    second = type(QUEUE)("research", "cpu")
    worker = altered(well(), LOCAL_QUEUES, local_queue(), local_queue(second))
    worker = altered(worker, CLUSTER_QUEUES, cluster_queue(stopPolicy="Hold"))
    assert len(judge_queues(hub_facts(), worker, (QUEUE, second)).findings) == 1


def test_queues_that_may_not_be_seen_are_unseen_and_nothing_else_is_claimed() -> None:
    worker = altered(altered(well(), LOCAL_QUEUES, Unseen("forbidden", "403")), CLUSTER_QUEUES)
    assert [level for level, _ in problems(worker)] == ["unseen"]
