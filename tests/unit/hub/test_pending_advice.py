"""What would let a job start, who holds what it waits for, and what a hub's workers say."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.hub.pending_world import (
    GPU,
    MULTIKUEUE,
    RESERVED,
    World,
    check,
    cluster_queue,
    codes,
    flavor,
    holder,
    job,
    kinds,
    local_queue,
    node,
    pod_set,
    workload,
)
from trainplane.hub.pending.explain import explain

Tree = dict[str, Any]


# --- suggestions


@given(st.integers(0, 40), st.integers(0, 40), st.integers(2, 30), st.integers(1, 5))
def test_the_largest_number_of_nodes_fits_and_one_more_does_not(nominal: int, used: int, count: int, each: int) -> None:
    world = World(workload=workload("job", pod_set(count=count, requests={GPU: str(each)})), nodes=None)
    world.queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = str(nominal)
    world.use(str(used))
    answer = explain(world.facts())
    free = max(0, nominal - used) // each
    if free >= count:
        assert codes(answer) == ["NextInLine"]
    else:
        now = [suggestion.num_nodes for suggestion in answer.suggestions if suggestion.now]
        assert now == ([free] if free else [])


def test_an_mpi_launcher_that_is_a_node_counts() -> None:
    launcher = pod_set("launcher", count=1, requests={GPU: "1"})
    world = World(job=job(nodes=5), workload=workload("job", launcher, pod_set(count=4)))
    world.use("1")
    (fewer, *_) = explain(world.facts()).suggestions
    assert fewer.num_nodes == 4
    assert "4 node(s) instead of 5" in fewer.what


def test_a_job_of_one_node_cannot_shrink() -> None:
    world = World(job=job(nodes=1), workload=workload("job", pod_set(count=1)))
    world.use("8")
    assert kinds(explain(world.facts())) == ["Wait"]


@pytest.mark.parametrize(
    ("local", "queue", "helps"),
    [
        ({}, {}, True),
        ({"stopPolicy": "Hold"}, {}, False),
        ({}, {"stopPolicy": "Hold"}, False),
        ({}, {"namespaceSelector": {"matchLabels": {"x": "y"}}}, False),
        ({}, {"used": "60"}, False),
        ({}, {"admissionChecksStrategy": {"admissionChecks": [{"name": "mk"}]}}, False),
        ({"namespace": "other"}, {}, False),
    ],
)
def test_another_queue_helps_if_it_would_take_the_job(local: Tree, queue: Tree, helps: bool) -> None:
    world = World(
        local_queues=[local_queue(), local_queue("big", leads_to="big", **local)],
        cluster_queues=[cluster_queue(), cluster_queue("big", {"a": {GPU: "64"}}, **queue)],
        checks=[check("mk", controller=MULTIKUEUE)],
    )
    world.use("8")
    found = [each for each in explain(world.facts()).suggestions if each.kind == "OtherQueue"]
    assert [each.queue for each in found] == (["big"] if helps else [])
    if helps:
        assert found[0].do == "kubectl label trainjob job -n team --overwrite kueue.x-k8s.io/queue-name=big"


def test_a_strict_queue_with_a_line_does_not_help() -> None:
    world = World(
        local_queues=[local_queue(), local_queue("big", leads_to="big")],
        cluster_queues=[cluster_queue(), cluster_queue("big", {"a": {GPU: "64"}}, queueingStrategy="StrictFIFO")],
        others=[workload("there", pod_set(count=99), queue="big")],
    )
    world.use("8")
    assert "OtherQueue" not in kinds(explain(world.facts()))


def test_holders_of_the_own_namespace_are_named_and_others_summed_up() -> None:
    holding = (
        holder("mine", "2", maximumExecutionTimeSeconds=7200),
        holder("theirs", "3", namespace="other"),
        holder("theirs-too", "1", namespace="other"),
        holder("elsewhere", "9", flavor="b"),
    )
    progress = {"trainerStatus": {"estimatedRemainingSeconds": 600, "lastUpdatedTime": "2026-03-01T12:00:00Z"}}
    world = World(more={"holding": holding, "holding_jobs": {("other", "theirs-too"): {"status": progress}}})
    world.use("6")
    answer = explain(world.facts())
    mine, theirs = answer.holders
    assert (mine.job, mine.amount, mine.ends) == ("TrainJob/mine", "2", datetime(2026, 3, 1, 13, tzinfo=UTC))
    assert (theirs.job, theirs.amount, theirs.workloads) == (None, "4", 2)
    assert theirs.ends == datetime(2026, 3, 1, 12, 10, tzinfo=UTC)
    assert "theirs" not in answer.to_text()
    assert "expects to end by 2026-03-01T12:10:00Z" in answer.suggestions[-1].what


# --- the hub


def hub(**worker: Any) -> World:
    """Return a hub whose job waits for worker1, a cluster as `World` makes it, and worker2, which cannot be reached."""
    there = World(**worker)
    asked: Tree = {"admissionChecks": [{"name": "mk", "state": "Pending"}], "nominatedClusterNames": ["worker1"]}
    world = World(job=job(managedBy=MULTIKUEUE), workload=workload(conditions=RESERVED, **asked), nodes=None)
    world.checks = [check("mk", controller=MULTIKUEUE)]
    world.queue["spec"]["admissionChecksStrategy"] = {"admissionChecks": [{"name": "mk"}]}
    facts = replace(there.facts(), cluster="worker1", job=world.job, model=world.workload)
    world.more["workers"] = {"worker1": facts, "worker2": "worker worker2 cannot be reached: no route"}
    return world


def test_a_hub_passes_on_what_its_workers_say() -> None:
    used = cluster_queue(used="4")
    answer = explain(hub(cluster_queues=[used]).facts())
    assert codes(answer) == ["AdmissionCheck"]
    assert answer.summary == "Quota is reserved here; worker1 asked to take it, none has yet."
    first, second = answer.clusters
    assert (first.fits, [cause.code for cause in first.answer.causes]) == (False, ["QuotaInUse"])
    assert (second.fits, second.answer.causes[0].code) == (None, "WorkerUnreachable")
    assert answer.suggestions[0].num_nodes == 2, "worker1 has room for two nodes"


@pytest.mark.parametrize(
    "worker",
    [
        {"cluster_queues": [cluster_queue(used="4", stopPolicy="HoldAndDrain")]},
        {"cluster_queues": [cluster_queue(used="4")], "local_queues": [local_queue(stopPolicy="Hold")]},
        {"cluster_queues": [cluster_queue(used="4", namespaceSelector={"matchLabels": {"x": "y"}})]},
        {
            "cluster_queues": [cluster_queue(used="4", queueingStrategy="StrictFIFO")],
            "others": [workload("first", pod_set(count=9))],
        },
    ],
)
def test_fewer_nodes_help_only_where_a_worker_admits(worker: Tree) -> None:
    assert "FewerNodes" not in kinds(explain(hub(**worker).facts()))


def test_fewer_nodes_are_not_advised_while_no_worker_can_be_asked() -> None:
    world = hub()
    world.more["workers"] = {"worker1": "worker worker1 cannot be reached: no route"}
    world.workload = workload()
    world.use("4")
    answer = explain(world.facts())
    assert codes(answer) == ["QuotaInUse"]
    assert kinds(answer) == ["Wait"]


@pytest.mark.parametrize(
    ("there", "helps"),
    [
        (cluster_queue("big", {"a": {GPU: "64"}}), True),
        (cluster_queue("big", {"a": {GPU: "64"}}, stopPolicy="Hold"), False),
        (cluster_queue("big", {"a": {GPU: "2"}}), False),
        (cluster_queue("big", {"b": {GPU: "64"}}), False),
        (cluster_queue("other", {"a": {GPU: "64"}}), False),
    ],
)
def test_another_queue_of_a_hub_helps_if_a_worker_has_room_in_its_own(there: Tree, helps: bool) -> None:
    queues = [local_queue(), local_queue("big", leads_to="big")]
    world = hub(
        local_queues=queues,
        cluster_queues=[cluster_queue(used="8"), there],
        flavors=[flavor(), flavor("b", nodeTaints=[{"key": "team", "effect": "NoSchedule"}])],
    )
    world.local_queues = queues
    checks = {"admissionChecks": [{"name": "mk"}]}
    world.cluster_queues.append(cluster_queue("big", {"a": {GPU: "64"}}, admissionChecksStrategy=checks))
    assert ("OtherQueue" in kinds(explain(world.facts()))) is helps


def test_a_worker_that_takes_it_back_has_no_room_for_it() -> None:
    evicted = {"Evicted": ("True", "ClusterQueueStopped", "The ClusterQueue is stopped")}
    (first, _) = explain(hub(workload=workload(conditions=RESERVED | evicted)).facts()).clusters
    assert (first.fits, [cause.code for cause in first.answer.causes]) == (False, ["Stopping"])
    taken = workload(conditions=evicted)
    taken["spec"]["active"] = False
    (first, _) = explain(hub(workload=taken).facts()).clusters
    assert (first.fits, first.answer.causes[0].code) == (False, "Deactivated")


def test_a_worker_that_was_not_asked_may_have_room() -> None:
    world = hub(workload=None)
    assert world.workload is not None
    world.workload["status"]["nominatedClusterNames"] = ["worker2"]
    answer = explain(world.facts())
    assert answer.clusters[0].fits
    assert [(each.kind, each.cluster) for each in answer.suggestions] == [("OtherCluster", "worker1")]


def test_a_hub_without_quota_says_which_worker_has_room() -> None:
    world = hub(workload=None)
    world.workload = workload()
    world.use("8")
    answer = explain(world.facts())
    assert codes(answer) == ["QuotaInUse"]
    assert ("OtherCluster", "worker1") in [(each.kind, each.cluster) for each in answer.suggestions]


def test_who_was_asked_before_an_eviction_is_not_asked_now() -> None:
    world = hub(workload=None)
    world.workload = workload(nominatedClusterNames=["worker1"])
    world.use("8")
    answer = explain(world.facts())
    assert ("OtherCluster", "worker1") in [(each.kind, each.cluster) for each in answer.suggestions]


@pytest.mark.parametrize(
    ("worker", "code"),
    [
        ({"namespace": None}, "NamespaceMissing"),
        ({"local_queues": []}, "LocalQueueMissing"),
        ({"cluster_queues": []}, "ClusterQueueMissing"),
        ({"workload": workload("job", pod_set(count=9))}, "ExceedsQuota"),
        ({"nodes": [node(gpu="1")]}, "NextInLine"),
    ],
)
def test_a_worker_says_what_it_lacks(worker: Tree, code: str) -> None:
    (first, _) = explain(hub(**worker).facts()).clusters
    assert first.answer.causes[0].code == code


def test_a_worker_whose_queues_may_not_be_read_is_not_judged() -> None:
    (first, _) = explain(hub(local_queues=[], more={"unread": ("localqueues",)}).facts()).clusters
    assert first.fits is None
    assert first.answer.causes == ()


@pytest.mark.parametrize(("manager", "sends"), [(MULTIKUEUE, False), (None, True)])
def test_who_runs_it_and_where_its_queue_sends_it_must_agree(manager: str | None, sends: bool) -> None:
    world = World(job=job(managedBy=manager), checks=[check("mk", controller=MULTIKUEUE)])
    if sends:
        world.queue["spec"]["admissionChecksStrategy"] = {"admissionChecks": [{"name": "mk"}]}
    answer = explain(world.facts())
    assert answer.causes[0].code == "ManagedBy"
    assert "nobody will run it" in answer.summary or sends
