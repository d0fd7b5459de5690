"""The same done with several TrainJobs: each is told, and one that cannot be done keeps no other from it."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Final

from trainplane.cli.errors import tell
from trainplane.cli.output import Output

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

AT_ONCE: Final = 16
"""Requests on their way: a namespace may have thousands of jobs."""


async def each(jobs: Sequence[str], act: Callable[[str], Awaitable[None]], done: Callable[[str], str]) -> int:
    """Do something with each TrainJob, print what was done, and return the exit code: 2 if one could not be done."""
    from trainplane.client.errors import TrainplaneError  # noqa: PLC0415 heavy

    printed, room, codes = Output(sys.stdout), asyncio.Semaphore(AT_ONCE), [0]

    async def one(job: str) -> None:
        async with room:
            try:
                await act(job)
            except TrainplaneError as error:
                codes.append(tell(error, verbose=False))
            else:
                printed.line(done(job))

    await asyncio.gather(*map(one, dict.fromkeys(jobs)))
    return max(codes)
