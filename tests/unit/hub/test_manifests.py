"""The manifests fit the server: names that must be spelled alike stand in both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from trainplane.hub import settings
from trainplane.hub.served.authority import GROUP, VERSION
from trainplane.hub.served.documents import ROOT, SUBRESOURCES

FOLDER = Path(__file__).resolve().parents[3] / "manifests" / "hub"

Tree = dict[str, Any]


def documents(name: str) -> list[Tree]:
    return [document for document in yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text()) if document]


def find(name: str, kind: str) -> Tree:
    (found,) = [document for document in documents(name) if document["kind"] == kind]
    return found


def grants(rules: list[Tree], group: str, resource: str, verb: str) -> bool:
    return any(group in rule["apiGroups"] and resource in rule["resources"] and verb in rule["verbs"] for rule in rules)


def test_the_api_service_is_the_group_that_is_served_by_the_service_that_is_certified() -> None:
    api, service = find("apiservice", "APIService"), find("server", "Service")
    assert api["metadata"]["name"] == f"{VERSION}.{GROUP}"
    assert f"/apis/{api['spec']['group']}/{api['spec']['version']}" == ROOT
    default = settings.Settings(data=Path())
    assert api["spec"]["service"] == {"name": default.service, "namespace": default.namespace}
    assert (service["metadata"]["name"], service["metadata"]["namespace"]) == (default.service, default.namespace)
    assert api["spec"]["groupPriorityMinimum"] < 1000, "kubectl get trainjobs must stay the trainer's"


def test_the_deployments_flags_are_flags() -> None:
    (container,) = find("server", "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["python", "-m", "trainplane.hub"]
    chosen = settings.parse(container["args"])
    assert container["volumeMounts"] == [{"name": "data", "mountPath": str(chosen.data)}]
    assert container["ports"][0]["containerPort"] == chosen.listen.port
    claim = find("server", "PersistentVolumeClaim")["spec"]["resources"]["requests"]["storage"]
    assert int(claim.removesuffix("Gi")) << 30 > chosen.retention.total_bytes
    assert find("server", "Deployment")["spec"]["strategy"] == {"type": "Recreate"}


def test_the_server_may_write_nothing_but_its_certificate_and_bundle() -> None:
    writes = {"create", "update", "patch", "delete", "deletecollection", "*"}
    found = {
        (resource, verb, *rule.get("resourceNames", ()))
        for role in documents("rbac")
        for rule in role.get("rules", ())
        for resource in rule["resources"]
        for verb in set(rule["verbs"]) & writes
    }
    assert found == {
        ("subjectaccessreviews", "create"),
        ("apiservices", "patch", f"{VERSION}.{GROUP}"),
        ("secrets", "update", "trainplane-hub-cert"),
        ("secrets", "create"),
    }


@pytest.mark.parametrize(
    ("group", "resource", "verb"),
    [
        ("trainer.kubeflow.org", "trainjobs", "watch"),
        ("kueue.x-k8s.io", "workloads", "watch"),
        ("kueue.x-k8s.io", "multikueueclusters", "list"),
        ("kueue.x-k8s.io", "multikueueconfigs", "list"),
        ("", "pods", "watch"),
        ("", "pods/log", "get"),
        ("", "events", "list"),
        ("authorization.k8s.io", "subjectaccessreviews", "create"),
    ],
)
def test_the_server_may_what_it_must(group: str, resource: str, verb: str) -> None:
    assert grants(find("rbac", "ClusterRole")["rules"], group, resource, verb)


@pytest.mark.parametrize(("resource", "verb"), [("pods", "watch"), ("pods/log", "get"), ("events", "list")])
def test_workers_grant_what_the_view_reads(resource: str, verb: str) -> None:
    rules = find("worker-role", "ClusterRole")["rules"]
    assert grants(rules, "", resource, verb)
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}


def test_users_are_granted_every_part() -> None:
    rules = find("user-roles", "ClusterRole")["rules"]
    assert grants(rules, GROUP, "trainjobs", "list")
    for part in SUBRESOURCES:
        assert grants(rules, GROUP, f"trainjobs/{part}", "get")
