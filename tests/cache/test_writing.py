"""Datasets that clients write, over real Flight servers: served whole after a commit, never before, never in part."""

from __future__ import annotations

import struct
import threading
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.flight as fl
import pytest

from lab.processes import wait_for
from tests.cache.loopback import Cluster, ids
from tests.unit.cache.data import table
from trainplane.cache.errors import (
    CacheError,
    ContradictionError,
    DeniedError,
    DiskError,
    InvalidError,
    NotFoundError,
    UnreachableError,
)
from trainplane.cache.manifest import Fragment, Source
from trainplane.cache.opening import Access, HeadLine
from trainplane.cache.placement import REPLICAS, holders
from trainplane.cache.staging import MOST_WRITERS, STILL, Staging, part_key
from trainplane.cache.tickets import Signer
from trainplane.cache.writing import Writing
from trainplane.cache.written import Address, Commit, Receipt, Stored, open_manifest, schema_digest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trainplane.cache.worker import Worker

TOKEN = b"a token of this namespace"
SOURCE = Source(kind="written", location="reviews", block_bytes=16 << 10)


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cluster]:
    running = Cluster(open_manifest(SOURCE), tmp_path, 3, {}, token=TOKEN)
    try:
        running.wait_ready()
        yield running
    finally:
        running.close()


def writing(cache: Cluster, dataset: str = "reviews") -> Writing:
    return Writing.open(cache.address, dataset, access=cache.access)


def put(writer: Writing, *counts: int) -> None:
    """Write parts of so many rows, numbered through."""
    start = 0
    for number, rows in enumerate(counts):
        writer.put(f"part-{number:02}", table(start, rows).to_batches(max_chunksize=300))
        start += rows


def everything(cache: Cluster) -> list[int]:
    with cache.reading(patience=60) as reading:
        return ids(reading)


def test_what_was_written_is_served_after_its_commit_and_not_before(cache: Cluster) -> None:
    with writing(cache) as writer:
        put(writer, 1_000, 2_345, 7)
        with pytest.raises(UnreachableError, match="'reviews' is not committed yet"):
            HeadLine(cache.address, cache.access).open()
        committed = writer.commit()
        assert committed.rows == 3_352
        assert writer.commit() == committed
    assert everything(cache) == list(range(3_352))


def test_every_part_gets_a_second_disk(cache: Cluster) -> None:
    with writing(cache) as writer:
        put(writer, *[400] * 6)
        writer.commit()
    cache.manifest = HeadLine(cache.address, cache.access).manifest(cache.head.status.manifest)
    cache.wait_ready()
    cache.stop("worker-1")
    assert everything(cache) == list(range(2_400))


def test_writers_of_several_processes_are_committed_by_one(cache: Cluster) -> None:
    with writing(cache) as one, writing(cache) as other:
        one.put("a", table(0, 500).to_batches())
        other.put("b", table(500, 500).to_batches())
        one.stored.update(other.stored)
        one.commit()
    assert everything(cache) == list(range(1_000))


def test_a_part_that_is_written_again_counts_once(cache: Cluster) -> None:
    with writing(cache) as writer:
        writer.put("a", table(9_000, 10).to_batches())
        writer.put("a", table(0, 500).to_batches())
        writer.commit()
    assert everything(cache) == list(range(500))


def test_a_head_that_restarts_is_told_what_was_committed(cache: Cluster) -> None:
    with writing(cache) as writer:
        put(writer, 500, 500)
        name = writer.commit().manifest
    cache.restart_head()
    assert everything(cache) == list(range(1_000))
    assert cache.head.status.manifest == name


def test_workers_that_restart_have_parts_and_commits_of_before(cache: Cluster) -> None:
    with writing(cache) as writer:
        put(writer, 500, 500)
        for name in list(cache.workers):
            cache.stop(name)
            cache.start(name)
        cache.restart_head()
        writer.commit()
        assert everything(cache) == list(range(1_000))
    for name in list(cache.workers):
        cache.stop(name)
        cache.start(name)
    cache.restart_head()
    assert everything(cache) == list(range(1_000))


