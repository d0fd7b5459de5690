"""A hub server before fake clusters, for whoever asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.hub.hubstage import HubStage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[HubStage]:
    async with HubStage(tmp_path) as running:
        yield running
