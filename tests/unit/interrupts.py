"""Ctrl-C at a moment that is known: when the main thread waits for another one."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_WAITING = threading.Event.wait.__code__


def main_waits() -> bool:
    """Return whether the main thread waits for an event."""
    frame: FrameType | None = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None and frame.f_code is not _WAITING:
        frame = frame.f_back
    return frame is not None


def interrupt() -> None:
    """Press Ctrl-C."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


async def interrupt_once_waited_for() -> None:
    """Press Ctrl-C once the main thread waits for what runs here, on a loop of another thread."""
    while not main_waits():  # noqa: ASYNC110 a thread does not tell that it waits
        await asyncio.sleep(0.001)
    interrupt()
