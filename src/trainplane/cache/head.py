"""The head: knows the plan and the workers, and tells clients where rows are. No row goes through it.

Nothing it knows must outlive it: the manifest is found again by its content, workers say again what they hold, and
grants are good as long as the key is.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow.flight as fl

from trainplane.cache import wire
from trainplane.cache.blocks import Blocks
from trainplane.cache.errors import DeniedError, InvalidError, UnreachableError
from trainplane.cache.placement import REPLICAS
from trainplane.cache.roster import Roster
from trainplane.cache.serving import Door, answered
from trainplane.cache.tickets import LEEWAY, Signer, ticket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trainplane.cache.manifest import Manifest

GOOD_FOR: Final = 24 * 3600.0
"""Seconds that a grant may be used: a client that reads longer opens anew."""


class Head(fl.FlightServerBase):  # type: ignore[misc] # pyarrow has no types
    """Serves the plan of one dataset."""

    def __init__(
        self,
        manifest: Manifest,
        signer: Signer,
        door: Door,
        *,
        replicas: int = REPLICAS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(door.location, **door.options)
        self._manifest, self._signer, self._clock = manifest, signer, clock
        self._blocks = Blocks(manifest)
        self._roster = Roster(manifest, replicas)
        # Flight serves each call on a thread of its own.
        self._lock = threading.Lock()

    @property
    def status(self) -> wire.Status:
        """How far loading is."""
        now = self._clock()
        with self._lock:
            held, trouble = self._roster.held(now), self._roster.trouble(now)
        count = len(self._manifest.fragments)
        return wire.Status(held == count, self._manifest.name, count, held, self._manifest.rows, trouble)

    @answered
    def get_schema(self, context: Any, descriptor: Any) -> Any:
        """Answer with the schema of what is served."""
        del context, descriptor
        return fl.SchemaResult(self._manifest.arrow_schema)

    @answered
    def list_flights(self, context: Any, criteria: bytes) -> Iterator[Any]:
        """Answer with the one dataset."""
        del context, criteria
        return iter([self._info(fl.FlightDescriptor.for_path(), 0, self._blocks.total)])

    @answered
    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        """Answer with endpoints for all rows or, as the reference's clients ask (`[rank, world]`), for a rank's share.

        Those shares are the reference's own, without order or seed: equal but for the last. One that is empty there is
        an error here as well.
        """
        del context
        path = [part.decode(errors="replace") for part in descriptor.path or []]
        if not path:
            return self._info(descriptor, 0, self._blocks.total)
        try:
            rank, world = map(_number, path)
        except ValueError:
            raise InvalidError(f"the path {wire.printable(str(path))} is not [rank, world]") from None
        each = -(-self._blocks.total // world) if world else 0
        start, stop = rank * each, min((rank + 1) * each, self._blocks.total)
        if rank >= world or start >= stop:
            raise InvalidError(f"Invalid partition range: rank {rank} of {world} has none of {self._blocks.total} rows")
        return self._info(descriptor, start, stop)

    @answered
    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        """Answer a word of `wire`."""
        del context
        content = action.body.to_pybytes() if action.body is not None else b""
        if action.type == wire.MANIFEST:
            return iter([self._manifest.encoded])
        if action.type == wire.STATUS:
            return iter([msgspec.json.encode(self.status)])
        if action.type == wire.OPEN:
            return iter([msgspec.json.encode(self._opened())])
        if action.type == wire.HELLO:
            return iter([self._signer.sign("welcome", msgspec.json.encode(self._welcome(content)))])
        raise InvalidError(f"there is no action {wire.printable(action.type)!r}")

    @answered
    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        """Answer with what can be done."""
        del context
        return [
            (wire.OPEN, "what to read, with what grant, from whom"),
            (wire.MANIFEST, "the plan of the dataset"),
            (wire.STATUS, "how far loading is"),
            (wire.HELLO, "a worker says what it holds (signed)"),
        ]

    def _welcome(self, content: bytes) -> wire.Welcome:
        if len(content) > wire.LARGEST:
            raise InvalidError("a hello that is too long")
        hello = wire.decoded(self._signer.check("hello", content), wire.Hello)
        now = self._clock()
        if abs(hello.at - now) > LEEWAY:
            raise DeniedError(
                f"the clocks of {hello.name} and the head differ by {abs(hello.at - now):.0f} s", "set them"
            )
        with self._lock:
            refused = self._roster.hear(hello, now)
            return wire.Welcome(self._manifest.name, self._roster.members(now), self._roster.replicas, refused)

    def _opened(self) -> wire.Opened:
        now = self._require_ready()
        with self._lock:
            living = self._roster.living(now)
        grant = self._signer.grant(self._manifest.name, 0, self._blocks.total, now + GOOD_FOR)
        return wire.Opened(self._manifest.name, grant, living, self._roster.replicas)

    def _require_ready(self) -> float:
        status = self.status
        if not status.ready:
            because = f": {status.trouble}" if status.trouble else ""
            raise UnreachableError(
                f"{status.held} of {status.fragments} fragments can be had{because}",
                "wait, or see to the cache's workers",
            )
        return self._clock()

    def _info(self, descriptor: Any, start: int, stop: int) -> Any:
        """Return one endpoint for each fragment that has some of these rows."""
        now = self._require_ready()
        endpoints = []
        for number in range(len(self._manifest.fragments)):
            begin, end = self._blocks.fragment_span(number)
            begin, end = max(begin, start), min(end, stop)
            if begin < end:
                with self._lock:
                    locations = self._roster.locations(number, now)[: self._roster.replicas]
                grant = self._signer.grant(self._manifest.name, begin, end, now + GOOD_FOR)
                endpoints.append(fl.FlightEndpoint(ticket(grant), locations))
        return fl.FlightInfo(self._manifest.arrow_schema, descriptor, endpoints, stop - start, -1)


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise ValueError(text)
    return int(text)
