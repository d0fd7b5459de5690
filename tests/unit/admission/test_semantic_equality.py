"""What Go types write back means what they read."""

from __future__ import annotations

from typing import Any

import pytest

from trainplane.admission.semantic_equality import same, settled

SAME: list[tuple[Any, Any]] = [
    ({"env": [{"name": "A", "value": ""}]}, {"env": [{"name": "A"}]}),
    ({"command": [], "args": ["a"]}, {"args": ["a"]}),
    ({"image": "a", "env": None}, {"image": "a"}),
    ({"resourcesPerNode": {"requests": {"cpu": "0.5"}}}, {"resourcesPerNode": {"requests": {"cpu": "500m"}}}),
    ({"resourcesPerNode": {"limits": {"cpu": 4}}}, {"resourcesPerNode": {"limits": {"cpu": "4"}}}),
    (
        {"resourcesPerNode": {"limits": {}, "requests": {"memory": "1Gi"}}},
        {"resourcesPerNode": {"requests": {"memory": "1024Mi"}}},
    ),
    (
        {"volumeMounts": [{"name": "v", "mountPath": "/a", "readOnly": False}]},
        {"volumeMounts": [{"name": "v", "mountPath": "/a"}]},
    ),
    ({"metadata": {"labels": {}}}, {"metadata": {}}),
]
DIFFERENT: list[tuple[Any, Any]] = [
    ({"storageUri": ""}, {}),
    ({"image": ""}, {}),
    ({"labels": {"a": ""}}, {"labels": {}}),
    ({"nodeSelector": {"a": ""}}, {}),
    ({"volumes": [{"name": "a", "emptyDir": {}}]}, {"volumes": [{"name": "a"}]}),
    ({"securityContext": {"runAsNonRoot": False}}, {"securityContext": {}}),
    ({"resourcesPerNode": {"requests": {"cpu": "1"}}}, {"resourcesPerNode": {"requests": {"cpu": "2"}}}),
    ({"resourcesPerNode": {"requests": {"cpu": "many"}}}, {"resourcesPerNode": {"requests": {"cpu": "more"}}}),
    ({"resourcesPerNode": {"requests": {"cpu": True}}}, {"resourcesPerNode": {"requests": {"cpu": "1"}}}),
    ({"numNodes": 0}, {}),
    ({"args": ["a", ""]}, {"args": ["a"]}),
    ({"template": {"spec": {}}}, {"template": {}}),
]


@pytest.mark.parametrize(("stored", "written"), SAME)
def test_same(stored: Any, written: Any) -> None:
    assert same(stored, written)
    assert same(written, stored)
    assert settled(written, stored) is stored


@pytest.mark.parametrize(("stored", "written"), DIFFERENT)
def test_different(stored: Any, written: Any) -> None:
    assert not same(stored, written)
    assert not same(written, stored)
    assert settled(written, stored) is written
