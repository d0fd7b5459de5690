"""Leader election on a coordination.k8s.io/v1 Lease.

`election.py` holds the rules and why at most one leads; this is the loop that reads, writes and waits for it.

    elector = LeaderElector(client, LeaseSettings("kubeflow-system", "trainer.kubeflow.org"), clock)
    await elector.run(controllers)     # returns with `controllers`, or raises LeadershipLostError: then exit

Whoever acts on the cluster asks `is_leader()` right before: it is judged against this process's own monotonic clock
and turns false by itself, also when the loop never ran again after a pause.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import socket
import uuid
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from trainplane.kube.election import JITTER, LEASES, ElectionRules, LeaseSettings, Tree
from trainplane.kube.errors import KubeError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trainplane.kube.clock import Clock
    from trainplane.kube.resource import Resource

__all__ = ["LEASES", "LeaderElector", "LeadershipLostError", "LeaseClient", "LeaseSettings", "unique_identity"]

log = logging.getLogger(__name__)


class LeadershipLostError(KubeError):
    """This process led and no longer does: it has to exit, since what it knows may be out of date."""

    whose = "cluster"


class LeaseClient(Protocol):
    """What election needs of `Client`."""

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Any:
        """Read one object."""

    async def create(self, resource: Resource, obj: Tree, namespace: str | None = None) -> Any:
        """Create an object."""

    async def replace(self, resource: Resource, obj: Tree, namespace: str | None = None) -> Any:
        """PUT an object; a resourceVersion that is no longer current raises ConflictError."""


def unique_identity() -> str:
    """Return an identity that no other process has had: the host's name, for people, and a random part."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class LeaderElector:
    """Stands for election and, once elected, keeps the Lease until it stops or loses it.

    Args:
        client: reads and writes the Lease.
        settings: which Lease and how patiently.
        clock: its monotonic side decides; its wall side is only written down, for people.
        identity: must differ between any two processes that ever ran; made up when not given.
        on_lost: called, without waiting for anything, the moment leadership is found lost.
        on_new_leader: called with the holder's identity whenever a different one is seen.
        spread: draws the random share of each wait, in [0, 1).
    """

    def __init__(
        self,
        client: LeaseClient,
        settings: LeaseSettings,
        clock: Clock,
        *,
        identity: str | None = None,
        on_lost: Callable[[], None] | None = None,
        on_new_leader: Callable[[str], None] | None = None,
        spread: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self._candidacy = ElectionRules(identity or unique_identity(), settings)
        self._on_lost = on_lost
        self._on_new_leader = on_new_leader
        self._spread = spread
        self._last_holder = ""
        self.elected = asyncio.Event()
        """Set once this process has become leader, for what waits to begin; it stays set, so ask `is_leader` to act."""

    @property
    def identity(self) -> str:
        """What this candidate writes as `holderIdentity`."""
        return self._candidacy.identity

    @property
    def holder(self) -> str:
        """Who held the Lease when last seen; empty when nobody did."""
        return self._candidacy.holder

    @property
    def term(self) -> int:
        """The Lease's `leaseTransitions` when last seen."""
        return self._candidacy.term

    def is_leader(self) -> bool:
        """Tell whether this process leads at this instant."""
        return self._candidacy.is_leader(self._clock.monotonic())

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait for leadership, then work until the work ends, leadership is lost or this call is cancelled.

        The Lease is kept while the work winds down and given back after, never before. When leadership is lost the
        work is cancelled and has until another could lead; then LeadershipLostError is raised, whatever it does.
        """
        await self.acquire()
        working = asyncio.ensure_future(work())
        keeping = asyncio.create_task(self.keep(), name=f"lease {self._settings.name}")
        try:
            await asyncio.wait({working, keeping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            working.cancel()
            await asyncio.wait({working, keeping}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                margin = self._settings.lease_duration - self._settings.renew_deadline
                with contextlib.suppress(TimeoutError):
                    async with self._clock.timeout(margin):
                        await asyncio.wait({working})
            keeping.cancel()
            await asyncio.wait({keeping})
            await self.release()
        if not keeping.cancelled():
            keeping.result()
        working.result()

    async def acquire(self) -> None:
        """Return once this process leads. Errors of the cluster are logged and outlasted.

        Cancelled in the middle of a claim, it gives back what that claim may have won: nobody else would know that it
        is free before it lapses.
        """
        while True:
            try:
                await self._attempt(self._settings.attempt_seconds)
            except asyncio.CancelledError:
                await self._withdraw()
                raise
            if self.is_leader():
                self.elected.set()
                log.info("became leader", extra={"lease": self._settings.name, "identity": self.identity})
                return
            await self._clock.sleep(self._pause())

    async def keep(self) -> NoReturn:
        """Renew for as long as that succeeds; raise LeadershipLostError once this process no longer leads.

        A try that gets no answer is given up after a third of the deadline, and the next follows at once, on another
        connection (a cancelled request closes its own): one dead connection costs a try, not the leadership.
        """
        candidacy = self._candidacy
        next_try = self._clock.monotonic() + self._pause()
        while True:
            wake = min(candidacy.deadline, next_try)
            await self._clock.sleep(max(0.0, wake - self._clock.monotonic()))
            now = self._clock.monotonic()
            if not candidacy.lapse(now):
                next_try = now + self._pause()
                await self._attempt(min(candidacy.deadline - now, self._settings.attempt_seconds))
            if candidacy.lapse(self._clock.monotonic()):
                log.error("lost leadership", extra={"lease": self._settings.name, "holder": self.holder})
                if self._on_lost is not None:
                    self._on_lost()
                raise LeadershipLostError(
                    f"{self.identity} no longer holds Lease {self._settings.namespace}/{self._settings.name} "
                    f"(holder seen last: {self.holder or 'nobody'}); this process has to exit"
                )

    async def release(self) -> None:
        """Stop leading at once and, if so set, give the Lease back. Failing to is only slower for the next leader."""
        body = self._candidacy.resign(self._clock.now())
        if body is None or not self._settings.release_on_stop:
            return
        try:
            async with self._clock.timeout(self._settings.retry_period):
                await self._client.replace(LEASES, body, self._settings.namespace)
        except (KubeError, TimeoutError) as error:
            log.warning("lease not released", extra={"lease": self._settings.name, "error": str(error)})

    async def _withdraw(self) -> None:
        """Give back a Lease that a claim without an answer may have won: read whose it is, and release it if ours."""
        if not (self._candidacy.claimed and self._settings.release_on_stop):
            return
        try:
            async with self._clock.timeout(self._settings.retry_period):
                lease = await self._client.get(LEASES, self._settings.name, self._settings.namespace)
                body = self._candidacy.withdraw(lease, self._clock.now())
                if body is not None:
                    await self._client.replace(LEASES, body, self._settings.namespace)
        except (KubeError, TimeoutError) as error:
            log.warning("lease not released", extra={"lease": self._settings.name, "error": str(error)})

    def _pause(self) -> float:
        return self._settings.retry_period * (1 + JITTER * self._spread())

    async def _attempt(self, seconds: float) -> None:
        """Read if need be and claim if allowed, within `seconds`; a failure leaves things to the next attempt."""
        try:
            async with self._clock.timeout(seconds):
                await self._read_and_claim()
        except (KubeError, TimeoutError) as error:
            self._candidacy.failed()
            log.warning("lease attempt failed", extra={"lease": self._settings.name, "error": repr(error)})
        if self.holder and self.holder != self._last_holder:
            self._last_holder = self.holder
            if self._on_new_leader is not None:
                self._on_new_leader(self.holder)

    async def _read_and_claim(self) -> None:
        candidacy, namespace = self._candidacy, self._settings.namespace
        if candidacy.needs_read:
            lease: Tree | None
            try:
                lease = await self._client.get(LEASES, self._settings.name, namespace)
            except NotFoundError:
                lease = None
            candidacy.saw(lease, self._clock.monotonic())
        claim = candidacy.claim(self._clock.monotonic(), self._clock.now())
        if claim is None:
            return
        write = self._client.create if claim.new else self._client.replace
        answer = await write(LEASES, claim.body, namespace)
        candidacy.wrote(claim, answer, self._clock.monotonic())
