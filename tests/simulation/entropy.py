"""Where chance comes from in a simulated process: one seed, and nothing of the machine.

The runtime draws waits and names where no caller hands it a source: modules' own `Random`, `uuid4`, and slices of work
by the machine's clock. For the time of a history these are replaced in their modules, from outside; `src` knows nothing
of it. The garbage collector is left alone too: what a start freezes would stay for all histories.
"""

from __future__ import annotations

import contextlib
import random
import socket
import uuid
from random import Random
from typing import TYPE_CHECKING
from unittest import mock

from tests.simulation.planting import returns
from trainplane.kube import eventmerger, events, lease, manager, pace, queue, reflector
from trainplane.operator.progress import reports

if TYPE_CHECKING:
    from collections.abc import Iterator

LOOK_SECONDS = 5.0
"""How often news that waits is looked at: seldom, for most of a history nothing waits."""


@contextlib.contextmanager
def drawn_from(seed: int) -> Iterator[Random]:
    """Let all chance within the block follow from a seed; yields the source."""
    source = Random(seed)
    before = random.getstate()

    def another(*_: object) -> Random:
        return Random(source.getrandbits(64))

    def identifier() -> uuid.UUID:
        return uuid.UUID(int=source.getrandbits(128), version=4)

    random.seed(source.getrandbits(64))
    with contextlib.ExitStack() as stack:
        for module in (reflector, queue, reports):
            stack.enter_context(mock.patch.object(module, "Random", another))
        for place in (events, lease):
            stack.enter_context(mock.patch.object(place.uuid, "uuid4", identifier))
        stack.enter_context(mock.patch.object(socket, "gethostname", returns("replica")))
        stack.enter_context(mock.patch.object(eventmerger, "LOOK_SECONDS", LOOK_SECONDS))
        stack.enter_context(mock.patch.object(pace.Pace, "is_due", returns(value=False)))
        stack.enter_context(mock.patch.object(manager, "initial_sync_uncollected", contextlib.nullcontext))
        try:
            yield source
        finally:
            random.setstate(before)
