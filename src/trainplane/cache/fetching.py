"""Blocks from workers, ahead of when they are needed, with failover.

A block arrives whole or not at all, so one that is fetched again from a replica is delivered once all the same; what
was asked for twice is counted. Nobody waits for ever: each call has a deadline, and when no worker has given a block
for as long as `patience`, the reader is told which one and why.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl

from trainplane.cache import wire
from trainplane.cache.errors import CacheError, ChangedError, ExpiredError, InvalidError, UnreachableError
from trainplane.cache.placement import asked
from trainplane.cache.tickets import ticket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from trainplane.cache.blocks import Blocks
    from trainplane.cache.manifest import Manifest
    from trainplane.cache.opening import HeadLine

    Shape = Callable[[Any], Any]

T = TypeVar("T")
Asked: TypeAlias = tuple[int, "Shape", "Future[Any]"]
"""A block's number, what is made of it, and where that is waited for."""

_CALL: Final = 20.0
"""Seconds for one call of a few blocks."""
_LONGEST_PAUSE: Final = 2.0
_SHUNNED: Final = 10.0
_LONGEST_SHUNNED: Final = 320.0
_RECYCLED: Final = 31 << 20
"""Bytes; just below the most that glibc learns from."""


@dataclass
class Counts:
    """What reading has cost so far."""

    blocks: int = 0
    bytes: int = 0
    rows: int = 0
    wait_s: float = 0.0
    """Seconds that the training loop stood still for data."""
    waits: int = 0
    failovers: int = 0
    """Calls that broke off and were taken up elsewhere."""
    repeats: int = 0
    """Blocks that were asked for again."""


