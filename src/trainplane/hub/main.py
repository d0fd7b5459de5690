"""The composition root of the hub server: everything that runs in its process, and what depends on what.

    hub client ─┬─ jobs         TrainJobs and Workloads, mirrored
                ├─ workers ──── keeper   mirrors every cluster's pods, follows their logs ──► archive (the volume)
                ├─ authority    who may speak for users; what users may
                └─ server ───── api      answers from jobs, keeper and archive

It ends on SIGTERM or SIGINT. It may be killed at any moment: what is on the volume is whole, and the next process goes
on where this one was. One process at a time has the volume; there is nothing to elect.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from trainplane.hub.errors import FrontProxyChangedError
from trainplane.hub.kept.archive import Archive
from trainplane.hub.kept.jobs import Jobs
from trainplane.hub.kept.keeper import Keeper, KeeperSettings
from trainplane.hub.served.api import Api
from trainplane.hub.served.authority import GROUP, VERSION, Authorizer, load_front_proxy
from trainplane.hub.served.readers import Readers
from trainplane.hub.served.serving import Server
from trainplane.hub.workers import Workers
from trainplane.kube.cabundle import API_SERVICES, BundleTarget
from trainplane.kube.certificates import FileCertificates, ManagedCertificates, ManagedSettings, ServingContext
from trainplane.kube.client import Client
from trainplane.kube.clock import SystemClock
from trainplane.kube.config import load_config
from trainplane.kube.connection import ConnectionSettings
from trainplane.kube.errors import KubeError
from trainplane.kube.pki import CertificatePolicy
from trainplane.kube.transport import TransportSettings

if TYPE_CHECKING:
    from trainplane.hub.settings import Settings
    from trainplane.kube.clock import Clock
    from trainplane.kube.config import Config

log = logging.getLogger(__name__)

PROXY_SECONDS: Final = 30.0
"""Seconds between looks at the cluster's ConfigMap of who may speak for users."""
_STREAMS: Final = KeeperSettings().streams + 256

WORKER_TRANSPORT: Final = TransportSettings(
    attempts=2,
    patience_seconds=5.0,
    streams=_STREAMS,
    connection=ConnectionSettings(connect_seconds=4.0, keepalive_seconds=4),
)
"""Towards a worker: notice within seconds that it is cut off, and try again within seconds. Whoever follows a log has
its own patience, and a pod that finished while its worker was away may be deleted soon after the worker is back."""


def connect_worker(config: Config) -> Client:
    """Return a client of a worker."""
    return Client.connect(config, settings=WORKER_TRANSPORT)


@dataclass
class Hub:
    """The hub server, put together. `run` runs it until `stop`."""

    settings: Settings
    client: Client
    clock: Clock = field(default_factory=SystemClock)

    def __post_init__(self) -> None:
        settings, client, clock = self.settings, self.client, self.clock
        self.archive = Archive(settings.data, settings.retention, clock)
        self.workers = Workers(client, namespace=settings.kueue_namespace, connect=connect_worker)
        self.jobs = Jobs(client, clock)
        self.keeper = Keeper(client, self.workers, self.jobs, self.archive, clock=clock)
        self.authorizer = Authorizer(client, clock)
        self.readers = Readers(settings.readers)
        self.api = Api(client, self.workers, self.jobs, self.keeper, self.archive, self.authorizer, clock, self.readers)
        self.tls = ServingContext()
        self.certificates = self._certificates()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ask `run` to come to its end."""
        self._stopping.set()

    async def run(self) -> None:
        """Run until `stop`; raises what broke."""
        proxy = await load_front_proxy(self.client)
        server = Server(self.api, proxy, self.settings.listen, tls=self.tls, ready=self.unready)
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(self.archive.close)
            stack.callback(self.readers.close)
            stack.push_async_callback(self.workers.close)
            if isinstance(self.certificates, FileCertificates):
                self.certificates.load()
            await stack.enter_async_context(server.listener)
            async with asyncio.TaskGroup() as group:
                parts = [
                    group.create_task(self.certificates.run(), name="certificates"),
                    group.create_task(self.keeper.run(), name="keeper"),
                    group.create_task(self._follow_proxy(server), name="front-proxy"),
                    *(group.create_task(reflector.run()) for reflector in self.jobs.reflectors),
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
        """Say what is missing before requests can be answered."""
        missing = [reflector.resource.plural for reflector in self.jobs.reflectors if not reflector.synced.is_set()]
        if missing:
            return f"not listed yet: {', '.join(missing)} (are their CRDs installed?)"
        if not self.tls.loaded:
            return "there is no serving certificate yet"
        return None if self.keeper.looked.is_set() else "the workers were not looked at yet"

    def _certificates(self) -> ManagedCertificates | FileCertificates:
        settings = self.settings
        if settings.certificates is not None:
            folder = settings.certificates
            return FileCertificates(folder / "tls.crt", folder / "tls.key", self.tls, self.clock)
        policy = CertificatePolicy((f"{settings.service}.{settings.namespace}.svc",), ca_name="trainplane-hub-ca")
        managed = ManagedSettings(settings.namespace, f"{settings.service}-cert", policy)
        targets = (BundleTarget(API_SERVICES, f"{VERSION}.{GROUP}"),)
        return ManagedCertificates(self.client, managed, self.tls, self.clock, targets=targets)

    async def _follow_proxy(self, server: Server) -> None:
        """Take over what changes about who may speak for users.

        A context cannot forget an authority, so a new one ends the process: the next one trusts it alone, and goes on
        with every log where this one was.
        """
        while True:
            await self.clock.sleep(PROXY_SECONDS)
            try:
                found = await load_front_proxy(self.client)
            except KubeError as error:
                log.warning("front proxy's ConfigMap cannot be read", extra={"error": str(error)})
                continue
            if found.authority != server.proxy.authority:
                raise FrontProxyChangedError(
                    "the cluster's front-proxy authority was replaced: start again to trust it"
                )
            server.proxy = found


async def serve(settings: Settings) -> None:
    """Run the hub server until a signal ends it."""
    async with Client.connect(load_config(settings.kubeconfig)) as client:
        hub = Hub(settings, client)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, hub.stop)
        await hub.run()
