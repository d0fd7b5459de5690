"""One epoch of some ranks, and what happens to them: everything drawn from a seed.

Ranks read in one world after another, each until a checkpoint, with a fault before or in the midst of each. What they
had until their last checkpoint and what they have after it must be the dataset: `Run.go` raises otherwise.
"""

from __future__ import annotations

import random
import shutil
import threading
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lab.processes import wait_for
from tests.cache.loopback import Cluster, cluster
from tests.unit.cache.data import table, write_parquet
from tests.unit.initializers.versity import BadLine
from trainplane.cache.manifest import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.unit.initializers.versity import Store
    from trainplane.cache.reading import Reading

COUNTS = (900, 500, 499, 601)
ROWS = sum(COUNTS)
WORKERS = 3
BATCH, MOST_STEPS, MOST_FAULTS, MOST_RANKS = 40, 6, 3, 3
"""What is read before the last world is less than an epoch: the product is."""
FINE = ("fine",), (1 << 40,)
BAD = ("fine", "fine", "busy"), (0, 3_000, 9_000, 1 << 40, 1 << 40)
"""Kinds of connections to the store, and after how many bytes they break."""


def put(store: Store, prefix: str, *counts: int, at: Path) -> None:
    """Write files of rows below a prefix of the bucket."""
    write_parquet(at, *counts)
    for path in sorted(at.iterdir()):
        store.bucket.put(f"{prefix}/{path.name}", path.read_bytes())


class WrongError(AssertionError):
    """Rows are missing, doubled or not what they were."""


