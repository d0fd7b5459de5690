"""Replicas that share a Secret, caBundles that stay right, files that change."""

from __future__ import annotations

import asyncio
import base64
import ssl
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.kube.serve.fake_client import FakeClient
from trainplane.kube.cabundle import (
    API_SERVICES,
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
    BundleTarget,
    bundle_patch,
)
from trainplane.kube.certificates import (
    CertificateError,
    FileCertificates,
    ManagedCertificates,
    ManagedSettings,
    ServingContext,
)
from trainplane.kube.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError, UnavailableError
from trainplane.kube.pki import CertificatePolicy, renew
from trainplane.kube.resource import PODS, SECRETS
from trainplane.kube.testing.clock import START, FakeClock

if TYPE_CHECKING:
    from pathlib import Path

POLICY = CertificatePolicy(("localhost",))
SETTINGS = ManagedSettings("system", "webhook-cert", POLICY)
HOOK = BundleTarget(VALIDATING_WEBHOOKS, "validate")
DAYS = 86_400.0


class Replica:
    """One process's share: its manager and what it shows to TLS clients."""

    def __init__(self, client: FakeClient, clock: FakeClock, *targets: BundleTarget) -> None:
        self.serving = ServingContext()
        self.manager = ManagedCertificates(client, SETTINGS, self.serving, clock, targets=targets)


def configuration(*names: str, bundle: str | None = None) -> dict[str, Any]:
    config: dict[str, Any] = {"service": {"name": "s", "namespace": "system"}}
    if bundle is not None:
        config["caBundle"] = bundle
    return {
        "metadata": {"name": "validate"},
        "webhooks": [{"name": name, "clientConfig": dict(config)} for name in names],
    }


def data(client: FakeClient) -> dict[str, str]:
    found: dict[str, str] = client.peek(SECRETS, "webhook-cert", "system")["data"]
    return found


def bundles(client: FakeClient) -> list[str | None]:
    webhooks = client.peek(VALIDATING_WEBHOOKS, "validate")["webhooks"]
    return [webhook["clientConfig"].get("caBundle") for webhook in webhooks]