@pytest.mark.parametrize("dataset", ["other", "Reviews", "../reviews", "reviews/../..", "", "r" * 5_000])
def test_no_other_dataset_can_be_written(cache: Cluster, dataset: str) -> None:
    with writing(cache, dataset) as writer, pytest.raises((NotFoundError, InvalidError)):
        writer.put("a", table(0, 10).to_batches())


@pytest.mark.parametrize("part", ["", "../a", "a/b", ".hidden", "a" * 101, "a\0b"])
def test_a_part_has_a_plain_name(cache: Cluster, part: str) -> None:
    with writing(cache) as writer, pytest.raises(InvalidError, match="names no dataset and part"):
        writer.put(part, table(0, 10).to_batches())


def test_nobody_writes_or_commits_without_the_token(cache: Cluster) -> None:
    worker = next(iter(cache.workers.values()))
    for access in (Access(), Access(token=b"guessed")):
        with pytest.raises(DeniedError):
            Writing.open(cache.address, "reviews", access=access).put("a", table(0, 10).to_batches())
        with pytest.raises(DeniedError):
            HeadLine(cache.address, access).commit(Commit("reviews", b"", 0, ()))
        with access.connect(worker.location) as client, pytest.raises(fl.FlightUnauthenticatedError):
            put_directly(client, access, "a", 10)


def test_a_cache_without_a_token_takes_no_writes(tmp_path: Path) -> None:
    cache = Cluster(open_manifest(SOURCE), tmp_path, 1, {})
    try:
        cache.wait_ready()
        with writing(cache) as writer, pytest.raises((DeniedError, InvalidError)):
            writer.put("a", table(0, 10).to_batches())
    finally:
        cache.close()


def put_directly(client: Any, access: Access, part: str, rows: int) -> Stored:
    """Write a part as any Flight client does."""
    content = table(0, rows)
    descriptor = fl.FlightDescriptor.for_path("reviews", part)
    stream, answers = client.do_put(descriptor, content.schema, access.options(30))
    stream.write_table(content)
    stream.done_writing()
    told = answers.read()
    stream.close()
    return msgspec.json.decode(told.to_pybytes(), type=Stored)


def test_another_schema_is_refused_with_the_parts_that_differ(cache: Cluster) -> None:
    other = pa.table({"id": [1.5, 2.5]})
    with writing(cache) as writer:
        put(writer, *[50] * 8)  # some on every worker
        with pytest.raises(InvalidError, match="'other' has another schema than part 'part-0"):
            writer.put("other", other.to_batches())


def test_dictionaries_and_schemas_without_meaning_are_refused(cache: Cluster) -> None:
    words = pa.table({"word": pa.array(["a", "b"]).dictionary_encode()})
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with writing(cache) as writer:
        with pytest.raises(InvalidError, match="'word' is a dictionary"):
            writer.put("a", words.to_batches())
        with pytest.raises(InvalidError, match="two columns of one name"):
            writer.put("a", [twice])
        with pytest.raises(InvalidError, match="has no batch"):
            writer.put("a", [])


def test_a_commit_of_other_rows_than_were_written_seals_nothing(cache: Cluster) -> None:
    with writing(cache) as writer:
        put(writer, 100, 100)
        line = HeadLine(cache.address, cache.access)
        schema = table(0, 1).schema.serialize().to_pybytes()
        told = tuple(one.receipt for stored in writer.stored.values() for one in stored)
        for commit, words in (
            (Commit("reviews", schema, 199, told), "200 rows and not the 199"),
            (Commit("reviews", schema, 200, told[:2]), "100 rows and not the 200"),
            (Commit("reviews", schema, 0, ()), "no rows"),
            (Commit("reviews", b"none", 200, told), "schema cannot be read"),
            (Commit("other", schema, 200, told), "not 'other'"),
        ):
            with pytest.raises(CacheError, match=words):
                line.commit(commit)
        assert writer.commit().rows == 200


