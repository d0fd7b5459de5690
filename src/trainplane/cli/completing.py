"""What a shell offers where a TrainJob's name is typed: quick, or nothing."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import typer

from trainplane.cli.connection import Connection

PATIENCE_SECONDS: Final = 2.0
"""How long a person with a finger on the tabulator is kept waiting."""
MOST_NAMES: Final = 500
"""Names that are looked at: more help nobody to choose."""


def job_names(context: typer.Context, incomplete: str) -> list[str]:
    """Return the TrainJobs whose names begin so, of the cluster that the words before name; none where it is not told.

    A shell has no place for an error: whatever goes wrong, nothing is offered.
    """
    places = ("namespace", "context", "kubeconfig", "local", "containers")
    given: dict[str, Any] = {name: context.params[name] for name in places if name in context.params}

    async def ask() -> list[str]:
        async with asyncio.timeout(PATIENCE_SECONDS), Connection(**given).client() as client:
            return [job.name for job in (await client.list_jobs())[-MOST_NAMES:]]

    try:
        found = asyncio.run(ask())
    except Exception:  # noqa: BLE001 see above
        return []
    return [name for name in found if name.startswith(incomplete)]
