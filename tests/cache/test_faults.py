"""Every row once, or the cause: whatever breaks while ranks read.

A run draws its faults from its seed: lines to workers that break, workers that end and come back with or without their
disk, a head that forgets, a rank that dies and goes on where its last checkpoint stood, in another world. What ranks
had until their last checkpoint and what they have after it must be the dataset.
"""

from __future__ import annotations

import random
import shutil
import threading
import time
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import pytest

from tests.cache.loopback import Cluster, cluster
from tests.size import sized
from tests.unit.cache.data import table, write_parquet
from tests.unit.initializers.versity import BadLine
from trainplane.cache.errors import CacheError, ChangedError, UnreachableError
from trainplane.cache.manifest import Source
from trainplane.cache.sources import reader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.suite import SuiteReport
    from tests.unit.initializers.versity import Store

RUNS = sized(110, full=1000, small=60)
"""Each with one to three faults: 200 and more in all."""
COUNTS = (6_000, 3_000, 2_999, 4_001)
ROWS = sum(COUNTS)
WORKERS = 3
FAULTS = ("cut", "worker", "disk", "two workers", "head", "rot", "rank")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    root = tmp_path_factory.mktemp("cache")
    write_parquet(root / "data", *COUNTS)
    source = Source(kind="parquet", location=str(root / "data"), block_bytes=8 << 10)
    with cluster(source, root / "disks", workers=WORKERS) as running:
        yield running


