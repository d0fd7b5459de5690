"""A candidate for a Lease, as a process of its own: `candidate.py KUBECONFIG NAMESPACE LEASE NAME`.

It stands for election again and again, each time under a new identity, as a restarted process would. What it writes
and when it led goes to stdout, a line of JSON each, stamped by the machine's monotonic clock, which all processes of a
machine share. Words on stdin are orders: `resign` gives the Lease back, `abandon` stops without giving it back, `mute`
cuts the way to the API server until leadership is lost.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from trainplane.kube.client import Client
from trainplane.kube.clock import SystemClock
from trainplane.kube.lease import LeaderElector, LeadershipLostError, LeaseSettings
from trainplane.kube.loading import load_config

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trainplane.kube.resource import Resource

LEASE_DURATION = 1
RENEW_DEADLINE = 0.7
RETRY_PERIOD = 0.1
SAMPLE_SECONDS = 0.002


def say(**words: Any) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


class StampedClock(SystemClock):
    """Remembers its last answer: the very instant that `is_leader` was judged at."""

    def __init__(self) -> None:
        self.told = 0.0

    def monotonic(self) -> float:
        self.told = time.monotonic()
        return self.told


class Recorder:
    """A client that writes down each claim, as wide as it could count: from before the leader knows to after."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.muted = asyncio.Event()

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Any:
        await self._pass()
        return await self._client.get(resource, name, namespace)

    async def create(self, resource: Resource, obj: dict[str, Any], namespace: str | None = None) -> Any:
        return await self._write(self._client.create, resource, obj, namespace)

    async def replace(self, resource: Resource, obj: dict[str, Any], namespace: str | None = None) -> Any:
        return await self._write(self._client.replace, resource, obj, namespace)

    async def _write(
        self, write: Callable[..., Awaitable[Any]], resource: Resource, obj: dict[str, Any], namespace: str | None
    ) -> Any:
        holder = obj["spec"]["holderIdentity"]
        sent = time.monotonic()
        if not holder:
            say(resigned=True, at=sent)
        await self._pass()
        answer = await write(resource, obj, namespace)
        if holder:
            say(claimed=holder, sent=sent, answered=time.monotonic(), term=answer["spec"]["leaseTransitions"])
        return answer

    async def _pass(self) -> None:
        if self.muted.is_set():
            await asyncio.Event().wait()


async def sample(elector: LeaderElector, clock: StampedClock, led: list[float]) -> None:
    while True:
        if elector.is_leader():
            led[:] = [led[0] if led else clock.told, clock.told]
        await asyncio.sleep(SAMPLE_SECONDS)


async def stand(client: Client, settings: LeaseSettings, identity: str, orders: asyncio.Queue[str]) -> None:
    """Stand for election once, from the first attempt to the end of leadership."""
    recorder, clock = Recorder(client), StampedClock()
    elector = LeaderElector(recorder, settings, clock, identity=identity)
    led: list[float] = []
    sampling = asyncio.create_task(sample(elector, clock, led))
    running = asyncio.create_task(elector.run(asyncio.Event().wait))  # type: ignore[arg-type] # its result is not used
    try:
        while not running.done():
            order = asyncio.create_task(orders.get())
            await asyncio.wait({running, order}, return_when=asyncio.FIRST_COMPLETED)
            if order.done() and elector.is_leader():
                if order.result() in {"mute", "abandon"}:
                    recorder.muted.set()
                if order.result() in {"resign", "abandon"}:
                    running.cancel()
                    await asyncio.wait({running})
            order.cancel()
        await running
    except (LeadershipLostError, asyncio.CancelledError):
        pass
    finally:
        sampling.cancel()
        say(ended=identity, led=led)


async def main(kubeconfig: str, namespace: str, lease: str, name: str) -> None:
    orders: asyncio.Queue[str] = asyncio.Queue()
    asyncio.get_running_loop().add_reader(0, read_orders, orders)
    settings = LeaseSettings(namespace, lease, LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD)
    async with Client.connect(load_config(kubeconfig)) as client:
        for number in itertools.count():
            await stand(client, settings, f"{name}-{number}", orders)
            await asyncio.sleep(2 * RETRY_PERIOD)  # so that another is next


def read_orders(orders: asyncio.Queue[str]) -> None:
    words = os.read(0, 4096).decode().split()
    if not words:
        os._exit(0)  # the test is gone
    for word in words:
        orders.put_nowait(word)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
