from __future__ import annotations

from typing import Any

import pytest

from tests.unit.operator.objects import runtime
from trainplane.api import tree as trees
from trainplane.operator.snapshot import are_alike

POD = ("spec", "template", "spec", "replicatedJobs", 0, "template", "spec", "template", "spec")
NODE = (*POD, "containers", 0)


def put(*path: Any, value: Any) -> dict[str, Any]:
    tree: dict[str, Any] = trees.copy(runtime())
    place: Any = tree
    for step in path[:-1]:
        place = place.setdefault(step, {}) if isinstance(place, dict) else place[step]
    place[path[-1]] = value
    return tree


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("metadata", "creationTimestamp"), None),
        (("metadata", "resourceVersion"), "7"),
        (("metadata", "annotations"), {"kubectl.kubernetes.io/last-applied-configuration": "{}"}),
        ((*POD, "hostNetwork"), False),
        ((*POD, "nodeSelector"), {}),
        ((*NODE, "resources"), {}),
        ((*NODE, "args"), []),
        ((*NODE, "workingDir"), ""),
    ],
)
def test_what_go_adds_or_drops_means_nothing(path: tuple[Any, ...], value: Any) -> None:
    assert are_alike(put(*path, value=value), runtime())
    assert are_alike(runtime(), put(*path, value=value))


@pytest.mark.parametrize(
    ("path", "one", "other"),
    [
        ((*NODE, "resources"), {"limits": {"cpu": 2}}, {"limits": {"cpu": "2000m"}}),
        ((*NODE, "resources"), {"requests": {"memory": "1Gi"}}, {"requests": {"memory": "1024Mi"}}),
        ((*POD, "volumes"), [{"emptyDir": {"sizeLimit": "1Gi"}}], [{"emptyDir": {"sizeLimit": "1024Mi"}}]),
    ],
)
def test_amounts_are_compared_as_amounts(path: tuple[Any, ...], one: Any, other: Any) -> None:
    assert are_alike(put(*path, value=one), put(*path, value=other))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("metadata", "name"), "other"),
        (("metadata", "labels"), {"trainer.kubeflow.org/framework": "mpi"}),
        (("metadata", "annotations"), {"trainer.kubeflow.org/port": "1"}),
        (("metadata", "annotations"), {"read.by/a-plugin": "1"}),
        (("spec", "mlPolicy", "numNodes"), 2),
        ((*POD, "hostNetwork"), True),
        ((*POD, "nodeSelector"), {"pool": "premium"}),
        ((*POD, "tolerations"), [{"operator": "Exists"}]),
        ((*POD, "automountServiceAccountToken"), False),
        ((*POD, "volumes"), [{"name": "root", "hostPath": {"path": "/"}}]),
        ((*NODE, "image"), "evil"),
        ((*NODE, "securityContext"), {"runAsUser": 0}),
        ((*NODE, "securityContext"), {"allowPrivilegeEscalation": False}),
        ((*NODE, "resources"), {"limits": {"nvidia.com/gpu": 8}}),
        ((*NODE, "resources"), {"limits": {"nvidia.com/gpu": 0}}),
    ],
)
def test_anything_else_is_another_runtime(path: tuple[Any, ...], value: Any) -> None:
    assert not are_alike(put(*path, value=value), runtime())
    assert not are_alike(runtime(), put(*path, value=value))
