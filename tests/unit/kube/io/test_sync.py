from __future__ import annotations

import asyncio
import inspect
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.unit.interrupts import interrupt, main_waits
from trainplane.kube import errors
from trainplane.kube.client import Client
from trainplane.kube.loopthread import LoopThread
from trainplane.kube.resource import PODS, Key
from trainplane.kube.sync import SyncClient
from trainplane.kube.testing.faults import Hang
from trainplane.kube.testing.server import FakeServer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator


class ServerThread:
    """A fake server on a loop and thread of its own, as a real one would be apart from us."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.server = FakeServer()
        self.await_(self.server.start())

    def await_(self, work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()  # type: ignore[arg-type]

    def call(self, function: object, *args: object) -> None:
        async def run() -> None:
            function(*args)  # type: ignore[operator]

        self.await_(run())

    def stop(self) -> None:
        self.await_(self.server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[ServerThread]:
    thread = ServerThread()
    yield thread
    thread.stop()


@pytest.fixture
def server(shared: ServerThread) -> FakeServer:
    """The module's server, emptied."""
    server = shared.server
    for resource_objects in server.storage.objects.values():
        resource_objects.clear()
    server.requests.clear()
    server.faults.clear()
    return server


@pytest.fixture
def client(server: FakeServer) -> Iterator[SyncClient]:
    with SyncClient(server.client()) as open_:
        yield open_


def test_every_call_of_the_client_has_its_face() -> None:
    ours = {"close", "namespace", "connect"}
    asynchronous = {
        name
        for name, member in vars(Client).items()
        if not name.startswith("_") and (inspect.iscoroutinefunction(member) or inspect.isasyncgenfunction(member))
    }
    assert len(asynchronous) > 12
    for name in asynchronous - ours:
        face = getattr(SyncClient, name)
        assert face.__doc__ == getattr(Client, name).__doc__
        assert inspect.signature(face) == inspect.signature(getattr(Client, name))


def test_objects(client: SyncClient) -> None:
    created = client.create(PODS, {"metadata": {"name": "a"}, "spec": {"x": 1}})
    assert client.get(PODS, "a") == created
    assert client.namespace == "default"
    assert [item["metadata"]["name"] for item in client.list_all(PODS)] == ["a"]
    assert [len(page.items) for page in client.list_pages(PODS)] == [1]
    client.delete(PODS, "a")
    with pytest.raises(errors.NotFoundError):
        client.get(PODS, "a")


def test_a_watch_is_an_iterator_that_closes_its_stream(client: SyncClient, shared: ServerThread) -> None:
    client.create(PODS, {"metadata": {"name": "a"}})
    events = client.watch(PODS, initial_events=True)
    assert [next(events).type for _ in range(2)] == ["ADDED", "BOOKMARK"]
    client.create(PODS, {"metadata": {"name": "b"}})
    assert next(events).type == "ADDED"
    assert client.client.transport._streams == 1
    events.close()
    assert client.client.transport._streams == 0
    with pytest.raises(StopIteration):
        next(events)


def test_followed_logs_end_with_the_container(client: SyncClient, shared: ServerThread) -> None:
    key = Key("ns", "a")
    pods = shared.server.pods
    shared.call(pods.write_log, key, b"one\n")
    seen = []
    for line in client.logs("ns", "a", follow=True):
        seen.append(line)
        shared.call(*((pods.write_log, key, b"two\n") if len(seen) == 1 else (pods.finish, key)))
    assert seen == [b"one", b"two"]


def test_exec_and_the_rest(client: SyncClient) -> None:
    assert client.exec("ns", "a", ["echo", "x"]).stdout == b"echo x\n"
    assert client.version()["major"] == "1"


async def test_it_works_where_a_loop_is_running_already(client: SyncClient) -> None:
    assert client.version()["major"] == "1"


def test_threads_share_a_client(client: SyncClient) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: client.create(PODS, {"metadata": {"name": f"p{number}"}}), range(40)))
    assert len(client.list_all(PODS)) == 40


def _interrupt_once_asked(server: FakeServer) -> None:
    """Press Ctrl-C when the request is on its way and its sender waits."""
    while not server.requests or not main_waits():
        time.sleep(0.001)
    interrupt()


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_cancels_the_request(client: SyncClient, server: FakeServer) -> None:
    server.add_fault(Hang())
    person = threading.Thread(target=_interrupt_once_asked, args=(server,))
    person.start()
    with pytest.raises(KeyboardInterrupt):
        client.version()
    person.join()

    async def in_flight() -> int:
        for _ in range(5):
            await asyncio.sleep(0)
        return client.client.transport.limiter.in_flight

    assert client.run(in_flight()) == 0


@pytest.mark.parametrize("told", [False, True])
def test_an_interrupt_at_the_very_start_leaves_nothing_running(told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    thread, runs = LoopThread("client"), list[str]()
    tell = thread._loop.call_soon_threadsafe

    def interrupted(work: Callable[[], None]) -> None:
        monkeypatch.setattr(thread._loop, "call_soon_threadsafe", tell)
        if told:
            tell(work)
        raise KeyboardInterrupt

    async def stream() -> AsyncGenerator[int, None]:
        runs.append("begun")
        try:
            yield await asyncio.sleep(60, 1)
        finally:
            runs.append("ended")

    monkeypatch.setattr(thread._loop, "call_soon_threadsafe", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(thread.iterate(stream()))
    thread.close()
    assert runs in ([], ["begun", "ended"])


def test_a_closed_client_says_so_and_closes_twice(server: FakeServer) -> None:
    before = set(threading.enumerate())
    client = SyncClient(server.client())
    client.version()
    assert set(threading.enumerate()) - before
    client.close()
    client.close()
    with pytest.raises(RuntimeError, match="closed"):
        client.version()
    assert not set(threading.enumerate()) - before


def test_a_forked_child_is_told_to_make_its_own(client: SyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(RuntimeError, match="before a fork"):
        client.version()
