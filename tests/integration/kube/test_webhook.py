"""The webhook server and the certificate manager, as the real API server finds them: through a Service, by caBundle."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import socket
import ssl
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.kube.support import until, widget
from trainplane.kube.admission import allow, deny, mutate
from trainplane.kube.cabundle import MUTATING_WEBHOOKS, BundleTarget
from trainplane.kube.certificates import ManagedCertificates, ManagedSettings, ServingContext
from trainplane.kube.clock import SystemClock
from trainplane.kube.errors import ApiError, ForbiddenError, InternalServerError, InvalidError
from trainplane.kube.listener import ListenerSettings
from trainplane.kube.pki import CertificatePolicy
from trainplane.kube.resource import SECRETS
from trainplane.kube.webhook import WebhookServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from lab.cluster import Cluster
    from tests.suite import SuiteReport
    from trainplane.kube.admission import AdmissionRequest, Verdict
    from trainplane.kube.client import Client
    from trainplane.kube.resource import Resource

PATH = "/look-at-widget"

SHORT = {
    "ca_life": timedelta(seconds=12),
    "serving_life": timedelta(seconds=12),
    "ahead": timedelta(seconds=6),
    "settle": timedelta(seconds=2),
}
"""Lives so short that an authority is replaced every six seconds."""


def look(request: AdmissionRequest) -> Verdict:
    """Answer by the size of the Widget, which says what is wanted of the webhook."""
    match request.decode(dict)["spec"]["size"]:
        case 403:
            return deny("spec.size: 403 is not allowed here")
        case 422:
            return deny("spec.size: must not be 422", code=422)
        case 500:
            raise RuntimeError("a bug")
        case size:
            label = [{"op": "add", "path": "/metadata/labels", "value": {"seen": f"size-{size}"}}]
            return mutate(label, warnings=["sizes are watched"]) if size else allow()


@dataclass
class Hook:
    """A running webhook: its certificates, and where it is."""

    certificates: ManagedCertificates
    serving: ServingContext
    target: BundleTarget
    cluster: Cluster
    host: str
    port: int


@pytest.fixture
def policy(request: pytest.FixtureRequest, namespace: str) -> CertificatePolicy:
    return CertificatePolicy((f"hook.{namespace}.svc",), **getattr(request, "param", {}))


@pytest.fixture
async def hook(
    cluster: Cluster, client: Client, namespace: str, widgets: Resource, policy: CertificatePolicy
) -> AsyncIterator[Hook]:
    serving = ServingContext()
    server = WebhookServer({PATH: look}, ListenerSettings(0), tls=serving.context)
    with cluster.sandbox.entered():
        await server.listener.start()
    target = BundleTarget(MUTATING_WEBHOOKS, f"hook-{namespace}")
    cluster.apply(*service(namespace, cluster.address, server.listener.port), configuration(target.name, namespace))
    settings = ManagedSettings(namespace, "hook-certificates", policy, interval=0.5)
    certificates = ManagedCertificates(client, settings, serving, SystemClock(), targets=[target])
    running = asyncio.create_task(certificates.run())
    await until(lambda: serving.loaded, "the first certificate")
    yield Hook(certificates, serving, target, cluster, policy.dns_names[0], server.listener.port)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await client.delete(MUTATING_WEBHOOKS, target.name)
    await server.listener.stop()


def service(namespace: str, address: str, port: int) -> list[dict[str, Any]]:
    """Return a Service whose one endpoint is our server beside the API server."""
    metadata = {"name": "hook", "namespace": namespace}
    ports = {"name": "https", "protocol": "TCP"}
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{**ports, "port": 443}]}},
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**metadata, "labels": {"kubernetes.io/service-name": "hook"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
            "ports": [{**ports, "port": port}],
        },
    ]


def configuration(name: str, namespace: str) -> dict[str, Any]:
    rule = {"apiGroups": ["lab.trainplane.dev"], "apiVersions": ["v1"], "resources": ["widgets"]}
    webhook = {
        "name": "look.lab.trainplane.dev",
        "clientConfig": {"service": {"namespace": namespace, "name": "hook", "path": PATH}},
        "rules": [{**rule, "operations": ["CREATE"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "admissionReviewVersions": ["v1"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [webhook],
    }


async def called(client: Client, namespace: str, widgets: Resource) -> bool:
    """Tell whether the API server calls the webhook: it takes it a moment to notice a new one."""
    with contextlib.suppress(ApiError):
        made = await client.create(widgets, widget("w", namespace, 7), dry_run=True)
        return bool((made["metadata"].get("labels") or {}).get("seen") == "size-7")
    return False


async def test_verdicts_reach_the_user(
    hook: Hook, client: Client, namespace: str, widgets: Resource, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="trainplane.kube.transport"):
        await until(lambda: called(client, namespace, widgets), "a first call")
    assert any("sizes are watched" in record.getMessage() for record in caplog.records)
    assert "labels" not in (await client.create(widgets, widget("plain", namespace, 0), dry_run=True))["metadata"]
    for size, kind, words in (
        (403, ForbiddenError, "403 is not allowed here"),
        (422, InvalidError, "must not be 422"),
        (500, InternalServerError, r"the admission webhook itself failed \(RuntimeError\)"),
    ):
        with pytest.raises(kind, match=words):
            await client.create(widgets, widget("w", namespace, size), dry_run=True)


async def test_replicas_agree_on_one_secret(
    hook: Hook, client: Client, namespace: str, policy: CertificatePolicy
) -> None:
    await client.delete(SECRETS, "hook-certificates", namespace)
    settings = ManagedSettings(namespace, "hook-certificates", policy)
    contexts = [ServingContext() for _ in range(4)]
    replicas = [ManagedCertificates(client, settings, context, SystemClock()) for context in contexts]
    await asyncio.gather(*(replica.sync() for replica in replicas))
    assert len({replica.bundle for replica in replicas}) == 1
    assert all(context.loaded for context in contexts)


async def test_a_bundle_that_somebody_resets_is_written_again(hook: Hook, client: Client) -> None:
    path = "/webhooks/0/clientConfig/caBundle"
    patch = [{"op": "remove", "path": path}]
    await client.patch(MUTATING_WEBHOOKS, hook.target.name, patch, content_type="application/json-patch+json")
    hook.certificates.wake()
    await until(lambda: is_right(client, hook), "the bundle")


async def is_right(client: Client, hook: Hook) -> bool:
    return await published(client, hook) == hook.certificates.bundle


async def published(client: Client, hook: Hook) -> bytes:
    """Return the bundle that API servers see."""
    (webhook,) = (await client.get(MUTATING_WEBHOOKS, hook.target.name))["webhooks"]
    return base64.b64decode(webhook["clientConfig"].get("caBundle") or "")


async def handshake(hook: Hook, bundle: bytes) -> None:
    """Connect anew, trusting only `bundle`, as an API server does that has not talked to us yet."""
    with hook.cluster.sandbox.entered():
        plain = socket.create_connection(("127.0.0.1", hook.port))
    context = ssl.create_default_context(cadata=bundle.decode())
    _, writer = await asyncio.open_connection(sock=plain, ssl=context, server_hostname=hook.host)
    writer.transport.abort()


@pytest.mark.parametrize("policy", [SHORT], indirect=True)
async def test_certificates_rotate_under_load_without_a_failed_call(
    hook: Hook, client: Client, namespace: str, widgets: Resource, report: SuiteReport
) -> None:
    await until(lambda: called(client, namespace, widgets), "a first call")
    calls = 0
    failures: list[Exception] = []
    bundles, ends = {hook.certificates.bundle}, {hook.serving.not_after}

    async def load(number: int, stop: asyncio.Event) -> None:
        nonlocal calls
        while not stop.is_set():
            calls += 1
            try:
                made = await client.create(widgets, widget(f"w-{number}", namespace, 1), dry_run=True)
                assert made["metadata"]["labels"] == {"seen": "size-1"}
            except ApiError as error:
                failures.append(error)
            bundles.add(hook.certificates.bundle)
            ends.add(hook.serving.not_after)
            await asyncio.sleep(0.01)

    async def connect(stop: asyncio.Event) -> None:
        while not stop.is_set():
            bundle = await published(client, hook)
            await asyncio.sleep(0.5)  # API servers hear of a new bundle a moment later
            try:
                await handshake(hook, bundle)
            except ssl.SSLError as error:
                failures.append(error)

    first = hook.certificates.bundle
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(load(number, stop))
        group.create_task(connect(stop))
        await until(lambda: len(ends) > 3 and first not in hook.certificates.bundle, "three rotations")
        await until(lambda: calls > 500, "enough calls", seconds=120)
        stop.set()
    report.figure("reviews_while_rotating", calls)
    report.figure("rotations", len(ends) - 1)
    assert failures == []
    assert calls > 500
    assert any(bundle.count(b"BEGIN CERTIFICATE") == 2 for bundle in bundles), "old and new were trusted together"
