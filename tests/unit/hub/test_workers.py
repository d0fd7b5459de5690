from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.hub.fakeworker import kubeconfig, serving
from trainplane.hub.errors import HubError, NoSuchWorkerError, WorkerCredentialsError, WorkerUnreachableError
from trainplane.hub.workers import WorkerKubeconfig, Workers, ordered, reaching
from trainplane.kube.client import Client
from trainplane.kube.errors import ConflictError, ConnectError, UnauthorizedError
from trainplane.kube.testing.server import FakeServer
from trainplane.resources import MULTIKUEUE_CLUSTERS, MULTIKUEUE_CONFIGS, NAMESPACES, SECRETS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from trainplane.kube.config import Config

Tree = dict[str, Any]


def put_worker(hub: FakeServer, name: str, text: str, *, key: str = "kubeconfig") -> None:
    source = {"kubeConfig": {"locationType": "Secret", "location": f"{name}-secret"}}
    hub.put(MULTIKUEUE_CLUSTERS, {"metadata": {"name": name}, "spec": {"clusterSource": source}})
    data = {key: base64.b64encode(text.encode()).decode()}
    hub.put(SECRETS, {"metadata": {"name": f"{name}-secret", "namespace": "kueue-system"}, "data": data})


@pytest.fixture
async def hub() -> AsyncIterator[FakeServer]:
    async with FakeServer() as server:
        yield server


@pytest.fixture
async def worker() -> AsyncIterator[FakeServer]:
    async with FakeServer(tokens={"t"}, tls=serving()) as server:
        yield server


@pytest.fixture
async def workers(hub: FakeServer) -> AsyncIterator[Workers]:
    async with hub.client() as client, Workers(client) as workers:
        yield workers


def test_names_come_in_the_order_of_the_configs_and_the_rest_behind() -> None:
    clusters = [{"metadata": {"name": name}} for name in ("c", "a", "d", "b")]
    configs = [
        {"metadata": {"name": "second"}, "spec": {"clusters": ["a", "c"]}},
        {"metadata": {"name": "first"}, "spec": {"clusters": ["c", "gone"]}},
    ]
    assert ordered(clusters, configs) == ("c", "a", "b", "d")


async def test_names_are_read_from_the_hub(hub: FakeServer, workers: Workers) -> None:
    for name in ("worker1", "worker2"):
        hub.put(MULTIKUEUE_CLUSTERS, {"metadata": {"name": name}})
    hub.put(MULTIKUEUE_CONFIGS, {"metadata": {"name": "mk"}, "spec": {"clusters": ["worker2", "worker1"]}})
    assert await workers.names() == ("worker2", "worker1")


async def test_a_worker_is_reached_with_the_credentials_of_multikueue(
    hub: FakeServer, worker: FakeServer, workers: Workers
) -> None:
    put_worker(hub, "worker1", kubeconfig(worker.url))
    worker.put(NAMESPACES, {"metadata": {"name": "research"}})
    client = await workers.client("worker1")
    assert [one["metadata"]["name"] for one in await client.list_all(NAMESPACES)] == ["research"]
    assert worker.requests[0].headers["Authorization"] == "Bearer t"


async def test_the_client_stays_while_the_kubeconfig_does(
    hub: FakeServer, worker: FakeServer, workers: Workers
) -> None:
    put_worker(hub, "worker1", kubeconfig(worker.url))
    first = await workers.client("worker1")
    hub.put(SECRETS, {**hub.objects(SECRETS).popitem()[1], "type": "Opaque"})
    assert await workers.client("worker1") is first


async def test_a_rotated_secret_gives_a_new_client_and_readers_of_the_old_may_end(
    hub: FakeServer, worker: FakeServer, workers: Workers
) -> None:
    worker.tokens = {"t", "u", "v"}
    clients = []
    for token in ("t", "u", "v"):
        put_worker(hub, "worker1", kubeconfig(worker.url, token=token))
        clients.append(await workers.client("worker1"))
        await clients[-1].version()
        if len(clients) > 1:
            await clients[-2].version()
    assert len({id(client) for client in clients}) == 3
    assert [request.headers["Authorization"][-1] for request in worker.requests] == ["t", "u", "t", "v", "u"]


async def test_close_closes_every_client_once(hub: FakeServer, worker: FakeServer) -> None:
    closed: list[str] = []

    class Watched(Client):
        async def close(self) -> None:
            credential = await self.transport.config.credentials.current()
            closed.append(credential.authorization or "")
            await super().close()

    def connect(config: Config) -> Client:
        return Watched.connect(config)

    async with hub.client() as client:
        workers = Workers(client, connect=connect)
        for token in ("a", "b", "c"):
            put_worker(hub, "worker1", kubeconfig(worker.url, token=token))
            await workers.client("worker1")
        assert closed == ["Bearer a"]
        await workers.close()
        await workers.close()
    assert sorted(closed) == ["Bearer a", "Bearer b", "Bearer c"]


async def test_a_kubeconfig_in_a_file_is_read_there(
    hub: FakeServer, worker: FakeServer, workers: Workers, tmp_path: Path
) -> None:
    file = tmp_path / "worker1"
    source = {"kubeConfig": {"locationType": "Path", "location": str(file)}}
    hub.put(MULTIKUEUE_CLUSTERS, {"metadata": {"name": "worker1"}, "spec": {"clusterSource": source}})
    with pytest.raises(WorkerCredentialsError, match="cannot be read here"):
        await workers.client("worker1")
    file.write_text(kubeconfig(worker.url))
    assert (await (await workers.client("worker1")).version())["minor"] == "99"


