"""What is fuzzed: a target makes inputs by a seed and runs each through the code that strangers' bytes reach.

An input is bytes, whatever it means, so that every case can be kept in a file, replayed, made smaller and used as a
seed of coverage-guided fuzzing. `run` returns what became of it in a word (`refused`, `rendered`) or raises: a typed
refusal is the target's to catch, anything else that comes out is a crash.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random


class BrokenPromiseError(AssertionError):
    """The code answered, but not as it promises: a secret in a message, an accepted object that does not render."""


class Target(ABC):
    """One way in. Made once in each process; `close` gives back what it holds."""

    name: ClassVar[str]
    cases: ClassVar[int]
    """Inputs of a run at full size."""

    @abstractmethod
    def generate(self, random: Random) -> bytes:
        """Return an input: the same one for the same state of `random`, in every process."""

    @abstractmethod
    def run(self, data: bytes) -> str:
        """Run an input, any bytes at all; return what became of it."""

    def seeds(self) -> Iterable[bytes]:
        """Return a few good inputs for coverage-guided fuzzing to begin with, small ones."""
        return ()

    def close(self) -> None:  # noqa: B027 most hold nothing
        """Give back files, sockets and loops."""
