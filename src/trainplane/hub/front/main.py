"""What an admin decides about a front, and everything that runs in one."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import signal
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.hub.apiserver.delegated_auth import load_front_proxy
from trainplane.hub.apiserver.serving import Server, follow_front_proxy
from trainplane.hub.certificates import certificates, owner_service
from trainplane.hub.front.forward import Front
from trainplane.hub.kinds import TRAIN_JOB, JobKind
from trainplane.hub.settings import DEFAULT_NAMESPACE, add_kinds, address, listen_at, own_namespace
from trainplane.kube.certificates import FileCertificates, ServingContext
from trainplane.kube.client import Client
from trainplane.kube.clock import SystemClock
from trainplane.kube.listener import ListenerSettings
from trainplane.kube.loading import load_config
from trainplane.kube.transport import Transport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainplane.kube.clock import Clock

log = logging.getLogger(__name__)

TOKEN: Final = Path("/var/run/secrets/trainplane-hub/token")
"""Where the manifests mount the token of the front's service account, meant for the owner alone."""
SHUTDOWN_DELAY: Final = 5.0
"""Seconds that a front serves on after it was told to end, until every node has taken it out of the Service."""


@dataclass(frozen=True, slots=True)
class FrontSettings:
    """All that a front needs to know."""

    kubeconfig: str | None = None
    """Path of the hub's kubeconfig; None finds the cluster as kubectl does, in a pod its own."""
    namespace: str = DEFAULT_NAMESPACE
    """Where front and owner run."""
    service: str = "trainplane-hub"
    """The Service that the APIService names: the fronts'."""
    owner: str | None = None
    """URL of the owner; None: its Service in the same namespace."""
    owner_ca: Path | None = None
    """PEM of who signs the owner's certificate; None: the authority that front and owner share."""
    token: Path = TOKEN
    """File with the token by which the owner knows a front; read anew for each request, as kubelets renew it."""
    certificates: Path | None = None
    """Folder with tls.crt and tls.key; None: the front makes its own, and tells the APIService."""
    listen: ListenerSettings = field(default_factory=lambda: ListenerSettings(8443))
    """Where the API server calls."""
    kinds: tuple[JobKind, ...] = (TRAIN_JOB,)
    """The kinds of jobs that can be discovered: the owner's."""
    shutdown_delay: float = SHUTDOWN_DELAY
    log_level: str = "info"


def parse(arguments: Sequence[str]) -> FrontSettings:
    """Read the flags; argparse ends the process with a message for a wrong one."""
    parser = argparse.ArgumentParser(
        "python -m trainplane.hub.front", description="Keeps hub.trainplane.dev discoverable, and hands on the rest."
    )
    parser.add_argument("--kubeconfig", help="the hub's kubeconfig; default: as kubectl, in a pod its service account")
    parser.add_argument("--namespace", help="the front's namespace; default: the pod's own")
    parser.add_argument("--service", default="trainplane-hub", help="the Service that the APIService names")
    parser.add_argument("--owner", help="URL of the server with the volume; default: its Service in this namespace")
    parser.add_argument("--owner-ca", type=Path, help="PEM of its authority; default: the one that both share")
    parser.add_argument("--token-file", type=Path, default=TOKEN, help="token by which it knows a front")
    parser.add_argument("--tls-cert-dir", type=Path, help="folder with tls.crt and tls.key; default: make our own")
    parser.add_argument("--listen", type=address, default=":8443", help="HOST:PORT or :PORT for the API server")
    add_kinds(parser)
    parser.add_argument("--log-level", default="info", choices=("debug", "info", "warning", "error"))
    flags = parser.parse_args(list(arguments))
    return FrontSettings(
        kubeconfig=flags.kubeconfig,
        namespace=flags.namespace or own_namespace(),
        service=flags.service,
        owner=flags.owner,
        owner_ca=flags.owner_ca,
        token=flags.token_file,
        certificates=flags.tls_cert_dir,
        listen=listen_at(flags.listen),
        kinds=flags.legacy_kinds,
        log_level=flags.log_level,
    )


@dataclass
class FrontServer:
    """One front, put together. `run` runs it until `stop`."""

    settings: FrontSettings
    client: Client
    clock: Clock = field(default_factory=SystemClock)

    def __post_init__(self) -> None:
        settings = self.settings
        self.tls = ServingContext()
        self.certificates = certificates(
            self.client,
            self.tls,
            self.clock,
            namespace=settings.namespace,
            service=settings.service,
            folder=settings.certificates,
        )
        owner = settings.owner or f"https://{owner_service(settings.service)}.{settings.namespace}.svc"
        self.front = Front(owner, self._trust, lambda: settings.token.read_text().strip(), settings.kinds)
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ask `run` to come to its end."""
        self._stopping.set()

    def unready(self) -> str | None:
        """Return what is missing before discovery can be answered: nothing but a certificate is needed."""
        if self._stopping.is_set():
            return "this replica was told to end: others answer"
        return None if self.tls.loaded else "there is no serving certificate yet"

    async def run(self) -> None:
        """Run until `stop`; raises what broke."""
        proxy = await load_front_proxy(self.client)
        server = Server(self.front, proxy, self.settings.listen, tls=self.tls, ready=self.unready)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self.front.close)
            if isinstance(self.certificates, FileCertificates):
                self.certificates.load()
            await stack.enter_async_context(server.listener)
            async with asyncio.TaskGroup() as group:
                parts = [
                    group.create_task(self.certificates.run(), name="certificates"),
                    *(group.create_task(reflector.run()) for reflector in self.certificates.reflectors(self.client)),
                    group.create_task(follow_front_proxy(self.client, server, self.clock), name="front-proxy"),
                ]
                log.info("front runs", extra={"port": server.listener.port})
                await self._stopping.wait()
                await self.clock.sleep(self.settings.shutdown_delay)
                for part in parts:
                    part.cancel()

    def _trust(self) -> ssl.SSLContext:
        settings = self.settings
        if settings.owner_ca is not None:
            return ssl.create_default_context(cafile=str(settings.owner_ca))
        if isinstance(self.certificates, FileCertificates):
            return ssl.create_default_context()
        return ssl.create_default_context(cadata=self.certificates.bundle.decode())


async def serve(settings: FrontSettings) -> None:
    """Run a front until a signal ends it."""
    transport = Transport(load_config(settings.kubeconfig))
    async with Client(transport, field_manager=names.FIELD_MANAGER) as client:
        front = FrontServer(settings, client)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, front.stop)
        await front.run()
