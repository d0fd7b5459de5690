"""Jobs as processes of this machine: `ProcessBackend`."""

from trainplane.client.backends.process.backend import ProcessBackend

__all__ = ["ProcessBackend"]
