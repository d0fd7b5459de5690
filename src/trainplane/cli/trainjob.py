"""What the commands about one TrainJob share: all that is known of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainplane.cli.connection import Connection
    from trainplane.explain.facts import Facts


def collect(job: str, connection: Connection) -> Facts:
    """Return all that is known of a TrainJob.

    Raises:
        TrainplaneError: it cannot be read.
    """

    async def ask() -> Facts:
        async with connection.client() as client:
            return await client.backend.collect(job)

    return asyncio.run(ask())
