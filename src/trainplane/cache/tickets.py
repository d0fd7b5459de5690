"""Signed permission to read rows, and signed words between a cache's own processes.

A grant says which rows of which manifest may be read until when. The head signs it with the key that its workers have
too; a worker that restarts honours grants of before. A ticket is a grant and, after it, the blocks that are asked for:
a client that knows the order asks for what it wants next without a word to the head.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from trainplane.cache.errors import DeniedError, ExpiredError, InvalidError
from trainplane.cache.known import known
from trainplane.cache.manifest import Count  # noqa: TC001 msgspec reads it

_MAC: Final = 32
_MAGIC: Final = b"TPC1"
LEEWAY: Final = 300.0
"""Seconds by which clocks of head and worker may differ."""
MOST_BLOCKS: Final = 4096
LARGEST: Final = 1024 + 4 * MOST_BLOCKS
SHORTEST_KEY: Final = 16


class Grant(msgspec.Struct, frozen=True, array_like=True):
    """Which rows may be read."""

    version: Literal[1]
    manifest: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    start: Count
    stop: Count
    expires: float


class Ticket(msgspec.Struct, frozen=True):
    """What a client asks a worker for."""

    grant: Grant
    blocks: tuple[int, ...]
    """In this order, whole; none named: the rows of the grant as they lie."""


known(Grant)


class Signer:
    """Signs and checks with one key; what is signed for one purpose is no good for another."""

    def __init__(self, key: bytes) -> None:
        if len(key) < SHORTEST_KEY:
            raise InvalidError(f"the cache's key has {len(key)} bytes", f"give it {SHORTEST_KEY} random ones or more")
        self._key = key

    def sign(self, purpose: str, content: bytes) -> bytes:
        """Return content with its signature before it."""
        return hmac.digest(self._key, _framed(purpose, content), hashlib.sha256) + content

    def check(self, purpose: str, signed: bytes) -> bytes:
        """Return what was signed for a purpose."""
        mac, content = signed[:_MAC], signed[_MAC:]
        if not hmac.compare_digest(mac, hmac.digest(self._key, _framed(purpose, content), hashlib.sha256)):
            raise DeniedError("a signature that is not of this cache's key")
        return content

    def grant(self, manifest: str, start: int, stop: int, expires: float) -> bytes:
        """Return permission to read rows until a time, as bytes for `ticket`."""
        return self.sign("grant", msgspec.json.encode(Grant(1, manifest, start, stop, expires)))

    def read(self, ticket: bytes, now: float) -> Ticket:
        """Return what a ticket asks for, if it may."""
        if len(ticket) > LARGEST or ticket[:4] != _MAGIC or len(ticket) < 6:
            raise DeniedError("a ticket that is none of ours")
        size = struct.unpack_from("<H", ticket, 4)[0]
        content, rest = self.check("grant", ticket[6 : 6 + size]), ticket[6 + size :]
        if len(rest) % 4:
            raise DeniedError("a ticket that is cut off")
        grant = msgspec.json.decode(content, type=Grant)
        if now > grant.expires + LEEWAY:
            raise ExpiredError("the ticket has expired")
        return Ticket(grant, struct.unpack(f"<{len(rest) // 4}I", rest))


def ticket(grant: bytes, blocks: tuple[int, ...] = ()) -> bytes:
    """Return a grant and the blocks that are asked for, as a worker reads them."""
    return _MAGIC + struct.pack("<H", len(grant)) + grant + struct.pack(f"<{len(blocks)}I", *blocks)


def _framed(purpose: str, content: bytes) -> bytes:
    return purpose.encode() + b"\0" + content
