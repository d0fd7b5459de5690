"""Stacks that a process printed because it got on no more, and where it stands by them.

CPython's `faulthandler` prints them when a timer runs out, which `trainplane.progress` sets: a head, then each thread
with its frames, the most recent call first, the main thread last. What a program prints after them says that it goes
on.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from trainplane.explain.cleaning import clean, tame

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEAD: Final = re.compile(r"^Timeout \(\d{1,4}:\d\d:\d\d(?:\.\d{1,6})?\)!$")
_THREAD: Final = re.compile(r"^(?:Current t|T)hread 0x[0-9a-f]{1,16} .{0,80}\(most recent call first\):$")
_FRAME: Final = re.compile(r'^ {1,4}File "([^"]{1,400})", line (\d{1,9}) in (.{1,200})$')
_MORE: Final = re.compile(r"^ {1,4}(?:\.\.\.|<[\w ]{1,40}>)$")
_LIBRARY: Final = re.compile(r"/(?:site|dist)-packages/|/lib(?:64)?/python\d|^<frozen ")
_COLLECTIVE: Final = re.compile(r"/torch/distributed/(?!elastic)|/mpi4py/|/horovod/|/deepspeed/comm/")
"""Files of libraries in which a process waits for the others."""


class Frame(NamedTuple):
    """One call."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{clean(self.function, 80)} ({clean(self.file, 120)}:{self.line})"


class Stand(NamedTuple):
    """Where a process stands."""

    frame: Frame
    """The innermost call of the program's own code, or of all if it has none."""
    waits: bool
    """Whether it waits for other nodes there, as far as can be seen."""

    def __str__(self) -> str:
        return f"{self.frame}{', where it waits for others' if self.waits else ''}"


def read_stand(lines: Sequence[str]) -> Stand | None:
    """Return where a process stands by the stacks at the end of its log; None if there are none, or more was said."""
    tamed = [tame(line, 512) for line in lines]
    while tamed and not tamed[-1].strip():
        tamed.pop()
    frames: list[Frame] = []
    for line in reversed(tamed):
        found = _FRAME.match(line)
        if found:
            frames.append(Frame(found[1], int(found[2]), found[3]))
        elif _THREAD.match(line):
            break  # the last thread is the main one
        elif not _MORE.match(line):
            return None
    if not frames or not _is_timed(tamed):
        return None
    frames.reverse()
    own = next((place for place, frame in enumerate(frames) if not _LIBRARY.search(frame.file)), 0)
    return Stand(frames[own], any(_COLLECTIVE.search(frame.file) for frame in frames[: own + 1]))


def without_stacks(lines: list[str]) -> list[str]:
    """Return a log without such stacks: they say where it stood, and nothing of what was wrong."""
    kept: list[str] = []
    within = False
    for line in lines:
        within = bool(_HEAD.match(line)) or (within and _is_of_stacks(line))
        if not within:
            kept.append(line)
    return kept


def _is_timed(lines: list[str]) -> bool:
    """Return whether stacks at the end were printed by a timer, or go on above what is seen: a crash names itself."""
    for line in reversed(lines):
        if _HEAD.match(line):
            return True
        if not _is_of_stacks(line):
            return False
    return True


def _is_of_stacks(line: str) -> bool:
    return not line.strip() or any(pattern.match(line) for pattern in (_FRAME, _THREAD, _MORE))
