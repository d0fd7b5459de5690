"""What broke the controller runtime under fire: slow neighbours, dead connections, restored backups, rollouts."""

from __future__ import annotations

import asyncio
import copy
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from tests.unit.kube.serve.fake_client import FakeClient
from tests.unit.operator.objects import runtime, train_job
from trainplane.api.configuration import (
    CertManagement,
    Configuration,
    Health,
    LeaderElection,
    Metrics,
    StatusServer,
    Webhook,
)
from trainplane.kube.backoff import Backoff
from trainplane.kube.cabundle import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, BundleTarget
from trainplane.kube.certificates import ManagedCertificates, ManagedSettings, ServingContext
from trainplane.kube.clock import SystemClock
from trainplane.kube.codec import error_from_status
from trainplane.kube.election import ElectionRules, LeaseSettings
from trainplane.kube.errors import UnavailableError
from trainplane.kube.expectations import Expectations
from trainplane.kube.lease import LEASES, LeaderElector, LeadershipLostError
from trainplane.kube.pki import CertificatePolicy
from trainplane.kube.reflector import Reflector, ReflectorSettings
from trainplane.kube.resource import SECRETS, Key, Resource
from trainplane.kube.store import Store
from trainplane.kube.testing.clock import FakeClock
from trainplane.kube.testing.faults import Hang, Refuse
from trainplane.kube.testing.server import FakeServer
from trainplane.operator.apply import Writer
from trainplane.operator.main import Operator
from trainplane.operator.settings import Settings
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, JOB_SETS, TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

THINGS = Resource("x.io", "v1", "things", "Thing")
QUICK = LeaderElection(lease_duration="6s", renew_deadline="4s", retry_period="400ms")


