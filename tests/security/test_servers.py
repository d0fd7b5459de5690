"""Attacks on the servers' time and memory: the real processes, with TLS, as an installation has them.

Memory is that of the process. Time is CPU of the thread that its event loop has, so that a busy machine changes
nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import pytest

from tests.security.processes import PATIENCE, VALIDATE, HubProcess, OperatorProcess, go_first, review
from tests.size import FULL

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from tests.security.processes import Served
    from tests.suite import SuiteReport

    Ask = Callable[[aiohttp.ClientSession, int], Awaitable[None]]

HOSTILE = Path(__file__).with_name("hostile.py")
CONNECTIONS = 1200
"""More than a process of 1,024 files can have."""
SECONDS = 60 if FULL else 10
LOG_BYTES = 256 << 20
LOG = "/apis/hub.trainplane.dev/v1alpha1/namespaces/team/trainjobs/x/log"
API_SERVER = aiohttp.ClientTimeout(total=10)
"""How long an API server waits for a webhook."""


@pytest.fixture(scope="module", autouse=True)
def honest_first() -> Iterator[None]:
    """Let whoever is honest go before the attackers, who have machines of their own."""
    go_first()
    yield
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    with ExitStack() as stack:
        yield OperatorProcess(tmp_path_factory.mktemp("operator"), stack)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with ExitStack() as stack:
        yield HubProcess(tmp_path_factory.mktemp("hub"), stack, LOG_BYTES)


@contextlib.contextmanager
def sockets(server: Served, count: int) -> Iterator[list[ssl.SSLSocket]]:
    """Connect so often, with handshakes, and disconnect afterwards."""
    context = server.trusting()
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            raw = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
            found.append(stack.enter_context(context.wrap_socket(raw, server_hostname="localhost")))
        yield found


@contextlib.asynccontextmanager
async def callers(server: Served, context: ssl.SSLContext) -> AsyncIterator[aiohttp.ClientSession]:
    """Return somebody who keeps connections and uses them again, as an API server does."""
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    base = f"https://127.0.0.1:{server.port}"
    async with aiohttp.ClientSession(base, connector=connector, timeout=API_SERVER) as session:
        yield session


class Honest:
    """Asks at a steady pace, whatever else goes on; one in ten on a connection of its own."""

    def __init__(self, server: Served, certificate: str = "") -> None:
        self._server = server
        self._context = server.trusting(certificate)
        self.seconds: list[float] = []
        self.lost: list[str] = []

    async def run(self, rate: int, count: int, ask: Ask) -> None:
        async with callers(self._server, self._context) as kept:
            began, tasks = time.monotonic(), []
            for number in range(count):
                await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
                tasks.append(asyncio.create_task(self._one(kept, number, ask)))
            await asyncio.gather(*tasks)

    async def _one(self, kept: aiohttp.ClientSession, number: int, ask: Ask) -> None:
        began = time.monotonic()
        try:
            if number % 10:
                await ask(kept, number)
            else:
                async with callers(self._server, self._context) as fresh:
                    await ask(fresh, number)
        except (aiohttp.ClientError, TimeoutError, AssertionError) as error:
            self.lost.append(repr(error))
        self.seconds.append(time.monotonic() - began)

    @property
    def p99(self) -> float:
        return sorted(self.seconds)[int(len(self.seconds) * 0.99)]


async def ask_review(session: aiohttp.ClientSession, number: int) -> None:
    async with session.post(VALIDATE, data=review(number)) as answer:
        assert answer.status == 200
        verdict = json.loads(await answer.read())["response"]
        assert verdict == {"uid": str(number), "allowed": True}


async def ask_log(session: aiohttp.ClientSession, number: int) -> None:
    path, user = f"{LOG}?tailLines=5", f"user-{number % 50}"
    async with session.get(path, headers={"X-Remote-User": user}) as answer:
        assert answer.status == 200
        assert len((await answer.read()).splitlines()) == 5


@contextlib.contextmanager
def besieged(server: Served, seconds: float) -> Iterator[None]:
    """Have all hostile connections at a server for so long."""
    command = [
        sys.executable,
        str(HOSTILE),
        f"--port={server.port}",
        f"--connections={CONNECTIONS}",
    ]
    with subprocess.Popen(
        [*command, f"--seconds={seconds}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as hostile:
        assert hostile.stdout is not None
        assert hostile.stdout.readline() == b"ready\n"
        try:
            yield
            assert hostile.poll() is None, "it ended before the honest did"
        finally:
            hostile.kill()


@pytest.mark.attack(
    "anybody on the network", "that reviews of others fail, by more than a thousand connections of every bad kind"
)
async def test_drown_out_reviews(operator: OperatorProcess, report: SuiteReport) -> None:
    honest = Honest(operator)
    with besieged(operator, SECONDS * 6):
        await honest.run(100, 100 * SECONDS, ask_review)
        most = operator.memory()
    report.figure("hostile_connections", CONNECTIONS)
    report.figure("honest_reviews", len(honest.seconds))
    report.figure("honest_lost", len(honest.lost))
    report.figure("honest_p99_s", honest.p99)
    report.figure("besieged_operator_mb", most / 1e6)
    assert honest.lost == []
    assert most < 400e6


@pytest.mark.attack("anybody on the network", "that users of the hub get no logs, by more than a thousand connections")
async def test_drown_out_readers_of_logs(hub: HubProcess, report: SuiteReport) -> None:
    honest = Honest(hub, "front-proxy")
    with besieged(hub, SECONDS * 6):
        await honest.run(20, 10 * SECONDS, ask_log)
    report.figure("honest_readers", len(honest.seconds))
    report.figure("honest_readers_lost", len(honest.lost))
    assert honest.lost == []


@pytest.mark.attack("anybody on the network", "the webhook's memory, by bodies that are never sent to their end")
async def test_pin_memory_with_half_sent_bodies(operator: OperatorProcess, report: SuiteReport) -> None:
    before, part = operator.memory(), b" " * (4 << 20)

    def attack() -> int:
        head = f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Length: {6 << 20}\r\n\r\n".encode()
        with sockets(operator, 60) as opened:
            for one in opened:
                with contextlib.suppress(OSError):
                    one.sendall(head + part)
            return operator.memory()

    held = await asyncio.to_thread(attack) - before
    report.figure("half_sent_bodies_mb", held / 1e6)
    assert held < 130e6, "60 halves of 4 MiB are 250 MB"


@pytest.mark.attack("anybody on the network", "to hold a connection for ever, by a body that never ends")
async def test_hold_a_connection_for_ever(operator: OperatorProcess) -> None:
    def attack() -> None:
        with sockets(operator, 1) as (one,):
            one.sendall(f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n".encode())
            one.settimeout(PATIENCE)
            with contextlib.suppress(ConnectionError):
                assert one.recv(1) == b""

    await asyncio.to_thread(attack)


@pytest.mark.attack("anybody on the network", "that nobody else gets a connection, by idle ones")
async def test_lock_out_reviewers_with_idle_connections(operator: OperatorProcess) -> None:
    """More of them than the process may have files; they do not even begin a handshake."""
    with ExitStack() as stack:
        for _ in range(1500):
            idle = stack.enter_context(socket.socket())
            idle.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                idle.connect(("127.0.0.1", operator.port))
        context = operator.trusting()
        for number in range(20):
            async with callers(operator, context) as fresh:
                await ask_review(fresh, number)


TOKENS = pytest.mark.parametrize(
    ("token", "status"), [("", 401), ("of my own making", 401), ("tenant", 403), ("scraper", 200)]
)


@TOKENS
@pytest.mark.attack("anybody on the network", "the names of namespaces and what they run, from the operator's metrics")
async def test_read_metrics_without_a_right(operator: OperatorProcess, token: str, status: int) -> None:
    await see_metrics(operator, token, status, "trainplane_trainjob")


@TOKENS
@pytest.mark.attack("anybody on the network", "the names of clusters and how they do, from the hub's metrics")
async def test_read_the_hubs_metrics_without_a_right(hub: HubProcess, token: str, status: int) -> None:
    await see_metrics(hub, token, status, "trainplane_hub")


async def see_metrics(server: OperatorProcess | HubProcess, token: str, status: int, metric: str) -> None:
    """See that a token gets this answer, that only who may sees a metric, and that no token is logged."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connector = aiohttp.TCPConnector(ssl=server.trusting())
    url = f"https://localhost:{server.metrics_port}/metrics"
    async with aiohttp.ClientSession(connector=connector) as session, session.get(url, headers=headers) as answer:
        text = await answer.text()
        assert answer.status == status
        assert (metric in text) == (status == 200)
    assert not token or token not in server.log.read_text()


