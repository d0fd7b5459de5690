"""Jobs as containers of this machine: `ContainerBackend`."""

from trainplane.client.backends.container.backend import ContainerBackend

__all__ = ["ContainerBackend"]
