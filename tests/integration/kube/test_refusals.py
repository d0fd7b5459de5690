"""What the real API server says when it says no, and the typed errors that come of it."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from tests.integration.kube.support import CONFIGMAPS, compact, configmap, until, widget
from trainplane.kube import errors
from trainplane.kube.client import Client
from trainplane.kube.loading import load_config
from trainplane.kube.resource import Resource

if TYPE_CHECKING:
    from lab.cluster import Cluster


async def test_what_is_not_there(client: Client, namespace: str) -> None:
    with pytest.raises(errors.NotFoundError) as missing:
        await client.get(CONFIGMAPS, "nowhere", namespace)
    assert missing.value.details["name"] == "nowhere"
    with pytest.raises(errors.NotFoundError):
        await client.list_all(Resource("nobody.example.com", "v1", "ghosts", "Ghost"), namespace)


async def test_a_name_that_is_taken(client: Client, namespace: str) -> None:
    await client.create(CONFIGMAPS, configmap("a", namespace))
    with pytest.raises(errors.AlreadyExistsError, match='configmaps "a" already exists'):
        await client.create(CONFIGMAPS, configmap("a", namespace))


async def test_a_version_that_is_old(client: Client, namespace: str) -> None:
    made = await client.create(CONFIGMAPS, configmap("a", namespace))
    await client.patch(CONFIGMAPS, "a", {"data": {"x": "1"}}, namespace)
    with pytest.raises(errors.ConflictError) as conflict:
        await client.replace(CONFIGMAPS, made)
    assert conflict.value.retryable


async def test_an_object_that_breaks_its_schema(client: Client, namespace: str, widgets: Resource) -> None:
    with pytest.raises(errors.InvalidError) as invalid:
        await client.create(widgets, widget("w", namespace, 2_000_000))
    (cause,) = invalid.value.details["causes"]
    assert cause["field"] == "spec.size"
    with pytest.raises(errors.InvalidError):
        await client.create(CONFIGMAPS, configmap("No_Name", namespace))


async def test_requests_that_make_no_sense(client: Client, namespace: str) -> None:
    with pytest.raises(errors.BadRequestError):
        await client.list_all(CONFIGMAPS, namespace, fields="data.x=1")
    with pytest.raises(errors.MethodNotAllowedError):
        await client.raw("POST", CONFIGMAPS.path(), body=configmap("a", namespace))
    await client.create(CONFIGMAPS, configmap("there", namespace))
    path = CONFIGMAPS.path(namespace, "there")
    with pytest.raises(errors.UnsupportedMediaError):
        await client.raw("PATCH", path, body={}, content_type="application/x-guess")
    with pytest.raises(errors.TooLargeError):
        await client.create(CONFIGMAPS, configmap("a", namespace, x="x" * (4 << 20)))


async def may_read(client: Client, namespace: str) -> bool:
    try:
        return bool(await client.get(CONFIGMAPS, "a", namespace))
    except errors.ForbiddenError:
        return False


async def test_who_may_not_is_told_and_who_may_now_does(cluster: Cluster, client: Client, namespace: str) -> None:
    await client.create(CONFIGMAPS, configmap("a", namespace))
    async with Client.connect(load_config(cluster.user("ann", "ann", ("readers",)))) as ann:
        with pytest.raises(errors.ForbiddenError, match='User "ann" cannot list resource "configmaps"') as refusal:
            await ann.list_all(CONFIGMAPS, namespace)
        assert not refusal.value.retryable
        cluster.kubectl("create", "role", "reader", "-n", namespace, "--verb=get,list", "--resource=configmaps")
        cluster.kubectl("create", "rolebinding", "reader", "-n", namespace, "--role=reader", "--group=readers")
        await until(lambda: may_read(ann, namespace), "the role, of which the API server hears a moment later")
        with pytest.raises(errors.ForbiddenError):
            await ann.create(CONFIGMAPS, configmap("b", namespace))
        with pytest.raises(errors.ForbiddenError):
            await anext(ann.watch(CONFIGMAPS, namespace))


class TestForgotten:
    """410: what the server no longer remembers."""

    async def test_a_watch_from_long_ago(self, client: Client, namespace: str, widgets: Resource) -> None:
        await client.create(widgets, widget("w", namespace, 1))
        stream = client.watch(widgets, namespace, resource_version="1", timeout_seconds=10)
        async with aclosing(stream):
            with pytest.raises(errors.GoneError):
                async for _ in stream:
                    pass

    async def test_a_list_that_outlives_it(self, cluster: Cluster, client: Client, namespace: str) -> None:
        made = [await client.create(CONFIGMAPS, configmap(f"c-{number}", namespace)) for number in range(6)]
        pages = client.list_pages(CONFIGMAPS, namespace, limit=2)
        async with aclosing(pages):
            await anext(pages)
            latest = await client.create(CONFIGMAPS, configmap("late", namespace))
            cluster.kill("kube-apiserver")  # its cache may remember what etcd forgets
            compact(cluster, latest["metadata"]["resourceVersion"])
            cluster.revive("kube-apiserver")
            cluster.wait_ready()
            with pytest.raises(errors.GoneError):
                await anext(pages)
        exact = {"resourceVersion": made[0]["metadata"]["resourceVersion"], "resourceVersionMatch": "Exact"}
        with pytest.raises(errors.GoneError):
            await client.raw("GET", CONFIGMAPS.path(namespace), query=exact)
        names = {item["metadata"]["name"] for item in await client.list_all(CONFIGMAPS, namespace, limit=2)}
        assert names >= {"late", *(f"c-{number}" for number in range(6))}


async def test_a_server_that_is_away(cluster: Cluster, client: Client, namespace: str) -> None:
    stream = client.watch(CONFIGMAPS, namespace, initial_events=True)
    async with aclosing(stream):
        await anext(stream)
        cluster.kill("kube-apiserver")
        with pytest.raises(errors.StreamError):
            async for _ in stream:
                pass
    with pytest.raises(errors.TransportError) as away:
        await client.create(CONFIGMAPS, configmap("a", namespace))
    assert away.value.retryable
    cluster.revive("kube-apiserver")
    cluster.wait_ready()
    await client.create(CONFIGMAPS, configmap("a", namespace))