@pytest.mark.attack("a user of the hub", "that all others wait, by asking for the last 999,999,999 lines")
async def test_hold_the_hub_with_a_long_tail(hub: HubProcess, report: SuiteReport) -> None:
    stalls, patience = [], aiohttp.ClientTimeout(total=None)

    async def probe(session: aiohttp.ClientSession) -> None:
        while True:
            before = hub.loop_seconds()
            async with session.get("/healthz", timeout=patience) as answer:
                assert answer.status == 200
            stalls.append(hub.loop_seconds() - before)
            await asyncio.sleep(0.01)

    async with callers(hub, hub.trusting("front-proxy")) as session:
        probing = asyncio.create_task(probe(session))
        size, query = 0, f"{LOG}?tailLines=999999999"
        async with session.get(query, headers={"X-Remote-User": "mallory"}, timeout=patience) as answer:
            async for chunk in answer.content.iter_any():
                size += len(chunk)
        probing.cancel()
        with pytest.raises(asyncio.CancelledError):  # and no other end: what a probe waited for must have counted
            await probing
    report.figure("log_bytes_read", hub.log_bytes)
    report.figure("log_read_stall_s", max(stalls))
    assert size > hub.log_bytes // 2
    assert max(stalls) < 0.25, "CPU of the loop between a question and its answer"


