"""The operator on a Kubernetes that is too old: it ends, and says why."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.unit.kube.ticking import TickingClock
from tests.unit.operator.test_main import settings, until
from trainplane.kube.testing.faults import Refuse
from trainplane.kube.testing.server import FakeServer
from trainplane.operator import __main__ as entry
from trainplane.operator.errors import UnsupportedKubernetesError
from trainplane.operator.kubernetes import insist_on_supported
from trainplane.operator.main import Operator

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SENTENCE = (
    "Kubernetes v1.30.14 is not supported: Trainplane needs v1.31 or newer. Upgrade the cluster first; "
    "docs/versions.md has what was tried."
)


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer() as server:
        yield server


async def test_the_operator_ends_on_a_kubernetes_that_is_too_old(server: FakeServer) -> None:
    server.version = "v1.30.14"
    async with server.client() as client:
        with pytest.raises(ExceptionGroup) as raised:
            await asyncio.wait_for(Operator(settings(), client).run(), 60)
    (error,) = raised.value.exceptions
    assert isinstance(error, UnsupportedKubernetesError)
    assert str(error) == SENTENCE


def test_it_is_the_last_thing_that_it_says(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    async def serve(_: object) -> None:
        raise ExceptionGroup("broken", [UnsupportedKubernetesError("v1.30.14")])

    monkeypatch.setattr(entry, "serve", serve)
    assert entry.main([]) == 1
    assert SENTENCE in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("version", ["v1.31.0", "v1.99.0-fake", "", "of the factory"])
async def test_a_kubernetes_that_is_new_enough_or_does_not_say_is_taken(server: FakeServer, version: str) -> None:
    server.version = version
    async with server.client() as client, TickingClock() as clock:
        await insist_on_supported(client, clock)


async def test_a_server_that_may_not_be_asked_is_taken_and_that_is_told(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.version = "v1.30.14"
    server.add_fault(Refuse(code=403))
    async with server.client() as client, TickingClock() as clock:
        await insist_on_supported(client, clock)
    assert "whether Kubernetes is new enough cannot be seen" in caplog.text


async def test_a_server_that_does_not_answer_is_asked_until_it_does(server: FakeServer) -> None:
    server.version = "v1.30.14"
    refusal = Refuse(code=404, times=None)
    server.add_fault(refusal)
    async with server.client() as client, TickingClock() as clock:
        asking = asyncio.create_task(insist_on_supported(client, clock))
        await until(lambda: len(server.requests) >= 3)
        assert not asking.done()
        server.faults.remove(refusal)
        with pytest.raises(UnsupportedKubernetesError):
            await asyncio.wait_for(asking, 60)
