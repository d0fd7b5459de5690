"""One cluster of a fleet: an API server, engines, Kueue, our operator, and the judge of one cluster's promises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.apiserver import ApiServer, Record
from tests.simulation.engines import Engines
from tests.simulation.fleet import offers
from tests.simulation.fleet.queue import Queue
from tests.simulation.history import REPLICAS
from tests.simulation.judge import Judge, Violation
from tests.simulation.kueue import of_the_first
from tests.simulation.loop import VirtualClock, VirtualLoop
from tests.simulation.machine import apart
from tests.simulation.people import NAMESPACE, install_runtimes
from tests.simulation.replica import Replica
from tests.simulation.reviewing import Fates, Reviews
from tests.simulation.wire import Link, Weather
from trainplane.resources import NAMESPACES

if TYPE_CHECKING:
    from random import Random

APART = 10_000_000
"""Revisions between the first of one cluster and of the next: uids follow from them, and no two objects share one."""

WORKER_QUOTA = 4
"""Pods that a worker has, all of its first flavor."""
HUB_QUOTA = 2 * WORKER_QUOTA
"""Pods that the hub gives to workers: what they have together."""


class Cluster:
    """See the module's docstring. `violations` is the list of the whole fleet."""

    def __init__(
        self, name: str, number: int, replicas: int, loop: VirtualLoop, source: Random, *, violations: list[Violation]
    ) -> None:
        self.name = name
        first = 1 + number * APART
        self.server = ApiServer(Record(now=VirtualClock(loop).now, revision=first, compacted=first - 1))
        self.weather = Weather()
        self.replicas = [
            Replica(Link(self.server, f"{name}-{one}", apart(source), self.weather), loop, apart(source))
            for one in REPLICAS[:replicas]
        ]
        is_hub = number == 0
        quota = of_the_first(HUB_QUOTA if is_hub else WORKER_QUOTA)
        self.queue = Queue(self.server, apart(source), quota, is_hub=is_hub)
        self.spare = offers.Spare(self.server, is_hub)
        acting, chance = apart(source), apart(source)
        self.engines = Engines(self.server, loop, acting, Fates(self.server, chance).of)
        self.judge = Judge(self.server, loop, self.queue, self.replicas)
        self.judge.violations = violations
        self.reviews = Reviews(self.replicas, chance)
        self.server.reviewer = self.reviews.ask
        for one in self.replicas:
            one.link.sent.append(self.judge.sent)

    def start(self) -> None:
        """Install the runtimes, and start the operator."""
        install_runtimes(self.server)
        self.server.put(NAMESPACES, {"metadata": {"name": NAMESPACE}}, "admin")
        offers.install(self.server, is_hub=self.queue.is_hub)
        self.queue.publish()
        self.spare.publish()
        for one in self.replicas:
            one.start()
