"""The fake API server where its clients' tests do not show it: what it stores and how it misbehaves."""

from __future__ import annotations

import asyncio
import gc
import socket
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.kube.io.support import until
from trainplane.kube import errors
from trainplane.kube.resource import NAMESPACES, PODS, Key
from trainplane.kube.testing.faults import Cut, Refuse, Silence, Stale
from trainplane.kube.testing.patches import json_patch, merge_patch
from trainplane.kube.testing.selectors import matches
from trainplane.kube.testing.server import FakeServer
from trainplane.kube.testing.storage import Collection, Storage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trainplane.kube.client import Client

THINGS = Collection("acme.org", "v1", "things")
A = Key("ns", "a")


@pytest.fixture
async def client(server: FakeServer) -> AsyncIterator[Client]:
    async with server.client() as open_:
        yield open_


def port_of(server: FakeServer) -> int:
    return int(server.url.rpartition(":")[2])


def thing(**more: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", **more.pop("metadata", {})}, **more}


class TestStorage:
    def test_create_sets_what_the_server_owns(self) -> None:
        made = Storage().create(THINGS, "ns", thing(spec={"x": 1}, status={"dropped": True}))
        assert made["metadata"]["namespace"] == "ns"
        assert (made["metadata"]["generation"], made["metadata"]["resourceVersion"]) == (1, "2")
        assert {"uid", "creationTimestamp"} <= set(made["metadata"])
        assert "status" not in made

    def test_names(self) -> None:
        storage = Storage()
        made = storage.create(THINGS, "ns", {"metadata": {"generateName": "x-"}})
        assert made["metadata"]["name"].startswith("x-")
        with pytest.raises(errors.InvalidError, match="name or generateName"):
            storage.create(THINGS, "ns", {"metadata": {}})
        with pytest.raises(errors.InvalidError, match="resourceVersion"):
            storage.create(THINGS, "ns", thing(metadata={"resourceVersion": "1"}))

    def test_generation_counts_changes_of_the_spec_alone(self) -> None:
        storage = Storage()
        made = storage.create(THINGS, "ns", thing(spec={"x": 1}))
        labelled = storage.update(THINGS, A, {**made, "metadata": {**made["metadata"], "labels": {"l": "1"}}})
        assert labelled["metadata"]["generation"] == 1
        status = storage.update(THINGS, A, {**labelled, "status": {"s": 1}, "spec": {"x": 9}}, subresource="status")
        assert (status["metadata"]["generation"], status["spec"], status["status"]) == (1, {"x": 1}, {"s": 1})
        changed = storage.update(THINGS, A, {**status, "spec": {"x": 2}, "status": {"s": 9}})
        assert (changed["metadata"]["generation"], changed["status"]) == (2, {"s": 1})

    def test_a_write_that_changes_nothing_makes_no_event(self) -> None:
        storage = Storage()
        made = storage.create(THINGS, "ns", thing(spec={"x": 1}))
        assert storage.update(THINGS, A, made) == made
        assert (storage.revision, len(storage.history)) == (2, 1)

    def test_finalizers_hold_an_object(self) -> None:
        storage = Storage()
        storage.create(THINGS, "ns", thing(metadata={"finalizers": ["f"]}))
        marked = storage.delete(THINGS, A)
        assert marked["metadata"]["deletionTimestamp"]
        assert storage.delete(THINGS, A) == marked
        storage.update(THINGS, A, {**marked, "metadata": {**marked["metadata"], "finalizers": []}})
        with pytest.raises(errors.NotFoundError):
            storage.get(THINGS, A)
        assert storage.history[-1].final is not None
        assert storage.history[-1].before == marked

    def test_the_past_can_be_seen_until_it_is_compacted(self) -> None:
        storage = Storage()
        first = storage.put(THINGS, thing(metadata={"namespace": "ns"}, spec={"x": 1}))
        storage.put(THINGS, thing(metadata={"namespace": "ns"}, spec={"x": 2}))
        storage.delete(THINGS, A)
        storage.put(Collection("", "v1", "others"), thing())
        assert storage.at(THINGS, 1) == {}
        assert storage.at(THINGS, 2) == {A: first}
        assert storage.at(THINGS, 3)[A]["spec"] == {"x": 2}
        assert storage.at(THINGS, 5) == {}
        storage.compact()
        with pytest.raises(errors.GoneError):
            storage.at(THINGS, 4)

    def test_optimistic_locking_and_uids(self) -> None:
        storage = Storage()
        made = storage.create(THINGS, "ns", thing())
        with pytest.raises(errors.ConflictError):
            storage.update(THINGS, A, {**made, "metadata": {**made["metadata"], "resourceVersion": "1"}})
        with pytest.raises(errors.ConflictError, match="uid"):
            storage.update(THINGS, A, {**made, "metadata": {**made["metadata"], "uid": "other"}})

    def test_what_a_manager_leaves_out_goes_and_what_another_holds_too_stays(self) -> None:
        storage = Storage()
        arguments: dict[str, Any] = {"force": True}
        storage.apply(THINGS, A, thing(spec={"x": 1, "deep": {"y": 1, "z": 1}}), manager="us", **arguments)
        storage.apply(THINGS, A, thing(spec={"x": 1}), manager="them", **arguments)
        earlier = storage.get(THINGS, A)
        left = storage.apply(THINGS, A, thing(spec={"deep": {"y": 2}}), manager="us", **arguments)
        assert left["spec"] == {"x": 1, "deep": {"y": 2}}
        assert earlier["spec"] == {"x": 1, "deep": {"y": 1, "z": 1}}, "history is not changed behind its back"

    def test_status_can_only_be_applied_to_what_is_there(self) -> None:
        with pytest.raises(errors.NotFoundError):
            Storage().apply(THINGS, A, thing(status={}), manager="us", force=True, subresource="status")


def test_merge_patch() -> None:
    assert merge_patch({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"b": None, "e": 3}, "d": [2]}) == {
        "a": {"c": 2, "e": 3},
        "d": [2],
    }
    assert merge_patch([1], {"a": None, "b": {"c": None}}) == {"b": {}}


