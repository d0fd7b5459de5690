"""What the runtime tells about itself.

Metrics are somebody else's: the composition root passes an `Observer` that counts, tests pass one that remembers, and
this room needs no metrics library. Calls are made on the event loop and must be quick; none is made per object read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from trainplane.kube.resource import Resource


class Observer(Protocol):
    """Hears of lists, failures and work. All durations are seconds."""

    def listed(self, resource: Resource, *, objects: int, seconds: float) -> None:
        """A list was taken in whole, and the store now holds so many objects."""
        ...

    def stream_failed(self, resource: Resource, error: Exception) -> None:
        """A list or watch ended in an error and will be tried again."""
        ...

    def handler_failed(self, resource: Resource, error: Exception) -> None:
        """A handler raised: a bug, and the change is lost to that handler."""
        ...

    def work_begun(self, controller: str, *, waited: float, depth: int) -> None:
        """A worker took a key that had waited so long; so many still wait."""
        ...

    def work_ended(self, controller: str, *, outcome: str, seconds: float) -> None:
        """A worker is done with a key: `done`, `requeued`, `terminal`, `failed` or `overdue`."""
        ...


class Unobserved:
    """An `Observer` that does nothing."""

    def listed(self, resource: Resource, *, objects: int, seconds: float) -> None:
        """Do nothing."""

    def stream_failed(self, resource: Resource, error: Exception) -> None:
        """Do nothing."""

    def handler_failed(self, resource: Resource, error: Exception) -> None:
        """Do nothing."""

    def work_begun(self, controller: str, *, waited: float, depth: int) -> None:
        """Do nothing."""

    def work_ended(self, controller: str, *, outcome: str, seconds: float) -> None:
        """Do nothing."""
