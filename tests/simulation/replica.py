"""One process of our operator: the real composition root, on a link, a clock and no sockets."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any
from unittest import mock

from tests.simulation.loop import VirtualClock
from tests.simulation.planting import returns
from tests.simulation.process import Process
from tests.simulation.wire import MemoryTransport
from trainplane.api import names
from trainplane.api.configuration import Configuration, Health, LeaderElection
from trainplane.api.configuration import Metrics as MetricsEndpoint
from trainplane.kube.client import Client
from trainplane.kube.metrics import Metrics
from trainplane.operator import serving
from trainplane.operator.main import Operator
from trainplane.operator.settings import Settings
from trainplane.render.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.simulation.loop import VirtualLoop
    from tests.simulation.wire import Link
    from trainplane.kube.admission import AdmissionRequest
    from trainplane.kube.clock import Clock

PIPELINE = Pipeline.default()

RENEW_DEADLINE = 40.0
"""Seconds that a leader leads after its last renewal."""

SETTINGS = Settings(
    configuration=Configuration(
        metrics=MetricsEndpoint(bind_address="0"),
        health=Health(health_probe_bind_address="0"),
        leader_election=LeaderElection(lease_duration="60s", renew_deadline=f"{RENEW_DEADLINE:g}s", retry_period="10s"),
        feature_gates={"TrainJobStatus": False},
    ),
    shutdown_delay=1.0,
)
"""As shipped, but for what listens on sockets, and a Lease that is renewed less often: a history costs what it does."""


TLS = serving.serving_context(SETTINGS.configuration.tls)
"""One for all replicas: nothing is served over it, and OpenSSL takes its time to make one."""


class Uncertified:
    """Certificates that need no looking after: nothing is served over TLS here."""

    async def run(self) -> None:
        """Wait for ever."""
        await asyncio.get_running_loop().create_future()

    def reflectors(self, client: Client) -> tuple[()]:
        """Mirror no Secret."""
        return ()


class Unheard(contextlib.AbstractAsyncContextManager["Unheard"]):
    """A listener without a socket: reviews are asked in this process."""

    serving = True

    async def __aexit__(self, *_: object) -> None:
        """Nothing to close."""

    def drain(self) -> None:
        """Nobody is connected."""


class Replica:
    """A process that can be started, told to end, killed, and started again."""

    def __init__(
        self,
        link: Link,
        loop: VirtualLoop,
        random: Random,
        settings: Settings = SETTINGS,
        figures: Callable[[Clock], Metrics] = Metrics,
    ) -> None:
        self.link = link
        self._settings = settings
        self._figures = figures
        self.clock = VirtualClock(loop)
        self._random = random
        self.operator: Operator | None = None
        self._task: asyncio.Task[None] | None = None
        self._leaving: Operator | None = None
        """The process that was told to end and has not: it gets no reviews, and leads until it gives the Lease back."""
        self.process = Process(loop)
        self._loop = loop
        self.is_distrusted = False
        """Whether the API server does not know who signed the certificate that its webhooks show."""
        self.ends: list[BaseException] = []
        """What processes of this replica ended with, other than being told to."""

    @property
    def name(self) -> str:
        """Which replica."""
        return self.link.name

    def start(self) -> None:
        """Start the process."""
        transport = MemoryTransport(self.link, self.clock, jitter=self._random.random)
        client = Client(transport, field_manager=names.FIELD_MANAGER)
        with mock.patch.object(serving, "serving_context", returns(TLS)):
            operator = Operator(self._settings, client, self.clock, PIPELINE, self._figures(self.clock))
        quiet: Any = operator
        quiet.certificates, quiet.webhooks.listener = Uncertified(), Unheard()
        quiet.lag = Uncertified()
        self.operator = operator
        self.process = Process(self._loop)
        self._task = self._loop.create_task(operator.run(), name=self.name, context=self.process.context)
        self._task.add_done_callback(self._ended)

    @property
    def runs(self) -> bool:
        """Whether there is a process that has not ended."""
        return self._task is not None and not self._task.done()

    def leads(self) -> bool:
        """Return whether the process believes that it leads."""
        operator = self.operator if self.runs else self._leaving
        return operator is not None and operator.elector is not None and operator.elector.is_leader()

    async def kill(self) -> None:
        """End the process at once: nothing that it still tries gets out."""
        self.link.is_dead = True
        self.process.go_on()
        await self._bury(cancel=True)
        self.link.is_dead = False

    async def stop(self) -> None:
        """Ask the process to end, and wait until it has."""
        if self.operator is not None and self.runs:
            self.operator.stop()
            self._leaving = self.operator
        error = await self._bury()
        self._leaving = None
        if error is not None:
            self.ends.append(error)

    async def _bury(self, *, cancel: bool = False) -> BaseException | None:
        """Wait for the end of the process; return the error that it ended with, which of a killed one nobody hears."""
        task, self._task, self.operator = self._task, None, None
        if task is None:
            return None
        if cancel:
            task.cancel()
        await asyncio.wait({task})
        self.link.cut()
        return None if task.cancelled() else task.exception()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Start the process again if it ended by itself, as the kubelet does."""
        if task.cancelled() or self._task is not task:
            return
        error = task.exception()
        if error is not None:
            self.ends.append(error)
        self.link.cut()
        asyncio.get_running_loop().call_later(self._random.uniform(1.0, 10.0), self._again, task)

    def _again(self, task: asyncio.Task[None]) -> None:
        if self._task is task:
            self.start()

    async def review(self, path: str, request: AdmissionRequest) -> Any:
        """Answer a review as the webhook server does; raises ConnectionError if the process is no more by then."""
        operator = self.operator
        await self.process.answers()
        if operator is None or operator is not self.operator:
            raise ConnectionResetError("connection reset by peer")
        server = operator.webhooks
        review: Any = server._routes[path]
        return await server._judge(review.args[0], request)
