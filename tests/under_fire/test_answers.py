"""Answers of the hub that were wrong: what would stop a job, and why one waits."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.hub.check_objects import (
    NAMESPACE,
    altered,
    cluster_facts,
    cluster_queue,
    content,
    fleet_facts,
    hub_facts,
    local_queue,
    train_job,
    worker_facts,
)
from tests.unit.hub.pending_world import GPU, NOW, World, codes, pod_set, workload
from tests.unit.hub.pending_world import local_queue as waiting_queue
from trainplane.hub.check.facts import ClusterFacts, Unseen
from trainplane.hub.check.judge import judge
from trainplane.hub.pending.explain import explain
from trainplane.resources import CLUSTER_QUEUES, LOCAL_QUEUES, NAMESPACES, RESOURCE_FLAVORS

BLIND = ("hub-and-sdk", 7, "fleet check did not look at the hub itself")
MISLED = ("hub-and-sdk", 11, "why-queued counted who is not in line, and slices as pods")


def hub_with(**changed: Any) -> ClusterFacts:
    return altered(hub_facts(), CLUSTER_QUEUES, cluster_queue(checks=("mk",), **changed))


@pytest.mark.finding(*BLIND)
@pytest.mark.parametrize(
    ("hub", "says"),
    [
        (hub_with(cpu="1"), "can never give more than 1 cpu"),
        (altered(hub_facts(), LOCAL_QUEUES, local_queue(stopPolicy="Hold")), "is stopped here"),
        (hub_with(stopPolicy="HoldAndDrain"), "is stopped here"),
        (
            altered(
                hub_with(namespaceSelector={"matchLabels": {"team": "other"}}),
                NAMESPACES,
                {"metadata": {"name": NAMESPACE, "labels": {}}},
            ),
            "are not admitted here",
        ),
    ],
    ids=["quota", "local queue on hold", "cluster queue on hold", "selector"],
)
def test_what_stops_a_job_on_the_hub_is_found(hub: ClusterFacts, says: str) -> None:
    report = judge(fleet_facts(hub=hub, trainjob=train_job()))
    assert not report.ready
    assert any(says in finding.problem for finding in report.hub.check("trainjob").findings)


@pytest.mark.finding(*BLIND)
def test_flavors_that_cannot_be_seen_are_said_to_be_so() -> None:
    blind = altered(cluster_facts(content()), RESOURCE_FLAVORS, Unseen("forbidden", "403"))
    report = judge(fleet_facts(worker_facts(cluster=blind), trainjob=train_job()))
    assert [finding.level for finding in report.worker("worker1").check("trainjob").findings] == ["unseen"]


def in_line(*others: dict[str, Any], **more: Any) -> World:
    """Return a world of a strict queue, with others that came before the job."""
    world = World(others=list(others), more=more)
    world.queue["spec"]["queueingStrategy"] = "StrictFIFO"
    world.local_queues.append(waiting_queue(namespace="other"))
    return world


EARLIER = "2026-01-01T00:00:00Z"


@pytest.mark.finding(*MISLED)
def test_who_backs_off_is_not_ahead() -> None:
    later = (NOW + timedelta(minutes=5)).isoformat()
    backing_off = workload("earlier", created=EARLIER, requeueState={"count": 2, "requeueAt": later})
    assert "BehindOthers" not in codes(explain(in_line(backing_off).facts()))
    passed = workload("earlier", created=EARLIER, requeueState={"count": 2, "requeueAt": EARLIER})
    assert "BehindOthers" in codes(explain(in_line(passed).facts()))


@pytest.mark.finding(*MISLED)
def test_who_is_kept_out_until_a_check_agrees_is_not_ahead() -> None:
    kept_out = workload("earlier", created=EARLIER, conditions={"Requeued": ("False", "AdmissionCheck", "")})
    assert "BehindOthers" not in codes(explain(in_line(kept_out).facts()))


@pytest.mark.finding(*MISLED)
def test_who_is_of_a_namespace_that_is_not_selected_is_not_ahead() -> None:
    stranger = workload("earlier", namespace="other", created=EARLIER)
    labels = {"team": {"a": "b"}, "other": {}}
    world = in_line(stranger, namespace_labels=labels)
    assert "BehindOthers" in codes(explain(world.facts()))
    world.queue["spec"]["namespaceSelector"] = {"matchLabels": {"a": "b"}}
    assert "BehindOthers" not in codes(explain(world.facts()))


@pytest.mark.finding(*MISLED)
def test_slices_are_counted_as_the_pods_that_they_are() -> None:
    said = 'couldn\'t assign flavors to pod set node: topology "racks" allows to fit only 3 out of 4 slice(s)'
    pods = pod_set(count=16, requests={GPU: "0"}) | {"topologyRequest": {"podSetSliceSize": 4}}
    waiting = workload("job", pods, conditions={"QuotaReserved": ("False", "Pending", said)})
    answer = explain(World(workload=waiting, nodes=None).facts())
    assert "Topology" in codes(answer)
    assert [suggestion.num_nodes for suggestion in answer.suggestions if suggestion.kind == "FewerNodes"] == [12]
