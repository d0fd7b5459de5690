"""The manifests fit the server: names that must be spelled alike stand in both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from trainplane.hub import settings
from trainplane.hub.apiserver.delegated_auth import GROUP, VERSION
from trainplane.hub.apiserver.discovery import ROOT, SUBRESOURCES
from trainplane.hub.apiserver.fronts import AUDIENCE
from trainplane.hub.certificates import owner_service
from trainplane.hub.check.facts import VIEW_PERMISSIONS
from trainplane.hub.front.main import TOKEN

FOLDER = Path(__file__).resolve().parents[3] / "manifests" / "hub"

Tree = dict[str, Any]


def documents(name: str) -> list[Tree]:
    return [document for document in yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text()) if document]


def find(file: str, kind: str, name: str | None = None) -> Tree:
    kinds = [document for document in documents(file) if document["kind"] == kind]
    (found,) = [document for document in kinds if name in {None, document["metadata"]["name"]}]
    return found


def grants(rules: list[Tree], group: str, resource: str, verb: str) -> bool:
    return any(group in rule["apiGroups"] and resource in rule["resources"] and verb in rule["verbs"] for rule in rules)


def test_the_api_service_is_the_group_that_is_served_by_the_service_that_is_certified() -> None:
    api, service = find("apiservice", "APIService"), find("front", "Service")
    assert api["metadata"]["name"] == f"{VERSION}.{GROUP}"
    assert f"/apis/{api['spec']['group']}/{api['spec']['version']}" == ROOT
    default = settings.Settings(data=Path())
    assert api["spec"]["service"] == {"name": default.service, "namespace": default.namespace}
    assert (service["metadata"]["name"], service["metadata"]["namespace"]) == (default.service, default.namespace)
    assert find("server", "Service")["metadata"]["name"] == owner_service(default.service)
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


def test_the_owner_believes_the_account_that_the_fronts_run_as() -> None:
    (container,) = find("server", "Deployment")["spec"]["template"]["spec"]["containers"]
    spec = find("front", "Deployment")["spec"]["template"]["spec"]
    account = find("rbac", "ServiceAccount", spec["serviceAccountName"])["metadata"]
    assert settings.parse(container["args"]).front_account == (
        f"system:serviceaccount:{account['namespace']}:{account['name']}"
    )
    (token,) = spec["volumes"][0]["projected"]["sources"]
    assert token["serviceAccountToken"]["audience"] == AUDIENCE
    (mount,) = spec["containers"][0]["volumeMounts"]
    assert Path(mount["mountPath"]) / token["serviceAccountToken"]["path"] == TOKEN


@pytest.mark.finding("hub-and-sdk", 2, "while the hub server was down, no namespace of the hub could be deleted")
def test_fronts_are_never_all_away() -> None:
    deployment, budget = find("front", "Deployment")["spec"], find("front", "PodDisruptionBudget")["spec"]
    assert deployment["replicas"] > 1
    assert deployment["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert budget["minAvailable"] == 1
    assert budget["selector"] == deployment["selector"]


def test_a_front_may_nothing_but_be_believed() -> None:
    rules = find("rbac", "ClusterRole", "trainplane-hub-front")["rules"]
    assert [(rule["resources"], rule["resourceNames"], rule["verbs"]) for rule in rules] == [
        (["apiservices"], [f"{VERSION}.{GROUP}"], ["get", "patch"])
    ]


def test_the_server_may_write_nothing_but_its_certificate_and_bundle() -> None:
    writes = {"create", "update", "patch", "delete", "deletecollection", "*"}
    found = {
        (resource, verb, *rule.get("resourceNames", ()))
        for role in documents("rbac")
        for rule in role.get("rules", ())
        for resource in rule.get("resources", ())
        for verb in set(rule["verbs"]) & writes
    }
    assert found == {
        ("subjectaccessreviews", "create"),
        ("tokenreviews", "create"),
        ("apiservices", "patch", f"{VERSION}.{GROUP}"),
        ("secrets", "update", "trainplane-hub-cert"),
        ("secrets", "create"),
    }


@pytest.mark.parametrize(
    ("group", "resource", "verb"),
    [
        ("trainer.kubeflow.org", "trainjobs", "watch"),
        ("kueue.x-k8s.io", "workloads", "watch"),
        ("kueue.x-k8s.io", "multikueueclusters", "watch"),
        ("kueue.x-k8s.io", "multikueueconfigs", "watch"),
        ("", "pods", "watch"),
        ("", "pods/log", "get"),
        ("", "events", "list"),
        ("", "namespaces", "get"),
        ("batch", "jobs", "get"),
        ("jobset.x-k8s.io", "jobsets", "get"),
        ("authorization.k8s.io", "subjectaccessreviews", "create"),
        ("authentication.k8s.io", "tokenreviews", "create"),
    ],
)
def test_the_server_may_what_it_must(group: str, resource: str, verb: str) -> None:
    assert grants(find("rbac", "ClusterRole", "trainplane-hub")["rules"], group, resource, verb)


def test_the_server_may_watch_the_workers_kubeconfigs() -> None:
    role = find("rbac", "Role", "trainplane-hub-workers")
    assert role["metadata"]["namespace"] == settings.Settings(data=Path()).kueue_namespace
    assert all(grants(role["rules"], "", "secrets", verb) for verb in ("get", "list", "watch"))


def test_metrics_are_where_the_service_says_for_who_may() -> None:
    (container,) = find("server", "Deployment")["spec"]["template"]["spec"]["containers"]
    listen = settings.parse(container["args"]).metrics
    assert listen is not None
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports["metrics"] == listen.port
    assert {"name": "metrics", "port": listen.port, "targetPort": "metrics"} in find("server", "Service")["spec"][
        "ports"
    ]
    (rule,) = find("rbac", "ClusterRole", "trainplane-hub-metrics-reader")["rules"]
    assert rule == {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    assert find("alerts", "PrometheusRule")["metadata"]["namespace"] == settings.Settings(data=Path()).namespace


def test_workers_grant_what_the_view_reads_and_the_check_looks_for() -> None:
    rules = find("worker-role", "ClusterRole")["rules"]
    assert all(grants(rules, *permission) for permission in VIEW_PERMISSIONS)
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}


def test_users_are_granted_every_part() -> None:
    rules = find("user-roles", "ClusterRole")["rules"]
    assert grants(rules, GROUP, "trainjobs", "list")
    for part in SUBRESOURCES:
        assert grants(rules, GROUP, f"trainjobs/{part}", "get")


def test_the_network_lets_through_what_the_servers_listen_on_and_nobody_but_fronts_to_the_owner() -> None:
    for file, name in (("front", "trainplane-hub"), ("server", "trainplane-hub-archive")):
        policy = find("network-policy", "NetworkPolicy", name)["spec"]
        pods = find(file, "Deployment")["spec"]["template"]
        assert policy["podSelector"]["matchLabels"] == pods["metadata"]["labels"]
        assert policy["policyTypes"] == ["Ingress", "Egress"]
        (container,) = pods["spec"]["containers"]
        let_in = {port["port"] for rule in policy["ingress"] for port in rule["ports"]}
        assert let_in == {port["containerPort"] for port in container["ports"]}
    owner = find("network-policy", "NetworkPolicy", "trainplane-hub-archive")["spec"]
    (serving,) = [rule for rule in owner["ingress"] if {"protocol": "TCP", "port": 8443} in rule["ports"]]
    assert serving["from"] == [{"podSelector": {"matchLabels": {"app": "trainplane-hub"}}}]
    assert all(rule["ports"] for kind in ("ingress", "egress") for rule in owner[kind])