def test_forged_receipts_seal_nothing(cache: Cluster) -> None:
    content = table(0, 10)
    receipt = Receipt("reviews", "a", "worker-0", 10, 100, "0" * 64, schema_digest(content.schema))
    encoded = msgspec.json.encode(receipt)
    line = HeadLine(cache.address, cache.access)
    for forged in (b"", b"\0" * 32 + encoded, Signer(b"another key of some length").sign("receipt", encoded)):
        with pytest.raises(DeniedError):
            line.commit(Commit("reviews", content.schema.serialize().to_pybytes(), 10, (forged,)))
    for purpose in ("hello", "welcome", "grant", "adopt"):
        signed = cache.signer.sign(purpose, encoded)
        with pytest.raises(DeniedError):
            line.commit(Commit("reviews", content.schema.serialize().to_pybytes(), 10, (signed,)))


def test_two_disks_with_different_rows_are_no_part(cache: Cluster) -> None:
    first, second = list(cache.workers.values())[:2]
    stored = []
    for worker, rows in ((first, 10), (second, 11)):
        with cache.access.connect(worker.location) as client:
            stored.append(put_directly(client, cache.access, "a", rows))
    commit = Commit("reviews", table(0, 1).schema.serialize().to_pybytes(), 10, tuple(one.receipt for one in stored))
    with pytest.raises(ContradictionError, match="not the same on"):
        HeadLine(cache.address, cache.access).commit(commit)


def test_a_sealed_dataset_takes_neither_parts_nor_another_commit(cache: Cluster) -> None:
    with writing(cache) as writer, writing(cache) as late:
        writer.put("a", table(0, 50).to_batches())
        late.put("b", table(50, 50).to_batches())
        writer.commit()
        with pytest.raises(InvalidError, match="committed already"):
            late.commit()
        assert everything(cache) == list(range(50))
        holder = wait_sealed(cache.workers["worker-0"])
        with (
            cache.access.connect(holder.location) as client,
            pytest.raises(fl.FlightError, match="committed and takes no more parts"),
        ):
            put_directly(client, cache.access, "c", 10)
    assert everything(cache) == list(range(50))


def wait_sealed(worker: Worker) -> Worker:
    """Wait until a worker has heard of the commit."""
    wait_for("the worker to learn of the commit", lambda: bool(worker.status.fragments), seconds=60)
    return worker


def test_what_is_not_committed_leaves_the_disks(cache: Cluster) -> None:
    with writing(cache) as writer:
        writer.put("a", table(0, 50).to_batches())
        writer.put("b", table(50, 50).to_batches())
        del writer.stored["b"]
        writer.commit()
    assert everything(cache) == list(range(50))
    for name, worker in cache.workers.items():
        wait_sealed(worker)
        assert {note.stem for note in (cache.disk(name) / "parts").glob("*.json")} <= {part_key("reviews", "a")}


def test_a_writer_that_goes_away_in_the_middle_leaves_nothing_to_commit(cache: Cluster) -> None:
    content = table(0, 1_000)
    worker = next(iter(cache.workers.values()))
    client = cache.access.connect(worker.location)
    descriptor = fl.FlightDescriptor.for_path("reviews", "a")
    stream, _ = client.do_put(descriptor, content.schema, cache.access.options(30))
    stream.write_table(content.slice(0, 500))
    client.close()
    del stream
    with writing(cache) as writer:
        writer.put("a", content.to_batches())
        writer.commit()
    assert everything(cache) == list(range(1_000))


def test_a_part_that_fails_halfway_is_given_up_on_every_worker(cache: Cluster) -> None:
    """The error is held, as callers do: no stream may live as long as it does, for a worker ends after its streams."""

    def broken() -> Iterator[Any]:
        yield from table(0, 500).to_batches()
        raise OSError("the source is gone")

    with writing(cache) as writer, pytest.raises(OSError, match="the source is gone") as held:
        writer.put("a", broken())
    workers = list(cache.workers.items())
    cache.close()  # fails if a worker does not end
    assert not [path for name, _ in workers for path in (cache.disk(name) / "parts").iterdir()]
    del held


