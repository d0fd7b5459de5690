"""Log lines and changes of a TrainJob as they come, as server-sent events for a page that is open.

    line      {step, time, text}: a line that a step printed, fit to be shown
    changed   {}: the TrainJob differs from what the page shows
    trouble   {message}: why there are no more lines, or no more changes
    end       {}: nothing more will come

A page that does not keep up is waited for, so a job that prints much costs neither this process nor the browser more
memory. Comments in between tell a browser that we are here, and us that it is gone.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from trainplane.client.errors import TrainplaneError
from trainplane.explain.cleaning import clean
from trainplane.kube.errors import KubeError
from trainplane.page.markup import MOST_TEXT

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trainplane.client.aio import AsyncTrainerClient

HEARTBEAT: Final = 15.0
"""Seconds without news after which a comment is sent."""
_MOST_WAITING: Final = 256

News = asyncio.Queue[bytes | None]
"""Events; None where one of the sources has ended."""


async def follow(
    client: AsyncTrainerClient, name: str, *, tail: int, heartbeat: float = HEARTBEAT
) -> AsyncGenerator[bytes, None]:
    """Yield events of a TrainJob until it is over or gone, at first the last `tail` lines of each step."""
    news: News = asyncio.Queue(_MOST_WAITING)
    sources = [asyncio.ensure_future(one) for one in (_lines(client, name, tail, news), _changes(client, name, news))]
    running = len(sources)
    try:
        while running:
            try:
                async with asyncio.timeout(heartbeat):
                    event = await news.get()
            except TimeoutError:
                yield b": here\n\n"
                continue
            if event is None:
                running -= 1
            else:
                yield event
        yield frame("end", {})
    finally:
        for source in sources:
            source.cancel()
        await asyncio.gather(*sources, return_exceptions=True)


def frame(event: str, data: Any) -> bytes:
    """Return an event. JSON has no line ends of its own, so no data can begin another event."""
    return f"event: {event}\ndata: {json.dumps(data)}\n\n".encode()


async def _lines(client: AsyncTrainerClient, name: str, tail: int, news: News) -> None:
    try:
        async with aclosing(client.stream_job_logs(name, follow=True, tail=tail)) as lines:
            async for line in lines:
                when = f"{line.time:%H:%M:%S}" if line.time else ""
                text = clean(line.text, MOST_TEXT)
                await news.put(frame("line", {"step": clean(line.step), "time": when, "text": text}))
    except (TrainplaneError, KubeError) as error:
        await news.put(frame("trouble", {"message": clean(str(error))}))
    finally:
        await news.put(None)


async def _changes(client: AsyncTrainerClient, name: str, news: News) -> None:
    try:
        async with aclosing(client.watch_job(name)) as changes:
            async for _ in changes:
                await news.put(frame("changed", {}))
    except (TrainplaneError, KubeError) as error:
        await news.put(frame("trouble", {"message": clean(str(error))}))
    finally:
        await news.put(None)
