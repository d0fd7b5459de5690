from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.unit.kube.io.support import fill, pod
from trainplane.kube import errors
from trainplane.kube.client import JSON_PATCH, Client
from trainplane.kube.config import Config
from trainplane.kube.resource import NAMESPACES, PODS, Key, Resource
from trainplane.kube.testing.faults import Drop, Refuse, Stale
from trainplane.kube.transport import Transport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.unit.kube.io.support import JumpingClock
    from trainplane.kube.testing.server import FakeServer

Tree = dict[str, Any]
JOBS = Resource("batch", "v1", "jobs", "Job")


class Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    resource_version: str = ""


class Pod(msgspec.Struct):
    metadata: Meta


@pytest.fixture
async def client(server: FakeServer, clock: JumpingClock) -> AsyncIterator[Client]:
    async with server.client(clock=clock) as open_:
        yield open_


class TestObjects:
    async def test_get_as_a_tree_a_struct_and_text(self, server: FakeServer, client: Client) -> None:
        stored = server.put(PODS, pod("a", spec={"x": 1}))
        assert await client.get(PODS, "a", "default") == stored
        assert (await client.get(PODS, "a", type_=Pod)).metadata.name == "a"
        assert json.loads(await client.get(PODS, "a", type_=bytes)) == stored

    async def test_get_what_is_not_there(self, client: Client) -> None:
        with pytest.raises(errors.NotFoundError, match='pods "a" not found'):
            await client.get(PODS, "a")

    async def test_an_object_that_does_not_fit_its_type(self, server: FakeServer, client: Client) -> None:
        class Strange(msgspec.Struct):
            metadata: int

        server.put(PODS, pod("a"))
        with pytest.raises(errors.DecodeError, match="not Strange"):
            await client.get(PODS, "a", type_=Strange)

    async def test_create_in_the_namespace_given_named_or_configured(self, server: FakeServer) -> None:
        async with Client(Transport(Config(server=server.url, namespace="mine"))) as client:
            await client.create(PODS, pod("a", "named"), "named")
            await client.create(PODS, pod("a", "named-too"))
            await client.create(PODS, {"metadata": {"name": "a"}})
            await client.create(NAMESPACES, {"metadata": {"name": "a"}})
        assert {key.namespace for key in server.objects(PODS)} == {"named", "named-too", "mine"}
        assert set(server.objects(NAMESPACES)) == {Key("", "a")}

    @pytest.mark.parametrize(
        "obj", [pod("a", "ns"), Pod(Meta("a", "ns")), b'{"metadata":{"name":"a","namespace":"ns"}}']
    )
    async def test_objects_may_be_trees_structs_or_bytes(self, server: FakeServer, client: Client, obj: Any) -> None:
        await client.create(PODS, obj)
        await client.apply(PODS, obj)
        assert set(server.objects(PODS)) == {Key("ns", "a")}

    async def test_create_twice(self, client: Client) -> None:
        await client.create(PODS, pod("a"))
        with pytest.raises(errors.AlreadyExistsError):
            await client.create(PODS, pod("a"))

    async def test_a_dry_run_stores_nothing(self, server: FakeServer, client: Client) -> None:
        await client.create(PODS, pod("a"), dry_run=True)
        await client.apply(PODS, pod("b"), dry_run=True)
        assert server.objects(PODS) == {}
        assert {request.query["dryRun"] for request in server.requests} == {"All"}

    async def test_replace_locks_optimistically(self, client: Client) -> None:
        first = await client.create(PODS, pod("a", spec={"x": 1}))
        second = await client.replace(PODS, {**first, "spec": {"x": 2}})
        assert second["spec"] == {"x": 2}
        with pytest.raises(errors.ConflictError) as caught:
            await client.replace(PODS, {**first, "spec": {"x": 3}})
        assert caught.value.retryable

    async def test_patch_merges_and_addresses_subresources(self, server: FakeServer, client: Client) -> None:
        server.put(PODS, pod("a", spec={"x": 1, "y": 2}))
        assert (await client.patch(PODS, "a", {"spec": {"x": None, "z": 3}}))["spec"] == {"y": 2, "z": 3}
        patched = await client.patch(PODS, "a", {"status": {"phase": "Running"}}, subresource="status")
        assert (patched["spec"], patched["status"]) == ({"y": 2, "z": 3}, {"phase": "Running"})

    async def test_json_patches(self, server: FakeServer, client: Client) -> None:
        server.put(PODS, pod("a", spec={"x": 1}))
        patch = [{"op": "test", "path": "/spec/x", "value": 1}, {"op": "add", "path": "/spec/y", "value": 2}]
        assert (await client.patch(PODS, "a", patch, content_type=JSON_PATCH))["spec"] == {"x": 1, "y": 2}
        patch[0]["value"] = 7
        with pytest.raises(errors.InvalidError):
            await client.patch(PODS, "a", patch, content_type=JSON_PATCH)

    async def test_delete_says_how_and_whom(self, server: FakeServer, client: Client) -> None:
        uid = server.put(PODS, pod("a"))["metadata"]["uid"]
        with pytest.raises(errors.ConflictError):
            await client.delete(PODS, "a", preconditions_uid="another")
        await client.delete(PODS, "a", propagation="Foreground", preconditions_uid=uid, grace_seconds=0)
        assert server.objects(PODS) == {}
        assert json.loads(server.requests[-1].body) == {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Foreground",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": uid},
        }
        with pytest.raises(errors.NotFoundError):
            await client.delete(PODS, "a")

    async def test_delete_collection(self, server: FakeServer, client: Client) -> None:
        fill(server, 6)
        server.put(PODS, pod("far", "elsewhere", metadata={"labels": {"parity": "odd"}}))
        await client.delete_collection(PODS, labels={"parity": "odd"})
        assert {key.name for key in server.objects(PODS)} == {"pod-0000", "pod-0002", "pod-0004", "far"}

    async def test_raw_and_version(self, server: FakeServer, client: Client) -> None:
        response = await client.raw("POST", PODS.path("default"), body=pod("a"), query={"dryRun": "All"})
        assert response.status == 201
        assert (await client.version())["gitVersion"].startswith("v1.")
        assert server.requests[0].query == {"dryRun": "All"}


