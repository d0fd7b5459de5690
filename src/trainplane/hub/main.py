"""The composition root of the hub server: everything that runs in its process, and what depends on what.

    hub client ─┬─ jobs         jobs and Workloads, mirrored
                ├─ watched      who the workers are, mirrored
                │    └ workers ─ collector   mirrors every cluster's pods, follows their logs ──► archive (the volume)
                ├─ authority    who may speak for users; what users may
                └─ server ───── api      answers from jobs, collector and archive; metrics beside it

It ends on SIGTERM or SIGINT. It may be killed at any moment: what is on the volume is whole, and the next process goes
on where this one was. One process at a time has the volume; there is nothing to elect.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.hub.apiserver.api import Api
from trainplane.hub.apiserver.delegated_auth import Authorizer, load_front_proxy
from trainplane.hub.apiserver.fronts import AUDIENCE, Fronts
from trainplane.hub.apiserver.readers import Readers
from trainplane.hub.apiserver.serving import Server, follow_front_proxy
from trainplane.hub.certificates import certificates
from trainplane.hub.logarchive.archive import Archive
from trainplane.hub.logarchive.collector import CollectorSettings, LogCollector
from trainplane.hub.logarchive.jobs import Jobs
from trainplane.hub.metrics import HubMetrics
from trainplane.hub.watched import Watched
from trainplane.hub.workers import Workers
from trainplane.kube.certificates import FileCertificates, ServingContext
from trainplane.kube.client import Client
from trainplane.kube.clock import SystemClock
from trainplane.kube.connection import ConnectionSettings
from trainplane.kube.health import LoopLag
from trainplane.kube.loading import load_config
from trainplane.kube.metrics import Metrics
from trainplane.kube.pathaccess import PathAccess
from trainplane.kube.tokenreview import TokenReviewer
from trainplane.kube.transport import Transport, TransportSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.hub.settings import Settings
    from trainplane.kube.clock import Clock
    from trainplane.kube.config import Config

log = logging.getLogger(__name__)

WORKER_TRANSPORT: Final = TransportSettings(
    attempts=2,
    patience_seconds=5.0,
    connection=ConnectionSettings(connect_seconds=4.0, keepalive_seconds=4),
)
"""Towards a worker: notice within seconds that it is cut off, and try again within seconds. Whoever follows a log has
its own patience, and a pod that finished while its worker was away may be deleted soon after the worker is back."""


def connect_worker(config: Config, requested: Callable[[str, str, int | str], None] | None = None) -> Client:
    """Return a client of a worker; `requested` hears of each request to it."""
    return Client(Transport(config, settings=WORKER_TRANSPORT, requested=requested))


@dataclass
class Hub:
    """The hub server, put together. `run` runs it until `stop`."""

    settings: Settings
    client: Client
    clock: Clock = field(default_factory=SystemClock)
    metrics: Metrics = field(default_factory=lambda: Metrics(SystemClock()))

    def __post_init__(self) -> None:
        settings, client, clock = self.settings, self.client, self.clock
        self.archive = Archive(settings.data, settings.retention, clock)
        self.watched = Watched(client, clock, namespace=settings.kueue_namespace)
        connect = partial(connect_worker, requested=self.metrics.requested)
        self.workers = Workers(self.watched, namespace=settings.kueue_namespace, connect=connect)
        self.jobs = Jobs(client, clock, settings.kinds)
        keeping = CollectorSettings(streams=settings.streams)
        self.collector = LogCollector(client, self.workers, self.jobs, self.archive, clock=clock, settings=keeping)
        for reflector in self.watched.reflectors:
            reflector.add_handler(lambda _: self.collector.look_soon())
        self.authorizer = Authorizer(client, clock)
        self.readers = Readers(settings.readers)
        self.api = Api(
            client,
            self.workers,
            self.jobs,
            self.collector,
            self.archive,
            self.authorizer,
            clock,
            self.readers,
            self.behind,
            settings.worker_seconds,
        )
        self.counts = HubMetrics(self.metrics.registry, self.collector, self.archive, self.readers)
        self.lag = LoopLag(clock)
        self.metrics.loop_lag(self.lag.take_worst)
        self.tls = ServingContext()
        self.certificates = certificates(
            client,
            self.tls,
            clock,
            namespace=settings.namespace,
            service=settings.service,
            folder=settings.certificates,
        )
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ask `run` to come to its end."""
        self._stopping.set()

    async def run(self) -> None:
        """Run until `stop`; raises what broke."""
        proxy = await load_front_proxy(self.client)
        fronts = self._fronts()
        server = Server(
            self.api,
            proxy,
            self.settings.listen,
            tls=self.tls,
            ready=self.unready,
            fronts=fronts,
            answered=self.counts.answered,
        )
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(self.archive.close)
            stack.callback(self.readers.close)
            stack.push_async_callback(self.workers.close)
            if isinstance(self.certificates, FileCertificates):
                self.certificates.load()
            await stack.enter_async_context(server.listener)
            if self.settings.metrics is not None:
                access = PathAccess(self.client, self.clock)
                metrics = self.metrics.server(self.settings.metrics, tls=self.tls.context, access=access)
                await stack.enter_async_context(metrics)
            async with asyncio.TaskGroup() as group:
                parts = [
                    group.create_task(self.lag.run(), name="lag"),
                    group.create_task(self.certificates.run(), name="certificates"),
                    *(group.create_task(reflector.run()) for reflector in self.certificates.reflectors(self.client)),
                    group.create_task(self.collector.run(), name="collector"),
                    group.create_task(follow_front_proxy(self.client, server, self.clock), name="front-proxy"),
                    *(
                        group.create_task(reflector.run())
                        for reflector in (*self.jobs.reflectors, *self.watched.reflectors)
                    ),
                ]
                log.info(
                    "hub server runs",
                    extra={
                        "port": server.listener.port,
                        "kept_bytes": self.archive.usage.bytes,
                        "set_aside": self.archive.set_aside.count,
                    },
                )
                await self._stopping.wait()
                for part in parts:
                    part.cancel()

    def unready(self) -> str | None:
        """Return what is missing before anything can be answered; what is not known yet is told request by request."""
        return None if self.tls.loaded else "there is no serving certificate yet"

    def behind(self) -> str | None:
        """Return what is not known yet of what requests are about."""
        missing = [reflector.resource.plural for reflector in self.jobs.reflectors if not reflector.known.is_set()]
        if missing:
            return f"not listed yet: {', '.join(missing)}"
        return None if self.collector.looked.is_set() else "the workers were not looked at yet"

    def _fronts(self) -> Fronts | None:
        account = self.settings.front_account
        if account is None:
            return None
        return Fronts(TokenReviewer(self.client, self.clock, (AUDIENCE,)), account)


async def serve(settings: Settings) -> None:
    """Run the hub server until a signal ends it."""
    metrics = Metrics(SystemClock())
    transport = Transport(load_config(settings.kubeconfig), requested=metrics.requested)
    async with Client(transport, field_manager=names.FIELD_MANAGER) as client:
        hub = Hub(settings, client, metrics=metrics)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, hub.stop)
        await hub.run()
