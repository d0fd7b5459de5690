"""Starts and stops a process's reflectors and controllers in the right order.

Up: all reflectors; when all stores that are needed are in sync, `ready`; when we lead, the controllers. A follower
thus keeps its stores warm and its queues full, and begins within a moment of becoming leader. Down: controllers first,
so that the last reconciles still see the world move; then what the caller still has to do with stores that are fresh
(`closing`: give the Lease back, answer the last reviews); then reflectors.
"""

from __future__ import annotations

import asyncio
import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import aiohttp  # noqa: F401 importing it takes 100 ms: now, not at the first request in the running loop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from trainplane.kube.controller import Controller
    from trainplane.kube.reflector import Reflector


class Manager:
    """Everything that runs in a process, as one thing to run."""

    def __init__(self, reflectors: Sequence[Reflector], controllers: Sequence[Controller[Any]]) -> None:
        self.ready = asyncio.Event()
        """Set when all stores are in sync."""
        self._reflectors = reflectors
        self._controllers = controllers
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ask `run` to come to its end; safe as a signal handler of the event loop."""
        self._stopping.set()

    @property
    def stopping(self) -> bool:
        """Whether the end was asked for."""
        return self._stopping.is_set()

    async def run(
        self,
        lead: Callable[[], Awaitable[object]] | None = None,
        closing: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """Run until `stop`. `lead` returns when this process may work; without it, it may at once.

        `closing` is awaited once the controllers have ended and before the reflectors do.

        Raises an ExceptionGroup if any part raises: a bug, and half a control plane is worse than a restart.
        """
        async with asyncio.TaskGroup() as group:
            mirrors = [group.create_task(reflector.run()) for reflector in self._reflectors]
            work = group.create_task(self._work(lead))
            await self._stopping.wait()
            await asyncio.gather(*(controller.stop() for controller in self._controllers))
            work.cancel()
            await asyncio.wait({work})
            if closing is not None:
                await closing()
            for mirror in mirrors:
                mirror.cancel()

    async def _work(self, lead: Callable[[], Awaitable[object]] | None) -> None:
        with initial_sync_uncollected():
            for reflector in self._reflectors:
                await reflector.settled.wait()
        self.ready.set()
        if lead is not None:
            await lead()
        async with asyncio.TaskGroup() as group:
            for controller in self._controllers:
                group.create_task(controller.run())


@contextmanager
def initial_sync_uncollected() -> Iterator[None]:
    """Spare the garbage collector what a start builds up: run no full collection meanwhile, then none on all that.

    Modules, tables and queues of 100,000 keys live long; walking them again and again would stall the loop for nothing.
    They are freed by reference count as before. Only the young are collected at the end: a full collection there would
    be the very stall to avoid.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(*thresholds[:2], 1_000_000)
    try:
        yield
        gc.collect(1)
        gc.freeze()
    finally:
        gc.set_threshold(*thresholds)