async def until(there: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Let the loop run until something is so."""
    async with asyncio.timeout(seconds):
        while not (found := there()):  # noqa: ASYNC110 what is waited for has no event
            await asyncio.sleep(0.005)
    return found


@asynccontextmanager
async def operator_on(server: FakeServer, *, shutdown_delay: float = 0.0) -> AsyncIterator[Operator]:
    server.put(CLUSTER_TRAINING_RUNTIMES, runtime())
    for resource, name in ((MUTATING_WEBHOOKS, "defaulter"), (VALIDATING_WEBHOOKS, "validator")):
        webhooks = [{"name": "x", "clientConfig": {"service": {"name": "s", "namespace": "n"}}}]
        server.put(resource, {"metadata": {"name": f"{name}.trainer.kubeflow.org"}, "webhooks": webhooks})
    configuration = Configuration(
        webhook=Webhook(port=0, host="127.0.0.1"),
        metrics=Metrics(bind_address="0"),
        health=Health(health_probe_bind_address="127.0.0.1:0"),
        cert_management=CertManagement(enable=True),
        status_server=StatusServer(port=0),
        leader_election=QUICK,
    )
    async with server.client() as client:
        operator = Operator(Settings(configuration, shutdown_delay=shutdown_delay), client)
        task = asyncio.create_task(operator.run())
        await until(lambda: task.done() or (operator.manager.ready.is_set() and operator.tls.loaded))
        try:
            yield operator
        finally:
            operator.stop()
            operator.stop()
            await asyncio.wait({task}, timeout=2)  # reconciles that hang on a fault would be waited for
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest.mark.finding("runtime", 1, "renewals and reads of reviews waited behind reconciles")
async def test_slow_jobset_writes_cost_neither_leadership_nor_reviews() -> None:
    async with FakeServer() as server, operator_on(server) as operator:
        assert operator.elector is not None
        await until(operator.elector.is_leader)
        server.add_fault(Hang(verb="patch", plural="jobsets", times=None))
        for number in range(64):
            server.put(TRAIN_JOBS, train_job(name=f"job-{number}"))
        limiter = operator.client.transport.limiter
        await until(lambda: limiter.in_flight >= int(limiter.limit))
        asked_at = asyncio.get_running_loop().time()
        for _ in range(20):  # longer than the deadline, so that a renewal that waits would have come too late
            await asyncio.sleep(0.25)
            assert operator.elector.is_leader()
            async with asyncio.timeout(60):  # those that wait do so for ever
                await operator.review_client.get(CLUSTER_TRAINING_RUNTIMES, runtime()["metadata"]["name"])
        assert asyncio.get_running_loop().time() - asked_at > 4.5
        assert limiter.in_flight >= int(limiter.limit), "the reconciles still wait"
        server.faults.clear()


@pytest.mark.finding("runtime", 2, "one renewal without an answer cost the leadership")
async def test_a_renewal_without_an_answer_is_followed_by_others() -> None:
    settings = LeaseSettings("d", "l", lease_duration=3, renew_deadline=2.0, retry_period=0.3)
    async with FakeServer() as server, server.client() as client:
        elector = LeaderElector(client, settings, SystemClock())
        await elector.acquire()
        server.add_fault(Hang(verb="update", plural="leases", times=1))
        keeping = asyncio.create_task(elector.keep())
        await asyncio.sleep(2.5)
        assert not keeping.done()
        assert elector.is_leader()
        assert not server.faults, "the fault was met"
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


@pytest.mark.finding("runtime", 7, "webhooks refused six milliseconds after SIGTERM")
async def test_reviews_are_answered_while_a_replica_ends() -> None:
    async with FakeServer() as server, operator_on(server, shutdown_delay=5.0) as operator:
        assert operator.elector is not None
        await until(operator.elector.is_leader)
        port = operator.webhooks.listener.port
        strange = ssl.create_default_context()
        strange.check_hostname, strange.verify_mode = False, ssl.CERT_NONE
        reader, used = await asyncio.open_connection("127.0.0.1", port, ssl=strange)
        stopped_at = asyncio.get_running_loop().time()
        operator.stop()
        assert operator._stopping_check() is not None, "no longer ready from this moment"
        used.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"connection: close" in (await reader.readuntil(b"\r\n\r\n")).lower(), "its caller goes elsewhere"
        used.close()
        await until(lambda: not operator.elector.is_leader())  # type: ignore[union-attr] # asserted above
        lease = next(iter(server.objects(LEASES).values()))
        await until(lambda: not next(iter(server.objects(LEASES).values()))["spec"].get("holderIdentity"))
        assert lease is not None, "the next leader need not wait for the webhooks"
        while asyncio.get_running_loop().time() < stopped_at + 0.8:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            await asyncio.sleep(0.05)


@pytest.mark.finding("runtime", 8, "a restored etcd was never noticed")
@pytest.mark.parametrize("writes_since", [0, 3], ids=["quiet", "busy"])
async def test_a_server_restored_from_a_backup_is_found_out(writes_since: int) -> None:
    async with FakeServer() as server, server.client() as client:
        server.put(THINGS, _thing("keep"))
        revision, objects = server.storage.revision, copy.deepcopy(server.storage.objects)
        store = Store(THINGS)
        settings = ReflectorSettings(silence_seconds=0.3, backoff=Backoff(base=0.01, cap=0.02))
        reflector = Reflector(client, THINGS, store, settings=settings)
        running = asyncio.create_task(reflector.run())
        await reflector.synced.wait()
        for number in range(30):
            server.put(THINGS, _thing(f"lost-{number}"))
        await until(lambda: len(store) == 31)
        server.storage.revision, server.storage.objects = revision, objects
        server.storage.history.clear()
        server.storage.compacted = revision
        for number in range(writes_since):
            server.put(THINGS, _thing(f"new-{number}"))
        server.watching.cut()
        await until(lambda: set(store) == set(server.objects(THINGS)), 20)
        server.put(THINGS, _thing("after"))
        await until(lambda: Key("d", "after") in store, 20)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.finding("runtime", 10, "a new certificate of another key type was not shown; replicas disagreed")
@pytest.mark.parametrize("before", ["ec", "rsa"])
@pytest.mark.parametrize("after", ["ec", "rsa"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_new_certificate_is_shown_whatever_its_key(before: str, after: str, version: ssl.TLSVersion) -> None:
    serving = ServingContext()
    serving.load(*_certificate(before, "old"))
    serving.load(*_certificate(after, "new"))
    assert _shown(serving.context, version) == "CN=new"


@pytest.mark.finding("runtime", 10, "a new certificate of another key type was not shown; replicas disagreed")
@pytest.mark.parametrize("harm", ["deleted", "emptied"])
async def test_replicas_agree_after_the_secret_was(harm: str) -> None:
    async with FakeServer() as server, server.client() as client:
        server.put(VALIDATING_WEBHOOKS, {"metadata": {"name": "v"}, "webhooks": [{"name": "x", "clientConfig": {}}]})
        settings = ManagedSettings("ns", "certificates", CertificatePolicy(("a.b.svc",)))
        target = BundleTarget(VALIDATING_WEBHOOKS, "v")
        first, second = (
            ManagedCertificates(client, settings, ServingContext(), SystemClock(), targets=(target,)) for _ in "ab"
        )
        await first.sync()
        await second.sync()
        if harm == "deleted":
            server.remove(SECRETS, "certificates", "ns")
        else:
            server.put(SECRETS, {"metadata": {"name": "certificates", "namespace": "ns"}, "data": {}})
        await second.sync()
        assert first.bundle == second.bundle
        secret = next(iter(server.objects(SECRETS).values()))
        assert set(secret["data"]) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}


@pytest.mark.finding("runtime", 10, "a new certificate of another key type was not shown; replicas disagreed")
async def test_a_replica_hears_of_a_new_secret_at_once() -> None:
    async with FakeServer() as server, server.client() as client:
        settings = ManagedSettings("ns", "certificates", CertificatePolicy(("a.b.svc",)), interval=3600)
        old = ManagedCertificates(client, settings, ServingContext(), SystemClock())
        tasks = [asyncio.create_task(old.run()), *(asyncio.create_task(one.run()) for one in old.reflectors(client))]
        before = await until(lambda: old.bundle)
        server.remove(SECRETS, "certificates", "ns")
        await until(lambda: server.objects(SECRETS))
        assert old.bundle == before
        other = ManagedCertificates(
            client, ManagedSettings("ns", "other", settings.policy), ServingContext(), SystemClock()
        )
        await other.sync()
        made = server.objects(SECRETS)[Key("ns", "other")]
        server.put(SECRETS, {**made, "metadata": {"name": "certificates", "namespace": "ns"}})
        await until(lambda: old.bundle == other.bundle)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.finding("runtime", 11, "a Retry-After of a day stopped a mirror for a day, and other small things")
def test_a_retry_after_of_a_day_is_not_waited_for() -> None:
    reflector = Reflector(FakeClient(), SECRETS, Store(SECRETS))  # type: ignore[arg-type] # never called
    reflector._may_resume = True
    assert reflector._recover(UnavailableError("maintenance", retry_after=86400.0)) <= 60


@pytest.mark.finding("runtime", 11, "a Retry-After of a day stopped a mirror for a day, and other small things")
@pytest.mark.parametrize("asked", ['"soon"', "[]", "-3", "true", "null", "1e400"])
def test_a_retry_after_that_is_no_number_is_no_error_of_ours(asked: str) -> None:
    body = b'{"kind":"Status","code":429,"details":{"retryAfterSeconds":%s}}' % asked.encode()
    found = error_from_status(body, 429)
    assert found.code == 429
    assert found.retry_after is None or 0 <= found.retry_after < float("inf")


@pytest.mark.finding("runtime", 11, "a Retry-After of a day stopped a mirror for a day, and other small things")
async def test_a_stop_in_the_middle_of_a_claim_gives_the_lease_back() -> None:
    async with FakeServer() as server, server.client() as client:
        settings = LeaseSettings("d", "l")
        elector = LeaderElector(client, settings, SystemClock())
        written = asyncio.Event()
        create = client.create

        async def slow(*arguments: Any, **options: Any) -> Any:
            await create(*arguments, **options)
            written.set()
            await asyncio.Event().wait()

        client.create = slow  # type: ignore[method-assign] # the answer that never comes
        acquiring = asyncio.create_task(elector.acquire())
        await written.wait()
        acquiring.cancel()
        await asyncio.gather(acquiring, return_exceptions=True)
        lease = next(iter(server.objects(LEASES).values()))
        assert not lease["spec"]["holderIdentity"]


@pytest.mark.finding("runtime", 11, "a Retry-After of a day stopped a mirror for a day, and other small things")
async def test_a_write_that_is_sent_again_asks_for_leadership_again() -> None:
    async with FakeServer() as server, server.client() as client:
        leads = True
        writer = Writer(client, lambda: leads)
        server.add_fault(Refuse(verb="patch", plural="jobsets", code=429, retry_after=1, times=1))
        writing = asyncio.create_task(writer.apply(JOB_SETS, {**_thing("j"), "spec": {}}))
        await until(lambda: not server.faults)
        leads = False
        with pytest.raises(LeadershipLostError):
            await writing
        assert not server.objects(JOB_SETS)


@pytest.mark.finding("runtime", 11, "a Retry-After of a day stopped a mirror for a day, and other small things")
async def test_a_write_to_what_was_deleted_since_is_not_remembered_for_ever() -> None:
    clock = FakeClock()
    writes = Expectations(Store(THINGS), clock, patience=60)
    for number in range(100):
        writes.note(Key("d", f"gone-{number}"), 10 + number)
        await clock.advance(1)
    assert len(writes) <= 60


@pytest.mark.finding("runtime", 11, "a Retry-After of a day stopped a mirror for a day, and other small things")
def test_a_claim_without_an_answer_is_remembered() -> None:
    candidacy = ElectionRules("me", LeaseSettings("d", "l"))
    candidacy.saw(None, 0.0)
    assert candidacy.claim(0.0, datetime.now(UTC)) is not None
    assert candidacy.claimed


def _thing(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "d"}, "spec": {}}


def _certificate(kind: str, name: str) -> tuple[bytes, bytes]:
    key: Any = ec.generate_private_key(ec.SECP256R1()) if kind == "ec" else rsa.generate_private_key(65537, 2048)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
    made = builder.not_valid_before(now - timedelta(1)).not_valid_after(now + timedelta(1)).sign(key, hashes.SHA256())
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    return made.public_bytes(pem), key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)


def _shown(context: ssl.SSLContext, version: ssl.TLSVersion) -> str:
    """Return the subject that a handshake in memory is shown."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asking.check_hostname, asking.verify_mode = False, ssl.CERT_NONE
    asking.minimum_version = asking.maximum_version = version
    client = asking.wrap_bio(to_client, to_server)
    server = context.wrap_bio(to_server, to_client, server_side=True)
    for side in (client, server, client, server, client):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    shown = client.getpeercert(binary_form=True)
    assert shown is not None
    return x509.load_der_x509_certificate(shown).subject.rfc4514_string()
