"""How commands reach a cluster: the caller's own kubeconfig and rights, as kubectl has them."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trainplane.client.aio import AsyncTrainerClient
    from trainplane.client.backends.kubernetes import KubernetesBackend
    from trainplane.kube.client import Client


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
    """Which cluster and namespace the arguments name; what is None is as kubectl has it. Nothing is opened yet."""

    namespace: str | None = None
    context: str | None = None
    kubeconfig: str | None = None

    @contextlib.asynccontextmanager
    async def backend(self) -> AsyncIterator[KubernetesBackend]:
        """Open the SDK's backend, for what the SDK's client has no method for."""
        from trainplane.cli.hearing import hear  # noqa: PLC0415 logging
        from trainplane.client.backends.kubernetes import KubernetesBackend  # noqa: PLC0415 heavy
        from trainplane.client.types.backends import KubernetesBackendConfig  # noqa: PLC0415 heavy

        hear()
        _import_aiohttp()
        backend = KubernetesBackend(
            KubernetesBackendConfig(namespace=self.namespace, config_file=self.kubeconfig, context=self.context)
        )
        try:
            yield backend
        finally:
            await backend.close()

    @contextlib.asynccontextmanager
    async def cluster(self) -> AsyncIterator[Client]:
        """Open a client of the API server, for what is no TrainJob."""
        from trainplane.kube.client import Client  # noqa: PLC0415 heavy
        from trainplane.kube.loading import load_config  # noqa: PLC0415 heavy

        _import_aiohttp()
        async with Client.connect(load_config(self.kubeconfig, context=self.context)) as client:
            yield client

    @contextlib.asynccontextmanager
    async def client(self) -> AsyncIterator[AsyncTrainerClient]:
        """Open the SDK's client."""
        from trainplane.client.aio import AsyncTrainerClient  # noqa: PLC0415 heavy

        async with self.backend() as backend:
            yield AsyncTrainerClient(backend=backend)
