"""Who may hold a TrainJob, or let it go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.client.errors import RefusedError, UnsupportedError
from trainplane.client.types.jobs import FINISHED

if TYPE_CHECKING:
    from trainplane.client.backends.backend import Backend


async def refuse_held(backend: Backend, name: str, verb: str) -> None:
    """Refuse to hold or start what others decide about, or nobody any more.

    Raises:
        RefusedError: the TrainJob is over.
        UnsupportedError: Kueue has it.
    """
    job = await backend.get_job(name)
    if job.status in FINISHED:
        raise RefusedError(
            f"TrainJob {name} is {job.status} and cannot be {verb}: nothing of it runs any more. To train again, "
            "submit it again"
        )
    if job.queue:
        raise UnsupportedError(
            f"TrainJob {name} cannot be {verb} by hand: queue {job.queue} decides when it runs. "
            f"See describe_job({name!r}) for what it waits for"
        )
