"""The comparison finds what is planted, and lets pass what is declared and nothing beside it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.legacy.old.looks import differences

_POD = {"metadata": {"labels": {"l": "v"}}, "spec": {"initContainers": [{"image": "a"}], "restartPolicy": "Never"}}
_LOOK = {
    "job": {
        "status": {
            "conditions": [("Created", "True", "PyTorchJobCreated")],
            "replicaStatuses": {"Worker": {"active": 1, "selector": "s"}},
            "lastReconcileTime": "a time",
        },
        "warnings": {},
        "pods job-worker-0": _POD,
    }
}


def _with(value: Any, *path: str | int) -> dict[str, Any]:
    look: Any = copy.deepcopy(_LOOK)
    inner = look["job"]
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return dict(look)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (("Created", "False", "PyTorchJobCreated"), ("status", "conditions", 0)),
        (2, ("status", "replicaStatuses", "Worker", "active")),
        (1, ("warnings", "Unschedulable")),
        ("w", ("pods job-worker-0", "metadata", "labels", "l")),
        ("Always", ("pods job-worker-0", "spec", "restartPolicy")),
        ([], ("pods job-worker-0", "spec", "initContainers")),
        (_POD, ("pods job-worker-1",)),
    ],
)
def test_what_is_planted_is_found(value: Any, path: tuple[str | int, ...]) -> None:
    (found,) = differences(_LOOK, _with(value, *path))
    assert found.startswith("/job/" + "/".join(map(str, path)))


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("b", ("pods job-worker-0", "spec", "initContainers", 0, "image")),
        (None, ("status", "lastReconcileTime")),
        (None, ("status", "replicaStatuses", "Worker", "selector")),
        (1, ("warnings", "PyTorchJobFailed")),
    ],
)
def test_what_is_declared_passes(value: Any, path: tuple[str | int, ...]) -> None:
    assert not list(differences(_LOOK, _with(value, *path)))
