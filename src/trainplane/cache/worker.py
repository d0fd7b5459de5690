"""A worker: decodes its fragments once, keeps them on local disk, serves blocks of them.

It asks the head what to hold, again and again; the head never has to reach it. What it cannot load it says to the head
in its own words, and tries again: meanwhile its neighbours hold the same fragments.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.flight as fl

from trainplane.cache import wire
from trainplane.cache.blocks import Blocks
from trainplane.cache.errors import CacheError, DeniedError, DiskError, InvalidError, UnreachableError
from trainplane.cache.placement import holders
from trainplane.cache.segments import Segment, Shelf
from trainplane.cache.serving import Door, answered
from trainplane.cache.sources import reader

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from trainplane.cache.manifest import Manifest
    from trainplane.cache.opening import HeadLine
    from trainplane.cache.tickets import Signer

_AT_ONCE: Final = 2
"""Fragments that are decoded at the same time: Arrow uses all cores for each already."""
HEARTBEAT: Final = 3.0


class Holding:
    """What a worker has of one manifest."""

    def __init__(self, manifest: Manifest, root: Path, env: Mapping[str, str]) -> None:
        self.manifest = manifest
        self.blocks = Blocks(manifest)
        self._shelf = Shelf(root, manifest.name, manifest.arrow_schema, manifest.block_rows)
        self._reader = reader(manifest.source, env)
        self._segments: dict[int, Segment] = {}

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
            segment = self._shelf.write(number, fragment.rows, self._reader.decode(self.manifest, fragment))
        self._segments[number] = segment

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
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(door.location, **door.options)
        self.name = name
        self.location = location or f"{door.location.rpartition(':')[0]}:{self.port}"
        """What clients reach it by."""
        self._root, self._signer, self._env, self._clock = root, signer, env, clock
        self._holding: Holding | None = None
        self._troubles: dict[int, str] = {}
        """Why a fragment is not there."""
        self._unheard = ""
        """Why the head is not."""
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="load")
        self._loading: set[int] = set()

    @answered
    def do_get(self, context: Any, asked: Any) -> Any:
        """Answer with the blocks that a ticket names, in its order, or with the rows of its grant."""
        del context
        wanted = self._signer.read(asked.ticket, self._clock())
        holding = self._holding
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
        return fl.RecordBatchStream(pa.Table.from_batches(batches, holding.manifest.arrow_schema))

    @answered
    def do_action(self, context: Any, action: Any) -> Any:
        """Answer with how far this worker is."""
        del context
        if action.type != wire.STATUS:
            raise InvalidError(f"there is no action {wire.printable(action.type)!r}")
        return iter([msgspec.json.encode(self.status)])

    @property
    def status(self) -> wire.Status:
        """How far loading is."""
        holding = self._holding
        if holding is None:
            return wire.Status(False, "", 0, 0, 0, self._unheard)
        count = len(holding.manifest.fragments)
        held = len(holding.held)
        # A head that is away takes nothing from what is here.
        ready = not self._loading and not self._troubles
        return wire.Status(ready, holding.manifest.name, count, held, holding.manifest.rows, self._trouble)

    @property
    def _trouble(self) -> str:
        return next(iter(self._troubles.copy().values()), self._unheard)

    def serve_until(self, line: HeadLine, stop: threading.Event, pause: float = HEARTBEAT) -> None:
        """Keep in step with the head until `stop`."""
        while not stop.is_set():
            try:
                more, self._unheard = self.step(line), ""
            except CacheError as error:
                more, self._unheard = False, wire.printable(error.line)
            stop.wait(min(pause, 0.5) if more else pause)

    def step(self, line: HeadLine) -> bool:
        """Say hello and begin to load what is missing; return whether something is under way."""
        holding = self._holding
        hello = wire.Hello(
            self.name,
            self.location,
            self._clock(),
            holding.manifest.name if holding else "",
            holding.held if holding else {},
            self._trouble,
        )
        welcome = line.hello(self._signer, hello)
        if holding is None or holding.manifest.name != welcome.manifest:
            self._holding = holding = Holding(line.manifest(welcome.manifest), self._root, self._env)
            self._troubles.clear()
        for number in welcome.refused:
            self._troubles[number] = f"fragment {number} was decoded to other bytes than elsewhere"
            holding.drop(number)
        members = {*welcome.members, self.name}
        held = holding.held
        for number, fragment in enumerate(holding.manifest.fragments):
            mine = self.name in holders(fragment.name, members, welcome.replicas)
            if mine and fragment.rows and number not in held and number not in self._loading:
                self._loading.add(number)
                self._pool.submit(self._load, holding, number)
        return bool(self._loading)

    def _load(self, holding: Holding, number: int) -> None:
        """Load one fragment; what is wrong is said to the head, and tried again with the next hello."""
        try:
            holding.load(number)
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


def _inside(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]