def test_one_worker_that_refuses_leaves_no_other_one_waiting(cache: Cluster) -> None:
    """A part of another schema, for a worker that has one to compare with and for one that has none."""
    seen, empty, _ = cache.workers
    held_by = {name: holders(name, cache.workers, REPLICAS) for name in (f"part-{number}" for number in range(1_000))}
    first = next(name for name, where in held_by.items() if empty not in where)
    other = next(name for name, where in held_by.items() if {seen, empty} == set(where))
    with writing(cache) as writer:
        writer.put(first, table(0, 50).to_batches())
        with pytest.raises(InvalidError, match="has another schema") as held:
            writer.put(other, pa.table({"id": [1.5, 2.5]}).to_batches())
    cache.stop(empty)  # fails if the worker does not end
    assert not list((cache.disk(empty) / "parts").iterdir())
    del held


WHERE = Address("reviews", "a")


def test_parts_keep_within_their_bytes(tmp_path: Path) -> None:
    staging = Staging(tmp_path, bound=50_000)
    content = table(0, 1_000)
    with pytest.raises(DiskError, match="50000 bytes for parts are full"):
        staging.write(WHERE, "w", content.schema, iter(content.to_batches() * 20))
    assert staging.size == 0
    assert not list((tmp_path / "parts").iterdir())
    staging.write(WHERE, "w", content.schema, iter(content.to_batches()))


def test_a_batch_that_lies_about_its_bytes_is_refused(tmp_path: Path) -> None:
    honest = pa.record_batch({"text": ["short", "longer"]})
    sent = honest.serialize().to_pybytes()
    offsets, lies = struct.pack("<3i", 0, 5, 11), struct.pack("<3i", 0, 5, 1_000_000)
    assert sent.count(offsets) == 1
    forged = pa.ipc.read_record_batch(pa.py_buffer(sent.replace(offsets, lies)), honest.schema)
    with pytest.raises(InvalidError, match="not what its schema says"):
        Staging(tmp_path).write(WHERE, "w", forged.schema, iter([forged]))
    assert not list((tmp_path / "parts").iterdir())


def test_a_writer_that_stands_still_gives_its_place_to_another(tmp_path: Path) -> None:
    now = [0.0]
    staging = Staging(tmp_path, clock=lambda: now[0])
    content = table(0, 10)
    writing_, released = threading.Barrier(MOST_WRITERS + 1), threading.Event()
    outcomes: list[str] = []

    def slow() -> Iterator[Any]:
        yield content.to_batches()[0]
        writing_.wait(60)
        released.wait(60)
        yield content.to_batches()[0]

    def write(number: int) -> None:
        try:
            staging.write(Address("reviews", f"slow-{number}"), "w", content.schema, slow())
            outcomes.append("kept")
        except UnreachableError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(MOST_WRITERS)]
    for thread in threads:
        thread.start()
    writing_.wait(60)
    with pytest.raises(UnreachableError, match="are being written here"):
        staging.write(WHERE, "w", content.schema, iter(content.to_batches()))
    now[0] = STILL + 1
    assert staging.write(WHERE, "w", content.schema, iter(content.to_batches())).rows == 10
    released.set()
    for thread in threads:
        thread.join(60)
    assert sorted(outcome == "kept" for outcome in outcomes) == [False] + [True] * (MOST_WRITERS - 1)


def test_a_part_that_rotted_is_not_believed_after_a_restart(tmp_path: Path) -> None:
    content = table(0, 100)
    receipt = Staging(tmp_path).write(WHERE, "w", content.schema, iter(content.to_batches()))
    part = Fragment(WHERE.part, receipt.rows, receipt.size, receipt.digest)
    again = Staging(tmp_path).get("reviews", part)
    assert again is not None
    assert pa.Table.from_batches(again).equals(content)
    file = next((tmp_path / "parts").glob("*.arrow"))
    rotten = bytearray(file.read_bytes())
    rotten[len(rotten) // 2] ^= 1
    file.write_bytes(rotten)
    staging = Staging(tmp_path)
    assert staging.get("reviews", part) is None
    assert not staging.has("reviews", part)
    file.write_bytes(rotten[:-1])
    assert Staging(tmp_path).size == 0
