from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.hub.kept import pod
from trainplane.hub.apiserver import view
from trainplane.hub.placement import place

Tree = dict[str, Any]
NOW = datetime(2026, 11, 15, 6, tzinfo=UTC)


def job(*, managed_by: str = "kueue.x-k8s.io/multikueue", suspend: bool = False, condition: str = "") -> Tree:
    conditions = [{"type": condition, "status": "True", "message": "done"}] if condition else []
    return {
        "metadata": {
            "name": "x",
            "namespace": "team",
            "uid": "job-1",
            "resourceVersion": "7",
            "creationTimestamp": "2026-11-15T05:00:00Z",
            "labels": {"a": "b"},
            "annotations": {"secret": "not shown"},
            "managedFields": [{}],
        },
        "spec": {"managedBy": managed_by, "suspend": suspend},
        "status": {"conditions": conditions, "jobsStatus": [{"name": "node", "ready": 1}]},
    }


WORKLOAD = {"metadata": {"name": "trainjob-x-1"}, "status": {"clusterName": "worker1"}}


def shown(tree: Tree, workload: Tree | None, *pods: Tree, problem: str | None = None) -> Tree:
    placed = [("worker1", each) for each in pods]
    return view.summary(tree, place(tree, workload), placed, kept_bytes=9, problem=problem)


def test_a_dispatched_job_is_shown_with_its_worker() -> None:
    found = shown(job(), WORKLOAD, pod("a"), pod("b", state="waiting"), pod("c", state="terminated"))
    assert (found["apiVersion"], found["kind"]) == ("hub.trainplane.dev/v1alpha1", "TrainJob")
    assert set(found["metadata"]) == {"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "labels"}
    status = found["status"]
    assert (status["cluster"], status["state"], status["placement"]) == ("worker1", "Running", "Dispatched")
    assert (status["readyPods"], status["pods"], status["keptLogBytes"]) == (1, 2, 9)
    assert status["workload"] == "trainjob-x-1"
    assert "problem" not in status


@pytest.mark.parametrize(
    ("tree", "workload", "state", "cluster"),
    [
        (job(), None, "Waiting", ""),
        (job(), WORKLOAD, "Starting", "worker1"),
        (job(condition="Complete"), WORKLOAD, "Complete", "worker1"),
        (job(condition="Failed"), WORKLOAD, "Failed", "worker1"),
        (job(managed_by="trainer.kubeflow.org/trainjob-controller"), None, "Starting", "hub"),
        (job(managed_by="trainer.kubeflow.org/trainjob-controller", suspend=True), None, "Suspended", "hub"),
    ],
)
def test_states(tree: Tree, workload: Tree | None, state: str, cluster: str) -> None:
    status = shown(tree, workload)["status"]
    assert (status["state"], status["cluster"]) == (state, cluster)


def test_nominated_workers_and_problems_are_shown() -> None:
    reserved = [{"type": "QuotaReserved", "status": "True"}]
    status = {"conditions": reserved, "nominatedClusterNames": ["worker1", "worker2"]}
    workload = {"metadata": {"name": "w"}, "status": status}
    status = shown(job(), workload, problem="worker1 is away")["status"]
    assert status["nominatedClusters"] == ["worker1", "worker2"]
    assert status["problem"] == "worker1 is away"


def test_the_table_has_a_cell_for_each_column() -> None:
    items = [shown(job(), WORKLOAD, pod()), shown(job(), None)]
    table = view.table(items, "7", NOW)
    assert [column["name"] for column in table["columnDefinitions"]] == [
        "Name",
        "Cluster",
        "State",
        "Ready",
        "Age",
        "Reason",
    ]
    assert [row["cells"][:5] for row in table["rows"]] == [
        ["x", "worker1", "Running", "1/1", "60m"],
        ["x", "<none>", "Waiting", "0/0", "60m"],
    ]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert view.listing("TrainJob", items, "7")["kind"] == "TrainJobList"


@pytest.mark.parametrize(
    ("seconds", "expected"), [(-5, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (172800, "2d")]
)
def test_ages(seconds: int, expected: str) -> None:
    created = (NOW - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
    assert view.age(created, NOW) == expected


def test_no_age_is_said_so() -> None:
    assert view.age(None, NOW) == view.age("yesterday", NOW) == "<unknown>"


def event(name: str, kind: str = "TrainJob", about: str = "x", **times: Any) -> Tree:
    return {
        "metadata": {"name": name, **times.pop("metadata", {})},
        "involvedObject": {"kind": kind, "name": about},
    } | times


def test_events_of_all_clusters_stand_in_the_order_of_time() -> None:
    events = [
        ("", event("c", lastTimestamp="2026-11-15T05:00:02Z", firstTimestamp="2026-11-15T05:00:00Z")),
        ("worker1", event("b", lastTimestamp=None, eventTime="2026-11-15T05:00:01.500000Z")),
        ("", event("a", lastTimestamp="2026-11-15T05:00:01Z")),
        (
            "worker1",
            event("e", series={"lastObservedTime": "2026-11-15T05:00:09.000001Z"}, eventTime="2026-11-15T05:00:00Z"),
        ),
        ("worker1", event("d", metadata={"creationTimestamp": "2026-11-15T05:00:03Z"})),
        ("", event("f", lastTimestamp="2026-11-15T05:00:09.1Z")),
    ]
    listed = view.event_list(events)
    assert [item["metadata"]["name"] for item in listed["items"]] == list("abcdef")
    clusters = [item["metadata"]["annotations"]["hub.trainplane.dev/cluster"] for item in listed["items"]]
    assert clusters == ["hub", "worker1", "hub", "worker1", "worker1", "hub"]
    assert listed["kind"] == "EventList"


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("TrainJob", "x", True),
        ("TrainJob", "xy", False),
        ("JobSet", "x", True),
        ("Workload", "trainjob-x-1", True),
        ("Workload", "trainjob-x-2", False),
        ("Pod", "x-node-0-0-abcde", True),
        ("Pod", "x-node-0-1-abcde", False),
        ("Job", "x-node-0", True),
        ("Job", "x-node", False),
        ("Job", "x-y-node-0", False),
        ("Job", "node-0", False),
        ("Node", "x", False),
    ],
)
def test_which_events_are_about_a_job(kind: str, name: str, *, expected: bool) -> None:
    job = {"metadata": {"name": "x"}, "status": {"jobsStatus": [{"name": "node"}]}}
    pods = frozenset({"x-node-0-0-abcde"})
    assert view.concerns(event("e", kind, name), job, workload="trainjob-x-1", pods=pods) is expected


def test_pods_are_listed_with_their_clusters_and_stay_as_they_were() -> None:
    tree = pod()
    listed = view.pod_list([("worker1", tree), ("", tree)])
    clusters = [item["metadata"]["annotations"]["hub.trainplane.dev/cluster"] for item in listed["items"]]
    assert clusters == ["worker1", "hub"]
    assert tree == pod()
    assert listed["kind"] == "PodList"
