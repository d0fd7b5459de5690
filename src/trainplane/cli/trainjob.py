"""What the commands about one TrainJob share: all that is known of it, from a cluster or from a bundle."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from trainplane.cli.errors import CommandError

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


def read_file(bundle: str) -> Facts:
    """Return all that is known of a TrainJob by a file that `trainplane bundle` wrote.

    Raises:
        CommandError: it cannot be read, or is no bundle.
    """
    from trainplane.explain.bundle import MOST_BYTES, read_bundle  # noqa: PLC0415 heavy

    try:
        with Path(bundle).open(encoding="utf-8") as file:
            return read_bundle(file.read(MOST_BYTES + 1))
    except (OSError, ValueError) as error:
        raise CommandError(f"cannot read {bundle}: {error}") from error
