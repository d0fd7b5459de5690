"""The workers of a hub, reached as MultiKueue reaches them: by its own MultiKueueClusters and their kubeconfigs.

No configuration of ours names a worker, so what we show is what Kueue uses, and a rotated Secret counts at once.
"""

from __future__ import annotations

import base64
import contextlib
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from trainplane.api import tree as trees
from trainplane.hub.errors import NoSuchWorkerError, WorkerCredentialsError, WorkerUnreachableError
from trainplane.hub.kubeconfigs import KUBECONFIG_KEY, judge
from trainplane.kube.client import Client
from trainplane.kube.errors import (
    ConfigError,
    NotFoundError,
    StreamError,
    TransportError,
    UnauthorizedError,
    UnavailableError,
)
from trainplane.resources import MULTIKUEUE_CLUSTERS, MULTIKUEUE_CONFIGS, SECRETS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from typing import Self

    from trainplane.api.tree import Tree
    from trainplane.kube.clock import Clock
    from trainplane.kube.config import Config
    from trainplane.kube.resource import Resource

NAMESPACE: Final = "kueue-system"
"""Where Kueue is installed, and so where its Secrets are, unless somebody chose otherwise."""
WORKER_SECONDS: Final = 10.0
"""Seconds that a worker may take to be read for somebody's answer: the API server cuts a request after 60, a worker
that hangs must not hold up what all others say, and one that is well needs less than one."""
_MOST_BYTES: Final = 1 << 20
"""Of a kubeconfig in a file; a Secret cannot hold more."""
_MOST_KEYS: Final = 5
"""Of a Secret that are named where the right one is missing."""


class Reads(Protocol):
    """Reads objects of the hub: its `Client`, or mirrors of them (`watched`)."""

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Tree:
        """Return an object; raises NotFoundError."""

    async def list_all(self, resource: Resource) -> list[Tree]:
        """Return all objects."""


class Connect(Protocol):
    """Makes a client of a Config without sending anything: `Client.connect`, or one with other settings."""

    def __call__(self, config: Config, /) -> Client:
        """Return the client."""


@dataclass(frozen=True, slots=True)
class WorkerKubeconfig:
    """A worker's kubeconfig: where MultiKueue has it from, and its text."""

    cluster: str
    place: str
    """The Secret or the file, as messages name it."""
    text: str

    def __repr__(self) -> str:
        return f"WorkerKubeconfig(cluster={self.cluster!r}, place={self.place!r})"


@dataclass(slots=True)
class _Connection:
    source: WorkerKubeconfig
    client: Client
    former: Client | None = None
    """The client of the kubeconfig before. Who still reads through it may end; it closes when the next comes."""

    async def close(self) -> None:
        await self.client.close()
        if self.former is not None:
            await self.former.close()


