"""What a scheme is to the rest of the room: something that lists files and reads ranges of them."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from trainplane.initializers.errors import ThrottledError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from trainplane.initializers.errors import InitializerError


Piece: TypeAlias = "bytes | memoryview"
"""Some bytes of a file; a view where a copy would be of no use."""


@dataclass(frozen=True, slots=True)
class File:
    """One file as its source lists it. Nothing in it is to be believed."""

    path: str
    """Where it goes, below the folder."""
    size: int | None
    """Bytes; None if the source does not say, and then it is read in one piece."""
    key: str
    """What the source calls it."""
    version: str = ""
    """What changes when the content does: an ETag, a commit."""
    algorithm: str = ""
    """How `digest` is made: a name that hashlib knows, or `git`; empty for no checksum."""
    digest: str = ""
    """The checksum in lower hexadecimal digits."""
    whole: bool = False
    """The source can only read it from its beginning to its end."""


class Source(ABC):
    """One dataset or model at its origin."""

    revision: str = ""
    """What the source calls the state that was listed, if it has a name for it."""

    @abstractmethod
    def list(self) -> AsyncIterator[File]:
        """Yield the files; none outside what the URI names."""

    @abstractmethod
    def read(self, file: File, start: int, stop: int | None) -> AsyncIterator[Piece]:
        """Yield the bytes from `start` to before `stop`, in pieces of a few MiB at most.

        Yields at most what was asked for. A break is a `PauseError`, which may be tried again from where it broke;
        anything else is final.
        """

    async def verdict(self, file: File, digest: str) -> bool:
        """Return whether a digest that is not `file.digest` is fine after all; most sources say no."""
        del file, digest
        return False

    async def close(self) -> None:  # noqa: B027 most sources hold nothing
        """Let go of connections."""


class ThreadedSource(Source):
    """A source whose library waits well in threads: bytes that the same core reads and writes are copied cheaply.

    It must notice a silence by itself: nobody can interrupt a thread.
    """

    @abstractmethod
    async def ask(self, file: File, start: int, stop: int | None) -> Iterator[Piece]:
        """Ask for a range; return its pieces for a thread to iterate over. What `read` promises holds here too."""

    async def read(self, file: File, start: int, stop: int | None) -> AsyncIterator[Piece]:
        """Yield the pieces in the loop, for those who have no thread."""
        pieces = await self.ask(file, start, stop)
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            yield piece


class PauseError(Exception):
    """A reading broke off in a way that another try may mend."""

    def __init__(self, reason: str, *, throttled: bool = False, after: float = 0.0) -> None:
        super().__init__(reason)
        self.throttled = throttled
        """The source asked for patience; otherwise it did not answer or broke off."""
        self.after = after
        """Seconds that the source asked to wait."""

    def final(self, seconds: float) -> InitializerError:
        """Return what it is once nobody wants to try again."""
        kind = ThrottledError if self.throttled else UnreachableError
        return kind(f"{self}; tried for {seconds:.0f} s without getting on")