class TestApply:
    async def test_fields_left_out_are_dropped_and_others_kept(self, client: Client) -> None:
        await client.apply(PODS, pod("a", spec={"x": 1, "y": 2}), field_manager="us")
        await client.apply(PODS, pod("a", spec={"theirs": 3}), field_manager="them")
        applied = await client.apply(PODS, pod("a", spec={"x": 5}), field_manager="us")
        assert applied["spec"] == {"x": 5, "theirs": 3}

    async def test_a_foreign_field_is_a_conflict_unless_forced(self, client: Client) -> None:
        await client.apply(PODS, pod("a", spec={"x": 1}), field_manager="them")
        with pytest.raises(errors.ConflictError, match=r"'them' manages \.spec\.x"):
            await client.apply(PODS, pod("a", spec={"x": 2}), field_manager="us", force=False)
        assert (await client.apply(PODS, pod("a", spec={"x": 2}), field_manager="us"))["spec"] == {"x": 2}

    async def test_status_is_apart(self, client: Client) -> None:
        await client.apply(PODS, pod("a", spec={"x": 1}, status={"ignored": True}))
        applied = await client.apply_status(PODS, pod("a", spec={"x": 9}, status={"phase": "Running"}))
        assert (applied["spec"], applied["status"]) == ({"x": 1}, {"phase": "Running"})
        assert (await client.apply(PODS, pod("a", spec={"x": 2})))["status"] == {"phase": "Running"}

    async def test_the_same_again_changes_nothing(self, client: Client) -> None:
        first = await client.apply(PODS, pod("a", spec={"x": 1}))
        assert await client.apply(PODS, pod("a", spec={"x": 1})) == first

    async def test_the_wire(self, server: FakeServer, client: Client) -> None:
        await client.apply(PODS, pod("a"), field_manager="us", force=False)
        (asked,) = server.requests
        assert (asked.method, asked.path) == ("PATCH", "/api/v1/namespaces/default/pods/a")
        assert asked.headers["Content-Type"] == "application/apply-patch+yaml"
        assert asked.query == {"fieldManager": "us", "force": "false"}

    async def test_who_writes_is_said_once(self, server: FakeServer, client: Client) -> None:
        ours = Client(client.transport, field_manager="ours")
        await ours.permitted(lambda: None).apply(PODS, pod("a"))
        async with ours.apart() as apart:
            await apart.apply(PODS, pod("b"))
        await client.apply(PODS, pod("c"))
        assert [each.query["fieldManager"] for each in server.requests] == ["ours", "ours", "trainplane"]

    async def test_a_lost_answer_is_asked_for_again(self, server: FakeServer, client: Client) -> None:
        server.add_fault(Drop(acted=True))
        assert (await client.apply(PODS, pod("a", spec={"x": 1})))["spec"] == {"x": 1}
        assert len(server.asked("patch")) == 2

    async def test_a_json_patch_is_not(self, server: FakeServer, client: Client) -> None:
        server.put(PODS, pod("a"))
        server.add_fault(Drop())
        with pytest.raises(errors.TransportError):
            await client.patch(PODS, "a", [{"op": "add", "path": "/x/-", "value": 1}], content_type=JSON_PATCH)
        assert len(server.asked("patch")) == 1