class Run:
    """One epoch of some ranks, and what happens to them."""

    def __init__(self, cache: Cluster, seed: int) -> None:
        self._cache, self._seed = cache, seed
        self._chance = random.Random(seed)  # noqa: S311 no secret
        self._lines: list[BadLine] = []
        self.rows: list[int] = []
        self.repeats = self.failovers = 0
        self.faults = [self._chance.choice(FAULTS) for _ in range(self._chance.randint(1, 3))]

    def go(self) -> None:
        """Read an epoch in one world after another, each until a checkpoint, with a fault under each."""
        state: dict[str, Any] | None = None
        for fault in self.faults:
            world = self._chance.randint(1, 3)
            self._harm(fault)
            state = self._read(world, state, self._chance.randint(0, 20))
        self._read(self._chance.randint(1, 3), state, None)
        self._heal()

    def _read(self, world: int, state: dict[str, Any] | None, steps: int | None) -> dict[str, Any]:
        """Let all ranks of a world have so many batches, or the rest; return where they stand."""
        shares: list[list[int]] = [[] for _ in range(world)]
        states: list[dict[str, Any]] = [{} for _ in range(world)]
        errors: list[BaseException] = []

        def rank(number: int) -> None:
            try:
                with self._cache.reading(
                    number, world, seed=self._seed, tail="ragged", ahead=4, patience=30
                ) as reading:
                    if state is not None:
                        reading.load_state_dict(state)
                    for batch in islice(reading.batches(100), steps):
                        shares[number] += batch["id"].to_pylist()
                        states[number] = reading.state_dict()
                    self.repeats += reading.counts.repeats
                    self.failovers += reading.counts.failovers
                    states[number] = states[number] or reading.state_dict()
            except CacheError as error:
                errors.append(error)

        threads = [threading.Thread(target=rank, args=(number,)) for number in range(world)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(100)
            assert not thread.is_alive(), "a rank is stuck"
        assert not errors, errors
        self.rows += chain(*shares)
        return states[0]

    def _harm(self, fault: str) -> None:
        self._wait_back()
        name = self._chance.choice(sorted(self._cache.workers))
        if fault == "cut":
            for worker in self._cache.workers.values():
                line = BadLine(worker.location.replace("grpc://", "http://"), self._chance.randrange(1 << 30))
                line.budgets = (3_000, 20_000, 60_000, 1 << 40, 1 << 40)
                self._lines.append(line)
                line.__enter__()
                worker.location = line.endpoint.replace("http://", "grpc://")
        elif fault == "head":
            self._cache.restart_head()
        elif fault == "rot":
            self._cache.stop(name)
            for path in self._cache.disk(name).rglob("*.arrow"):
                content = bytearray(path.read_bytes())
                content[self._chance.randrange(200, len(content) // 2)] ^= 0x55
                path.write_bytes(content)
            self._cache.start(name)
        elif fault in {"worker", "disk", "two workers"}:
            names = self._chance.sample(sorted(self._cache.workers), 2) if fault == "two workers" else [name]
            for one in names:
                self._cache.stop(one)
                if fault == "disk":
                    shutil.rmtree(self._cache.disk(one))
                threading.Timer(self._chance.random() / 4, self._cache.start, (one,)).start()

    def _heal(self) -> None:
        for line in self._lines:
            line.__exit__()
        self._wait_back()
        for worker in self._cache.workers.values():
            worker.location = f"grpc://127.0.0.1:{worker.port}"
        self._cache.wait_ready()

    def _wait_back(self) -> None:
        """Wait until every worker was begun again."""
        end = time.monotonic() + 30
        while len(self._cache.workers) < WORKERS:
            assert time.monotonic() < end
            time.sleep(0.01)


def test_every_row_is_delivered_once_whatever_breaks(cache: Cluster, report: SuiteReport) -> None:
    lost = repeats = failovers = faults = 0
    for seed in range(RUNS):
        run = Run(cache, seed)
        run.go()
        assert sorted(run.rows) == list(range(ROWS)), f"seed {seed}: {run.faults}"
        lost += ROWS - len(set(run.rows))
        repeats, failovers, faults = repeats + run.repeats, failovers + run.failovers, faults + len(run.faults)
    assert failovers > 0
    for name, value in (("faults", faults), ("fault_runs", RUNS), ("rows_lost", lost), ("failovers", failovers)):
        report.figure(name, value)
    report.figure("repeated_blocks", repeats)


def test_a_reader_is_told_the_cause_when_nobody_has_a_block(tmp_path: Path) -> None:
    write_parquet(tmp_path / "data", 20_000)
    source = Source(kind="parquet", location=str(tmp_path / "data"), block_bytes=8 << 10)
    with cluster(source, tmp_path / "disks") as cache, cache.reading(ahead=2, patience=1) as reading:
        batches = reading.batches(100)
        next(batches)
        for name in list(cache.workers):
            cache.stop(name)
        with pytest.raises(UnreachableError, match=r"block \d+ \(of 000\.parquet\)"):
            list(batches)


def test_a_file_that_changes_under_the_cache_is_said_and_never_served(tmp_path: Path) -> None:
    write_parquet(tmp_path / "data", 1_000, 2_000)
    source = Source(kind="parquet", location=str(tmp_path / "data"))
    manifest = reader(source, {}).plan(source)
    import pyarrow.parquet as pq  # noqa: PLC0415 for this alone

    pq.write_table(table(50, 1_000), tmp_path / "data" / "000.parquet")
    cache = Cluster(manifest, tmp_path / "disks", 2, {})
    try:
        end = time.monotonic() + 30
        while "000.parquet has changed" not in cache.head.status.trouble:
            assert time.monotonic() < end, cache.head.status
            time.sleep(0.02)
        assert not cache.head.status.ready
        with pytest.raises(UnreachableError, match=r"1 of 2 fragments can be had.*has changed"):
            cache.reading(patience=0.5)
    finally:
        cache.close()


def put(store: Store, prefix: str, *counts: int, at: Path) -> None:
    write_parquet(at, *counts)
    for path in sorted(at.iterdir()):
        store.bucket.put(f"{prefix}/{path.name}", path.read_bytes())


def loaded(store: Store, location: str, root: Path, env: dict[str, str]) -> list[int]:
    from tests.cache.loopback import ids  # noqa: PLC0415 for this alone

    with cluster(Source(kind="parquet", location=location), root, env=env) as cache, cache.reading() as reading:
        return ids(reading)


def test_a_bucket_is_served_whole(store: Store, tmp_path: Path) -> None:
    put(store, "whole", 5_000, 2_000, at=tmp_path / "data")
    put(store, "whole2", 9, at=tmp_path / "other")
    assert loaded(store, "s3://bucket/whole", tmp_path / "disks", store.env) == list(range(7_000))


@pytest.mark.parametrize("seed", range(6))
def test_a_store_that_is_busy_and_breaks_off_is_asked_again(store: Store, tmp_path: Path, seed: int) -> None:
    put(store, f"bad-{seed}", 30_000, 20_000, at=tmp_path / "data")
    with BadLine(store.endpoint, seed, both=True) as line:
        line.kinds = ("fine", "fine", "busy")
        line.budgets = (0, 5_000, 200_000, 1 << 40, 1 << 40)
        env = {**store.env, "ENDPOINT": line.endpoint}
        assert loaded(store, f"s3://bucket/bad-{seed}", tmp_path / "disks", env) == list(range(50_000))


def test_an_object_that_is_overwritten_is_refused(store: Store, tmp_path: Path) -> None:
    put(store, "changing", 3_000, at=tmp_path / "data")
    source = Source(kind="parquet", location="s3://bucket/changing")
    read = reader(source, store.env)
    manifest = read.plan(source)
    put(store, "changing", 2_999, at=tmp_path / "data")
    with pytest.raises(ChangedError, match=r"000\.parquet has changed"):
        list(read.decode(manifest, manifest.fragments[0]))


def test_a_store_that_never_answers_is_given_up_on(store: Store, tmp_path: Path) -> None:
    put(store, "silent", 3_000, at=tmp_path / "data")
    source = Source(kind="parquet", location="s3://bucket/silent")
    manifest = reader(source, store.env).plan(source)
    gone = {**store.env, "ENDPOINT": "http://127.0.0.1:9", "RETRY_SECONDS": "1"}
    with pytest.raises(UnreachableError, match=r"000\.parquet"):
        list(reader(source, gone).decode(manifest, manifest.fragments[0]))
