from __future__ import annotations

from typing import Any

from trainplane.legacy.decision import Decision, Ref
from trainplane.legacy.news import MOST, of_made, of_pods


def _pod(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "demo-worker-0"}, "status": {"phase": "Pending", **status}}


def test_an_image_that_cannot_be_pulled_is_told_with_its_pod() -> None:
    waiting = {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}, "name": "pytorch"}
    (event,) = of_pods([_pod(containerStatuses=[waiting])])
    assert (event.type, event.reason) == ("Warning", "ImagePullBackOff")
    assert event.message == "pod demo-worker-0, container pytorch: waits: no such image"


def test_a_pod_without_a_node_is_told_by_its_last_condition() -> None:
    conditions = [
        {"type": "Initialized", "status": "True", "lastTransitionTime": "2026-11-16T10:00:00Z"},
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/3 nodes",
            "lastTransitionTime": "2026-11-16T11:00:00Z",
        },
    ]
    (event,) = of_pods([_pod(conditions=conditions)])
    assert (event.reason, event.message) == ("Unschedulable", "pod demo-worker-0: 0/3 nodes")


def test_pods_that_ended_or_run_well_are_not_news() -> None:
    well = {"name": "pytorch", "state": {"running": {}}}
    assert list(of_pods([_pod(phase="Failed"), _pod(phase="Running", containerStatuses=[well])])) == []


def test_the_trouble_of_many_pods_is_told_in_a_few_events_of_bounded_length() -> None:
    waiting = {"state": {"waiting": {"reason": "R" * 900, "message": "m" * 9000}}, "name": "pytorch"}
    events = list(of_pods([_pod(containerStatuses=[waiting])] * 500))
    assert len(events) == MOST
    assert all(len(event.message) <= 512 and len(event.reason) <= 64 for event in events)


def _made(kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


def test_what_was_made_and_deleted_is_told_once_for_each_kind() -> None:
    decision = Decision(
        create=(_made("Pod", "demo-worker-0"), _made("Service", "demo-worker-0"), _made("Pod", "demo-worker-1")),
        delete=(Ref("v1", "Pod", "demo-worker-2", "u"),),
    )
    assert [(one.type, one.reason, one.message) for one in of_made(decision)] == [
        ("Normal", "SuccessfulCreatePod", "Pods made: demo-worker-0, demo-worker-1"),
        ("Normal", "SuccessfulDeletePod", "Pods deleted: demo-worker-2"),
        ("Normal", "SuccessfulCreateService", "Services made: demo-worker-0"),
    ]


def test_of_a_large_job_some_names_are_told_and_the_rest_is_counted() -> None:
    (event,) = of_made(Decision(create=tuple(_made("Pod", f"w-{number}") for number in range(MOST + 3))))
    assert event.message.endswith(f"w-{MOST - 1} and 3 more")


def test_names_of_any_length_fit_an_event() -> None:
    (event,) = of_made(Decision(create=tuple(_made("Pod", f"{'n' * 200}-{number}") for number in range(MOST))))
    assert len(event.message) < 1024