def shown(context: ServingContext) -> bytes:
    """Return the certificate that a TLS client is shown, by a handshake in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    client = trusting.wrap_bio(to_client, to_server, server_side=False)
    server = context.context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    der = client.getpeercert(binary_form=True)
    assert der is not None
    return ssl.DER_cert_to_PEM_cert(der).encode()


@pytest.fixture
def client() -> FakeClient:
    return FakeClient()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


async def test_the_first_replica_makes_the_secret_and_serves_what_is_in_it(
    client: FakeClient, clock: FakeClock
) -> None:
    replica = Replica(client, clock)
    assert (replica.serving.loaded, replica.manager.bundle) == (False, b"")
    await replica.manager.sync()
    assert sorted(data(client)) == ["ca.crt", "ca.key", "tls.crt", "tls.key"]
    assert shown(replica.serving) == base64.b64decode(data(client)["tls.crt"])
    assert replica.serving.loaded
    assert replica.serving.not_after == START + timedelta(days=365)
    assert replica.manager.bundle == base64.b64decode(data(client)["ca.crt"])


async def test_the_second_replica_adopts_and_writes_nothing(client: FakeClient, clock: FakeClock) -> None:
    first, second = Replica(client, clock), Replica(client, clock)
    await first.manager.sync()
    writes = client.calls["create"] + client.calls["replace"]
    await second.manager.sync()
    assert client.calls["create"] + client.calls["replace"] == writes
    assert shown(first.serving) == shown(second.serving)


async def test_two_replicas_that_create_at_once_end_with_the_same(clock: FakeClock) -> None:
    class Racing(FakeClient):
        """Both read before either writes."""

        def __init__(self) -> None:
            super().__init__()
            self.barrier = asyncio.Barrier(2)

        async def get(self, *args: Any, **kwargs: Any) -> Any:
            try:
                return await super().get(*args, **kwargs)
            finally:
                if self.calls["get"] <= 2:
                    await self.barrier.wait()

    client = Racing()
    first, second = Replica(client, clock), Replica(client, clock)
    await asyncio.gather(first.manager.sync(), second.manager.sync())
    assert client.calls["create"] == 2
    assert shown(first.serving) == shown(second.serving) == base64.b64decode(data(client)["tls.crt"])


async def test_two_replicas_that_renew_at_once_end_with_the_same(client: FakeClient, clock: FakeClock) -> None:
    first, second = Replica(client, clock), Replica(client, clock)
    await first.manager.sync()
    await second.manager.sync()
    before = shown(first.serving)
    await clock.advance(280 * DAYS)
    intruded = False

    def intrude(verb: str, plural: str, name: str) -> None:
        nonlocal intruded
        if verb == "replace" and not intruded:
            intruded = True
            secret = client.peek(SECRETS, "webhook-cert", "system")
            client.put(SECRETS, secret)  # somebody else's write, in between

    client.before = intrude
    await first.manager.sync()
    await second.manager.sync()
    assert client.calls["replace"] == 2  # the first try lost to the intruder
    assert shown(first.serving) == shown(second.serving) != before


async def test_an_empty_secret_is_filled_and_keeps_what_else_it_has(client: FakeClient, clock: FakeClock) -> None:
    labels = {"app": "x"}
    metadata = {"name": "webhook-cert", "namespace": "system", "labels": labels}
    client.put(SECRETS, {"metadata": metadata, "data": {"other": "eA=="}})
    await Replica(client, clock).manager.sync()
    secret = client.peek(SECRETS, "webhook-cert", "system")
    assert secret["metadata"]["labels"] == labels
    assert sorted(secret["data"]) == ["ca.crt", "ca.key", "other", "tls.crt", "tls.key"]


async def test_nonsense_in_the_secret_is_replaced(client: FakeClient, clock: FakeClock) -> None:
    metadata = {"name": "webhook-cert", "namespace": "system"}
    client.put(SECRETS, {"metadata": metadata, "data": {"ca.crt": "%", "ca.key": "eA==", "tls.crt": None}})
    replica = Replica(client, clock)
    await replica.manager.sync()
    assert shown(replica.serving) == base64.b64decode(data(client)["tls.crt"])


async def test_a_secret_that_never_stands_still_is_an_error(client: FakeClient, clock: FakeClock) -> None:
    client.put(SECRETS, {"metadata": {"name": "webhook-cert", "namespace": "system"}})

    def intrude(verb: str, plural: str, name: str) -> None:
        if verb == "replace":
            client.put(SECRETS, client.peek(SECRETS, "webhook-cert", "system"))

    client.before = intrude
    with pytest.raises(ConflictError, match="system/webhook-cert kept changing"):
        await Replica(client, clock).manager.sync()


async def test_every_webhook_gets_the_bundle_before_the_certificate_is_shown(
    client: FakeClient, clock: FakeClock
) -> None:
    client.put(VALIDATING_WEBHOOKS, configuration("a.x", "b.x", bundle="b2xk"))
    replica = Replica(client, clock, HOOK)
    states: list[bool] = []

    def look(verb: str, plural: str, name: str) -> None:
        if verb == "patch":
            states.append(replica.serving.loaded)

    client.after = look
    await replica.manager.sync()
    assert bundles(client) == [data(client)["ca.crt"]] * 2
    assert states == [False]
    await replica.manager.sync()
    assert client.calls["patch"] == 1


async def test_rotation_shows_both_authorities_and_then_the_new_certificate(
    client: FakeClient, clock: FakeClock
) -> None:
    client.put(VALIDATING_WEBHOOKS, configuration("a.x"))
    first, second = Replica(client, clock, HOOK), Replica(client, clock, HOOK)
    await first.manager.sync()
    old = base64.b64decode(data(client)["ca.crt"])
    await clock.advance(3550 * DAYS)
    await first.manager.sync()
    await clock.advance(11 * DAYS)
    await first.manager.sync()
    await second.manager.sync()
    both = base64.b64decode(data(client)["ca.crt"])
    assert both.endswith(old)
    assert both.count(b"BEGIN") == 2
    assert bundles(client) == [data(client)["ca.crt"]]
    kept = shown(first.serving)
    await clock.advance(601)
    await second.manager.sync()
    await first.manager.sync()
    assert shown(first.serving) == shown(second.serving) != kept
    assert base64.b64decode(data(client)["ca.crt"]) == both


async def test_a_bundle_that_somebody_resets_is_written_again(client: FakeClient, clock: FakeClock) -> None:
    client.put(VALIDATING_WEBHOOKS, configuration("a.x"))
    replica = Replica(client, clock, HOOK)
    running = asyncio.create_task(replica.manager.run())
    await clock.advance(1)
    assert bundles(client) == [data(client)["ca.crt"]]
    client.put(VALIDATING_WEBHOOKS, configuration("a.x", bundle="cmVzZXQ="))
    await clock.advance(58)
    assert bundles(client) == ["cmVzZXQ="]
    await clock.advance(2)
    assert bundles(client) == [data(client)["ca.crt"]]
    client.put(VALIDATING_WEBHOOKS, configuration("a.x"))
    replica.manager.wake()
    await clock.settle()
    assert bundles(client) == [data(client)["ca.crt"]]
    running.cancel()


async def test_a_target_that_cannot_be_patched_spares_the_rest(client: FakeClient, clock: FakeClock) -> None:
    client.put(VALIDATING_WEBHOOKS, configuration("a.x"))
    replica = Replica(client, clock, BundleTarget(MUTATING_WEBHOOKS, "absent"), HOOK)
    with pytest.raises(NotFoundError, match="absent"):
        await replica.manager.sync()
    assert bundles(client) == [data(client)["ca.crt"]]
    assert replica.serving.loaded


async def test_a_target_that_changes_in_between_is_read_again(client: FakeClient, clock: FakeClock) -> None:
    client.put(VALIDATING_WEBHOOKS, configuration("a.x"))
    swapped = False

    def swap(verb: str, plural: str, name: str) -> None:
        nonlocal swapped
        if verb == "patch" and not swapped:
            swapped = True
            client.put(VALIDATING_WEBHOOKS, configuration("new.x", "a.x"))

    client.before = swap
    await Replica(client, clock, HOOK).manager.sync()
    assert bundles(client) == [data(client)["ca.crt"]] * 2


async def test_a_patch_that_is_refused_for_good_is_an_error(client: FakeClient, clock: FakeClock) -> None:
    client.put(VALIDATING_WEBHOOKS, configuration("a.x"))

    def refuse(verb: str, plural: str, name: str) -> None:
        if verb == "patch":
            raise InvalidError("no")

    client.before = refuse
    with pytest.raises(InvalidError):
        await Replica(client, clock, HOOK).manager.sync()


async def test_a_round_that_fails_is_soon_repeated(client: FakeClient, clock: FakeClock) -> None:
    def down(verb: str, plural: str, name: str) -> None:
        raise UnavailableError("starting")

    client.before = down
    replica = Replica(client, clock)
    running = asyncio.create_task(replica.manager.run())
    await clock.advance(12)
    assert client.calls["get"] == 3
    loaded = [replica.serving.loaded]
    client.before = None
    await clock.advance(5)
    loaded.append(replica.serving.loaded)
    assert loaded == [False, True]
    running.cancel()


async def test_missing_rights_do_not_end_the_task(client: FakeClient, clock: FakeClock) -> None:
    def forbid(verb: str, plural: str, name: str) -> None:
        raise ForbiddenError("no Role")

    client.before = forbid
    running = asyncio.create_task(Replica(client, clock).manager.run())
    await clock.advance(60)
    assert not running.done()
    running.cancel()


def test_a_conversion_webhook_gets_the_bundle_and_other_definitions_are_left_alone() -> None:
    client_config = {"service": {"name": "s"}}
    crd: dict[str, Any] = {
        "metadata": {"resourceVersion": "5"},
        "spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client_config}}},
    }
    assert bundle_patch(CUSTOM_RESOURCE_DEFINITIONS, crd, b"CA") == [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "5"},
        {"op": "add", "path": "/spec/conversion/webhook/clientConfig/caBundle", "value": "Q0E="},
    ]
    crd["spec"]["conversion"] = {"strategy": "None"}
    assert bundle_patch(CUSTOM_RESOURCE_DEFINITIONS, crd, b"CA") == []
    del crd["spec"]["conversion"]
    assert bundle_patch(CUSTOM_RESOURCE_DEFINITIONS, crd, b"CA") == []


def test_an_api_service_trades_blind_trust_for_the_bundle() -> None:
    service: dict[str, Any] = {
        "metadata": {"resourceVersion": "5"},
        "spec": {"service": {"name": "s"}, "insecureSkipTLSVerify": True},
    }
    assert bundle_patch(API_SERVICES, service, b"CA")[1:] == [
        {"op": "remove", "path": "/spec/insecureSkipTLSVerify"},
        {"op": "add", "path": "/spec/caBundle", "value": "Q0E="},
    ]
    local: dict[str, Any] = {"metadata": {"resourceVersion": "5"}, "spec": {"service": None}}
    assert bundle_patch(API_SERVICES, local, b"CA") == []
    service["spec"] = {"service": {"name": "s"}, "caBundle": "Q0E="}
    assert bundle_patch(API_SERVICES, service, b"CA") == []


def test_only_webhooks_that_need_it_are_touched() -> None:
    obj = configuration("a", "b")
    obj["metadata"]["resourceVersion"] = "5"
    obj["webhooks"][0]["clientConfig"]["caBundle"] = "Q0E="
    assert [operation["path"] for operation in bundle_patch(MUTATING_WEBHOOKS, obj, b"CA")] == [
        "/metadata/resourceVersion",
        "/webhooks/1/clientConfig/caBundle",
    ]


def test_kinds_without_a_bundle_are_refused() -> None:
    with pytest.raises(ValueError, match="Pod 'x' has no caBundle"):
        BundleTarget(PODS, "x")
    assert str(HOOK) == "ValidatingWebhookConfiguration/validate"


class Files:
    """A certificate and key on disk, as an admin or a kubelet writes them."""

    def __init__(self, folder: Path, clock: FakeClock) -> None:
        self.certificate, self.key = folder / "tls.crt", folder / "tls.key"
        self.serving = ServingContext()
        self.source = FileCertificates(self.certificate, self.key, self.serving, clock)

    def write(self) -> bytes:
        material, _ = renew(None, POLICY, START)
        self.certificate.write_bytes(material.tls_crt)
        self.key.write_bytes(material.tls_key)
        return material.tls_crt


async def test_files_are_followed_and_bad_ones_change_nothing(tmp_path: Path, clock: FakeClock) -> None:
    files = Files(tmp_path, clock)
    first = files.write()
    running = asyncio.create_task(files.source.run())
    await clock.advance(1)
    assert shown(files.serving) == first
    files.certificate.write_bytes(b"half a cert")
    await clock.advance(10)
    assert shown(files.serving) == first
    second = files.write()
    await clock.advance(10)
    assert shown(files.serving) == second
    running.cancel()


def test_files_that_are_missing_or_do_not_match_are_named(tmp_path: Path, clock: FakeClock) -> None:
    files = Files(tmp_path, clock)
    with pytest.raises(CertificateError, match=r"cannot read .*tls\.crt: No such file"):
        files.source.load()
    files.write()
    assert files.source.load()
    assert not files.source.load()
    files.key.write_bytes(renew(None, POLICY, START)[0].tls_key)
    with pytest.raises(CertificateError, match=r"tls\.key: this certificate and key cannot be served") as caught:
        files.source.load()
    assert caught.value.whose == "user"


def test_an_unusable_pair_leaves_the_context_as_it_was() -> None:
    context = ServingContext()
    good, other = renew(None, POLICY, START)[0], renew(None, POLICY, START)[0]
    context.load(good.tls_crt, good.tls_key)
    with pytest.raises(CertificateError):
        context.load(other.tls_crt, good.tls_key)
    assert shown(context) == good.tls_crt
    with pytest.raises(CertificateError):
        context.load(b"", b"")
    assert shown(context) == good.tls_crt


def test_where_no_file_can_live_in_memory_a_temporary_one_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.memfd_create")
    material, _ = renew(None, POLICY, START)
    context = ServingContext()
    context.load(material.tls_crt, material.tls_key)
    assert shown(context) == material.tls_crt
