"""Metrics name namespaces and what runs in them: served by TLS, they are for whom the cluster's RBAC lets read them."""

from __future__ import annotations

import http.client
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from lab import trainplane
from tests.integration.operator.test_operator import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster
    from tests.security.live.tenancy import Tenancy

PATH = "/metrics"
RBAC = "rbac.authorization.k8s.io"


@pytest.fixture
def scraper(tenancy: Tenancy) -> Iterator[str]:
    """Return the name of a ServiceAccount that may read metrics."""
    name, namespace = "scraper", tenancy.namespace
    whole = f"{namespace}-metrics"
    tenancy.cluster.kubectl("create", "serviceaccount", name, f"--namespace={namespace}")
    role = _role(whole, PATH)
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": whole},
        "roleRef": {"kind": "ClusterRole", "name": whole, "apiGroup": RBAC},
        "subjects": [subject],
    }
    tenancy.cluster.apply(role, binding)
    asked = ("auth", "can-i", "get", PATH, f"--as=system:serviceaccount:{namespace}:{name}")
    until(lambda: tenancy.cluster.kubectl(*asked, check=False).code == 0, "the scraper's right")
    yield name
    tenancy.cluster.kubectl("delete", f"clusterrole/{whole}", f"clusterrolebinding/{whole}")


@pytest.mark.attack("someone with a pod", "which namespaces train what, from the operator's metrics")
def test_read_the_metrics_without_a_right_to_them(tenancy: Tenancy, scraper: str) -> None:
    assert _get(tenancy.cluster, None)[0] == 401
    assert _get(tenancy.cluster, "no-token")[0] == 401
    tenancy.cluster.kubectl("create", "serviceaccount", "pod", f"--namespace={tenancy.namespace}")
    status, text = _get(tenancy.cluster, _token(tenancy, "pod"))
    assert (status, "controller_runtime" in text) == (403, False)
    # So the refusals above are for the right that is missing, and for nothing else.
    status, text = _get(tenancy.cluster, _token(tenancy, scraper))
    assert (status, "controller_runtime_reconcile_total" in text) == (200, True)


@pytest.mark.attack("a scraper of another server", "metrics, by a token that is made for somebody else")
def test_read_the_metrics_by_a_token_for_another_audience(tenancy: Tenancy, scraper: str) -> None:
    token = _token(tenancy, scraper, "--audience=vault.example.com")
    assert _get(tenancy.cluster, token)[0] == 401


@pytest.mark.attack("someone on the network", "metrics, by a connection without TLS")
def test_read_the_metrics_in_clear(operated: Cluster) -> None:
    with operated.sandbox.entered():
        connection = http.client.HTTPConnection("127.0.0.1", trainplane.METRICS_PORT, timeout=30)
        try:
            connection.request("GET", PATH)
            with pytest.raises((http.client.HTTPException, OSError)):
                connection.getresponse()
        finally:
            connection.close()


def _role(name: str, path: str) -> dict[str, Any]:
    rules = [{"nonResourceURLs": [path], "verbs": ["get"]}]
    return {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}


def _token(tenancy: Tenancy, account: str, *options: str) -> str:
    made = tenancy.cluster.kubectl("create", "token", account, f"--namespace={tenancy.namespace}", *options)
    return made.stdout.strip()


def _get(cluster: Cluster, token: str | None) -> tuple[int, str]:
    context = ssl.create_default_context(cafile=str(cluster.authority))
    with cluster.sandbox.entered():
        connection = http.client.HTTPSConnection("127.0.0.1", trainplane.METRICS_PORT, timeout=30, context=context)
        try:
            connection.request("GET", PATH, headers={"Authorization": f"Bearer {token}"} if token else {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()
