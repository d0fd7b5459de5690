from __future__ import annotations

from typing import Any

from tests.unit.hub.check_objects import QUEUE, altered, cluster_queue, hub_facts, local_queue, multikueue
from trainplane.hub.check.dispatch import inactivity, trace
from trainplane.kube.resource import Key
from trainplane.resources import ADMISSION_CHECKS, CLUSTER_QUEUES, LOCAL_QUEUES, MULTIKUEUE_CLUSTERS, MULTIKUEUE_CONFIGS

INACTIVE = {"type": "Active", "status": "False", "reason": "Bad", "message": "no usable clusters"}


def test_queues_lead_to_the_workers_of_their_check() -> None:
    dispatch = trace(hub_facts("worker1", "worker2"))
    assert dispatch.queues == {"worker1": (QUEUE,), "worker2": (QUEUE,)}
    assert dispatch.findings == ()
    assert dispatch.namespaces("worker1") == ("research",)
    assert dispatch.namespaces("elsewhere") == ()
    assert dispatch.check().summary == "1 LocalQueue to 2 workers"


def test_a_queue_without_the_check_leads_nowhere() -> None:
    hub = altered(hub_facts(), CLUSTER_QUEUES, cluster_queue(checks=("mk",)), cluster_queue("plain"))
    hub = altered(hub, LOCAL_QUEUES, local_queue(), local_queue(Key("other", "q"), cluster_queue="plain"))
    assert trace(hub).all_queues == (QUEUE,)


def test_two_checks_send_to_their_own_workers() -> None:
    objects = multikueue("worker1", "worker2")
    first, second = ({"metadata": {"name": name}, "spec": {"clusters": [name]}} for name in ("worker1", "worker2"))
    checks: list[dict[str, Any]] = [
        {
            "metadata": {"name": f"to-{name}"},
            "spec": {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": {"name": name}},
        }
        for name in ("worker1", "worker2")
    ]
    hub = altered(hub_facts("worker1", "worker2"), MULTIKUEUE_CONFIGS, first, second)
    hub = altered(hub, ADMISSION_CHECKS, *checks)
    hub = altered(hub, MULTIKUEUE_CLUSTERS, *objects[MULTIKUEUE_CLUSTERS])
    hub = altered(
        hub, CLUSTER_QUEUES, cluster_queue(checks=("to-worker1",)), cluster_queue("two", checks=("to-worker2",))
    )
    far = Key("vision", "gpu")
    hub = altered(hub, LOCAL_QUEUES, local_queue(), local_queue(far, cluster_queue="two"))
    assert trace(hub).queues == {"worker1": (QUEUE,), "worker2": (far,)}


def test_a_hub_that_dispatches_nothing_says_so() -> None:
    (finding, unused) = trace(altered(hub_facts(), ADMISSION_CHECKS)).findings
    assert finding.level == "stops"
    assert "nothing sends jobs to workers" in finding.problem
    assert "worker1 is in no MultiKueueConfig" in unused.problem


def test_a_check_without_its_config_is_named() -> None:
    findings = trace(altered(hub_facts(), MULTIKUEUE_CONFIGS)).findings
    assert findings[0].problem == "AdmissionCheck mk names MultiKueueConfig 'mk', which does not exist"


def test_a_config_that_lists_a_cluster_that_is_not_there_is_named() -> None:
    config = {"metadata": {"name": "mk"}, "spec": {"clusters": ["worker1", "gone"]}}
    (finding,) = trace(altered(hub_facts(), MULTIKUEUE_CONFIGS, config)).findings
    assert finding.problem == "MultiKueueConfig mk lists cluster gone, of which there is no MultiKueueCluster"


def test_a_worker_that_no_config_lists_is_named() -> None:
    extra = multikueue("worker1", "spare")[MULTIKUEUE_CLUSTERS]
    (finding,) = trace(altered(hub_facts(), MULTIKUEUE_CLUSTERS, *extra)).findings
    assert finding.level == "warns"
    assert "MultiKueueCluster spare" in finding.problem


def test_an_inactive_check_and_an_inactive_queue_pass_on_why() -> None:
    check = {**multikueue("worker1")[ADMISSION_CHECKS][0], "status": {"conditions": [INACTIVE]}}
    queue = {**cluster_queue(checks=("mk",)), "status": {"conditions": [INACTIVE]}}
    hub = altered(altered(hub_facts(), ADMISSION_CHECKS, check), CLUSTER_QUEUES, queue)
    problems = [finding.problem for finding in trace(hub).findings]
    assert problems == [
        "AdmissionCheck mk is not active: no usable clusters",
        "ClusterQueue shared of the hub is not active: no usable clusters",
    ]


def test_a_check_that_no_queue_has_and_a_queue_that_nobody_can_use_are_named() -> None:
    (finding,) = trace(altered(hub_facts(), CLUSTER_QUEUES, cluster_queue())).findings
    assert "no ClusterQueue has AdmissionCheck mk" in finding.problem
    (finding,) = trace(altered(hub_facts(), LOCAL_QUEUES)).findings
    assert "no LocalQueue leads to it" in finding.problem


def test_inactivity_is_known_only_where_kueue_has_said_it() -> None:
    assert inactivity({}) is None
    assert inactivity({"status": {"conditions": [{"type": "Active", "status": "True"}]}}) is None
    assert inactivity({"status": {"conditions": [{"type": "Active", "status": "False", "reason": "R"}]}}) == "R"
    assert inactivity({"status": {"conditions": [{"type": "Active", "status": "False"}]}}) == "Kueue does not say why"