class Workers:
    """Clients of a hub's workers. Use within one event loop; `close` it, or use `async with`.

    Each call of `client` reads the MultiKueueCluster and its Secret, so a worker that was added, removed or given other
    credentials is what the call says; the client stays the same while the kubeconfig does. Who calls it often reads
    through mirrors (`watched.Watched`).
    """

    def __init__(self, hub: Reads, *, namespace: str = NAMESPACE, connect: Connect = Client.connect) -> None:
        self.hub = hub
        self.namespace = namespace
        self._connect = connect
        self._connections: dict[str, _Connection] = {}

    async def names(self) -> tuple[str, ...]:
        """Return the names of all workers: in the order of the MultiKueueConfigs, then those that none mentions."""
        configs = await self.hub.list_all(MULTIKUEUE_CONFIGS)
        clusters = await self.hub.list_all(MULTIKUEUE_CLUSTERS)
        return ordered(clusters, configs)

    async def source(self, name: str) -> WorkerKubeconfig:
        """Return a worker's kubeconfig, not judged. Raises NoSuchWorkerError, WorkerCredentialsError."""
        try:
            cluster = await self.hub.get(MULTIKUEUE_CLUSTERS, name)
        except NotFoundError as error:
            raise NoSuchWorkerError(name) from error
        return await self._read(name, trees.get(cluster, "spec", "clusterSource") or {})

    async def client(self, name: str) -> Client:
        """Return the client of a worker. Whether the worker answers is known from the first call of it.

        Raises:
            NoSuchWorkerError: no MultiKueueCluster has that name.
            WorkerCredentialsError: the kubeconfig is missing, or breaks Kueue's rules for what it may name.
        """
        source = await self.source(name)
        known = self._connections.get(name)
        if known is not None and known.source == source:
            return known.client
        client = self._connect(config_of(source))
        self._connections[name] = _Connection(source, client, known.client if known else None)
        if known is not None and known.former is not None:
            await known.former.close()
        return client

    async def forget(self, name: str) -> None:
        """Close the connections of a worker that is none any more."""
        connection = self._connections.pop(name, None)
        if connection is not None:
            await connection.close()

    async def close(self) -> None:
        """Close every worker's connections; the hub's client is the caller's."""
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            await connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _read(self, name: str, source: Tree) -> WorkerKubeconfig:
        location = source.get("kubeConfig") or {}
        where = str(location.get("location") or "")
        if not where:
            profile = trees.get(source, "clusterProfileRef", "name")
            problem = (
                f"MultiKueueCluster {name} takes its credentials from ClusterProfile {profile!r}, which only Kueue"
            )
            raise WorkerCredentialsError(name, f"{problem} can follow: use spec.clusterSource.kubeConfig")
        if location.get("locationType") == "Path":
            return WorkerKubeconfig(name, where, _read_file(name, where))
        place = f"Secret {self.namespace}/{where}"
        try:
            secret = await self.hub.get(SECRETS, where, self.namespace)
        except NotFoundError as error:
            problem = f"{place} does not exist: create it with the worker's kubeconfig under the key {KUBECONFIG_KEY!r}"
            raise WorkerCredentialsError(name, problem) from error
        data = (secret.get("data") or {}).get(KUBECONFIG_KEY)
        if not data:
            keys = sorted(secret.get("data") or {})
            known = ", ".join([*keys[:_MOST_KEYS], *(["..."] if len(keys) > _MOST_KEYS else [])]) or "none"
            raise WorkerCredentialsError(name, f"{place} has no key {KUBECONFIG_KEY!r} (it has: {known}): add it")
        return WorkerKubeconfig(name, place, _text(name, f"{place}: {KUBECONFIG_KEY}", base64.b64decode(data)))


def ordered(clusters: list[Tree], configs: list[Tree]) -> tuple[str, ...]:
    """Return the names of MultiKueueClusters as MultiKueueConfigs prefer them, those of no config last."""
    present = sorted(cluster["metadata"]["name"] for cluster in clusters)
    configs = sorted(configs, key=lambda config: str(config["metadata"]["name"]))
    preferred = [name for config in configs for name in trees.get(config, "spec", "clusters") or ()]
    return tuple(dict.fromkeys([*(name for name in preferred if name in present), *present]))


def config_of(source: WorkerKubeconfig) -> Config:
    """Return how to reach the worker of a kubeconfig; raises WorkerCredentialsError with all that is wrong with it."""
    judged = judge(source.text)
    if judged.config is None:
        raise WorkerCredentialsError(source.cluster, f"{source.place}: {'; '.join(judged.refusals)}")
    return judged.config


@contextlib.contextmanager
def reaching(cluster: str) -> Iterator[None]:
    """Turn what says that a worker cannot be reached into WorkerUnreachableError; other errors pass."""
    try:
        yield
    except (TransportError, StreamError, ConfigError, UnauthorizedError, UnavailableError) as error:
        raise WorkerUnreachableError(cluster, error) from error


@contextlib.asynccontextmanager
async def answering(cluster: str, clock: Clock, seconds: float = WORKER_SECONDS) -> AsyncIterator[None]:
    """Do as `reaching` does, and raise WorkerUnreachableError also if the block takes longer than so many seconds."""
    try:
        async with clock.timeout(seconds):
            with reaching(cluster):
                yield
    except TimeoutError as error:
        raise WorkerUnreachableError(cluster, TimeoutError(f"no answer within {seconds:g} s")) from error


def _read_file(name: str, where: str) -> str:
    """Return a file's text: of a regular file, for a pipe would be waited for and a device never end, and bounded."""
    problem = f"its kubeconfig is the file {where} in Kueue's pod, which cannot be read here"
    remedy = "Keep it in a Secret (locationType: Secret)"
    try:
        with open(os.open(where, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:  # noqa: PTH123 not by path
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise WorkerCredentialsError(name, f"{problem}: it is no file. {remedy}")
            content = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise WorkerCredentialsError(name, f"{problem}: {error}. {remedy}") from error
    if len(content) > _MOST_BYTES:
        raise WorkerCredentialsError(name, f"{problem}: it is longer than {_MOST_BYTES} bytes. {remedy}")
    return _text(name, where, content)


def _text(name: str, place: str, content: bytes) -> str:
    with contextlib.suppress(UnicodeDecodeError):  # which shows the content
        return content.decode()
    raise WorkerCredentialsError(name, f"{place} is not text: put in a kubeconfig")
