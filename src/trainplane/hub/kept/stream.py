"""A container's log as a stream of whole, stamped lines, from any moment on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from trainplane.hub.kept.lines import Splitter, nanoseconds
from trainplane.kube.query import with_query
from trainplane.kube.resource import PODS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trainplane.kube.client import Client


class Batch(NamedTuple):
    """Lines that came together. `rest` is what the stream ended with after its last newline, on its last batch."""

    lines: list[bytes]
    rest: bytes = b""


async def read(
    client: Client,
    namespace: str,
    pod: str,
    container: str,
    *,
    follow: bool = False,
    previous: bool = False,
    since: str | None = None,
) -> AsyncGenerator[Batch, None]:
    """Iterate over a container's log; the first batch may be empty and says that the stream is open.

    Remarks of the kubelet, which carry no time, are left out. Raises StreamError where the stream is cut; the half line
    that it may have ended in is then lost on purpose.
    """
    query = {"container": container, "timestamps": "true"}
    if follow:
        query["follow"] = "true"
    if previous:
        query["previous"] = "true"
    if since is not None:
        query["sinceTime"] = since
    splitter = Splitter()
    path = with_query(PODS.path(namespace, pod, "log"), query)
    async with client.transport.stream(path, accept="*/*") as chunks:
        yield Batch([])
        async for chunk in chunks:
            lines = [line for line in splitter.feed(chunk) if nanoseconds(line) is not None]
            if lines:
                yield Batch(lines)
    rest = splitter.rest()
    if nanoseconds(rest) is not None:
        yield Batch([], rest)
