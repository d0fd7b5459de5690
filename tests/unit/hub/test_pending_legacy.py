"""Why a job of an older kind is queued: the same answers, in its own words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.hub.legacy import JAX, LEGACY, PYTORCH
from tests.unit.hub.pending_world import (
    GPU,
    MULTIKUEUE,
    QUEUE_LABEL,
    World,
    check,
    cluster_queue,
    codes,
    local_queue,
    pod_set,
    workload,
)
from trainplane.hub.pending import shapes
from trainplane.hub.pending.explain import explain

if TYPE_CHECKING:
    from trainplane.hub.kinds import JobKind

Tree = dict[str, Any]


def legacy_job(kind: JobKind, *, queue: str | None = "queue", **policy: Any) -> Tree:
    labels = {QUEUE_LABEL: queue} if queue else {}
    return {
        "apiVersion": kind.resource.api_version,
        "kind": kind.name,
        "metadata": {"name": "job", "namespace": "team", "uid": "uid-job", "labels": labels},
        "spec": {"runPolicy": {"suspend": True, **policy}},
        "status": {},
    }


def world(kind: JobKind = PYTORCH, *, policy: Tree | None = None, **fields: Any) -> World:
    waiting = workload("job", pod_set("master", count=1), pod_set("worker", count=4))
    return World(**{"job": legacy_job(kind, **(policy or {})), "workload": waiting, **fields})


def test_fewer_workers_are_advised_where_they_would_start() -> None:
    answer = explain(world(cluster_queues=[cluster_queue(flavors={"a": {GPU: "8"}})]).facts())
    assert codes(answer) == ["ExceedsQuota"]
    (fewer,) = [one for one in answer.suggestions if one.kind == "FewerNodes"]
    assert (fewer.num_nodes, fewer.do) == (
        3,
        "Delete PyTorchJob job and create it again with replicas: 3 in spec.pytorchReplicaSpecs.",
    )


def test_another_queue_is_named_with_the_command_for_the_kind() -> None:
    queues = [cluster_queue(used="8"), cluster_queue("big", flavors={"a": {GPU: "64"}})]
    locals_ = [local_queue(), local_queue("wide", leads_to="big")]
    answer = explain(world(cluster_queues=queues, local_queues=locals_).facts())
    (other,) = [one for one in answer.suggestions if one.kind == "OtherQueue"]
    assert other.do == f"kubectl label pytorchjob job -n team --overwrite {QUEUE_LABEL}=wide"


def test_a_job_without_a_workload_names_kueues_word_for_its_kind() -> None:
    (cause,) = explain(world(workload=None).facts()).causes
    assert cause.code == "NoWorkload"
    assert "kubeflow.org/pytorchjob is in its integrations.frameworks" in cause.do


def test_a_job_that_its_queue_would_send_away_and_that_stays_is_told_by_its_field() -> None:
    sends = [check("mk", controller=MULTIKUEUE)]
    queues = [cluster_queue(admissionChecksStrategy={"admissionChecks": [{"name": "mk"}]})]
    cause = explain(world(checks=sends, cluster_queues=queues).facts()).causes[0]
    assert (cause.code, cause.field) == ("ManagedBy", "spec.runPolicy.managedBy")
    assert "delete the PyTorchJob" in cause.do


def test_that_no_worker_takes_a_jax_job_is_told() -> None:
    sends = [check("mk", controller=MULTIKUEUE)]
    queues = [cluster_queue(admissionChecksStrategy={"admissionChecks": [{"name": "mk"}]})]
    policy = {"managedBy": MULTIKUEUE}
    answer = explain(world(JAX, policy=policy, checks=sends, cluster_queues=queues).facts())
    assert answer.causes[0].code == "NotMirrored"
    assert answer.summary.startswith("Kueue on a worker refuses the copy of a JAXJob that MultiKueue makes")


@pytest.mark.parametrize(
    ("condition", "state"), [("Succeeded", "Finished"), ("Failed", "Finished"), ("Running", "Queued")]
)
def test_a_job_that_is_over_is_not_queued(condition: str, state: str) -> None:
    ended = world()
    ended.job["status"] = {"conditions": [{"type": condition, "status": "True", "message": "so it is"}]}
    assert explain(ended.facts()).state == state


@pytest.mark.parametrize("kind", LEGACY, ids=lambda kind: kind.name)
def test_the_fields_that_are_read_have_a_shape(kind: JobKind) -> None:
    job = legacy_job(kind)
    assert shapes.fault(kind.plural, job) == ""
    job["spec"]["runPolicy"]["suspend"] = "yes"
    assert "suspend" in shapes.fault(kind.plural, job)