class Fetcher:
    """Fetches blocks of one manifest; `blocks` gives them in the order that was asked for."""

    def __init__(
        self,
        line: HeadLine,
        manifest: Manifest,
        blocks: Blocks,
        *,
        ahead: int = 16,
        streams: int = 2,
        patience: float = 300.0,
    ) -> None:
        self._line, self._manifest, self._blocks = line, manifest, blocks
        self._ahead, self._patience = max(ahead, 1), patience
        self._rows = blocks.rows
        self._opened: wire.Opened | None = None
        self._clients: dict[str, Any] = {}
        self._shunned: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        """How often each worker has failed since it last gave a block."""
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(streams, thread_name_prefix="fetch")
        self._closed = threading.Event()
        self.counts = Counts()
        _recycle()

    def blocks(self, wanted: Iterable[tuple[int, Shape]]) -> Iterator[Any]:
        """Yield what is made of blocks in this order, each fetched and made while those before it are used.

        A shape is called once for each block, in the thread that fetched it: shuffling keeps no training loop waiting.
        """
        upcoming = iter(wanted)
        waiting: deque[Future[Any]] = deque()
        try:
            while True:
                if self._closed.is_set():
                    raise InvalidError("the reader was closed in mid-epoch", "open another and load its state")
                # Half a window at a time: calls of several blocks, and always some under way.
                if len(waiting) <= self._ahead // 2:
                    waiting.extend(self._ask(list(islice(upcoming, self._ahead - len(waiting)))))
                if not waiting:
                    return
                began = time.perf_counter()
                future = waiting.popleft()
                waited = not future.done()
                batch = future.result()
                if waited:
                    self.counts.waits += 1
                    self.counts.wait_s += time.perf_counter() - began
                yield batch
        finally:
            for future in waiting:
                future.cancel()

    def close(self) -> None:
        """Let go of every connection; a call under way ends with its deadline at the latest."""
        self._closed.set()
        self._pool.shutdown(wait=True, cancel_futures=True)
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()
        self._line.close()

    def _ask(self, wanted: list[tuple[int, Shape]]) -> list[Future[Any]]:
        """Begin to fetch some blocks, with one call for those that one worker has."""
        everything: list[Asked] = [(number, shape, Future()) for number, shape in wanted]
        groups: dict[str, list[Asked]] = {}
        opened = self._opened or self._open()
        for one in everything:
            groups.setdefault(self._ranked(opened, one[0])[0], []).append(one)
        for group in groups.values():
            self._pool.submit(self._fetch, group)
        return [future for _, _, future in everything]

    def _fetch(self, group: list[Asked]) -> None:
        """Fetch blocks of one worker, elsewhere what it does not give; every future ends, well or with the cause."""
        try:
            self._fetch_all(group)
        except BaseException as error:  # noqa: BLE001 handed to the reader, who waits for it
            for _, _, future in group:
                if not future.done():
                    future.set_exception(error)

    def _fetch_all(self, group: list[Asked]) -> None:
        """Take all from the worker that is everybody's first choice; if it breaks off, each from its own replica."""
        left = deque(group)
        opened = self._opened or self._open()
        worker = self._ranked(opened, left[0][0])[0]
        try:
            self._call(opened, worker, left)
        except CacheError as error:
            self._failed(error, worker, len(left))
        while left:
            self._fetch_one(left)

    def _fetch_one(self, left: deque[Asked]) -> None:
        """Take one block from whoever has it, for as long as `patience`."""
        number = left[0][0]
        one = deque([left.popleft()])
        until = time.monotonic() + self._patience
        tries = 0
        while one:
            opened = self._opened or self._open()
            ranked = self._ranked(opened, number)
            worker = ranked[tries % len(ranked)]
            try:
                self._call(opened, worker, one)
            except CacheError as error:
                self._failed(error, worker, 1)
                if self._closed.is_set() or time.monotonic() > until:
                    name = wire.printable(self._manifest.fragments[self._blocks.fragment(number)].name)
                    raise UnreachableError(f"block {number} (of {name}) is not to be had: {error}") from None
                tries += 1
                if tries % len(ranked) == 0:
                    # Everybody has been asked: perhaps they are elsewhere by now.
                    self._opened = None
                    self._closed.wait(min(0.05 * 2 ** min(tries // len(ranked), 8), _LONGEST_PAUSE))

    def _failed(self, error: CacheError, worker: str, blocks: int) -> None:
        """Count what has to be asked for again, and whom not to ask first; raise what another try does not mend."""
        if not error.retryable:
            raise error
        if isinstance(error, ExpiredError):
            self._opened = None
        # Whoever calls a new grant expired has a clock that is off: it is asked last as well.
        with self._lock:
            self._failures[worker] = self._failures.get(worker, 0) + 1
            self._shunned[worker] = time.monotonic() + shunned_for(self._failures[worker])
            self.counts.failovers += 1
            self.counts.repeats += blocks

    def _call(self, opened: wire.Opened, worker: str, left: deque[Asked]) -> None:
        """Take blocks from a worker, one after the other, off `left`."""
        wanted = tuple(one[0] for one in left)
        try:
            client = self._client(opened.members[worker])
            stream = client.do_get(fl.Ticket(ticket(opened.grant, wanted)), self._line.access.options(_CALL))
            if not stream.schema.equals(self._manifest.arrow_schema):
                raise ChangedError(f"{worker} serves another schema than the manifest's")
            while left:
                batch = stream.read_chunk().data
                number, shape, future = left[0]
                if batch.num_rows != self._rows[number]:
                    raise ChangedError(
                        f"{worker} gave {batch.num_rows} rows for the {self._rows[number]} of block {number}"
                    )
                left.popleft()
                self._failures.pop(worker, None)
                if not future.done():
                    self._hand(future, shape, batch)
        except StopIteration:
            raise UnreachableError(f"{worker} ended before block {left[0][0]}") from None
        except (fl.FlightError, pa.ArrowException, OSError) as error:
            raise wire.from_flight(error, worker) from None

    def _hand(self, future: Future[Any], shape: Shape, block: Any) -> None:
        """Give a whole block to whoever waits for it, or why nothing can be made of it: no other worker's fault."""
        with self._lock:
            self.counts.blocks += 1
            self.counts.bytes += block.nbytes
        try:
            future.set_result(shape(block))
        except pa.ArrowException as error:
            future.set_exception(error)

    def _open(self) -> wire.Opened:
        """Ask the head anew who serves, for as long as `patience`; the dataset must be the same."""
        opened = patiently(self._line.open, self._patience, self._closed)
        if opened.manifest != self._manifest.name:
            raise ChangedError("the cache serves another dataset by now than when reading began")
        if not opened.members:
            raise UnreachableError("the head knows no worker")
        self._opened = opened
        return opened

    def _ranked(self, opened: wire.Opened, number: int) -> tuple[str, ...]:
        name = self._manifest.fragments[self._blocks.fragment(number)].name
        return asked(name, opened.members, opened.replicas, self._shunned, time.monotonic())

    def _client(self, location: str) -> Any:
        with self._lock:
            if location not in self._clients:
                self._clients[location] = self._line.access.connect(location)
            return self._clients[location]


def _recycle() -> None:
    """Let the C library keep memory of a block's size for the next one: a quarter of what receiving costs.

    A gRPC message is allocated by malloc, and glibc asks the kernel for what is large each time, page by page, until it
    has seen that such memory comes and goes. This shows it so, once; on other C libraries nothing happens.
    """
    np.empty(_RECYCLED, np.uint8)


def shunned_for(failures: int) -> float:
    """Return for how many seconds a worker is asked last that has failed so often: a node that is gone costs little."""
    return min(_SHUNNED * 2.0 ** (min(failures, 16) - 1), _LONGEST_SHUNNED)


def patiently(ask: Callable[[], T], patience: float, stop: threading.Event) -> T:
    """Return an answer, however often it has to be asked for, within as many seconds."""
    until = time.monotonic() + patience
    pause = 0.05
    while True:
        try:
            return ask()
        except CacheError as error:
            if not error.retryable or stop.is_set() or time.monotonic() > until:
                raise
        stop.wait(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)
