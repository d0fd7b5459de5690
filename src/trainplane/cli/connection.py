"""How commands reach a cluster: the caller's own kubeconfig and rights, as kubectl has them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trainplane.client.aio import AsyncTrainerClient
    from trainplane.client.backends.kubernetes import KubernetesBackend


@dataclass(frozen=True)
class Connection:
    """Which cluster and namespace the arguments name; what is None is as kubectl has it. Nothing is opened yet."""

    namespace: str | None = None
    context: str | None = None
    kubeconfig: str | None = None

    @contextlib.asynccontextmanager
    async def backend(self) -> AsyncIterator[KubernetesBackend]:
        """Open the SDK's backend, for what the SDK's client has no method for."""
        from trainplane.client.backends.kubernetes import KubernetesBackend  # noqa: PLC0415 heavy
        from trainplane.client.types.backends import KubernetesBackendConfig  # noqa: PLC0415 heavy

        backend = KubernetesBackend(
            KubernetesBackendConfig(namespace=self.namespace, config_file=self.kubeconfig, context=self.context)
        )
        try:
            yield backend
        finally:
            await backend.close()

    @contextlib.asynccontextmanager
    async def client(self) -> AsyncIterator[AsyncTrainerClient]:
        """Open the SDK's client."""
        from trainplane.client.aio import AsyncTrainerClient  # noqa: PLC0415 heavy

        async with self.backend() as backend:
            yield AsyncTrainerClient(backend=backend)
