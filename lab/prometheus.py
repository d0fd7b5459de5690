"""Prometheus beside a cluster's API server, told what to scrape as the Prometheus operator tells it.

It runs under a service account of its own that may find the targets of one namespace and read `/metrics`, and no more.
"""

from __future__ import annotations

import base64
import http.client
import json
import urllib.parse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from lab import accounts
from lab.engines import binary, manifests
from lab.errors import LabError
from lab.webhooks import documents

if TYPE_CHECKING:
    from lab.cluster import Cluster

Tree = dict[str, Any]

ENGINE: Final = "prometheus"
_NAMESPACE: Final = "monitoring"
_PORT: Final = 9090
_CRDS: Final = ("servicemonitors", "prometheusrules")
_META: Final = "__meta_kubernetes_"


def install_crds(cluster: Cluster) -> None:
    """Install the Prometheus operator's CRDs that charts make objects of."""
    folder = manifests("prometheus-operator") / "example/prometheus-operator-crd"
    cluster.apply(*documents(*(folder / f"monitoring.coreos.com_{name}.yaml" for name in _CRDS)))
    cluster.wait_established(*(f"{name}.monitoring.coreos.com" for name in _CRDS))


@dataclass(frozen=True)
class Prometheus:
    """A Prometheus that runs on a cluster."""

    cluster: Cluster

    @classmethod
    def install(cls, cluster: Cluster, monitor: Tree, rule: Tree, *, interval: str) -> Prometheus:
        """Start it on a ServiceMonitor and a PrometheusRule of the cluster, and wait until it is ready."""
        namespace = monitor["metadata"]["namespace"]
        cluster.apply(*_rights(namespace))
        folder = cluster.folder / ENGINE
        folder.mkdir()
        kubeconfig = accounts.kubeconfig(cluster, _NAMESPACE, ENGINE)
        (user,) = yaml.safe_load(kubeconfig.read_text())["users"]
        token = folder / "token"
        token.touch(mode=0o600)
        token.write_text(user["user"]["token"])
        (folder / "rules.yaml").write_text(yaml.safe_dump(rule["spec"]))
        (endpoint,) = monitor["spec"]["endpoints"]
        authority = endpoint["tlsConfig"]["ca"]["secret"]
        data = cluster.get("secret", authority["name"], "-n", namespace)["data"]
        (folder / "ca.crt").write_bytes(base64.b64decode(data[authority["key"]]))
        discovery = {"role": "endpointslice", "kubeconfig_file": str(kubeconfig), "namespaces": {"names": [namespace]}}
        scrape = {
            "job_name": f"serviceMonitor/{namespace}/{monitor['metadata']['name']}/0",
            "scheme": endpoint["scheme"],
            "authorization": {"credentials_file": str(token)},
            "tls_config": {
                "ca_file": str(folder / "ca.crt"),
                "server_name": endpoint["tlsConfig"]["serverName"],
            },
            "kubernetes_sd_configs": [discovery],
            "relabel_configs": _relabelings(monitor["spec"]["selector"]["matchLabels"], endpoint["port"]),
        }
        config = folder / "prometheus.yaml"
        tree = {
            "global": {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
            "rule_files": [str(folder / "rules.yaml")],
            "scrape_configs": [scrape],
        }
        config.write_text(yaml.safe_dump(tree, sort_keys=False))
        address = f"--web.listen-address=127.0.0.1:{_PORT}"
        options = (f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}", address)
        cluster.start(ENGINE, [binary(ENGINE), *options])
        cluster.wait_http(ENGINE, _PORT, "/-/ready")
        return cls(cluster)

    def query(self, expression: str) -> list[Tree]:
        """Return the series that a query has now."""
        answer = self._get("query", query=expression)
        found: list[Tree] = answer["result"]
        return found

    def query_range(self, expression: str, seconds: float) -> list[Tree]:
        """Return the series that a query had over the last seconds, a value for each of them."""
        end = float(self._get("query", query="time()")["result"][1])
        answer = self._get("query_range", query=expression, start=str(end - seconds), end=str(end), step="1")
        found: list[Tree] = answer["result"]
        return found

    def rules(self) -> list[Tree]:
        """Return each alert's rule with its health and its last error."""
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def _get(self, what: str, **parameters: str) -> Any:
        with self.cluster.sandbox.entered():
            connection = http.client.HTTPConnection("127.0.0.1", _PORT, timeout=30)
            try:
                connection.request("GET", f"/api/v1/{what}?{urllib.parse.urlencode(parameters)}")
                answer = json.load(connection.getresponse())
            finally:
                connection.close()
        if answer["status"] != "success":
            message = f"Prometheus refuses {parameters.get('query', what)!r}: {answer.get('error')}"
            raise LabError(message)
        return answer["data"]


def _rights(namespace: str) -> tuple[Tree, ...]:
    """Return Prometheus' account and what it may: find targets in one namespace, read metrics."""
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    subject = {"kind": "ServiceAccount", "name": ENGINE, "namespace": _NAMESPACE}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "name": ENGINE}
    there = {"name": ENGINE, "namespace": namespace}
    finds = [
        {"apiGroups": [""], "resources": ["services", "pods"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["get", "list", "watch"]},
    ]
    reads = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    return (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ENGINE, "namespace": _NAMESPACE}},
        {**rbac, "kind": "Role", "metadata": there, "rules": finds},
        {
            **rbac,
            "kind": "RoleBinding",
            "metadata": there,
            "roleRef": {**reference, "kind": "Role"},
            "subjects": [subject],
        },
        {**rbac, "kind": "ClusterRole", "metadata": {"name": ENGINE}, "rules": reads},
        {
            **rbac,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": ENGINE},
            "roleRef": {**reference, "kind": "ClusterRole"},
            "subjects": [subject],
        },
    )


def _relabelings(labels: dict[str, str], port: str) -> list[Tree]:
    """Return what the Prometheus operator makes of a ServiceMonitor: which targets, and the labels that these get."""

    def keep(source: str, value: str) -> Tree:
        return {"action": "keep", "source_labels": [source], "regex": value}

    names = {"namespace": "namespace", "service": "service_name", "pod": "pod_name", "job": "service_name"}
    return [
        *(keep(f"{_META}service_label_{_word(name)}", value) for name, value in labels.items()),
        keep(f"{_META}endpointslice_port_name", port),
        *({"source_labels": [_META + source], "target_label": label} for label, source in names.items()),
    ]


def _word(label: str) -> str:
    return label.translate(str.maketrans("./-", "___"))
