"""Notices an input that takes too long or too much: a limit of CPU time per case, and memory before and after.

CPU time, not time on the wall: a busy machine makes nobody hang. The alarm interrupts Python code where it is, so the
stack of a hang is known; C code that never comes back is seen from outside (`campaign`).
"""

from __future__ import annotations

import ctypes
import gc
import resource
import signal
import traceback
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

HANG_SECONDS: Final = 1.0
"""CPU seconds that a case may take."""
CASE_MEMORY_MB: Final = 256
"""MB by which one case may raise the peak of the process. An object of 1.5 MB is allowed 64; imports happen too."""
PROCESS_MEMORY_MB: Final = 3072
"""MB of address space that a worker may take beyond what it began with, which is its parent's: a bomb ends as
MemoryError and not as the machine's trouble."""

_MB: Final = 1 << 20
_RECURSION: Final = 50
"""Times that a function stands in one stack above which it is a recursion."""


class HangError(BaseException):
    """A case took longer than it may. No `Exception`: code that catches those must not go on."""


@dataclass
class Alarm:
    """Whether it rang, and where: an event loop may swallow what was raised in it."""

    rang: str = ""
    """The innermost line of ours that ran then."""


@contextmanager
def alarm(seconds: float = HANG_SECONDS) -> Iterator[Alarm]:
    """Raise HangError in whatever runs when so much CPU time is used up."""
    noted = Alarm()

    def ring(_: int, frame: FrameType | None) -> None:
        noted.rang = innermost(traceback.extract_stack(frame))
        raise HangError(f"more than {seconds:g} s of CPU")

    former = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield noted
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, former)


def innermost(frames: traceback.StackSummary) -> str:
    """Return the last line of ours in a stack, and of a recursion the function that began it."""
    ours = [frame for frame in frames if "/trainplane/" in frame.filename] or list(frames)
    if not ours:
        return ""
    times = Counter((frame.filename, frame.name) for frame in ours)
    frame = next((one for one in ours if times[one.filename, one.name] > _RECURSION), ours[-1])
    file = frame.filename.rpartition("/trainplane/")[2]
    return f"{file}:{frame.lineno} {frame.name}"


def resident_mb() -> float:
    """Return the MB that this process holds, after giving back what it can."""
    gc.collect()
    with suppress(OSError, AttributeError):  # another libc keeps what it keeps
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / _MB


def peak_mb() -> float:
    """Return the most MB that this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def limit_memory(mb: int = PROCESS_MEMORY_MB) -> None:
    """Let allocations fail that go so far beyond what the process has."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + mb * _MB, resource.getrlimit(resource.RLIMIT_AS)[1]))
