from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.client.kubernetes.stage import Stage
from trainplane.kube.testing.server import FakeServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with FakeServer() as server, server.client() as client:
        yield Stage(server, client)
