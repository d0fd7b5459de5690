"""Who we are to the real API server: certificates, service-account tokens, exec plugins."""

from __future__ import annotations

import base64
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.integration.kube.support import CONFIGMAPS
from trainplane.kube.client import Client
from trainplane.kube.codec import decode
from trainplane.kube.errors import HandshakeError, UnauthorizedError
from trainplane.kube.loading import in_cluster, load_config
from trainplane.kube.resource import Resource

if TYPE_CHECKING:
    from pathlib import Path

    from lab.cluster import Cluster
    from trainplane.kube.config import Config

SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")


async def whoami(client: Client) -> tuple[str, list[str]]:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = await client.raw("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=review)
    user = decode(answer.body, dict)["status"]["userInfo"]
    return user["username"], user["groups"]


async def token_of(client: Client, namespace: str) -> str:
    """Return a token of a service account made for it: the default one may not be there yet."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "visitor", "namespace": namespace}}
    await client.apply(SERVICE_ACCOUNTS, account)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/visitor/token"
    answer = await client.raw("POST", path, body=request)
    return str(decode(answer.body, dict)["status"]["token"])


@pytest.fixture
def mounts(cluster: Cluster, namespace: str, tmp_path: Path) -> Path:
    """Return a folder as the kubelet mounts it into a pod, its token still missing."""
    shutil.copy(cluster.authority, tmp_path / "ca.crt")
    (tmp_path / "namespace").write_text(namespace)
    return tmp_path


def pod_config(cluster: Cluster, mounts: Path) -> Config:
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(cluster.port)}
    return in_cluster(environ=environ, service_account=mounts)


async def test_a_client_certificate_says_who_we_are(cluster: Cluster) -> None:
    async with Client.connect(load_config(cluster.user("bo", "bo", ("crew",)))) as bo:
        name, groups = await whoami(bo)
    assert (name, "crew" in groups) == ("bo", True)


async def test_certificates_may_lie_in_files(cluster: Cluster, tmp_path: Path) -> None:
    tree: dict[str, Any] = yaml.safe_load(cluster.kubeconfig.read_text())
    (entry,), (user,) = tree["clusters"], tree["users"]
    places = [(entry["cluster"], "certificate-authority")]
    places += [(user["user"], field) for field in ("client-certificate", "client-key")]
    for holder, field in places:
        (tmp_path / field).write_bytes(base64.b64decode(holder.pop(f"{field}-data")))
        holder[field] = field
    (tmp_path / "config").write_text(yaml.safe_dump(tree))
    async with Client.connect(load_config(tmp_path / "config")) as client:
        assert (await whoami(client))[0] == "lab-admin"


async def test_a_server_of_another_authority_is_not_talked_to(cluster: Cluster, tmp_path: Path) -> None:
    tree: dict[str, Any] = yaml.safe_load(cluster.kubeconfig.read_text())
    del tree["clusters"][0]["cluster"]["certificate-authority-data"]
    (tmp_path / "config").write_text(yaml.safe_dump(tree))
    async with Client.connect(load_config(tmp_path / "config")) as client:
        with pytest.raises(HandshakeError, match="certificate-authority"):
            await client.version()


async def test_a_pod_is_its_service_account(cluster: Cluster, client: Client, namespace: str, mounts: Path) -> None:
    (mounts / "token").write_text(await token_of(client, namespace))
    async with Client.connect(pod_config(cluster, mounts)) as pod:
        assert pod.namespace == namespace
        name, groups = await whoami(pod)
    assert name == f"system:serviceaccount:{namespace}:visitor"
    assert f"system:serviceaccounts:{namespace}" in groups


async def test_a_rotated_token_is_read_when_the_old_one_is_refused(
    cluster: Cluster, client: Client, namespace: str, mounts: Path
) -> None:
    (mounts / "token").write_text("expired")
    async with Client.connect(pod_config(cluster, mounts)) as pod:
        with pytest.raises(UnauthorizedError):
            await whoami(pod)
        (mounts / "token").write_text(await token_of(client, namespace))
        assert (await whoami(pod))[0] == f"system:serviceaccount:{namespace}:visitor"


async def test_an_exec_plugin_logs_in(cluster: Cluster, client: Client, namespace: str, tmp_path: Path) -> None:
    token = await token_of(client, namespace)
    login = tmp_path / "login"
    login.write_text(
        f"""#!/bin/sh
echo '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {{"token": "{token}"}}}}'
"""
    )
    login.chmod(0o755)
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(login), "interactiveMode": "Never"}
    tree: dict[str, Any] = yaml.safe_load(cluster.kubeconfig.read_text())
    tree["users"][0]["user"] = {"exec": plugin}
    (tmp_path / "config").write_text(yaml.safe_dump(tree))
    async with Client.connect(load_config(tmp_path / "config")) as plugged:
        assert (await whoami(plugged))[0] == f"system:serviceaccount:{namespace}:visitor"


async def test_requests_are_counted_with_the_code_of_the_real_answer(config: Config, namespace: str) -> None:
    from prometheus_client import CollectorRegistry  # noqa: PLC0415 only this test counts

    from trainplane.kube.clock import SystemClock  # noqa: PLC0415
    from trainplane.kube.metrics import Metrics  # noqa: PLC0415
    from trainplane.kube.transport import Transport  # noqa: PLC0415

    registry = CollectorRegistry()
    metrics = Metrics(SystemClock(), registry)
    async with Client(Transport(config, requested=metrics.requested)) as client:
        await client.list_all(CONFIGMAPS, namespace)
    labels = {"code": "200", "method": "GET", "host": config.server.removeprefix("https://")}
    assert registry.get_sample_value("rest_client_requests_total", labels) == 1.0