class Site:
    """A cache over a bucket, what its faults are done to, and how they are undone."""

    def __init__(self, cache: Cluster, store: Store, line: BadLine, prefix: str) -> None:
        self.cache, self._store, self.line, self._prefix = cache, store, line, prefix
        self._cut: list[BadLine] = []
        self._changed: dict[str, bytes] = {}
        self._rotten: set[str] = set()
        """Workers with segments that are not what they were, as somebody who reads them will find."""

    def cut(self, chance: random.Random) -> None:
        """Lines to workers break after some bytes."""
        for worker in self.cache.workers.values():
            line = BadLine(worker.location.replace("grpc://", "http://"), chance.randrange(1 << 30))
            line.budgets = (1_000, 4_000, 9_000, 1 << 40, 1 << 40)
            self._cut.append(line)
            line.__enter__()
            worker.location = line.endpoint.replace("http://", "grpc://")

    def worker(self, chance: random.Random) -> None:
        """A worker ends and is soon back."""
        self._ends(self._one(chance), chance)

    def two(self, chance: random.Random) -> None:
        """Two of three workers end and are soon back: some blocks are nowhere meanwhile."""
        for name in chance.sample(sorted(self.cache.workers), 2):
            self._ends(name, chance)

    def disk(self, chance: random.Random) -> None:
        """A worker ends and comes back with an empty disk."""
        self._ends(self._one(chance), chance, wiped=True)

    def head(self, _: random.Random) -> None:
        """The head ends, and another begins that knows nothing."""
        self.cache.restart_head()

    def rot(self, chance: random.Random) -> None:
        """Bytes of segments turn while their worker is away."""
        name = self._one(chance)
        self.cache.stop(name)
        for path in self.cache.disk(name).rglob("*.arrow"):
            content = bytearray(path.read_bytes())
            content[chance.randrange(200, len(content) // 2)] ^= 0x55
            path.write_bytes(content)
        self._rotten.add(name)
        self.cache.start(name)

    def slow(self, chance: random.Random) -> None:
        """A worker answers late."""
        self.cache.workers[self._one(chance)].lag = chance.choice((0.02, 0.05, 0.1))

    def clock(self, chance: random.Random) -> None:
        """A worker's clock is off: a little, by more than is let pass, or by more than any grant is good for."""
        self.cache.skew[self._one(chance)] = chance.choice((-1, 1)) * chance.choice((200, 4_000, 100_000))

    def store(self, chance: random.Random) -> None:
        """The store is busy and breaks off while a worker's disk is filled anew."""
        self.line.kinds, self.line.budgets = BAD
        self.disk(chance)

    def file(self, chance: random.Random) -> None:
        """A file has other rows by the time that a worker's disk is filled anew; the other copy is good."""
        for name in self._rotten & set(self.cache.workers):
            self.cache.stop(name)
            shutil.rmtree(self.cache.disk(name), ignore_errors=True)
            self.cache.start(name)
        self._rotten.clear()
        self.cache.wait_ready()
        number = chance.randrange(len(COUNTS))
        name = f"{self._prefix}/{number:03}.parquet"
        self._changed[name] = bytes(self._store.bucket.get(name).bytes())
        self._store.bucket.put(name, parquet(rows_of(number, changed=True)))
        self.disk(chance)

    def mend(self) -> None:
        """Undo what would last, and wait until every worker was begun again."""
        self.line.kinds, self.line.budgets = FINE
        for name, content in self._changed.items():
            self._store.bucket.put(name, content)
        self._changed.clear()
        self.cache.skew.clear()
        wait_for("every worker to be started again", lambda: len(self.cache.workers) >= WORKERS, seconds=60)
        for worker in self.cache.workers.values():
            worker.lag = 0.0

    def heal(self) -> None:
        """Make everything as it was."""
        self.mend()
        for line in self._cut:
            line.__exit__()
        self._cut.clear()
        for worker in self.cache.workers.values():
            worker.location = f"grpc://127.0.0.1:{worker.port}"
        self.cache.wait_ready()

    def _one(self, chance: random.Random) -> str:
        return chance.choice(sorted(self.cache.workers))

    def _ends(self, name: str, chance: random.Random, *, wiped: bool = False) -> None:
        self.cache.stop(name)
        if wiped:
            shutil.rmtree(self.cache.disk(name), ignore_errors=True)
        threading.Timer(chance.random() / 5, self.cache.start, (name,)).start()


@contextmanager
def site_over(store: Store, root: Path) -> Iterator[Site]:
    """Run a cache over a bucket of the store, for faults."""
    prefix = root.name
    for number in range(len(COUNTS)):
        store.bucket.put(f"{prefix}/{number:03}.parquet", parquet(rows_of(number)))
    with BadLine(store.endpoint, 0, both=True) as line:
        line.kinds, line.budgets = FINE
        source = Source(kind="parquet", location=f"s3://bucket/{prefix}", block_bytes=3 << 10)
        with cluster(source, root / "disks", WORKERS, {**store.env, "ENDPOINT": line.endpoint}) as running:
            yield Site(running, store, line, prefix)


Fault: TypeAlias = "Callable[[Site, random.Random], None] | None"
FAULTS: tuple[Fault, ...] = (
    *(Site.cut, Site.worker, Site.two, Site.disk, Site.head, Site.rot, Site.slow, Site.clock, Site.store, Site.file),
    None,
)
"""None: a rank dies after a checkpoint of its own, and comes back."""


class Run:
    """One epoch."""

    def __init__(self, site: Site, seed: int, among: tuple[Fault, ...] = FAULTS) -> None:
        self._site, self._seed = site, seed
        self._chance = random.Random(seed)  # noqa: S311 no secret
        self.rows: list[int] = []
        self.repeats = self.failovers = 0
        self.faults = [self._chance.choice(among) for _ in range(self._chance.randint(1, MOST_FAULTS))]

    @property
    def told(self) -> str:
        """What happened in this run."""
        return f"seed {self._seed}: {[fault.__name__ if fault else 'rank' for fault in self.faults]}"

    def go(self) -> None:
        """Read an epoch; raise the error that a rank had, or what is wrong with the rows."""
        state: dict[str, Any] | None = None
        try:
            for fault in self.faults:
                self._site.mend()
                state = self._world(state, self._chance.randint(0, MOST_STEPS), fault)
            self._world(state, None, None)
        finally:
            self._site.heal()
        if sorted(self.rows) != list(range(ROWS)):
            missing, doubled = ROWS - len(set(self.rows)), len(self.rows) - len(set(self.rows))
            raise WrongError(f"{self.told}: {missing} rows are missing, {doubled} were had again")

    def _world(self, state: dict[str, Any] | None, steps: int | None, fault: Fault) -> dict[str, Any]:
        """Let all ranks of a world have so many batches, or the rest; return where they stand."""
        world = self._chance.randint(1, MOST_RANKS)
        midst = self._chance.random() < 0.5
        shares: list[list[int]] = [[] for _ in range(world)]
        states: list[dict[str, Any]] = [{} for _ in range(world)]
        errors: list[BaseException] = []
        if fault and not midst:
            fault(self._site, self._chance)

        def rank(number: int) -> None:
            try:
                if fault is None and steps and number == 0:
                    early, states[0] = self._read(0, world, state, steps // 2, beyond=2)
                    shares[0] += early
                    rest, states[0] = self._read(0, world, states[0], steps - steps // 2)
                    shares[0] += rest
                    return
                shares[number], states[number] = self._read(number, world, state, steps)
            except BaseException as error:  # noqa: BLE001 raised where it is waited for
                errors.append(error)

        threads = [threading.Thread(target=rank, args=(number,)) for number in range(world)]
        for thread in threads:
            thread.start()
        if fault and midst:
            fault(self._site, self._chance)
        for thread in threads:
            thread.join(100)
            if thread.is_alive():
                raise WrongError(f"{self.told}: a rank is stuck")
        for error in errors:
            raise error
        self.rows += chain(*shares)
        return states[0]

    def _read(
        self, number: int, world: int, state: dict[str, Any] | None, steps: int | None, beyond: int = 0
    ) -> tuple[list[int], dict[str, Any]]:
        """Return a rank's ids and state after some batches; what it has `beyond` is lost with its process."""
        options: dict[str, Any] = {"seed": self._seed, "tail": "ragged", "ahead": 4, "patience": 30}
        with self._site.cache.reading(number, world, **options) as reading:
            if state is not None:
                reading.load_state_dict(state)
            after, ids = reading.state_dict(), []
            batches = reading.batches(BATCH)
            for batch in islice(batches, steps):
                ids += checked(batch)
                after = reading.state_dict()
            for _ in islice(batches, beyond):
                pass
            self._count(reading)
        return ids, after

    def _count(self, reading: Reading) -> None:
        self.repeats += reading.counts.repeats
        self.failovers += reading.counts.failovers


def checked(batch: Any) -> list[int]:
    """Return the ids of a batch whose other columns are of the same rows."""
    ids = batch["id"].to_numpy()
    x = batch["x"].flatten().to_numpy().reshape(len(ids), -1)
    texts = pc.binary_join_element_wise("row", pc.cast(batch["id"], "string"), " ")
    if not (x == ids.astype(np.float32)[:, None]).all() or not texts.equals(batch["text"]):
        raise WrongError("a row is made of several")
    found: list[int] = ids.tolist()
    return found


def rows_of(number: int, *, changed: bool = False) -> pa.Table:
    """Return the rows of a file; changed, every second one is the one before it."""
    rows = table(sum(COUNTS[:number]), COUNTS[number])
    return rows.take(np.arange(rows.num_rows) & ~1) if changed else rows


def parquet(rows: pa.Table) -> bytes:
    """Return rows as a file that is as large as any other of rows as long."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="none", use_dictionary=False, write_statistics=False)
    return bytes(sink.getvalue())
