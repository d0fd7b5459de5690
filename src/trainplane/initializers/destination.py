"""What a scheme is to whoever sends: something that takes files and, last of all, the manifest that makes them count.

A reader that waits for a manifest never sees half: files have their names before it, and what would make it untrue is
done only after it was withdrawn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One file to send, as it was when it was looked at."""

    path: str
    """Where it goes, below the destination, and what it is called in the folder."""
    size: int
    version: str
    """What changes when the file does: size, times and inode."""
    real: str
    """Where it lies in the folder: another path if it is a link."""


class Content(ABC):
    """The bytes of one file, read once from its beginning to its end; a `ChangedError` if they are others meanwhile."""

    file: Outgoing
    descriptor: int
    """The opened file, for libraries that want to read by themselves."""

    @abstractmethod
    def blocks(self, size: int) -> AsyncIterator[bytes]:
        """Yield blocks of one size, the last may be shorter; after the last one the file is as it was before."""

    @abstractmethod
    def check(self) -> None:
        """Raise a `ChangedError` if the file was written since."""

    @property
    @abstractmethod
    def sha256(self) -> str:
        """The digest of what was read."""


class Destination(ABC):
    """Where an output goes. A break is a `PauseError`, which may be tried again; anything else is final."""

    lasting: ClassVar[bool] = True
    """What was sent is there before it is published, so a process that takes up need not send it again."""
    large: ClassVar[int] = 1 << 62
    """Files over so many bytes are sent one at a time, because each is sent in several parts at once."""

    def refuses(self, path: str) -> str:
        """Return why a path cannot be stored here; empty if it can."""
        del path
        return ""

    @abstractmethod
    async def send(self, content: Content) -> str:
        """Store one file whole, or not at all; return what the destination calls this very version."""

    @abstractmethod
    async def holds(self, file: Outgoing, mark: str) -> bool:
        """Return whether the destination has the version that `send` returned; True if we may not ask."""

    @abstractmethod
    async def withdraw(self, name: str) -> None:
        """Remove a manifest, if there is one."""

    @abstractmethod
    async def publish(self, name: str, manifest: bytes) -> None:
        """Store a manifest: with it all that was sent counts. An `OccupiedError` if another one is there."""

    async def close(self) -> None:  # noqa: B027 most hold nothing
        """Let go of connections."""
