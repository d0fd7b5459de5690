"""The head: knows the plan and the workers, and tells clients where rows are. No row goes through it.

Nothing it knows must outlive it: the manifest is found again by its content, workers say again what they hold, and
grants are good as long as the key is.
"""

from __future__ import annotations

import hashlib
import threading
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.flight as fl

from trainplane.cache import reference, wire
from trainplane.cache.blocks import Blocks
from trainplane.cache.errors import DeniedError, InvalidError, NotFoundError, UnreachableError
from trainplane.cache.manifest import read_manifest
from trainplane.cache.meter import Sample
from trainplane.cache.placement import REPLICAS, holders
from trainplane.cache.roster import Roster
from trainplane.cache.serving import Door, answered
from trainplane.cache.tickets import LEEWAY, Signer, ticket
from trainplane.cache.written import Commit, Committed, address, is_open, sealed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from trainplane.cache.manifest import Manifest

GOOD_FOR: Final = 24 * 3600.0
"""Seconds that a grant may be used: a client that reads longer opens anew."""
_COMMIT_SECONDS: Final = 60.0
"""How long a commit waits for workers to take up the plan: they ask every few seconds."""


class Head(fl.FlightServerBase):  # type: ignore[misc] # pyarrow has no types
    """Serves the plan of one dataset."""

    def __init__(
        self,
        manifest: Manifest,
        signer: Signer,
        door: Door,
        *,
        replicas: int = REPLICAS,
        expected: Collection[str] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(door.location, **door.options)
        self._signer, self._clock = signer, clock
        self._replicas, self._expected = replicas, expected
        # Flight serves each call on a thread of its own.
        self._lock = threading.Lock()
        self._heard = threading.Condition(self._lock)
        """A worker has said something."""
        self._serve_plan(manifest)
        self._asked = clock()
        """When a client last asked, here or at a worker."""
        self._served: dict[str, int] = {}
        self._over = False
        self._told: set[str] = set()
        """Workers that know that it is over."""

    def _serve_plan(self, manifest: Manifest, known: Collection[str] = ()) -> None:
        self._manifest, self._blocks = manifest, Blocks(manifest)
        self._roster = Roster(manifest, self._replicas, {*self._expected, *known}, self._clock())

    @property
    def status(self) -> wire.Status:
        """How far loading is."""
        now = self._clock()
        with self._lock:
            manifest, roster = self._manifest, self._roster
            held, trouble = roster.held(now), roster.trouble(now)
            # One that waits to be written is ready for that.
            ready = roster.takes_all(now) if is_open(manifest) else roster.ready(now)
        return wire.Status(ready, manifest.name, len(manifest.fragments), held, manifest.rows, trouble)

    @property
    def taking(self) -> dict[str, str]:
        """Where parts can be written, by worker."""
        with self._lock:
            return self._roster.taking(self._clock())

    @property
    def idle(self) -> float:
        """Seconds since a client last asked, here or at a worker; none while it is loading."""
        now = self._clock()
        if not self.status.ready:
            self._asked = now
        return now - self._asked

    def end(self) -> None:
        """Tell workers from now on that it is over."""
        self._over = True

    @property
    def ended(self) -> bool:
        """Whether every worker that lives knows that it is over."""
        with self._lock:
            return self._over and self._told.issuperset(self._roster.living(self._clock()))

    @property
    def samples(self) -> list[Sample]:
        """The figures as they stand."""
        now = self._clock()
        with self._lock:
            holding = self._roster.holding(now)
            workers = len(self._roster.living(now))
        fragments = self._manifest.fragments
        return [
            Sample("rows", "gauge", "Rows of the dataset.", self._manifest.rows),
            Sample("source_bytes", "gauge", "Bytes of its files.", sum(one.size for one in fragments)),
            Sample(
                "filled_bytes", "gauge", "Of those, what a living worker has.", sum(fragments[n].size for n in holding)
            ),
            Sample("workers", "gauge", "Workers that live.", workers),
        ]

    @answered
    def get_schema(self, context: Any, descriptor: Any) -> Any:
        """Answer with the schema of what is served."""
        del context, descriptor
        self._require_committed()
        return fl.SchemaResult(self._manifest.arrow_schema)

    @answered
    def list_flights(self, context: Any, criteria: bytes) -> Iterator[Any]:
        """Answer with the one dataset."""
        del context, criteria
        return iter([self._info(fl.FlightDescriptor.for_path(), 0, self._blocks.total, self._roster.replicas)])

    @answered
    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        """Answer with endpoints for all rows or, as the reference's clients ask (`[rank, world]`), for a rank's share.

        Those shares are the reference's own, without order or seed: equal but for the last. One that is empty there is
        an error here as well.
        """
        del context
        self._asked = self._clock()
        path = [wire.printable(part.decode(errors="replace")) for part in descriptor.path or []]
        if is_open(self._manifest) and path:
            return self._places(descriptor)
        if not path:
            return self._info(descriptor, 0, self._blocks.total, self._roster.replicas)
        # The reference's clients read from every location of an endpoint, so that two would be every row twice.
        return self._info(descriptor, *reference.share(path, self._blocks.total), locations=1)

    @answered
    def do_get(self, context: Any, asked: Any) -> Any:
        """Say where rows are."""
        del context, asked
        raise InvalidError("the head has no rows", "ask the locations of an endpoint of GetFlightInfo for them")

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
        if action.type == wire.COMMIT:
            return iter([msgspec.json.encode(self._commit(wire.decoded(content, Commit)))])
        if action.type == wire.ADOPT:
            return iter([self._adopt(self._signer.check("adopt", content))])
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
            (wire.COMMIT, "a writer seals what it has written"),
            (wire.ADOPT, "a worker tells a head that restarted what was committed (signed)"),
        ]

    def _welcome(self, content: bytes) -> wire.Welcome:
        if len(content) > wire.LARGEST:
            raise InvalidError("a hello that is too long")
        hello = wire.decoded(self._signer.check("hello", content), wire.Hello)
        now = self._clock()
        if abs(hello.at - now) > LEEWAY:
            why = f"the clocks of {hello.name} and the head differ by {abs(hello.at - now):.0f} s"
            with self._lock:
                self._roster.turn_away(hello.name, why)
            raise DeniedError(why, "set them")
        with self._lock:
            refused = self._roster.hear(hello, now)
            if hello.served != self._served.get(hello.name, 0):
                self._served[hello.name], self._asked = hello.served, now
            self._heard.notify_all()
            if self._over:
                self._told.add(hello.name)
            members = self._roster.members(now)
            return wire.Welcome(self._manifest.name, members, self._roster.replicas, refused, self._over)

    def _places(self, descriptor: Any) -> Any:
        """Answer where a part is to be written: to those that will hold it."""
        where = address(descriptor.path)
        if where.dataset != self._manifest.source.location:
            raise NotFoundError(f"this cache takes {self._manifest.source.location!r} and no other dataset")
        taking = self.taking
        locations = [taking[name] for name in holders(where.part, taking, self._replicas)]
        if not locations:
            raise UnreachableError("no worker is there yet", "wait, or see to the cache's workers")
        return fl.FlightInfo(pa.schema([]), descriptor, [fl.FlightEndpoint(b"", locations)], -1, -1)

    def _commit(self, commit: Commit) -> Committed:
        """Seal the dataset; answer when every part can be had, and so the plan is on the disks of those that have it.

        A commit that is said again waits for the same; another one is refused.
        """
        self._asked = self._clock()
        source = self._manifest.source
        if source.kind != "written":
            raise InvalidError("this cache is not written to", "start one with STORAGE_URI=write://NAME")
        manifest = sealed(source, self._signer, commit)
        self._seal(manifest)
        until = self._clock() + _COMMIT_SECONDS
        with self._heard:
            while not self._roster.ready(now := self._clock()):
                if now > until or not self._heard.wait(_COMMIT_SECONDS):
                    trouble = self._roster.trouble(now) or "see to the cache's workers"
                    raise UnreachableError(f"not all parts can be had yet: {trouble}", "commit the same again")
        return Committed(manifest.name, manifest.rows)

    def _adopt(self, encoded: bytes) -> bytes:
        """Take up the plan that was committed before this head began."""
        manifest = read_manifest(encoded, hashlib.sha256(encoded).hexdigest())
        if manifest.source != self._manifest.source or is_open(manifest):
            raise InvalidError("that plan is not of this cache's dataset")
        self._seal(manifest)
        return b""

    def _seal(self, manifest: Manifest) -> None:
        with self._lock:
            if is_open(self._manifest):
                self._serve_plan(manifest, self._roster.members(self._clock()))
            elif self._manifest.name != manifest.name:
                raise InvalidError(
                    f"{manifest.source.location!r} is committed already, with other parts", "write to a new cache"
                )

    def _opened(self) -> wire.Opened:
        now = self._asked = self._require_ready()
        with self._lock:
            living = self._roster.living(now)
        grant = self._signer.grant(self._manifest.name, 0, self._blocks.total, now + GOOD_FOR)
        return wire.Opened(self._manifest.name, grant, living, self._roster.replicas)

    def _require_committed(self) -> None:
        if is_open(self._manifest):
            raise UnreachableError(f"{self._manifest.source.location!r} is not committed yet", "wait for its writer")

    def _require_ready(self) -> float:
        self._require_committed()
        status = self.status
        if not status.ready:
            because = f": {status.trouble}" if status.trouble else ""
            raise UnreachableError(
                f"{status.held} of {status.fragments} fragments can be had{because}",
                "wait, or see to the cache's workers",
            )
        return self._clock()

    def _info(self, descriptor: Any, start: int, stop: int, locations: int) -> Any:
        """Return one endpoint for each fragment that has some of these rows, with as many locations at most."""
        now = self._require_ready()
        endpoints = []
        for number in range(len(self._manifest.fragments)):
            begin, end = self._blocks.fragment_span(number)
            begin, end = max(begin, start), min(end, stop)
            if begin < end:
                with self._lock:
                    where = self._roster.locations(number, now)[:locations]
                grant = self._signer.grant(self._manifest.name, begin, end, now + GOOD_FOR)
                endpoints.append(fl.FlightEndpoint(ticket(grant), where, None, reference.pair(begin, end)))
        return fl.FlightInfo(self._manifest.arrow_schema, descriptor, endpoints, stop - start, -1, ordered=True)
