"""A worker: decodes its fragments once, keeps them on local disk, serves blocks of them.

It asks the head what to hold, again and again; the head never has to reach it. What it cannot load it says to the head
in its own words, and tries again: meanwhile its neighbours hold the same fragments.
"""

from __future__ import annotations

import hashlib
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.flight as fl

from trainplane.cache import reference, wire
from trainplane.cache.blocks import Blocks
from trainplane.cache.errors import (
    CacheError,
    DeniedError,
    DiskError,
    InvalidError,
    NotFoundError,
    UnreachableError,
)
from trainplane.cache.manifest import read_manifest
from trainplane.cache.meter import Meter, Sample
from trainplane.cache.peers import Peers
from trainplane.cache.placement import holders
from trainplane.cache.segments import Segment, Shelf, put_whole
from trainplane.cache.serving import Door, answered
from trainplane.cache.sources import reader
from trainplane.cache.staging import Staging
from trainplane.cache.tickets import Grant, Ticket
from trainplane.cache.written import Stored, address, is_open

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from trainplane.cache.manifest import Manifest
    from trainplane.cache.opening import HeadLine
    from trainplane.cache.sources import Decoder
    from trainplane.cache.tickets import Signer
    from trainplane.cache.written import Address

_AT_ONCE: Final = 2
"""Fragments that are decoded at the same time: Arrow uses all cores for each already."""
HEARTBEAT: Final = 3.0


class Holding:
    """What a worker has of one manifest."""

    def __init__(self, manifest: Manifest, root: Path, decoder: Decoder) -> None:
        self.manifest = manifest
        self.blocks = Blocks(manifest)
        self._shelf = Shelf(root, manifest.name, manifest.arrow_schema, manifest.block_rows)
        self._decoder = decoder
        self._segments: dict[int, Segment] = {}
        self.row_bytes = 0.0
        """Of a row on this disk, on average: to look at each buffer of an answer costs more than to send it."""

    @property
    def held(self) -> dict[int, str]:
        """The digest of each segment."""
        return {number: segment.note.digest for number, segment in self._segments.copy().items()}

    def load(self, number: int) -> None:
        """Attach a fragment that lies here from before, or decode it."""
        fragment = self.manifest.fragments[number]
        if number in self._segments or not fragment.rows:
            return
        segment = self._shelf.attach(number, fragment.rows)
        if segment is None:
            segment = self._shelf.write(number, fragment.rows, self._decoder.decode(self.manifest, fragment))
        self._segments[number] = segment
        notes = [one.note for one in self._segments.copy().values()]
        self.row_bytes = sum(note.size for note in notes) / sum(note.rows for note in notes)

    def lies_here(self, number: int) -> bool:
        """Whether a fragment's segment is on this disk from before."""
        return self._shelf.has(number)

    def drop(self, number: int) -> None:
        """Forget a fragment, to load it anew."""
        self._segments.pop(number, None)
        self._shelf.drop(number)

    def block(self, number: int) -> Any:
        """Return a block by its number in the dataset."""
        fragment = self.blocks.fragment(number)
        segment = self._segments.get(fragment)
        if segment is None:
            raise UnreachableError(f"fragment {fragment} is not here, or not yet")
        try:
            return segment.block(self.blocks.within(number))
        except DiskError:
            self.drop(fragment)
            raise


