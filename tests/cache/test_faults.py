"""Every row once, or the cause: whatever breaks while ranks read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.processes import wait_for
from tests.cache.faults import ROWS, Run, Site, checked, put, site_over
from tests.cache.loopback import Cluster, cluster, ids
from tests.size import sized
from tests.unit.cache.data import table, write_parquet
from tests.unit.initializers.versity import BadLine
from trainplane.cache import fetching
from trainplane.cache.errors import ChangedError, UnreachableError
from trainplane.cache.head import GOOD_FOR
from trainplane.cache.manifest import Source
from trainplane.cache.sources import reader
from trainplane.cache.tickets import LEEWAY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.suite import SuiteReport
    from tests.unit.initializers.versity import Store

RUNS = sized(210, full=1000)


@pytest.fixture(scope="module")
def site(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site_over(store, tmp_path_factory.mktemp("faults")) as running:
        yield running


@pytest.mark.timeout(sized(300, full=3600))
def test_every_row_is_delivered_once_whatever_breaks(site: Site, report: SuiteReport) -> None:
    repeats = failovers = faults = rows = 0
    for seed in range(RUNS):
        run = Run(site, seed)
        run.go()
        rows += len(set(run.rows))
        repeats, failovers, faults = repeats + run.repeats, failovers + run.failovers, faults + len(run.faults)
    assert failovers > 0
    figures = {"faults": faults, "fault_runs": RUNS, "rows_lost": RUNS * ROWS - rows, "failovers": failovers}
    for name, value in {**figures, "repeated_blocks": repeats}.items():
        report.figure(name, value)


def test_a_worker_that_never_answers_holds_nobody_up(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "_CALL", 1.0)
    site.cache.workers["worker-1"].lag = 3.0
    try:
        with site.cache.reading(seed=3, ahead=4, patience=60) as reading:
            assert sorted(ids(reading)) == list(range(ROWS))
            # Once for each stream, and then it is asked last.
            assert 0 < reading.counts.failovers <= 4
    finally:
        site.heal()


def test_nobody_waits_for_ever_when_no_worker_answers(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "_CALL", 0.3)
    for worker in site.cache.workers.values():
        worker.lag = 1.0
    try:
        with site.cache.reading(ahead=1, patience=1) as reading, pytest.raises(UnreachableError, match="not to be had"):
            list(reading.batches(100))
    finally:
        site.heal()


def test_a_grant_that_expires_in_mid_epoch_is_made_anew(site: Site) -> None:
    with site.cache.reading(ahead=2, patience=60) as reading:
        batches = reading.batches(100)
        had = checked(next(batches))
        site.cache.skew = dict.fromkeys(("head", *site.cache.workers), GOOD_FOR + LEEWAY + 60)
        try:
            for batch in batches:
                had += checked(batch)
        finally:
            site.heal()
        assert reading.counts.failovers > 0
    assert had == list(range(ROWS))


def wait_trouble(cache: Cluster, words: str, *, held: int) -> None:
    """Wait until the head has heard of some trouble, and of so many fragments that can be had all the same."""

    def is_known() -> bool:
        status = cache.head.status
        return status.held == held and words in status.trouble

    wait_for(f"the head to report {words!r} and {held} fragments", is_known, seconds=60)


def test_a_head_whose_clock_is_off_is_told_to_readers(tmp_path: Path) -> None:
    write_parquet(tmp_path / "data", 100)
    source = Source(kind="parquet", location=str(tmp_path / "data"))
    cache = Cluster(reader(source, {}).plan(source), tmp_path / "disks", 0, {})
    cache.skew["head"] = -2 * LEEWAY
    cache.start("worker-0")
    try:
        wait_trouble(cache, "the clocks of worker-0", held=0)
        with pytest.raises(UnreachableError, match=r"0 of 1 fragments can be had: the clocks of worker-0 and the head"):
            cache.reading(patience=2)
        cache.skew.clear()
        with cache.reading(patience=60) as reading:
            assert ids(reading) == list(range(100))
    finally:
        cache.close()


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
        wait_trouble(cache, "000.parquet has changed", held=1)
        assert not cache.head.status.ready
        with pytest.raises(UnreachableError, match=r"1 of 2 fragments can be had.*has changed"):
            cache.reading(patience=0.5)
    finally:
        cache.close()


def loaded(store: Store, location: str, root: Path, env: dict[str, str]) -> list[int]:
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
