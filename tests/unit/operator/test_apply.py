from __future__ import annotations

from typing import Any

import pytest

from trainplane.api.tree import drop, put
from trainplane.operator.apply import would_change

BODY: dict[str, Any] = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "job", "namespace": "team", "ownerReferences": [{"uid": "u", "controller": True}]},
    "spec": {
        "suspend": True,
        "replicatedJobs": [
            {"name": "node", "template": {"spec": {"ports": [{"containerPort": 1}], "finalizers": ["a"]}}},
        ],
    },
}

OURS: dict[str, Any] = {
    "f:metadata": {"f:ownerReferences": {'k:{"uid":"u"}': {}}},
    "f:spec": {
        "f:suspend": {},
        "f:replicatedJobs": {
            'k:{"name":"node"}': {
                ".": {},
                "f:name": {},
                "f:template": {
                    "f:spec": {
                        "f:ports": {'k:{"containerPort":1,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
                        "f:finalizers": {'v:"a"': {}},
                    }
                },
            }
        },
    },
}

NODE = ("spec", "replicatedJobs", 0)


def live(fields: dict[str, Any] | None = None, **entry: Any) -> dict[str, Any]:
    """Return the object as the server has it: our fields, its defaults, and who holds what."""
    tree = put(BODY, *NODE, "replicas", value=1)
    tree = put(tree, *NODE, "template", "spec", "ports", 0, "protocol", value="TCP")
    theirs = {"manager": "jobset", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}}
    ours = {"manager": "trainer", "operation": "Apply", "fieldsV1": fields or OURS, **entry}
    return dict(put(tree, "metadata", "managedFields", value=[theirs, ours]))


def test_as_applied() -> None:
    assert not would_change(live(), BODY, "trainer")


@pytest.mark.parametrize(
    "body",
    [
        put(BODY, "spec", "suspend", value=False),
        put(BODY, "spec", "ttlSecondsAfterFinished", value=5),
        put(BODY, "metadata", "labels", value={"new": "one"}),
        put(BODY, *NODE, "template", "spec", "nodeSelector", value={"pool": "gpu"}),
        put(BODY, *NODE, "template", "spec", "ports", 0, "containerPort", value=2),
        put(BODY, "spec", "replicatedJobs", value=[*BODY["spec"]["replicatedJobs"], {"name": "more"}]),
        put(BODY, "spec", "replicatedJobs", value={}),
    ],
)
def test_what_is_not_there_yet(body: dict[str, Any]) -> None:
    assert would_change(live(), body, "trainer")


@pytest.mark.parametrize(
    "body",
    [
        drop(BODY, "spec", "suspend"),
        drop(BODY, *NODE),
        drop(BODY, *NODE, "template", "spec", "ports"),
        put(BODY, *NODE, "template", "spec", "finalizers", value=[]),
        drop(BODY, "metadata", "ownerReferences"),
        put(BODY, *NODE, "template", value="none"),
    ],
)
def test_what_we_applied_and_no_longer_want(body: dict[str, Any]) -> None:
    assert would_change(live(), body, "trainer")


def test_what_others_hold_may_be_there() -> None:
    tree = put(live(), "metadata", "annotations", value={"theirs": "yes"})
    assert not would_change(tree, BODY, "trainer")


@pytest.mark.parametrize("entry", [{"manager": "manager"}, {"operation": "Update"}, {"subresource": "status"}])
def test_what_we_never_applied_is_applied(entry: dict[str, Any]) -> None:
    assert would_change(live(**entry), BODY, "trainer")


def test_an_object_without_managed_fields_is_applied() -> None:
    assert would_change(BODY, BODY, "trainer")


def test_a_step_that_we_do_not_know_is_applied() -> None:
    assert would_change(live({"f:spec": {"f:replicatedJobs": {"i:0": {}}}}), BODY, "trainer")


RESOURCES = (*NODE, "template", "spec", "resources")


@pytest.mark.parametrize(
    ("stored", "wanted", "differs"),
    [
        ({"cpu": "500m"}, {"cpu": "0.5"}, False),
        ({"cpu": "2"}, {"cpu": 2}, False),
        ({"cpu": "2", "memory": "1Gi"}, {"cpu": "2"}, False),
        ({"cpu": "2"}, {"cpu": "3"}, True),
        ({"cpu": "2"}, {"memory": "2"}, True),
        ({"cpu": "two"}, {"cpu": "2"}, True),
        ({"cpu": "two"}, {"cpu": "two"}, False),
        ("none", {"cpu": "2"}, True),
    ],
)
def test_amounts_count_and_not_how_they_are_written(stored: Any, wanted: Any, differs: bool) -> None:
    here = put(live(), *RESOURCES, "requests", value=stored)
    assert would_change(here, put(BODY, *RESOURCES, "requests", value=wanted), "trainer") is differs


def test_elsewhere_texts_count_as_they_are_written() -> None:
    here = put(live(), *RESOURCES, value="500m")
    assert would_change(here, put(BODY, *RESOURCES, value="0.5"), "trainer")
