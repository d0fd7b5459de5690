from __future__ import annotations

import base64

import pytest

from tests.unit.client.local.documents import pod
from trainplane.client.backends.local.values import Sources, command_line, expand, field_of, variables
from trainplane.client.errors import InvalidError

MAP = {"kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"epochs": "3"}}
SECRET = {"kind": "Secret", "metadata": {"name": "keys"}, "data": {"k": base64.b64encode(b"v").decode()}}
SOURCES = Sources.of([MAP, SECRET], {"hub": {"token": "t"}})


def test_references_are_expanded_as_the_kubelet_does() -> None:
    known = {"A": "1", "B": "$(A)"}
    assert expand("$(A) $(B) $(C) $$(A) $$ $HOME `x`", known) == "1 $(A) $(C) $(A) $ $HOME `x`"


def test_variables_come_in_order_and_from_everywhere() -> None:
    container = {
        "resources": {"limits": {"cpu": "1500m", "memory": "2Gi"}},
        "envFrom": [{"prefix": "S_", "configMapRef": {"name": "settings"}}, {"secretRef": {"name": "keys"}}],
        "env": [
            {
                "name": "RANK",
                "valueFrom": {
                    "fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}
                },
            },
            {"name": "ME", "value": "node-$(RANK)"},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}},
            {"name": "EPOCHS", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "epochs"}}},
            {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "no", "optional": True}}},
            {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"name": "MIB", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
            {"name": "EMPTY"},
        ],
    }
    assert variables(container, pod(), SOURCES, "here") == {
        "S_epochs": "3",
        "k": "v",
        "RANK": "0",
        "ME": "node-0",
        "TOKEN": "t",
        "EPOCHS": "3",
        "CPUS": "2",
        "MIB": "2048",
        "EMPTY": "",
    }


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"valueFrom": {"secretKeyRef": {"name": "no", "key": "k"}}}, r"here\.env\[name=X\].* no Secret no .*secrets="),
        ({"valueFrom": {"secretKeyRef": {"name": "hub", "key": "k"}}}, "hub has no key k; it has token"),
        ({"valueFrom": {"configMapKeyRef": {"name": "no", "key": "k"}}}, "ConfigMap no is in a cluster"),
        ({"valueFrom": {"fieldRef": {"fieldPath": "spec.priority"}}}, r"field spec\.priority cannot be known"),
        ({"valueFrom": {"fileKeyRef": {}}}, "a variable from fileKeyRef is not known here"),
    ],
)
def test_what_is_missing_is_named(entry: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        variables({"env": [{"name": "X", **entry}]}, pod(), SOURCES, "here")


def test_optional_sources_may_be_missing() -> None:
    container = {"envFrom": [{"secretRef": {"name": "no", "optional": True}}]}
    assert variables(container, pod(), SOURCES, "here") == {}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "a-node-0-0-x"),
        ("metadata.namespace", "default"),
        ("status.podIP", "10.0.0.2"),
        ("spec.nodeName", "m"),
        ("metadata.labels['jobset.sigs.k8s.io/jobset-name']", "a"),
        ("metadata.labels['none']", ""),
    ],
)
def test_fields_of_a_pod(path: str, value: str) -> None:
    assert field_of(path, pod(), "here") == value


def test_variables_stand_in_commands() -> None:
    container = {"command": ["run", "$(A)"], "args": ["$(B)"]}
    assert command_line(container, {"A": "1"}) == (["run", "1"], ["$(B)"])
