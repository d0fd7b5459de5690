"""One TrainJob asked of a cluster, for its page or its report. A part that cannot be read is named, and left out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from trainplane.client.errors import TrainplaneError
from trainplane.kube.errors import KubeError
from trainplane.page.look import handed_on, look_at
from trainplane.page.origins import origins_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from trainplane.client.aio import AsyncTrainerClient
    from trainplane.client.types.renderings import RenderedJob
    from trainplane.page.look import Look


async def ask(client: AsyncTrainerClient, name: str, now: Callable[[], datetime], *, to_hand_on: bool = False) -> Look:
    """Return a look at a TrainJob; `to_hand_on`: without what a bundle would leave out.

    Raises:
        TrainplaneError: the TrainJob cannot be read.
    """
    facts, known, rendered = await asyncio.gather(
        client.backend.collect(name), client.get_job(name), _rendered(client, name)
    )
    if isinstance(rendered, str):
        origins, unread = [], [f"where its pods come from: {rendered}"]
    else:
        origins, unread = origins_of(rendered, values=not to_hand_on), []
    return look_at(handed_on(facts) if to_hand_on else facts, now(), known=known, origins=origins, unread=unread)


async def _rendered(client: AsyncTrainerClient, name: str) -> RenderedJob | str:
    """Return what a TrainJob becomes, or why that cannot be told: its runtime may be gone, or not ours to read."""
    try:
        return await client.render_job(name)
    except (TrainplaneError, KubeError) as error:
        return str(error)