def test_json_patch() -> None:
    before = {"a": {"b/c": 1}, "list": [1, 2]}
    operations: list[dict[str, Any]] = [
        {"op": "test", "path": "/a/b~1c", "value": 1},
        {"op": "replace", "path": "/a/b~1c", "value": 2},
        {"op": "add", "path": "/list/-", "value": 3},
        {"op": "add", "path": "/list/0", "value": 0},
        {"op": "remove", "path": "/list/1"},
        {"op": "add", "path": "/new", "value": {}},
    ]
    assert json_patch(before, operations) == {"a": {"b/c": 2}, "list": [0, 2, 3], "new": {}}
    assert before == {"a": {"b/c": 1}, "list": [1, 2]}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "replace", "path": "/b", "value": 2},
        {"op": "remove", "path": "/b"},
        {"op": "add", "path": "/b/c", "value": 1},
        {"op": "move", "path": "/a", "from": "/b"},
    ],
)
def test_a_json_patch_that_fails(operation: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidError, match="JSON patch"):
        json_patch({"a": 1}, [operation])


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("", True),
        ("a=1", True),
        ("a==1", True),
        ("a=2", False),
        ("a!=2", True),
        ("b!=2", True),
        ("a", True),
        ("b", False),
        ("!b", True),
        ("a in (1,2)", True),
        ("a in (2, 3),c", False),
        ("b notin (1)", True),
        ("a=1,c=x", True),
        ("a=1,c=y", False),
    ],
)
def test_label_selectors(selector: str, *, expected: bool) -> None:
    assert matches(thing(metadata={"labels": {"a": "1", "c": "x"}}), {"labelSelector": selector}) == expected


