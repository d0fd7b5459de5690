"""Every verb of the client, answered by the real API server."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.integration.kube.support import CONFIGMAPS, configmap, widget
from trainplane.kube.client import JSON_PATCH, MERGE_PATCH, Client
from trainplane.kube.codec import decode
from trainplane.kube.errors import ConflictError, NotFoundError
from trainplane.kube.reflector import INITIAL_EVENTS_END
from trainplane.kube.resource import NAMESPACES, Resource

if TYPE_CHECKING:
    from trainplane.kube.codec import WatchEvent
    from trainplane.kube.query import Propagation

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)


class Meta(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str


class ConfigMap(msgspec.Struct):
    metadata: Meta
    data: dict[str, str]


async def fill(client: Client, namespace: str, count: int) -> None:
    bodies = [configmap(f"c-{n:03}", namespace, labels={"parity": "odd" if n % 2 else "even"}) for n in range(count)]
    await asyncio.gather(*(client.create(CONFIGMAPS, body) for body in bodies))


class TestReading:
    async def test_version_tells_which_server_this_is(self, client: Client) -> None:
        assert (await client.version())["gitVersion"].startswith("v1.")

    async def test_get_as_tree_struct_and_text(self, client: Client, namespace: str) -> None:
        await client.create(CONFIGMAPS, configmap("a", namespace, colour="blue"))
        tree = await client.get(CONFIGMAPS, "a", namespace)
        typed = await client.get(CONFIGMAPS, "a", namespace, type_=ConfigMap)
        text = await client.get(CONFIGMAPS, "a", namespace, type_=bytes)
        assert tree["data"] == typed.data == decode(text, dict)["data"] == {"colour": "blue"}
        assert typed.metadata.resource_version == tree["metadata"]["resourceVersion"]

    async def test_pages_follow_each_other_at_one_resource_version(self, client: Client, namespace: str) -> None:
        await fill(client, namespace, 25)
        pages = [page async for page in client.list_pages(CONFIGMAPS, namespace, labels={"parity": "even"}, limit=5)]
        assert [len(page.items) for page in pages] == [5, 5, 3]
        assert len({page.resource_version for page in pages}) == 1
        names = [decode(item, dict)["metadata"]["name"] for page in pages for item in page.items]
        assert names == [f"c-{n:03}" for n in range(0, 25, 2)]
        whole = await client.list_all(CONFIGMAPS, namespace, labels="parity=even", limit=4)
        assert [item["metadata"]["name"] for item in whole] == names

    async def test_selectors_choose_on_the_server(self, client: Client, namespace: str) -> None:
        await fill(client, namespace, 4)
        (only,) = await client.list_all(CONFIGMAPS, namespace, fields={"metadata.name": "c-002"})
        assert only["metadata"]["labels"] == {"parity": "even"}
        odd = await client.list_all(CONFIGMAPS, labels={"parity": "odd"}, fields=f"metadata.namespace={namespace}")
        assert [item["metadata"]["name"] for item in odd] == ["c-001", "c-003"]

    async def test_cluster_scoped_objects(self, client: Client, namespace: str) -> None:
        assert (await client.get(NAMESPACES, namespace))["status"]["phase"] == "Active"
        assert await client.list_all(NODES) == []


class TestWatching:
    async def test_initial_events_end_with_their_bookmark_and_changes_follow(
        self, client: Client, namespace: str
    ) -> None:
        await fill(client, namespace, 3)
        seen: list[tuple[str, str]] = []
        stream = client.watch(CONFIGMAPS, namespace, initial_events=True, labels="parity", timeout_seconds=60)
        async with aclosing(stream):
            async for event in stream:
                meta = decode(event.object, dict)["metadata"]
                seen.append((event.type, meta.get("name", "")))
                if (meta.get("annotations") or {}).get(INITIAL_EVENTS_END) == "true":
                    break
            assert sorted(seen[:-1]) == [("ADDED", f"c-{n:03}") for n in range(3)]
            await client.patch(CONFIGMAPS, "c-000", {"data": {"a": "b"}}, namespace)
            await client.delete(CONFIGMAPS, "c-001", namespace)
            await client.patch(CONFIGMAPS, "c-002", {"metadata": {"labels": {"parity": None}}}, namespace)
            news: list[tuple[str, str]] = []
            async for event in stream:
                if event.type != "BOOKMARK":
                    news.append((event.type, decode(event.object, dict)["metadata"]["name"]))
                if len(news) == 3:
                    break
        expected = [("MODIFIED", "c-000"), ("DELETED", "c-001"), ("DELETED", "c-002")]
        assert news == expected, "what no longer fits the selector is gone to this watch"

    async def test_a_watch_resumes_after_the_version_it_is_given_and_ends_in_time(
        self, client: Client, namespace: str
    ) -> None:
        first = await client.create(CONFIGMAPS, configmap("a", namespace))
        await client.create(CONFIGMAPS, configmap("b", namespace))
        events: list[WatchEvent] = [
            event
            async for event in client.watch(
                CONFIGMAPS,
                namespace,
                resource_version=first["metadata"]["resourceVersion"],
                fields="metadata.name!=kube-root-ca.crt",
                timeout_seconds=10,
            )
            if event.type != "BOOKMARK"
        ]
        assert [decode(event.object, dict)["metadata"]["name"] for event in events] == ["b"]


class TestWriting:
    async def test_a_dry_run_says_what_would_be_and_leaves_nothing(self, client: Client, namespace: str) -> None:
        would_be = await client.create(CONFIGMAPS, configmap("dry", namespace), dry_run=True)
        assert would_be["metadata"]["uid"]
        await client.apply(CONFIGMAPS, configmap("dry", namespace), dry_run=True)
        with pytest.raises(NotFoundError):
            await client.get(CONFIGMAPS, "dry", namespace)

    async def test_apply_owns_drops_and_fights_for_fields(self, client: Client, namespace: str) -> None:
        await client.apply(CONFIGMAPS, configmap("a", namespace, ours="1", shared="1"), field_manager="us")
        await client.apply(CONFIGMAPS, configmap("a", namespace, theirs="1"), field_manager="them")
        with pytest.raises(ConflictError) as conflict:
            await client.apply(CONFIGMAPS, configmap("a", namespace, shared="2"), field_manager="them", force=False)
        assert [(cause["reason"], cause["field"]) for cause in conflict.value.details["causes"]] == [
            ("FieldManagerConflict", ".data.shared")
        ]
        taken = await client.apply(CONFIGMAPS, configmap("a", namespace, shared="2"), field_manager="them")
        assert taken["data"] == {"ours": "1", "shared": "2"}, "`theirs` was left out, so it is gone"

    async def test_apply_without_a_change_writes_nothing(self, client: Client, namespace: str) -> None:
        first = await client.apply(CONFIGMAPS, configmap("a", namespace, x="1"))
        second = await client.apply(CONFIGMAPS, configmap("a", namespace, x="1"))
        assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]

    async def test_status_and_spec_are_written_apart(self, client: Client, namespace: str, widgets: Resource) -> None:
        await client.apply(widgets, {**widget("w", namespace, 1), "status": {"phase": "ignored"}})
        bare = {**widget("w", namespace, 1), "status": {"phase": "Ready"}}
        del bare["spec"]
        await client.apply_status(widgets, bare)
        after = await client.apply(widgets, widget("w", namespace, 2))
        assert (after["spec"], after["status"]) == ({"size": 2}, {"phase": "Ready"})
        assert (await client.get(widgets, "w", namespace, subresource="status"))["status"] == {"phase": "Ready"}

    @pytest.mark.parametrize(
        ("content_type", "patch"),
        [
            (MERGE_PATCH, {"data": {"old": None, "new": "1"}}),
            ("application/strategic-merge-patch+json", {"data": {"old": None, "new": "1"}}),
            (JSON_PATCH, [{"op": "move", "from": "/data/old", "path": "/data/new"}]),
        ],
    )
    async def test_patches_of_all_kinds(self, client: Client, namespace: str, content_type: str, patch: Any) -> None:
        await client.create(CONFIGMAPS, configmap("a", namespace, old="1"))
        after = await client.patch(CONFIGMAPS, "a", patch, namespace, content_type=content_type)
        assert after["data"] == {"new": "1"}

    async def test_replace_needs_the_newest_version(self, client: Client, namespace: str) -> None:
        made = await client.create(CONFIGMAPS, configmap("a", namespace, x="1"))
        await client.replace(CONFIGMAPS, {**made, "data": {"x": "2"}})
        with pytest.raises(ConflictError):
            await client.replace(CONFIGMAPS, {**made, "data": {"x": "3"}})
        assert (await client.get(CONFIGMAPS, "a", namespace))["data"] == {"x": "2"}


class TestDeleting:
    async def test_a_namesake_that_came_after_is_spared(self, client: Client, namespace: str) -> None:
        first = await client.create(CONFIGMAPS, configmap("a", namespace))
        await client.delete(CONFIGMAPS, "a", namespace, preconditions_uid=first["metadata"]["uid"])
        await client.create(CONFIGMAPS, configmap("a", namespace))
        with pytest.raises(ConflictError):
            await client.delete(CONFIGMAPS, "a", namespace, preconditions_uid=first["metadata"]["uid"])
        assert await client.get(CONFIGMAPS, "a", namespace)

    @pytest.mark.parametrize(
        ("propagation", "finalizers"), [("Orphan", ["orphan"]), ("Foreground", ["foregroundDeletion"])]
    )
    async def test_what_becomes_of_dependants_is_said(
        self, client: Client, namespace: str, propagation: Propagation, finalizers: list[str]
    ) -> None:
        await client.create(CONFIGMAPS, configmap("owner", namespace))
        waiting = await client.delete(CONFIGMAPS, "owner", namespace, propagation=propagation)
        assert waiting["metadata"]["finalizers"] == finalizers, "which the garbage collector acts on"

    async def test_the_answer_says_that_it_is_gone(self, client: Client, namespace: str) -> None:
        made = await client.create(CONFIGMAPS, configmap("a", namespace))
        answer = await client.delete(CONFIGMAPS, "a", namespace)
        assert (answer["kind"], answer["details"]["uid"]) == ("Status", made["metadata"]["uid"])
        with pytest.raises(NotFoundError):
            await client.delete(CONFIGMAPS, "a", namespace)

    async def test_a_collection_goes_as_its_selector_says(self, client: Client, namespace: str) -> None:
        await fill(client, namespace, 6)
        await client.delete_collection(CONFIGMAPS, namespace, labels={"parity": "odd"})
        left = await client.list_all(CONFIGMAPS, namespace, labels="parity")
        assert [item["metadata"]["name"] for item in left] == ["c-000", "c-002", "c-004"]
