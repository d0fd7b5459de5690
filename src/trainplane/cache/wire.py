"""The words that head, workers and clients exchange, besides Flight's own.

Actions are named `trainplane-cache-*`. What a worker says to the head is signed with the cache's key and has a time, so
nobody else can offer rows; the answer is signed too, so nobody else can make a worker read files. What a client says
needs no signature, only the token, where one is asked for.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeVar

import msgspec
import pyarrow.flight as fl
from msgspec import Meta

from trainplane.cache import errors
from trainplane.cache.errors import CacheError, DeniedError, InvalidError, UnreachableError
from trainplane.cache.known import known

HELLO: Final = "trainplane-cache-hello"
"""A worker to the head: who I am, what I hold. The answer: the manifest and the members."""
MANIFEST: Final = "trainplane-cache-manifest"
"""Anybody to the head: the manifest of this name."""
OPEN: Final = "trainplane-cache-open"
"""A client to the head: what to read, with what grant, from whom."""
STATUS: Final = "trainplane-cache-status"
"""Anybody to head or worker: how far it is."""
COMMIT: Final = "trainplane-cache-commit"
"""A writer to the head: these parts are the dataset."""
ADOPT: Final = "trainplane-cache-adopt"
"""A worker to a head that restarted: the plan that was committed."""

GIVEN_UP: Final = b"trainplane-cache-given-up"
"""A writer to a worker, beside the batches of a part: the rest will not come, forget what did."""

LARGEST: Final = 64 << 20
"""Bytes of any word but a manifest."""

Name = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")]
Location = Annotated[str, Meta(pattern=r"^grpc(\+tls)?://[A-Za-z0-9.\[\]:-]{1,300}$")]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
T = TypeVar("T")


class Hello(msgspec.Struct, frozen=True):
    """What a worker says of itself, again and again."""

    name: Name
    location: Location
    at: float
    """The worker's clock: an old word is not played again."""
    manifest: str = ""
    held: dict[Annotated[int, Meta(ge=0)], Digest] = {}
    """The digest of each segment that it serves, by the fragment's number."""
    trouble: Annotated[str, Meta(max_length=1000)] = ""
    """Why it cannot load what it should."""
    served: Annotated[int, Meta(ge=0)] = 0
    """Blocks that clients had of it or wrote to it: a cache that is used is not idle."""


class Welcome(msgspec.Struct, frozen=True):
    """What the head answers: what to hold."""

    manifest: Digest
    members: tuple[Name, ...]
    replicas: Annotated[int, Meta(ge=1, le=16)]
    refused: tuple[int, ...] = ()
    """Fragments whose bytes are not what another worker has."""
    over: bool = False
    """Nobody has read for long enough: the head ends, and its workers with it."""


class Opened(msgspec.Struct, frozen=True):
    """What a client needs to read."""

    manifest: Digest
    grant: bytes
    members: dict[str, Location]
    """Workers that live."""
    replicas: Annotated[int, Meta(ge=1, le=16)]


class Status(msgspec.Struct, frozen=True):
    """How far head or worker is."""

    ready: bool
    manifest: str
    fragments: int
    held: int
    """Fragments that somebody (at the head) or this worker holds."""
    rows: int
    trouble: str = ""


known(Hello, Welcome, Opened, Status)


def decoded(content: Any, kind: type[T], limit: int = LARGEST) -> T:
    """Return what somebody else said, if it is that."""
    if len(content) > limit:
        raise InvalidError(f"{len(content)} bytes are more than the {limit} of such a message")
    try:
        return msgspec.json.decode(memoryview(content), type=kind)
    except msgspec.MsgspecError as error:
        raise InvalidError(f"a message that is no {kind.__name__}: {str(error)[:200]}") from None


def printable(text: str) -> str:
    """Return words of somebody else as far as they are quoted: short, and without control characters."""
    return "".join(character if character.isprintable() else "?" for character in text[:500])


def as_flight(error: CacheError) -> Exception:
    """Return an error as Flight carries it to the other side: its class by name, in front of its words."""
    kind = fl.FlightUnavailableError if error.retryable else fl.FlightServerError
    if isinstance(error, DeniedError):
        kind = fl.FlightUnauthorizedError
    return kind(f"[trainplane {error.cause}] {error}")  # type: ignore[no-any-return] # pyarrow has no types


def from_flight(error: Exception, whom: str) -> CacheError:
    """Return what another side said as an error of ours; whatever is none of ours means that it is not reached."""
    words = str(error)
    _, mark, rest = words.partition("[trainplane ")
    cause, _, message = rest.partition("] ")
    kind = getattr(errors, f"{cause}Error", None) if mark else None
    if isinstance(kind, type) and issubclass(kind, CacheError):
        return kind(printable(message.partition(". gRPC client debug")[0].partition(". Detail:")[0]))
    return UnreachableError(f"{whom} does not answer: {printable(words)[:200]}")