class Worker(fl.FlightServerBase):  # type: ignore[misc] # pyarrow has no types
    """Serves blocks; `serve_until` keeps it in step with the head."""

    def __init__(
        self,
        name: str,
        root: Path,
        signer: Signer,
        door: Door,
        *,
        env: Mapping[str, str],
        location: str = "",
        part_bytes: int = 0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.meter = Meter()
        options = door.options
        super().__init__(
            door.location, **{**options, "middleware": {**options.get("middleware", {}), "meter": self.meter}}
        )
        self.name = name
        self.location = location or f"{door.location.rpartition(':')[0]}:{self.port}"
        """What clients reach it by."""
        self._root, self._signer, self._env, self._clock = root, signer, env, clock
        self._may_write = bool(door.token)
        self._staging = Staging(root, part_bytes)
        self._sealing = root / "sealed.json"
        """The plan of a dataset that was written here: nobody could plan it again."""
        self._holding: Holding | None = None
        self._troubles: dict[int, str] = {}
        """Why a fragment is not there."""
        self._unheard = ""
        """Why the head is not."""
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="load")
        self._loading: set[int] = set()
        self._over = False

    @answered
    def do_get(self, context: Any, asked: Any) -> Any:
        """Answer with the blocks that a ticket names, in its order, or with the rows of its grant."""
        holding = self._holding
        wanted = self._wanted(asked.ticket, holding)
        if holding is None or holding.manifest.name != wanted.grant.manifest:
            raise UnreachableError("this worker does not hold that manifest, or not yet")
        blocks = holding.blocks
        if wanted.grant.stop > blocks.total:
            raise DeniedError("a grant for more rows than there are")
        for number in wanted.blocks:
            if number >= blocks.count or not _inside(blocks.span(number), (wanted.grant.start, wanted.grant.stop)):
                raise DeniedError(f"block {number} is not of this grant")
        if wanted.blocks:
            batches = [holding.block(number) for number in wanted.blocks]
        else:
            parts = blocks.covering(wanted.grant.start, wanted.grant.stop)
            batches = [holding.block(number).slice(start, stop - start) for number, start, stop in parts]
        # A table's chunks are sent batch by batch in C++, without a Python object for each.
        table = pa.Table.from_batches(batches, holding.manifest.arrow_schema)
        self.meter.answered(context, len(batches), round(table.num_rows * holding.row_bytes))
        return fl.RecordBatchStream(table)

    def _wanted(self, ticket: bytes, holding: Holding | None) -> Ticket:
        """Return what a ticket asks for. The reference's, which nobody signs, grant no more than opening would."""
        now = self._clock()
        if holding is not None and (rows := reference.rows(ticket)):
            return Ticket(Grant(1, holding.manifest.name, *rows, now), ())
        return self._signer.read(ticket, now)

    @answered
    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Keep a part of a dataset that waits for its commit, and answer with a receipt."""
        where = address(descriptor.path or [])
        self._admit(where)
        receipt = self._staging.write(where, self.name, reader.schema, _batches(reader))
        if context.is_cancelled():
            raise UnreachableError("the writer went away in the middle")
        signed = self._signer.sign("receipt", msgspec.json.encode(receipt))
        writer.write(msgspec.json.encode(Stored(receipt.rows, signed)))

    def _admit(self, where: Address) -> None:
        """Refuse what nobody may write, or not here."""
        holding = self._holding
        if holding is None:
            raise UnreachableError("this worker does not know yet what it is to hold", "try again in a moment")
        if holding.manifest.source.kind != "written":
            raise InvalidError("this cache is not written to", "start one with STORAGE_URI=write://NAME")
        if not self._may_write:
            raise DeniedError("this worker has no token, so nobody may write to it", "set CACHE_TOKEN_FILE")
        dataset = holding.manifest.source.location
        if where.dataset != dataset:
            raise NotFoundError(f"this cache takes {dataset!r} and no other dataset")
        if not is_open(holding.manifest):
            raise InvalidError(f"{dataset!r} is committed and takes no more parts", "write to a new cache")

    @answered
    def do_action(self, context: Any, action: Any) -> Any:
        """Answer with how far this worker is."""
        del context
        if action.type != wire.STATUS:
            raise InvalidError(f"there is no action {wire.printable(action.type)!r}")
        return iter([msgspec.json.encode(self.status)])

    @property
    def held(self) -> set[int]:
        """The numbers of the fragments that are served."""
        return set(self._holding.held) if self._holding is not None else set()

    @property
    def status(self) -> wire.Status:
        """How far loading is."""
        holding = self._holding
        if holding is None:
            return wire.Status(False, "", 0, 0, 0, self._unheard)
        count = len(holding.manifest.fragments)
        held = len(self.held)
        # A head that is away takes nothing from what is here.
        ready = not self._loading and not self._troubles
        return wire.Status(ready, holding.manifest.name, count, held, holding.manifest.rows, self._trouble)

    @property
    def samples(self) -> list[Sample]:
        """The figures as they stand."""
        holding = self._holding
        fragments = holding.manifest.fragments if holding else ()
        filled = sum(fragments[number].size for number in holding.held) if holding else 0
        return [
            Sample("loading_fragments", "gauge", "Files that are being decoded.", len(self._loading)),
            Sample("part_bytes", "gauge", "Bytes that were written and wait for a commit.", self._staging.size),
            Sample("held_bytes", "gauge", "Bytes of the files that this worker has decoded.", filled),
            *self.meter.samples,
        ]

    @property
    def _trouble(self) -> str:
        return next(iter(self._troubles.copy().values()), self._unheard)

    def serve_until(self, line: HeadLine, stop: threading.Event, pause: float = HEARTBEAT) -> None:
        """Keep in step with the head until `stop`, or until it says that it is over."""
        while not stop.is_set() and not self._over:
            try:
                more, self._unheard = self.step(line), ""
            except CacheError as error:
                more, self._unheard = False, wire.printable(error.line)
            stop.wait(min(pause, 0.5) if more else pause)

    def step(self, line: HeadLine) -> bool:
        """Say hello and begin to load what is missing; return whether there is something to say again soon."""
        if self._holding is None:
            self._holding = self._sealed(line)
        holding = self._holding
        hello = wire.Hello(
            self.name,
            self.location,
            self._clock(),
            holding.manifest.name if holding else "",
            holding.held if holding else {},
            self._trouble,
            self.meter.blocks + self._staging.batches,
        )
        welcome = line.hello(self._signer, hello)
        self._over = welcome.over
        if self._over:
            return False
        taken_up = False
        if holding is None or holding.manifest.name != welcome.manifest:
            manifest = line.manifest(welcome.manifest)
            if holding is not None and not is_open(holding.manifest) and manifest.source == holding.manifest.source:
                if is_open(manifest):
                    line.adopt(self._signer, holding.manifest)
                    return True
                if manifest.source.kind == "written":
                    raise InvalidError(f"{manifest.source.location!r} was committed here with other parts")
            self._holding = holding = self._take_up(manifest, line)
            self._troubles.clear()
            taken_up = True
        for number in welcome.refused:
            self._troubles[number] = f"fragment {number} was decoded to other bytes than elsewhere"
            holding.drop(number)
        members = {*welcome.members, self.name}
        held = holding.held
        for number, fragment in enumerate(holding.manifest.fragments):
            mine = self.name in holders(fragment.name, members, welcome.replicas) or self._only_here(holding, number)
            if mine and fragment.rows and number not in held and number not in self._loading:
                self._loading.add(number)
                self._pool.submit(self._load, holding, number)
        return taken_up or bool(self._loading)

    def _take_up(self, manifest: Manifest, line: HeadLine) -> Holding:
        """Return the place for a plan; one that was written is kept on disk before anybody is told of it."""
        if manifest.source.kind != "written":
            return Holding(manifest, self._root, reader(manifest.source, self._env))
        if not is_open(manifest):
            try:
                put_whole(self._sealing, manifest.encoded)
            except OSError as error:
                raise DiskError(f"a plan cannot be kept: {error.strerror}") from None
            self._staging.drop_others(manifest.source.location, {fragment.name for fragment in manifest.fragments})
        return Holding(manifest, self._root, Peers(line, self._signer, self._staging, self.name, self._clock))

    def _sealed(self, line: HeadLine) -> Holding | None:
        """Return what was written here and committed before a restart."""
        try:
            encoded = self._sealing.read_bytes()
            manifest = read_manifest(encoded, hashlib.sha256(encoded).hexdigest())
        except (OSError, InvalidError):
            return None
        return self._take_up(manifest, line)

    def _only_here(self, holding: Holding, number: int) -> bool:
        """Whether a fragment that was written is on this disk: it has no other source, whoever else should hold it."""
        source = holding.manifest.source
        if source.kind != "written":
            return False
        return holding.lies_here(number) or self._staging.has(source.location, holding.manifest.fragments[number])

    def _load(self, holding: Holding, number: int) -> None:
        """Load one fragment; what is wrong is said to the head, and tried again with the next hello."""
        try:
            holding.load(number)
            if holding.manifest.source.kind == "written":
                self._staging.drop(holding.manifest.source.location, holding.manifest.fragments[number].name)
            self._troubles.pop(number, None)
        except CacheError as error:
            self._troubles[number] = wire.printable(error.line)
        except Exception as error:  # noqa: BLE001 a thread's end that nobody sees would be a fragment that never comes
            self._troubles[number] = wire.printable(f"fragment {number}: {type(error).__name__}: {error}")
        finally:
            self._loading.discard(number)

    def close(self) -> None:
        """Stop serving, and loading when the fragments under way are there: nothing of ours writes afterwards."""
        with suppress(fl.FlightError):
            self.shutdown()
        self._pool.shutdown(wait=True, cancel_futures=True)


def _batches(stream: Any) -> Iterator[Any]:
    """Yield what a writer sends."""
    try:
        for chunk in stream:
            if chunk.app_metadata is not None and chunk.app_metadata.to_pybytes() == wire.GIVEN_UP:
                raise UnreachableError("the writer gave this part up")
            if chunk.data is not None:
                yield chunk.data
    except (fl.FlightError, pa.ArrowException) as error:
        raise UnreachableError(f"the writer broke off: {wire.printable(str(error))[:200]}") from None


def _inside(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]
