from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.client.kubernetes.stage import Stage
from tests.unit.kube.ticking import TickingClock
from trainplane.kube.testing.server import FakeServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with TickingClock() as clock, FakeServer() as server, server.client(clock=clock) as client:
        yield Stage(server, client, clock)
