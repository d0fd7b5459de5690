"""The whole answer, from facts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.hub.pending_world import (
    GPU,
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


def pending(message: str, reason: str = "Pending") -> dict[str, tuple[str, str, str]]:
    return {"QuotaReserved": ("False", reason, message)}


# --- not queued


def test_a_job_that_is_not_suspended_is_not_queued() -> None:
    world = World(job=job(suspend=False), workload=holder("job", "8"))
    answer = explain(world.facts())
    assert (answer.state, answer.causes) == ("Started", ())
    assert answer.summary == "It is not queued: ClusterQueue cq admitted it."


def test_a_started_job_on_a_worker_names_it() -> None:
    placed = holder("job", "8")
    placed["status"]["clusterName"] = "worker2"
    assert explain(World(job=job(suspend=False), workload=placed).facts()).summary.endswith("it is on worker2.")


def test_a_started_job_that_no_node_carries_is_warned_of() -> None:
    world = World(job=job(suspend=False), workload=holder("job", "8"), nodes=[node(gpu="1")])
    answer = explain(world.facts())
    assert codes(answer) == ["NoNodeFits"]
    assert not answer.causes[0].blocks


@pytest.mark.parametrize("kind", ["Complete", "Failed"])
def test_a_finished_job_is_not_queued(kind: str) -> None:
    world = World()
    world.job["status"]["conditions"] = [{"type": kind, "status": "True", "message": "it is over"}]
    assert explain(world.facts()).summary == f"It is not queued: it is {kind}. it is over."


def test_a_job_on_its_way_out_is_not_queued() -> None:
    world = World()
    world.job["metadata"]["deletionTimestamp"] = "2026-03-01T11:00:00Z"
    assert explain(world.facts()).state == "Deleting"


# --- the job and its Workload


def test_suspended_by_a_person() -> None:
    answer = explain(World(job=job(queue=None), workload=None).facts())
    assert (answer.state, codes(answer)) == ("Suspended", ["SuspendedByUser"])
    assert '"suspend":false' in answer.causes[0].do


def test_no_queue_though_kueue_manages_it() -> None:
    assert codes(explain(World(job=job(queue=None), workload=workload(queue="")).facts())) == ["NoQueue"]


def test_no_workload_tells_the_last_warning() -> None:
    events = ({"type": "Normal", "message": "fine"}, {"type": "Warning", "message": "webhook is down"})
    answer = explain(World(workload=None, more={"events": events, "runtime_exists": True}).facts())
    assert codes(answer) == ["NoWorkload"]
    assert answer.summary == "Kueue has made no Workload for it. Last warning: webhook is down"


def test_no_workload_and_no_queue_there_are_both_told() -> None:
    answer = explain(World(workload=None, local_queues=[]).facts())
    assert codes(answer) == ["NoWorkload", "LocalQueueMissing"]


@pytest.mark.parametrize("made", [None, workload()])
def test_a_missing_runtime(made: Tree | None) -> None:
    world = World(workload=made, more={"runtime_exists": False})
    world.job["spec"]["runtimeRef"] = {"kind": "TrainingRuntime", "name": "mine"}
    answer = explain(world.facts())
    assert answer.causes[0].code == "RuntimeMissing"
    assert answer.summary.startswith("TrainingRuntime 'mine' does not exist")


def test_deactivated_tells_why_and_how_to_go_on() -> None:
    told = {"Evicted": ("True", "Deactivated", "The workload is deactivated due to exceeding the retries")}
    world = World(workload=workload(conditions=told))
    assert world.workload is not None
    world.workload["spec"]["active"] = False
    answer = explain(world.facts())
    assert codes(answer) == ["Deactivated"]
    assert "exceeding the retries." in answer.summary
    assert "kubectl patch workload trainjob-job-abcde -n team" in answer.causes[0].do
    assert answer.position is None
    assert answer.suggestions == ()


def test_deactivated_by_a_check_names_it() -> None:
    rejected = [{"name": "budget", "state": "Rejected", "message": "no money"}]
    world = World(workload=workload(admissionChecks=rejected))
    assert world.workload is not None
    world.workload["spec"]["active"] = False
    assert "budget rejected it: no money." in explain(world.facts()).summary


def test_gated() -> None:
    world = World()
    world.job["metadata"]["annotations"] = {"kueue.x-k8s.io/admission-gated-by": "a.com/b"}
    assert world.workload is not None
    world.workload["metadata"]["annotations"] = world.job["metadata"]["annotations"]
    answer = explain(world.facts())
    assert codes(answer) == ["Gated"]
    assert answer.position is None


def test_backoff_tells_the_time() -> None:
    told = {
        "Evicted": ("True", "PodsReadyTimeout", "Exceeded the PodsReady timeout"),
        "Requeued": ("False", "PodsReadyTimeout", ""),
    }
    state = {"count": 3, "requeueAt": "2026-03-01T12:01:30Z"}
    answer = explain(World(workload=workload(conditions=told, requeueState=state)).facts())
    assert codes(answer) == ["Backoff", "PodsReadyTimeout"]
    assert "at 2026-03-01T12:01:30Z, in 90 s. Exceeded the PodsReady timeout." in answer.summary
    assert "evicted 3 time(s)" in answer.causes[1].what
    assert not answer.causes[1].blocks


def test_a_backoff_that_has_passed_holds_nothing_up() -> None:
    state = {"count": 1, "requeueAt": "2026-03-01T11:59:59Z"}
    assert codes(explain(World(workload=workload(requeueState=state)).facts())) == ["NextInLine"]


def test_evicted_and_not_yet_queued_again() -> None:
    told = {"Evicted": ("True", "Preempted", "Preempted by a better one"), "Requeued": ("False", "Preempted", "")}
    answer = explain(World(workload=workload(conditions=told)).facts())
    assert codes(answer) == ["Backoff"]
    assert "Preempted by a better one." in answer.summary


# --- queues


def test_queues_that_exist_are_named_where_one_does_not() -> None:
    world = World(local_queues=[local_queue("other"), local_queue("third", namespace="elsewhere")])
    answer = explain(world.facts())
    assert codes(answer) == ["LocalQueueMissing"]
    assert "(there are: other)" in answer.causes[0].do


def test_a_cluster_queue_that_does_not_exist() -> None:
    assert codes(explain(World(cluster_queues=[cluster_queue("other")]).facts())) == ["ClusterQueueMissing"]


@pytest.mark.parametrize("policy", ["Hold", "HoldAndDrain"])
def test_stopped_queues(policy: str) -> None:
    world = World(local_queues=[local_queue(stopPolicy=policy)])
    world.queue["spec"]["stopPolicy"] = policy
    answer = explain(world.facts())
    assert codes(answer) == ["LocalQueueStopped", "ClusterQueueStopped"]
    assert answer.summary.endswith("(1 more below)")


def test_an_inactive_queue_says_what_it_misses() -> None:
    checks = {"admissionChecks": [{"name": "gone"}, {"name": "idle"}, {"name": "fine"}]}
    world = World(flavors=[], checks=[check("idle", active="False"), check("fine")])
    world.queue["spec"]["admissionChecksStrategy"] = checks
    answer = explain(world.facts())
    assert codes(answer) == ["ClusterQueueInactive"] * 3
    assert "ResourceFlavor a does not exist" in answer.causes[0].what
    assert "AdmissionCheck gone does not exist" in answer.causes[1].what
    assert "AdmissionCheck idle is not active: so it is." in answer.causes[2].what


def test_an_inactive_queue_for_another_reason_passes_kueue_s_on() -> None:
    world = World()
    world.queue["status"]["conditions"] = [{"type": "Active", "status": "False", "message": "cohort has a cycle"}]
    assert explain(world.facts()).summary == "ClusterQueue cq admits nothing: cohort has a cycle."


def test_a_namespace_that_is_not_selected() -> None:
    world = World()
    world.queue["spec"]["namespaceSelector"] = {"matchLabels": {"a": "c"}}
    assert codes(explain(world.facts())) == ["NamespaceNotSelected"]


def test_what_could_not_be_read_is_not_guessed() -> None:
    world = World(namespace=None, flavors=None, checks=None, nodes=None, more={"unread": ("nodes",)})
    world.queue["spec"] |= {"namespaceSelector": None, "admissionChecksStrategy": {"admissionChecks": [{"name": "x"}]}}
    answer = explain(world.facts())
    assert codes(answer) == ["NextInLine"]
    assert "Could not be read:\n  - nodes" in answer.to_text()


# --- quota and line


def test_quota_in_use_tells_amounts_and_place() -> None:
    world = World(
        others=[workload("older", created="2026-03-01T10:00:00Z"), workload("newer", created="2026-03-01T11:30:00Z")]
    )
    world.use("4")
    answer = explain(world.facts())
    assert codes(answer) == ["QuotaInUse"]
    assert answer.summary == (
        f"It needs 8 {GPU}, and 4 are free: 4 of the queue's 8 are used. It is number 2 of 3 in line."
    )
    assert (answer.position, answer.pending, answer.position_is_exact) == (2, 3, True)


def test_others_in_line_are_those_of_the_same_cluster_queue_from_any_namespace() -> None:
    elsewhere = local_queue("theirs", namespace="other")
    world = World(
        local_queues=[
            local_queue(),
            elsewhere,
            local_queue("away", leads_to="cq2"),
            local_queue("shut", stopPolicy="Hold"),
        ],
        others=[
            workload("theirs", namespace="other", queue="theirs", priority=5),
            workload("away", queue="away", priority=5),
            workload("shut", queue="shut", priority=5),
            workload("nowhere", queue="no-such", priority=5),
        ],
    )
    world.use("4")
    answer = explain(world.facts())
    assert (answer.position, answer.pending) == (2, 2)


def test_where_kueue_also_orders_by_usage_the_place_is_a_guess() -> None:
    world = World()
    world.use("4")
    world.queue["spec"]["admissionScope"] = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    answer = explain(world.facts())
    assert not answer.position_is_exact
    assert "Place about 1 of 1" in answer.to_text()


def test_borrowing_is_told() -> None:
    world = World(cluster_queues=[cluster_queue(cohortName="c"), cluster_queue("other", used="8", cohortName="c")])
    world.queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["borrowingLimit"] = "3"
    world.use("6")
    assert "2 are free, borrowing of at most 3 from cohort c included" in explain(world.facts()).summary


def test_more_than_there_can_ever_be() -> None:
    world = World(workload=workload("job", pod_set(count=6)))
    answer = explain(world.facts())
    assert codes(answer) == ["ExceedsQuota"]
    assert kinds(answer) == ["FewerNodes"]
    assert (answer.suggestions[0].num_nodes, answer.suggestions[0].now) == (4, True)


def test_more_than_ever_and_nothing_free_now() -> None:
    world = World(workload=workload("job", pod_set(count=6)))
    world.use("8")
    answer = explain(world.facts())
    assert kinds(answer) == ["FewerNodes"]
    assert (answer.suggestions[0].num_nodes, answer.suggestions[0].now) == (4, False)


def test_preemption_under_way() -> None:
    told = pending("insufficient unused quota. Pending the preemption of 1 workload(s)")
    world = World(workload=workload(conditions=told))
    world.use("4")
    assert codes(explain(world.facts())) == ["Preempting", "QuotaInUse"]


def test_strict_order_holds_up_a_job_that_would_fit() -> None:
    world = World(others=[workload("older", pod_set(count=9), created="2026-03-01T10:00:00Z")])
    world.queue["spec"]["queueingStrategy"] = "StrictFIFO"
    answer = explain(world.facts())
    assert codes(answer) == ["BehindOthers"]
    assert "1 wait before it" in answer.summary
    assert kinds(answer) == []


def test_the_first_in_a_strict_line_may_shrink_only_if_nobody_waits_behind_it() -> None:
    world = World()
    world.queue["spec"]["queueingStrategy"] = "StrictFIFO"
    world.use("4")
    assert kinds(explain(world.facts())) == ["FewerNodes", "Wait"]
    world.others.append(workload("newer", created="2026-03-01T11:30:00Z"))
    assert kinds(explain(world.facts())) == ["Wait"], "made again it would stand behind the other"


def test_quota_is_there() -> None:
    answer = explain(World(workload=workload(conditions=pending("Workload no longer fits"))).facts())
    assert codes(answer) == ["NextInLine"]
    assert answer.kueue == "Workload no longer fits"


@pytest.mark.parametrize(
    ("message", "reason", "code"),
    [
        ("waiting for all admitted workloads to be in PodsReady condition", "Waiting", "WaitingForPodsReady"),
        ("waiting for all admitted workloads", "WaitingForPodsReady", "WaitingForPodsReady"),
        ("resources didn't satisfy LimitRange constraints: too much", "Pending", "Refused"),
        ("resources validation failed: requests above limits", "Misconfigured", "Refused"),
    ],
)
def test_what_only_kueue_can_say(message: str, reason: str, code: str) -> None:
    answer = explain(World(workload=workload(conditions=pending(message, reason))).facts())
    assert codes(answer) == [code]


@pytest.mark.parametrize(
    ("room", "nodes"), [("allows to fit only 3 out of 4 pod(s)", 3), ("doesn't allow to fit any of 4 pod(s)", None)]
)
def test_topology(room: str, nodes: int | None) -> None:
    told = pending(f'couldn\'t assign flavors to pod set node: topology "racks" {room}')
    answer = explain(World(workload=workload(conditions=told)).facts())
    assert codes(answer) == ["Topology"]
    assert [each.num_nodes for each in answer.suggestions] == ([nodes] if nodes else [])


def test_a_flavor_that_does_not_match() -> None:
    taint = {"key": "t", "value": "v", "effect": "NoSchedule"}
    assert codes(explain(World(flavors=[flavor(nodeTaints=[taint])]).facts())) == ["NoMatchingFlavor"]


def test_a_flavor_that_is_too_small_is_no_obstacle_where_another_is_only_in_use() -> None:
    amounts = {"small": {GPU: "2"}, "big": {GPU: "8"}}
    holding = (holder("other", "3", flavor="big"), holder("tiny", "1", flavor="small"))
    world = World(flavors=[flavor("small"), flavor("big")], more={"holding": holding})
    world.cluster_queues = [cluster_queue(flavors=amounts, used="1")]
    reserved = world.queue["status"]["flavorsReservation"]
    reserved.append({"name": "big", "resources": [{"name": GPU, "total": "3"}]})
    answer = explain(world.facts())
    assert [(cause.code, cause.blocks) for cause in answer.causes] == [("QuotaInUse", True), ("ExceedsQuota", False)]
    assert "5 are free" in answer.summary
    assert "more below" not in answer.summary
    assert "never starts" not in answer.to_text()
    assert [one.flavor for one in answer.holders] == ["big"]


def test_a_flavor_that_does_not_match_is_no_obstacle_where_another_is_only_in_use() -> None:
    taint = {"key": "team", "value": "other", "effect": "NoSchedule"}
    world = World(flavors=[flavor("a", nodeTaints=[taint]), flavor("b")])
    world.cluster_queues = [cluster_queue(flavors={"a": {GPU: "8"}, "b": {GPU: "8"}})]
    reserved = world.queue["status"]["flavorsReservation"]
    reserved.append({"name": "b", "resources": [{"name": GPU, "total": "1"}]})
    told = [(cause.code, cause.blocks) for cause in explain(world.facts()).causes]
    assert told == [("QuotaInUse", True), ("NoMatchingFlavor", False)]


def test_a_stopped_queue_and_too_much_are_both_told_and_only_another_queue_helps() -> None:
    world = World(
        local_queues=[local_queue(), local_queue("big", leads_to="big")],
        cluster_queues=[cluster_queue(stopPolicy="Hold"), cluster_queue("big", {"a": {GPU: "64"}})],
    )
    world.use("8")
    answer = explain(world.facts())
    assert codes(answer) == ["ClusterQueueStopped", "QuotaInUse"]
    assert kinds(answer) == ["OtherQueue"]


# --- nodes


def test_pods_that_no_node_carries_are_a_warning() -> None:
    world = World(nodes=[node(gpu="1")])
    world.use("4")
    answer = explain(world.facts())
    assert codes(answer) == ["QuotaInUse", "NoNodeFits"]
    assert f"1 of 1: 1 {GPU} allocatable, 2 wanted" in answer.causes[1].what


def test_too_few_nodes_are_a_warning_and_bound_what_is_suggested() -> None:
    world = World(nodes=[node(gpu="2")])
    world.use("4")
    answer = explain(world.facts())
    assert codes(answer) == ["QuotaInUse", "TooFewNodes"]
    assert answer.suggestions[0].num_nodes == 1


def test_a_cluster_without_nodes() -> None:
    assert "the cluster has no nodes" in explain(World(nodes=[]).facts()).causes[1].what


# --- after quota


def test_checks_that_have_not_agreed() -> None:
    checks = [{"name": "a", "state": "Ready"}, {"name": "b", "state": "Pending", "message": "two nodes of three"}]
    answer = explain(World(workload=workload(conditions=RESERVED, admissionChecks=checks)).facts())
    assert codes(answer) == ["AdmissionCheck"]
    assert answer.summary.endswith("admission check b has not agreed yet. two nodes of three.")


def test_a_check_that_tries_again_tells_when() -> None:
    checks = [{"name": "b", "state": "Retry"}]
    state = {"requeueAt": "2026-03-01T12:05:00Z"}
    world = World(workload=workload(conditions=RESERVED, admissionChecks=checks, requeueState=state))
    assert "try again at 2026-03-01T12:05:00Z, in 300 s." in explain(world.facts()).summary


def test_admitted_and_not_started() -> None:
    told = RESERVED | {"Admitted": ("True", "Admitted", "")}
    assert codes(explain(World(workload=workload(conditions=told)).facts())) == ["NotStarted"]


@pytest.mark.parametrize("checks", [[], [{"name": "mk", "state": "Pending", "message": "Reset to Pending"}]])
def test_what_was_evicted_and_has_not_stopped_is_not_about_to_start(checks: list[Tree]) -> None:
    told = RESERVED | {"Admitted": ("True", "Admitted", ""), "Evicted": ("True", "Preempted", "for a higher priority")}
    answer = explain(World(workload=workload(conditions=told, admissionChecks=checks)).facts())
    assert codes(answer) == ["Stopping"]
    assert answer.summary == "Kueue evicted it, and it has not stopped yet: for a higher priority."
    assert answer.suggestions == ()


def test_deactivated_and_not_stopped_yet_are_both_told() -> None:
    told = RESERVED | {"Evicted": ("True", "Deactivated", "The workload is deactivated")}
    world = World(workload=workload(conditions=told))
    assert world.workload is not None
    world.workload["spec"]["active"] = False
    assert codes(explain(world.facts())) == ["Deactivated", "Stopping"]


# --- any facts


@given(
    st.sampled_from(["0", "4", "8", "12"]),
    st.sampled_from(["", "StrictFIFO"]),
    st.sampled_from([None, "Hold"]),
    st.integers(1, 12),
    st.booleans(),
    st.lists(st.integers(0, 3), max_size=4),
)
def test_every_answer_is_json_and_text(  # noqa: PLR0917 Hypothesis gives them by position
    used: str, strategy: str, stop: str | None, count: int, known: bool, line: list[int]
) -> None:
    world = World(
        workload=workload("job", pod_set(count=count)),
        flavors=[flavor()] if known else None,
        others=[workload(f"other{at}", priority=priority) for at, priority in enumerate(line)],
    )
    world.use(used)
    world.queue["spec"] |= {"queueingStrategy": strategy, "stopPolicy": stop}
    answer = explain(world.facts())
    assert answer.causes
    assert all(cause.what and cause.do and cause.field for cause in answer.causes)
    assert json.loads(json.dumps(answer.to_tree()))["summary"] == answer.summary
    assert answer.summary in answer.to_text()
    assert "\n" not in answer.summary
    assert answer.position is None or 1 <= answer.position <= (answer.pending or 0)
    blocking = [cause.blocks for cause in answer.causes]
    assert blocking == sorted(blocking, reverse=True)
