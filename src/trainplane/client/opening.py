"""From a configuration to the backend that it asks for. What a backend needs is imported only then: it is slow."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeAlias

from trainplane.client.errors import InvalidError, UnsupportedError
from trainplane.client.types.backends import ContainerBackendConfig, KubernetesBackendConfig, LocalProcessBackendConfig

if TYPE_CHECKING:
    from trainplane.client.backends.backend import Backend

BackendConfig: TypeAlias = KubernetesBackendConfig | LocalProcessBackendConfig | ContainerBackendConfig


def open_backend(config: BackendConfig | None) -> Backend:
    """Return the backend that a configuration asks for; none asks for the cluster that kubectl would use here."""
    if config is None or isinstance(config, KubernetesBackendConfig):
        from trainplane.client.backends.kubernetes import KubernetesBackend  # noqa: PLC0415 aiohttp is slow to import

        return KubernetesBackend(config or KubernetesBackendConfig())
    if isinstance(config, LocalProcessBackendConfig | ContainerBackendConfig):
        _need_linux(config)
    if isinstance(config, LocalProcessBackendConfig):
        from trainplane.client.backends.process import ProcessBackend  # noqa: PLC0415 as above: the renderer

        return ProcessBackend(config)
    if isinstance(config, ContainerBackendConfig):
        from trainplane.client.backends.container import ContainerBackend  # noqa: PLC0415 as above

        return ContainerBackend(config)
    raise InvalidError(
        f"backend_config must be a KubernetesBackendConfig, LocalProcessBackendConfig or ContainerBackendConfig, "
        f"and is a {type(config).__name__}"
    )


def _need_linux(config: LocalProcessBackendConfig | ContainerBackendConfig) -> None:
    """Refuse what other systems cannot do: local jobs are watched by a process of their own, through /proc.

    Raises:
        UnsupportedError: this is another system.
    """
    if sys.platform == "linux":
        return
    raise UnsupportedError(
        f"{type(config).__name__} needs Linux, and this is {sys.platform}: use a cluster (KubernetesBackendConfig), or "
        "run this inside WSL 2, a Linux container or a Linux machine"
    )
