"""Whose CPU it is: a loop that tells apart what each replica, its reviews and the models of a simulation cost.

A task, and all that it starts, runs in a context that names its owner; where a replica's task does the API server's
work, `aside` says so. Measured is the CPU of this thread. That doubles on a machine with other work, which takes caches
and turns of a core: so a fixed piece of the operator's own work, the probe, is timed in between, and what a phase cost
is compared with another in probes.
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar, copy_context
from time import thread_time
from typing import TYPE_CHECKING, Any

from tests.simulation.loop import VirtualLoop
from tests.simulation.people import runtime, train_job
from trainplane.legacy.migrate.proof import rendered

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextvars import Context
    from random import Random

MODELS = "models"
"""Who owns what nobody else does."""

PROBE = "probe"

_JOB = train_job("probe", {"runtime": "torch", "nodes": 2, "seconds": 1, "codes": [0]})
_RUNTIME = runtime("torch", "torch:1")

_OWNER: ContextVar[str] = ContextVar("owner", default=MODELS)


def owned_by(name: str) -> Context:
    """Return a context in which whatever runs is `name`'s."""
    context = copy_context()
    context.run(_OWNER.set, name)
    return context


class Meter:
    """Seconds of CPU by owner."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.probes = 0
        self._owner = MODELS
        self._since = thread_time()

    def turn_to(self, owner: str) -> str:
        """Count for another owner from now on; returns whose turn it was."""
        before = self._owner
        if owner != before:
            now = thread_time()
            self.seconds[before] = self.seconds.get(before, 0.0) + now - self._since
            self._owner, self._since = owner, now
        return before

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Count the block for the models, whoever runs it."""
        before = self.turn_to(MODELS)
        try:
            yield
        finally:
            self.turn_to(before)

    def probe(self) -> None:
        """Admit and render one TrainJob, the same each time, for nobody's account but the probe's."""
        before = self.turn_to(PROBE)
        rendered(_JOB, _RUNTIME)
        self.turn_to(before)
        self.probes += 1

    def reading(self) -> dict[str, float]:
        """Return what was counted up to now; of the models, up to their last turn."""
        return dict(self.seconds)


class MeteredLoop(VirtualLoop):
    """A virtual loop that asks each callback whose it is."""

    def __init__(self, random: Random, meter: Meter) -> None:
        super().__init__(random, most_steps=10**12)
        self._meter = meter

    def _run_all(self, round_: list[Any]) -> None:
        turn_to = self._meter.turn_to
        for handle in round_:
            if not handle._cancelled:
                turn_to(handle._context.get(_OWNER, MODELS))
                self._run(handle)
        turn_to(MODELS)