@pytest.mark.attack("users of the hub", "the hub's memory, by following logs and not reading them")
async def test_pin_memory_with_slow_followers(hub: HubProcess, report: SuiteReport) -> None:
    before, followers = hub.memory(), 64
    context = hub.trusting("front-proxy")

    def attack() -> int:
        with ExitStack() as stack:
            for number in range(followers):
                raw = socket.create_connection(("127.0.0.1", hub.port), PATIENCE)
                one = stack.enter_context(context.wrap_socket(raw, server_hostname="localhost"))
                user = f"mallory-{number % 8}"
                one.sendall(f"GET {LOG}?follow=true HTTP/1.1\r\nHost: x\r\nX-Remote-User: {user}\r\n\r\n".encode())
                assert one.recv(1) == b"H"
            quiet = 0
            while quiet < 5:  # until the process reads nothing more for them
                spent = hub.loop_seconds()
                time.sleep(0.1)
                quiet = quiet + 1 if hub.loop_seconds() - spent < 0.01 else 0
            return hub.memory()

    each = (await asyncio.to_thread(attack) - before) / followers
    report.figure("slow_follower_mb", each / 1e6)
    assert each < 0.8e6


@pytest.mark.attack("a user of the hub", "that nobody else can read a log, by reading all the time")
async def test_take_all_readers_places(hub: HubProcess) -> None:
    async with callers(hub, hub.trusting("front-proxy")) as session:
        answers = []
        for _ in range(40):
            answer = await session.get(f"{LOG}?follow=true", headers={"X-Remote-User": "mallory"})
            answers.append(answer)
        assert [answer.status for answer in answers] == [200] * 16 + [429] * 24
        assert "as many as one user may" in json.loads(await answers[-1].read())["message"]
        await ask_log(session, 1)
