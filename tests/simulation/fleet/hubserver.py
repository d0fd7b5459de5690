"""The process of the hub server: its real composition root, on links to all clusters, a clock, a folder and no sockets.

Workers are reached by the kubeconfigs of Secrets, as always; what is made of one is a client over a link to that
worker, which takes no token but the last. What the process would do in threads it does at once.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import msgspec

from tests.simulation.fleet.hublink import HubLink, Prints
from tests.simulation.loop import VirtualClock
from tests.simulation.replica import Uncertified, Unheard
from tests.simulation.wire import MemoryTransport, Weather
from trainplane.api import names
from trainplane.hub import main as root
from trainplane.hub.apiserver.discovery import ROOT
from trainplane.hub.errors import HubError
from trainplane.hub.logarchive import collector
from trainplane.hub.logarchive.collector import CollectorSettings
from trainplane.hub.settings import Settings
from trainplane.hub.workers import NAMESPACE as KUEUE_NAMESPACE
from trainplane.kube.access import User
from trainplane.kube.client import Client
from trainplane.kube.errors import KubeError
from trainplane.kube.logfollower import Follower
from trainplane.kube.metrics import Metrics
from trainplane.resources import MULTIKUEUE_CLUSTERS, MULTIKUEUE_CONFIGS, SECRETS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.simulation.apiserver import ApiServer
    from tests.simulation.loop import VirtualLoop
    from trainplane.kube.config import Config
    from trainplane.kube.testing.storage import Tree

KEEPING = CollectorSettings(flush_interval=20.0)
"""As shipped, but for how often files are written: a history costs what it does, and nothing crashes the machine."""

ANA = User("ana")


class Anybody:
    """An authorizer that lets everybody in."""

    async def check(self, user: User, access: object) -> None:
        """Let them in."""


class Unserved:
    """A server without sockets: requests are made in this process."""

    def __init__(self, *_: object, **__: object) -> None:
        self.listener = Unheard()
        self.listener.port = 0  # type: ignore[attr-defined]


async def _at_once(function: Any, *arguments: Any) -> Any:
    return function(*arguments)


@contextlib.contextmanager
def unsocketed(source: Random) -> Iterator[None]:
    """Let hub servers run without sockets, threads, waits for disks and chance of their own, within the block."""

    def follower(*arguments: Any, **options: Any) -> Any:
        options["random"] = Random(source.getrandbits(64))
        return Follower(*arguments, **options)

    async def no_proxy(*_: object) -> None:
        """Nobody speaks for users here."""

    forever = Uncertified()
    with contextlib.ExitStack() as stack:
        for place, name, replacement in (
            (root, "Server", Unserved),
            (root, "load_front_proxy", no_proxy),
            (root, "follow_front_proxy", lambda *_: forever.run()),
            (collector, "Follower", follower),
            (asyncio, "to_thread", _at_once),
            (os, "fsync", lambda _: None),
        ):
            stack.enter_context(mock.patch.object(place, name, replacement))
        yield


class HubServer:
    """A process that can be started, told to end, killed, and started again over what it kept."""

    def __init__(
        self, clusters: Mapping[str, ApiServer], hub: str, folder: Path, loop: VirtualLoop, random: Random
    ) -> None:
        self.name = "hub-server"
        self._clusters = clusters
        self._hub = hub
        self._random = random
        self.clock = VirtualClock(loop)
        self._settings = Settings(data=folder)
        self.prints = {name: Prints(server, loop) for name, server in clusters.items()}
        self.weathers = {name: Weather() for name in clusters}
        self.ways: dict[str, list[HubLink]] = {name: [] for name in clusters}
        """The links to each cluster: the last is the one that counts."""
        self._tokens = dict.fromkeys(clusters, 0)
        self.process: root.Hub | None = None
        self.began = 0.0
        self._task: asyncio.Task[None] | None = None
        self.ends: list[BaseException] = []
        """What processes ended with, other than being told to."""
        self.sent: list[Any] = []
        """Called with each write as it is sent."""

    def install(self) -> None:
        """Let the hub know its workers, as an administrator does."""
        workers = [name for name in self._clusters if name != self._hub]
        for name in workers:
            self.rotate(name)
            source = {"kubeConfig": {"location": name, "locationType": "Secret"}}
            self._put(MULTIKUEUE_CLUSTERS, {"metadata": {"name": name}, "spec": {"clusterSource": source}})
        self._put(MULTIKUEUE_CONFIGS, {"metadata": {"name": "training-fleet"}, "spec": {"clusters": workers}})

    def rotate(self, name: str) -> None:
        """Give a worker's Secret another token; the one before counts no more."""
        self._tokens[name] += 1
        for link in self.ways[name]:
            link.is_revoked = True
            link.cut()
        text = msgspec.json.encode(_kubeconfig(name, self._tokens[name]))
        meta = {"name": name, "namespace": KUEUE_NAMESPACE}
        self._put(SECRETS, {"metadata": meta, "data": {"kubeconfig": base64.b64encode(text).decode()}})

    def _put(self, resource: Any, obj: Tree) -> None:
        self._clusters[self._hub].put(resource, obj, "admin")

    # -- the process

    def start(self) -> None:
        """Start the process."""
        client = self._client(self._hub, self._link(self._hub, is_revoked=False))
        hub = root.Hub(self._settings, client, self.clock, Metrics(self.clock))
        quiet: Any = hub
        quiet.certificates = quiet.lag = Uncertified()
        quiet.workers._connect = self._connect
        quiet.api.authorizer = Anybody()
        quiet.collector.settings = KEEPING
        self.process, self.began = hub, self.clock.monotonic()
        self._task = asyncio.create_task(hub.run(), name=self.name)
        self._task.add_done_callback(self._ended)

    def _connect(self, config: Config) -> Client:
        name = config.server.removeprefix("https://")
        credentials: Any = config.credentials
        token = int(credentials._credential.authorization.removeprefix("Bearer "))
        return self._client(name, self._link(name, is_revoked=token != self._tokens[name]))

    def _link(self, name: str, *, is_revoked: bool) -> HubLink:
        former = self.ways[name][-1] if self.ways[name] else None
        random = Random(self._random.getrandbits(64))
        link = HubLink(
            self._clusters[name],
            self.name,
            random,
            self.weathers[name],
            prints=self.prints[name],
            is_revoked=is_revoked,
        )
        if former is not None:
            link.is_cut, link.is_silent, link.lag = former.is_cut, former.is_silent, former.lag
        link.sent = self.sent
        self.ways[name].append(link)
        return link

    def _client(self, name: str, link: HubLink) -> Client:
        settings = {} if name == self._hub else {"settings": root.WORKER_TRANSPORT}
        transport = MemoryTransport(link, self.clock, jitter=self._random.random, **settings)
        return Client(transport, field_manager=names.FIELD_MANAGER)

    @property
    def runs(self) -> bool:
        """Whether there is a process that has not ended."""
        return self._task is not None and not self._task.done()

    async def stop(self) -> None:
        """End the process."""
        task, self._task, self.process = self._task, None, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
        for links in self.ways.values():
            for link in links:
                link.cut()
            del links[:-1]

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Start the process again if it ended by itself, as the kubelet does."""
        if task.cancelled() or self._task is not task:
            return
        error = task.exception()
        if error is not None:
            self.ends.append(error)
        asyncio.get_running_loop().call_later(self._random.uniform(1.0, 10.0), self._again, task)

    def _again(self, task: asyncio.Task[None]) -> None:
        if self._task is task:
            self.start()

    # -- what a user sees

    async def ask(self, path: str) -> Tree | None:
        """Return what the view answers, None where it says that it cannot."""
        if self.process is None:
            return None
        request: Any = SimpleNamespace(method="GET", raw_path=f"{ROOT}/{path}", query={}, headers={})
        try:
            response: Any = await self.process.api.answer(request, ANA)
        except (KubeError, HubError):
            return None
        found: Tree = msgspec.json.decode(response.body)
        return found


def _kubeconfig(name: str, token: int) -> Tree:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "worker",
        "contexts": [{"name": "worker", "context": {"cluster": "worker", "user": "multikueue"}}],
        "clusters": [{"name": "worker", "cluster": {"server": f"https://{name}"}}],
        "users": [{"name": "multikueue", "user": {"token": str(token)}}],
    }
