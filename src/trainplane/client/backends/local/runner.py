"""How the containers of pods are started: what a backend brings to the supervisor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable, Mapping, Sequence

    from trainplane.api.podindex import PodIndex
    from trainplane.api.tree import Tree
    from trainplane.client.backends.local.pods import LocalJobSet
    from trainplane.client.backends.local.volumes import Mount
    from trainplane.lifecycle.events import EventContent


@dataclass(frozen=True)
class Launch:
    """A container to start."""

    pod: Tree
    place: PodIndex
    container: Tree
    identity: str
    """Its name among all containers of this machine."""
    command: Sequence[str]
    args: Sequence[str]
    variables: Mapping[str, str]
    mounts: Sequence[Mount] = ()
    alone: bool = True
    """Whether it is the pod's first container, which has the pod's address."""


@dataclass(frozen=True)
class Exit:
    """How a container ended."""

    code: int
    reason: str = ""
    message: str = ""


class WaitingError(Exception):
    """A container cannot start now: no such image, for example. It is tried again."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Running(Protocol):
    """A container that was started."""

    @property
    def output(self) -> asyncio.StreamReader:
        """What it prints, both streams as one."""

    @property
    def record(self) -> Tree:
        """What is needed to end it when the supervisor cannot."""

    async def wait(self) -> Exit:
        """Return how it ended; nothing of it runs then."""

    async def stop(self, grace_seconds: float) -> None:
        """Ask it to end, and end it when it has not by then."""

    async def is_ready(self, probe: Tree) -> bool:
        """Return whether a readiness probe succeeds now."""


class Runner(Protocol):
    """Starts containers of one job."""

    def judge(self, plan: LocalJobSet) -> Sequence[EventContent]:
        """Return what of the plan has no effect here.

        Raises:
            InvalidError: something cannot be had here; the message names the field and what to do.
        """

    async def prepare(self, plan: LocalJobSet) -> None:
        """Get ready for the pods of a plan: at first, and each time that all begin anew."""

    def address(self, place: PodIndex) -> str:
        """Return the address of a pod."""

    def translate(self, text: str) -> str:
        """Return a text of a file with addresses and paths as they are here."""

    async def start(self, launch: Launch) -> Running:
        """Start a container.

        Raises:
            WaitingError: it cannot start now.
        """

    async def clean(self) -> None:
        """Give back all that was made beside containers."""

    def end(self, records: Iterable[Tree]) -> None:
        """End containers whose supervisor is gone, by their records, and give back what was made beside them."""


@dataclass(frozen=True)
class Timing:
    """How long things take. Seconds."""

    restart_delay: float = 1.0
    """Before a failed container starts again; doubled each time. A cluster begins with 10, for lost machines."""
    longest_delay: float = 300.0
    probe_period: float = 1.0
    """Between two looks at whether a container is ready, where the probe does not say."""
    grace: float = 30.0
    """That a container has to end, where its pod does not say: as in a cluster."""
    image_delay: float = 10.0
    """Before an image that cannot be had is asked for again; doubled each time."""