class TestServer:
    async def test_cluster_scoped_and_namespaced_resources_are_told_apart(
        self, server: FakeServer, client: Client
    ) -> None:
        await client.create(NAMESPACES, thing())
        await client.create(PODS, thing(), "a")
        await client.apply_status(NAMESPACES, thing(status={"phase": "Active"}))
        assert set(server.objects(NAMESPACES)) == {Key("", "a")}
        assert set(server.objects(PODS)) == {Key("a", "a")}
        assert server.objects(NAMESPACES)[Key("", "a")]["status"] == {"phase": "Active"}

    async def test_faults_meet_the_requests_they_name_as_often_as_they_say(
        self, server: FakeServer, client: Client
    ) -> None:
        server.add_fault(Refuse(code=403, verb="list", plural="pods", times=2))
        await client.list_all(NAMESPACES)
        for _ in range(2):
            with pytest.raises(errors.ForbiddenError):
                await client.list_all(PODS)
        assert await client.list_all(PODS) == []
        assert server.faults == []
        assert len(server.asked("list", "pods")) == 3

    async def test_a_stale_get(self, server: FakeServer, client: Client) -> None:
        server.put(PODS, thing(metadata={"namespace": "default"}, spec={"x": 1}))
        server.put(PODS, thing(metadata={"namespace": "default"}, spec={"x": 2}))
        server.add_fault(Stale(revision=2))
        assert (await client.get(PODS, "a"))["spec"] == {"x": 1}
        assert (await client.get(PODS, "a"))["spec"] == {"x": 2}

    async def test_a_silent_watch_says_nothing(self, server: FakeServer, client: Client) -> None:
        server.put(PODS, thing(metadata={"namespace": "default"}))
        server.add_fault(Silence())
        pending = asyncio.create_task(anext(client.watch(PODS, initial_events=True)))
        await until(lambda: bool(server.watching.count))
        server.watching.wake()
        server.watching.send_bookmarks()
        await client.version()
        assert not pending.done()
        server.watching.cut()
        with pytest.raises(errors.StreamError):
            await pending

    async def test_a_stop_cuts_the_watches_and_a_start_keeps_port_and_objects(
        self, server: FakeServer, client: Client
    ) -> None:
        server.put(PODS, thing(metadata={"namespace": "default"}))
        events = client.watch(PODS, initial_events=True)
        await anext(events)
        await anext(events)
        url = server.url
        await server.stop()
        with pytest.raises(errors.StreamError):
            await anext(events)
        await server.start()
        assert server.url == url
        assert len(await client.list_all(PODS)) == 1

    @pytest.mark.parametrize("turns", range(6))
    def test_a_connection_that_comes_as_it_stops_is_closed(self, turns: int) -> None:
        async def stopped() -> socket.socket:
            async with FakeServer() as server:
                coming = socket.create_connection(("127.0.0.1", port_of(server)))
                for _ in range(turns):
                    await asyncio.sleep(0)
            return coming

        asyncio.run(stopped()).close()
        gc.collect()  # warns of what is open

    def test_an_answer_that_nobody_reads_does_not_outlive_it(self) -> None:
        async def stopped() -> socket.socket:
            async with FakeServer() as server:
                for number in range(20):
                    server.put(PODS, {"metadata": {"name": f"p{number}", "namespace": "n"}, "x": "x" * 500_000})
                asking = socket.create_connection(("127.0.0.1", port_of(server)))
                asking.sendall(b"GET /api/v1/pods HTTP/1.1\r\nHost: x\r\n\r\n")
                await until(lambda: bool(server.requests))
            return asking

        asyncio.run(stopped()).close()
        gc.collect()

    async def test_a_compaction_ends_open_watches_that_lag(self, server: FakeServer, client: Client) -> None:
        server.add_fault(Cut(after=1))
        events = client.watch(PODS, initial_events=True)
        assert (await anext(events)).type == "BOOKMARK"
        server.put(PODS, thing(metadata={"namespace": "default"}))
        with pytest.raises(errors.StreamError):
            await anext(events)
        server.storage.compact()
        with pytest.raises(errors.GoneError):
            await anext(client.watch(PODS, resource_version="1"))

    async def test_what_it_does_not_know(self, client: Client) -> None:
        with pytest.raises(errors.NotFoundError):
            await client.raw("GET", "/nowhere")
        with pytest.raises(errors.BadRequestError):
            await client.raw("POST", PODS.path("default"), body=b"{")
        await client.create(PODS, thing())
        with pytest.raises(errors.UnsupportedMediaError):
            await client.raw("PATCH", PODS.path("default", "a"), body=b"[]", content_type="text/plain")