class TestLists:
    async def test_pages_hold_the_objects_once_each(self, server: FakeServer, client: Client) -> None:
        fill(server, 25)
        pages = [page async for page in client.list_pages(PODS, limit=10)]
        assert [(len(page.items), page.remaining) for page in pages] == [(10, 15), (10, 5), (5, None)]
        assert {page.resource_version for page in pages} == {"26"}
        found = [msgspec.json.decode(item, type=Pod).metadata.name for page in pages for item in page.items]
        assert found == [f"pod-{number:04d}" for number in range(25)]

    async def test_pages_are_of_one_revision_though_the_store_moves_on(
        self, server: FakeServer, client: Client
    ) -> None:
        fill(server, 4)
        seen: list[str] = []
        async for page in client.list_pages(PODS, limit=2):
            seen += [msgspec.json.decode(item, type=Pod).metadata.name for item in page.items]
            server.put(PODS, pod(f"zzz-{len(seen)}"))
        assert seen == ["pod-0000", "pod-0001", "pod-0002", "pod-0003"]

    async def test_selectors_and_namespaces(self, server: FakeServer, client: Client) -> None:
        fill(server, 4)
        server.put(PODS, pod("far", "elsewhere", metadata={"labels": {"parity": "odd"}}))

        async def found(*args: Any, **selectors: Any) -> list[str]:
            return [item.metadata.name for item in await client.list_all(PODS, *args, type_=Pod, **selectors)]

        assert await found("elsewhere") == ["far"]
        assert await found(labels={"parity": "odd"}, limit=1) == ["pod-0001", "pod-0003", "far"]
        assert await found("default", labels="parity notin (odd)") == ["pod-0000", "pod-0002"]
        assert await found(fields={"metadata.name": "far"}) == ["far"]
        assert await found(labels="parity,!other", fields="metadata.namespace!=default") == ["far"]

    async def test_a_list_of_nothing(self, client: Client) -> None:
        assert await client.list_all(JOBS) == []
        assert [len(page.items) async for page in client.list_pages(JOBS)] == [0]

    async def test_an_expired_continue_token_is_told_by_pages_and_mended_by_list_all(
        self, server: FakeServer, client: Client
    ) -> None:
        fill(server, 6)
        server.add_fault(Refuse(code=410, reason="Expired", continued=True))
        with pytest.raises(errors.GoneError):
            async for _ in client.list_pages(PODS, limit=2):
                pass
        server.add_fault(Refuse(code=410, reason="Expired", continued=True))
        assert len(await client.list_all(PODS, limit=2)) == 6
        assert "limit" not in server.requests[-1].query, "the second time in one piece, which cannot expire"

    async def test_a_compaction_between_two_pages(self, server: FakeServer, client: Client) -> None:
        fill(server, 4)
        pages = client.list_pages(PODS, limit=2)
        await anext(pages)
        server.put(PODS, pod("new"))
        server.storage.compact()
        with pytest.raises(errors.GoneError):
            await anext(pages)

    async def test_what_the_server_is_asked(self, server: FakeServer, client: Client) -> None:
        fill(server, 3)
        async for _ in client.list_pages(PODS, limit=2, resource_version="0", labels="parity"):
            pass
        first, second = server.requests
        assert first.query == {"labelSelector": "parity", "limit": "2", "resourceVersion": "0"}
        assert set(second.query) == {"labelSelector", "limit", "continue"}

    async def test_a_lagging_replica_can_be_played(self, server: FakeServer, client: Client) -> None:
        fill(server, 3)
        server.add_fault(Stale(revision=2))
        pages = [page async for page in client.list_pages(PODS)]
        assert [(len(page.items), page.resource_version) for page in pages] == [(1, "2")]


class TestLogs:
    async def test_lines_with_an_unfinished_one_at_the_end(self, server: FakeServer, client: Client) -> None:
        for chunk in (b"one\ntw", b"o\n", b"\nfour"):
            server.pods.write_log(Key("ns", "a"), chunk)
        assert [line async for line in client.logs("ns", "a")] == [b"one", b"two", b"", b"four"]

    async def test_following_shows_lines_as_they_come_and_ends_with_the_container(
        self, server: FakeServer, client: Client
    ) -> None:
        key = Key("ns", "a")
        server.pods.write_log(key, b"one\n")
        seen = []
        async for line in client.logs("ns", "a", follow=True):
            seen.append(line)
            if len(seen) < 3:
                server.pods.write_log(key, f"line {len(seen)}\n".encode())
            else:
                server.pods.finish(key)
        assert seen == [b"one", b"line 1", b"line 2"]

    async def test_what_the_server_is_asked(self, server: FakeServer, client: Client) -> None:
        logs = client.logs(
            "ns", "a", container="c", previous=True, since_seconds=9, timestamps=True, tail_lines=0, follow=False
        )
        assert [line async for line in logs] == []
        (asked,) = server.requests
        assert asked.path == "/api/v1/namespaces/ns/pods/a/log"
        assert asked.query == {
            "container": "c",
            "previous": "true",
            "sinceSeconds": "9",
            "timestamps": "true",
            "tailLines": "0",
        }

    async def test_a_refusal_is_typed(self, server: FakeServer, client: Client) -> None:
        server.add_fault(Refuse(code=400, reason="BadRequest"))
        with pytest.raises(errors.BadRequestError):
            await anext(client.logs("ns", "a"))


def test_connect_uses_the_environments_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(
        "{current-context: x, contexts: [{name: x, context: {cluster: y, namespace: team}}],"
        " clusters: [{name: y, cluster: {server: 'https://there'}}]}"
    )
    monkeypatch.setenv("KUBECONFIG", str(file))
    client = Client.connect()
    assert (client.transport.config.server, client.namespace) == ("https://there", "team")
