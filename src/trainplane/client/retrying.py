"""Another attempt at a TrainJob that is over, under another name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.client.anew import first_of, next_attempt, refuse_unfinished, retried
from trainplane.client.errors import NotFoundError, RefusedError
from trainplane.client.options.metadata import Name

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.client.backends.backend import Backend

MOST_LOOKS: Final = 100
"""Names that are looked at for one that is free."""


async def next_try(backend: Backend, name: str, new_name: str | None) -> Tree:
    """Return the document of the next attempt; without a name, it gets the first number behind its own that is free.

    Raises:
        NotFoundError: there is no such TrainJob.
        RefusedError: it is not over, or no number is free.
        InvalidError: the name is none.
    """
    job = await backend.get_document(name)
    refuse_unfinished(job)
    chosen = new_name or await _free_name(backend, job)
    return retried(job, Name(chosen).name)


async def _free_name(backend: Backend, job: Tree) -> str:
    first, number = first_of(job), next_attempt(job)
    for attempt in range(number, number + MOST_LOOKS):
        try:
            await backend.get_document(f"{first}-{attempt}")
        except NotFoundError:
            return f"{first}-{attempt}"
    raise RefusedError(f"TrainJobs {first}-{number} to {first}-{attempt} are all there: delete some, or give a name")
