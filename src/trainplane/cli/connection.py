"""How commands reach a cluster, with the caller's own kubeconfig and rights as kubectl has them; or this machine."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainplane.cli.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trainplane.client.aio import AsyncTrainerClient
    from trainplane.client.backends.kubernetes import KubernetesBackend
    from trainplane.kube.client import Client
    from trainplane.kube.config import Config


def _import_aiohttp() -> None:
    """Import aiohttp without the system's certificates, which it reads twice as it is imported: 80 ms for nothing.

    Contexts of TLS are made in `kube.tls`, with the certificates that a kubeconfig names, or else the system's. Only a
    program of our own may do this: others may use aiohttp's.
    """
    before = os.environ.get("SSL_CERT_FILE")
    os.environ["SSL_CERT_FILE"] = os.devnull
    try:
        import aiohttp  # noqa: F401, PLC0415 see above
    finally:
        del os.environ["SSL_CERT_FILE"]
        if before is not None:
            os.environ["SSL_CERT_FILE"] = before


@dataclass(frozen=True)
class Connection:
    """Where jobs are: which cluster and namespace, what is None as kubectl has it; or here. Nothing is opened yet."""

    namespace: str | None = None
    context: str | None = None
    kubeconfig: str | None = None
    local: bool = False
    """Processes of this machine in place of a cluster."""
    containers: bool = False
    """Containers of this machine."""
    python: str | None = None
    """The interpreter of processes; the one that runs this if it is not said."""

    def __post_init__(self) -> None:
        places = [
            f"--{name}"
            for name in ("local", "containers", "namespace", "context", "kubeconfig")
            if getattr(self, name) not in {None, False}
        ]
        if len(places) > 1 and (self.local or self.containers):
            raise CommandError(f"{' and '.join(places)} name different places", "leave all but one out")
        if self.python and not self.local:
            raise CommandError("--python goes with --local, which is missing")

    @property
    def words(self) -> str:
        """What a command line has to say to mean this again: ` --namespace team`, or nothing."""
        from shlex import join  # noqa: PLC0415 rare

        here = [f"--{name}" for name in ("local", "containers") if getattr(self, name)]
        there = [(f"--{name}", getattr(self, name)) for name in ("namespace", "context", "kubeconfig")]
        words = [*here, *(word for option, value in there if value is not None for word in (option, value))]
        return f" {join(words)}" if words else ""

    @contextlib.asynccontextmanager
    async def backend(self) -> AsyncIterator[KubernetesBackend]:
        """Open the SDK's backend, for what the SDK's client has no method for."""
        from trainplane.cli.hearing import hear  # noqa: PLC0415 logging
        from trainplane.client.backends.kubernetes import KubernetesBackend  # noqa: PLC0415 heavy
        from trainplane.client.types.backends import KubernetesBackendConfig  # noqa: PLC0415 heavy

        hear()
        _import_aiohttp()
        backend = KubernetesBackend(
            KubernetesBackendConfig(namespace=self.namespace, client_configuration=self._configuration())
        )
        try:
            yield backend
        finally:
            await backend.close()

    @contextlib.asynccontextmanager
    async def cluster(self) -> AsyncIterator[Client]:
        """Open a client of the API server, for what is no TrainJob."""
        from trainplane.kube.client import Client  # noqa: PLC0415 heavy

        _import_aiohttp()
        async with Client.connect(self._configuration()) as client:
            yield client

    @contextlib.asynccontextmanager
    async def client(self) -> AsyncIterator[AsyncTrainerClient]:
        """Open the SDK's client."""
        from trainplane.client.aio import AsyncTrainerClient  # noqa: PLC0415 heavy

        if self.local or self.containers:
            from trainplane.client.types import backends  # noqa: PLC0415 heavy

            processes = backends.LocalProcessBackendConfig(python=self.python)
            config = processes if self.local else backends.ContainerBackendConfig()
            async with AsyncTrainerClient(config) as client:
                yield client
            return
        async with self.backend() as backend:
            yield AsyncTrainerClient(backend=backend)

    def _configuration(self) -> Config:
        """Return how the API server is reached.

        Raises:
            CommandError: nothing says it.
        """
        from trainplane.kube.errors import ConfigError  # noqa: PLC0415 heavy
        from trainplane.kube.loading import load_config  # noqa: PLC0415 heavy

        try:
            return load_config(self.kubeconfig, context=self.context)
        except ConfigError as error:
            raise CommandError(str(error), "--kubeconfig and --context name another cluster") from error
