from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.kube.io.support import fill, pod, until
from trainplane.kube import errors
from trainplane.kube.resource import PODS, Resource
from trainplane.kube.testing.faults import Cut, Dribble, Expire, Garble, Pad, Reorder, Repeat

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from tests.unit.kube.io.support import JumpingClock
    from trainplane.kube.client import Client
    from trainplane.kube.codec import WatchEvent
    from trainplane.kube.testing.server import FakeServer


@pytest.fixture
async def client(server: FakeServer, clock: JumpingClock) -> AsyncIterator[Client]:
    async with server.client(clock=clock) as open_:
        yield open_


async def collect(client: Client, resource: Resource = PODS, **arguments: Any) -> list[WatchEvent]:
    return [event async for event in client.watch(resource, **arguments)]


async def read(events: AsyncGenerator[WatchEvent, None]) -> tuple[list[WatchEvent], errors.KubeError | None]:
    """Return what a watch gave and how it failed."""
    seen: list[WatchEvent] = []
    try:
        async for event in events:
            seen.append(event)  # noqa: PERF401 what came before the failure counts
    except errors.KubeError as error:
        return seen, error
    return seen, None


def names(events: list[WatchEvent]) -> list[tuple[str, str]]:
    return [(event.type, json.loads(bytes(event.object))["metadata"].get("name", "")) for event in events]


async def test_initial_events_end_with_a_bookmark_and_changes_follow(server: FakeServer, client: Client) -> None:
    fill(server, 2)
    seen: list[WatchEvent] = []
    async with aclosing(client.watch(PODS, initial_events=True)) as events:
        async for event in events:
            seen.append(event)
            if event.type == "BOOKMARK":
                server.put(PODS, pod("new"))
                server.put(PODS, pod("pod-0001", spec={"x": 1}))
                server.remove(PODS, "pod-0000", "default")
            if event.type == "DELETED":
                break
    assert names(seen) == [
        ("ADDED", "pod-0000"),
        ("ADDED", "pod-0001"),
        ("BOOKMARK", ""),
        ("ADDED", "new"),
        ("MODIFIED", "pod-0001"),
        ("DELETED", "pod-0000"),
    ]
    mark = json.loads(bytes(seen[2].object))["metadata"]
    assert mark["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert mark["resourceVersion"] == "3"
    query = server.requests[0].query
    assert query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "timeoutSeconds": "300",
    }


async def test_from_a_revision_until_a_clean_end(server: FakeServer, client: Client) -> None:
    fill(server, 3)
    task = asyncio.create_task(collect(client, resource_version="2"))
    await until(lambda: bool(server.watching.count))
    server.watching.send_bookmarks()
    server.watching.end()
    events = await task
    assert names(events) == [("ADDED", "pod-0001"), ("ADDED", "pod-0002"), ("BOOKMARK", "")]
    assert json.loads(bytes(events[-1].object))["metadata"]["resourceVersion"] == "4"


async def test_selectors_turn_leaving_into_deletion_and_coming_into_addition(
    server: FakeServer, client: Client
) -> None:
    server.put(PODS, pod("a", metadata={"labels": {"x": "1"}}))
    server.put(PODS, pod("a", metadata={"labels": {"x": "2"}}))
    server.put(PODS, pod("b", metadata={"labels": {"x": "2"}}))
    server.put(PODS, pod("a", metadata={"labels": {"x": "1"}}))
    server.put(PODS, pod("a", "elsewhere", metadata={"labels": {"x": "1"}}))
    task = asyncio.create_task(collect(client, namespace="default", resource_version="1", labels={"x": "1"}))
    await until(lambda: bool(server.watching.count))
    server.watching.end()
    events = await task
    assert names(events) == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]
    assert json.loads(bytes(events[1].object))["metadata"]["resourceVersion"] == "3"


async def test_a_forgotten_revision_is_gone_at_the_start_and_in_the_middle(server: FakeServer, client: Client) -> None:
    fill(server, 3)
    server.storage.compact()
    with pytest.raises(errors.GoneError):
        await collect(client, resource_version="2")
    server.add_fault(Expire(after=1))
    seen, error = await read(client.watch(PODS, initial_events=True))
    assert isinstance(error, errors.GoneError)
    assert names(seen) == [("ADDED", "pod-0000")]


@pytest.mark.parametrize("fault", [Cut(after=2), Cut(after=2, mid_line=False), Garble(after=2)])
async def test_a_broken_stream_gives_the_whole_events_before_it_and_then_says_so(
    server: FakeServer, client: Client, fault: Any
) -> None:
    fill(server, 4)
    server.add_fault(fault)
    seen, error = await read(client.watch(PODS, initial_events=True))
    assert names(seen) == [("ADDED", "pod-0000"), ("ADDED", "pod-0001")]
    assert isinstance(error, errors.StreamError)
    assert error.retryable


async def test_a_stream_that_ends_cleanly_in_the_middle_of_an_event_was_cut(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def half() -> AsyncIterator[bytes]:
        yield b'{"type":"ADDED","object":{}}\n\n{"type":"AD'

    @asynccontextmanager
    async def stream(_: str, *, total_seconds: float, accept: str | None) -> AsyncIterator[AsyncIterator[bytes]]:
        assert (total_seconds, accept) == (330, None)
        yield half()

    monkeypatch.setattr(client.transport, "stream", stream)
    seen, error = await read(client.watch(PODS))
    assert len(seen) == 1
    assert isinstance(error, errors.StreamError)
    assert "cut in an event, after 11 bytes" in str(error)


async def test_lines_of_many_megabytes(server: FakeServer, client: Client) -> None:
    fill(server, 3)
    server.add_fault(Pad(size=5 << 20))
    async with aclosing(client.watch(PODS, initial_events=True)) as events:
        seen = [await anext(events) for _ in range(4)]
    assert [len(bytes(event.object)) > 5 << 20 for event in seen] == [True, True, True, False]


async def test_a_stream_that_comes_byte_by_byte(server: FakeServer, client: Client) -> None:
    fill(server, 2)
    server.add_fault(Dribble(chunk=1))
    async with aclosing(client.watch(PODS, initial_events=True)) as events:
        seen = [await anext(events) for _ in range(3)]
    assert names(seen) == [("ADDED", "pod-0000"), ("ADDED", "pod-0001"), ("BOOKMARK", "")]


@pytest.mark.parametrize(
    ("fault", "expected"), [(Repeat(copies=2), [0, 0, 1, 1, 2, 2]), (Reorder(window=2), [1, 0, 2])]
)
async def test_repeats_and_disorder_pass_through(
    server: FakeServer, client: Client, fault: Any, expected: list[int]
) -> None:
    fill(server, 3)
    server.add_fault(fault)
    async with aclosing(client.watch(PODS, initial_events=True)) as events:
        seen = [await anext(events) for _ in expected]
    assert names(seen) == [("ADDED", f"pod-{number:04d}") for number in expected]


async def test_the_server_ends_it_after_the_seconds_asked_for(server: FakeServer, client: Client) -> None:
    fill(server, 1)
    assert names(await collect(client, resource_version="1", timeout_seconds=1)) == [("ADDED", "pod-0000")]


async def test_leaving_closes_the_connection(server: FakeServer, client: Client) -> None:
    fill(server, 1)
    async with aclosing(client.watch(PODS, initial_events=True)) as events:
        await anext(events)
        assert server.watching.count == 1
    await until(lambda: not server.watching.count)
    assert client.transport._streams == 0
