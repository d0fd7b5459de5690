"""Lease, events and certificates with the real client against a server over HTTP."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

import pytest

from trainplane.kube.cabundle import MUTATING_WEBHOOKS, BundleTarget
from trainplane.kube.certificates import ManagedCertificates, ManagedSettings, ServingContext
from trainplane.kube.clock import SystemClock
from trainplane.kube.events import EventRecorder, ObjectReference
from trainplane.kube.lease import LEASES, LeaderElector, LeaseSettings
from trainplane.kube.pki import CertificatePolicy
from trainplane.kube.resource import EVENTS, SECRETS, Key
from trainplane.kube.testing.clock import FakeClock
from trainplane.kube.testing.faults import Drop, Refuse
from trainplane.kube.testing.server import FakeServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from trainplane.kube.client import Client

SETTINGS = LeaseSettings("system", "lock")
JOB = ObjectReference("trainer.example/v1", "TrainJob", "mnist", "team", "uid-1")


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer() as running:
        yield running


@pytest.fixture
async def client(server: FakeServer) -> AsyncIterator[Client]:
    async with server.client() as connected:
        yield connected


async def until(condition: Callable[[], bool]) -> None:
    """Let the sockets do their work until something is so; the time limit is for a bug, not for pacing."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 nothing in a server tells when it has answered
            await asyncio.sleep(0.001)


def lease(server: FakeServer) -> dict[str, Any]:
    spec: dict[str, Any] = server.objects(LEASES)[Key("system", "lock")]["spec"]
    return spec


def elector(client: Client, clock: FakeClock, name: str) -> LeaderElector:
    return LeaderElector(client, SETTINGS, clock, identity=name, spread=lambda: 0.5)


async def test_a_lease_is_taken_kept_and_handed_over(server: FakeServer, client: Client) -> None:
    clock = FakeClock()
    one, two = elector(client, clock, "one"), elector(client, clock, "two")
    await one.acquire()
    waiting = asyncio.create_task(two.acquire())
    await until(lambda: two.holder == "one" and clock.sleepers == 1)
    await one.release()
    assert lease(server)["holderIdentity"] == ""
    await clock.advance(2.2)
    await waiting
    assert [each.is_leader() for each in (one, two)] == [False, True]
    assert lease(server)["holderIdentity"] == "two"
    assert lease(server)["leaseTransitions"] == 1


async def test_two_that_claim_at_once_do_not_both_win(server: FakeServer, client: Client) -> None:
    for number in range(10):
        clock = FakeClock()
        settings = LeaseSettings("system", f"lock-{number}")
        candidates = [LeaderElector(client, settings, clock) for _ in range(4)]
        claims = [asyncio.create_task(each.acquire()) for each in candidates]
        await until(lambda clock=clock: clock.sleepers == 3)  # type: ignore[misc] # binds the loop's clock
        assert sum(each.is_leader() for each in candidates) == 1
        for claim in claims:
            claim.cancel()


async def test_a_renewal_whose_answer_is_lost_keeps_the_lease(server: FakeServer, client: Client) -> None:
    clock = FakeClock()
    one = elector(client, clock, "one")
    await one.acquire()
    server.add_fault(Drop(verb="update", acted=True))
    keeping = asyncio.create_task(one.keep())
    await until(lambda: clock.sleepers == 1)
    await clock.advance(2.2)
    await until(lambda: one._candidacy.needs_read)  # the answer is lost: it reads next time
    kept_until = one._candidacy.deadline
    await clock.advance(2.2)
    await until(lambda: one._candidacy.deadline > kept_until)
    assert len(server.asked("get")) == 2
    assert one.is_leader()
    assert lease(server)["holderIdentity"] == "one"
    keeping.cancel()


async def test_events_are_created_counted_and_outlast_a_busy_server(server: FakeServer, client: Client) -> None:
    clock = FakeClock()
    events = EventRecorder(client, clock, "job-controller")
    writing = asyncio.create_task(events.run())
    server.add_fault(Refuse(verb="create", code=403, times=1))
    events.record(JOB, "Normal", "Refused", "this one is dropped")
    await events.drain()
    for _ in range(3):
        events.record(JOB, "Normal", "Waiting", "for quota")
        await events.drain()
    [event] = server.objects(EVENTS).values()
    assert (event["count"], event["metadata"]["namespace"], events.dropped) == (3, "team", 1)
    writing.cancel()


async def test_replicas_that_start_together_serve_the_same_certificate(server: FakeServer, client: Client) -> None:
    settings = ManagedSettings("system", "webhook-cert", CertificatePolicy(("localhost",)))
    hook = BundleTarget(MUTATING_WEBHOOKS, "defaults")
    server.put(MUTATING_WEBHOOKS, {"metadata": {"name": "defaults"}, "webhooks": [{"name": "a", "clientConfig": {}}]})
    replicas = [
        ManagedCertificates(client, settings, ServingContext(), SystemClock(), targets=[hook]) for _ in range(5)
    ]
    await asyncio.gather(*(replica.sync() for replica in replicas))
    [secret] = server.objects(SECRETS).values()
    [patched] = server.objects(MUTATING_WEBHOOKS).values()
    assert patched["webhooks"] == [{"name": "a", "clientConfig": {"caBundle": secret["data"]["ca.crt"]}}]
    assert {replica.bundle for replica in replicas} == {base64.b64decode(secret["data"]["ca.crt"])}
    assert secret["type"] == "Opaque"