async def test_an_unknown_worker_is_named(workers: Workers) -> None:
    with pytest.raises(NoSuchWorkerError, match="no MultiKueueCluster 'worker7'"):
        await workers.client("worker7")


async def test_a_missing_secret_says_what_to_create(hub: FakeServer, workers: Workers) -> None:
    put_worker(hub, "worker1", "")
    hub.remove(SECRETS, "worker1-secret", "kueue-system")
    with pytest.raises(WorkerCredentialsError, match="Secret kueue-system/worker1-secret does not exist: create it"):
        await workers.client("worker1")


async def test_a_secret_with_another_key_lists_its_keys(hub: FakeServer, workers: Workers) -> None:
    put_worker(hub, "worker1", "x", key="config")
    with pytest.raises(WorkerCredentialsError, match=r"no key 'kubeconfig' \(it has: config\)"):
        await workers.client("worker1")


async def test_a_secret_that_is_no_text_is_refused(hub: FakeServer, workers: Workers) -> None:
    put_worker(hub, "worker1", "x")
    data = {"kubeconfig": base64.b64encode(b"\xff\xfe").decode()}
    hub.put(SECRETS, {"metadata": {"name": "worker1-secret", "namespace": "kueue-system"}, "data": data})
    with pytest.raises(WorkerCredentialsError, match="is not text") as caught:
        await workers.client("worker1")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None, "what could not be decoded would be in it"


async def test_a_file_that_never_ends_or_begins_is_not_waited_for(
    hub: FakeServer, workers: Workers, tmp_path: Path
) -> None:
    pipe, large = tmp_path / "pipe", tmp_path / "large"
    os.mkfifo(pipe)
    large.write_bytes(b"#" * ((1 << 20) + 1))
    for file, says in (
        (pipe, "it is no file"),
        ("/dev/zero", "it is no file"),
        (tmp_path, "Is a directory|it is no file"),
        (large, "is longer"),
    ):
        source = {"kubeConfig": {"locationType": "Path", "location": str(file)}}
        hub.put(MULTIKUEUE_CLUSTERS, {"metadata": {"name": "worker1"}, "spec": {"clusterSource": source}})
        with pytest.raises(WorkerCredentialsError, match=says):
            await workers.client("worker1")


async def test_a_secret_with_many_keys_does_not_fill_the_log(hub: FakeServer, workers: Workers) -> None:
    put_worker(hub, "worker1", "x")
    data = {f"key{number:04}": "eA==" for number in range(3000)}
    hub.put(SECRETS, {"metadata": {"name": "worker1-secret", "namespace": "kueue-system"}, "data": data})
    with pytest.raises(WorkerCredentialsError, match=r"it has: key0000, .*key0004, \.\.\.\)"):
        await workers.client("worker1")


async def test_a_cluster_profile_is_left_to_kueue(hub: FakeServer, workers: Workers) -> None:
    source = {"clusterProfileRef": {"name": "west"}}
    hub.put(MULTIKUEUE_CLUSTERS, {"metadata": {"name": "worker1"}, "spec": {"clusterSource": source}})
    with pytest.raises(WorkerCredentialsError, match="ClusterProfile 'west'"):
        await workers.client("worker1")


async def test_what_kueue_refuses_is_never_used_and_everything_is_said(hub: FakeServer, workers: Workers) -> None:
    text = kubeconfig("https://[bad").replace("server:", "insecure-skip-tls-verify: true\n    server:")
    put_worker(hub, "worker1", text)
    with pytest.raises(WorkerCredentialsError) as caught:
        await workers.client("worker1")
    assert "cluster.insecure-skip-tls-verify (line 5) is not allowed" in caught.value.problem
    assert "must be https:// with an IP address or DNS name" in caught.value.problem
    assert "Secret kueue-system/worker1-secret" in caught.value.problem


async def test_what_no_client_can_use_is_said_too(hub: FakeServer, workers: Workers) -> None:
    put_worker(hub, "worker1", kubeconfig("ftp://worker.example.com"))
    with pytest.raises(WorkerCredentialsError, match="must be https://"):
        await workers.client("worker1")
    put_worker(hub, "worker1", kubeconfig("https://w.example.com").replace("current-context: worker", "x: y"))
    with pytest.raises(WorkerCredentialsError, match="current-context"):
        await workers.client("worker1")


def test_a_source_does_not_print_its_credentials() -> None:
    assert "hunter2" not in repr(WorkerKubeconfig("worker1", "Secret a/b", kubeconfig("https://w", token="hunter2")))


def test_reaching_turns_silence_and_refusal_into_unreachable_and_passes_the_rest() -> None:
    for cause in (ConnectError("no route to host"), UnauthorizedError("token expired")):
        with (
            pytest.raises(WorkerUnreachableError, match="worker worker1 cannot be reached: ") as caught,
            reaching("worker1"),
        ):
            raise cause
        assert caught.value.cause is cause
        assert caught.value.retryable
    with pytest.raises(ConflictError), reaching("worker1"):
        raise ConflictError("later")


def test_every_error_of_the_tree_is_drawn_and_says_whose_it_is() -> None:
    from trainplane.hub import errors  # noqa: PLC0415 its docstring is what is tested

    def below(kind: type[HubError]) -> list[type[HubError]]:
        return [found for child in kind.__subclasses__() for found in (child, *below(child))]

    drawing = (errors.__doc__ or "").splitlines()
    for kind in [kind for kind in below(HubError) if kind.__module__ == errors.__name__]:
        (line,) = [line for line in drawing if f" {kind.__name__} " in line]
        assert line.endswith(kind.whose)
        assert ("retryable" in line) == kind.retryable
