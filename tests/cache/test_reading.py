"""Real Flight servers over real Parquet, in this process."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow.flight as fl
import pytest

from tests.cache.certificates import self_signed
from tests.cache.loopback import Cluster, cluster, ids
from tests.unit.cache.data import write_parquet
from trainplane.cache.errors import ChangedError, DeniedError, InvalidError
from trainplane.cache.manifest import Source
from trainplane.cache.opening import Access, HeadLine
from trainplane.cache.reading import Reading, Share, columns
from trainplane.cache.sources import reader
from trainplane.cache.tickets import Signer, ticket
from trainplane.cache.wire import HELLO, Hello, Welcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS = 12_345 + 4_000 + 8_001


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    root = tmp_path_factory.mktemp("cache")
    write_parquet(root / "data", 12_345, 0, 4_000, 8_001)
    source = Source(kind="parquet", location=str(root / "data"), block_bytes=32 << 10)
    with cluster(source, root / "disks", workers=3) as running:
        yield running


def test_without_a_seed_rows_come_as_they_lie(cache: Cluster) -> None:
    with cache.reading() as reading:
        assert ids(reading) == list(range(ROWS))
        assert reading.counts.failovers == 0
        assert reading.counts.blocks > 20


@pytest.mark.parametrize("world", [1, 3, 7])
def test_ranks_have_equal_shares_of_one_order_whatever_their_number(cache: Cluster, world: int) -> None:
    shares = []
    for rank in range(world):
        with cache.reading(rank, world, seed=11) as reading:
            assert reading.left == -(-ROWS // world)
            shares.append(ids(reading))
    assert len({len(share) for share in shares}) == 1
    together = list(chain(*shares))
    assert sorted(together[:ROWS]) == list(range(ROWS))
    assert together[ROWS:] == together[: len(together) - ROWS]
    with cache.reading(seed=11) as reading:
        assert ids(reading) == together[:ROWS]


def test_each_epoch_has_an_order_of_its_own(cache: Cluster) -> None:
    with cache.reading(seed=5) as reading:
        first, second = ids(reading), ids(reading)
        assert reading.epoch == 2
        reading.set_epoch(0)
        assert ids(reading) == first
    assert sorted(first) == sorted(second)
    assert first != second


def test_a_reader_goes_on_in_mid_epoch_where_another_stood(cache: Cluster) -> None:
    with cache.reading(1, 3, seed=2) as reading:
        whole = ids(reading, 100)
    with cache.reading(1, 3, seed=2) as reading:
        batches = reading.batches(100)
        had = list(chain(*(next(batches)["id"].to_pylist() for _ in range(37))))
        state = reading.state_dict()
    with cache.reading(1, 3, seed=99) as reading:
        reading.load_state_dict(state)
        assert had + ids(reading, 64) == whole


def test_another_world_goes_on_with_what_is_left(cache: Cluster) -> None:
    had: list[int] = []
    state: dict[str, Any] = {}
    for world, steps in ((4, 21), (2, 13), (5, None)):
        state_after = {}
        for rank in range(world):
            with cache.reading(rank, world, seed=8, tail="ragged") as reading:
                if state:
                    reading.load_state_dict(state)
                batches = reading.batches(100)
                taken = list(batches) if steps is None else [next(batches) for _ in range(steps)]
                had += chain(*(batch["id"].to_pylist() for batch in taken))
                # Any rank's will do.
                state_after = reading.state_dict()
        state = state_after
    assert sorted(had) == list(range(ROWS))


def test_loader_workers_share_a_ranks_rows_and_resume_in_another_world(cache: Cluster) -> None:
    had: list[int] = []
    states = {}
    for part, steps in enumerate((10, 9, 9)):
        for rank in range(2):
            with cache.reading(rank, 2, part, 3, seed=4, tail="ragged") as reading:
                batches = reading.batches(50)
                had += chain(*(next(batches)["id"].to_pylist() for _ in range(steps)))
                states[part] = reading.state_dict()
    for part in range(3):
        for rank in range(3):
            with cache.reading(rank, 3, part, 3, seed=4, tail="ragged") as reading:
                reading.load_state_dict(states[part])
                had += ids(reading)
    assert sorted(had) == list(range(ROWS))


def test_columns_come_as_numpy_arrays(cache: Cluster) -> None:
    with cache.reading(seed=1) as reading:
        arrays = columns(next(reading.batches(64)))
    assert arrays["x"].shape == (64, 4)
    assert np.array_equal(arrays["x"][:, 2], arrays["id"].astype(np.float32))
    assert arrays["text"][0] == f"row {arrays['id'][0]}"


@pytest.mark.parametrize(
    "change",
    [
        {"manifest": "0" * 64},
        {"parts": 2},
        {"tail": "drop"},
        {"steps": [[0, 5]]},
        {"epoch": -1},
        {"version": 2},
        {"steps": "x"},
    ],
)
def test_a_cursor_of_something_else_is_refused(cache: Cluster, change: dict[str, Any]) -> None:
    with cache.reading(seed=1) as reading, pytest.raises(InvalidError, match="cursor"):
        reading.load_state_dict({**reading.state_dict(), **change})


def test_a_rank_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidError, match="rank 3 of 3"):
        Share(3, 3)


def test_a_reader_that_was_closed_says_so(cache: Cluster) -> None:
    with cache.reading(ahead=2) as reading:
        batches = reading.batches(100)
        next(batches)
    with pytest.raises(InvalidError, match="closed"):
        list(batches)


def test_any_flight_client_reads_everything_with_the_true_schema(cache: Cluster) -> None:
    client = fl.connect(cache.address)
    info = client.get_flight_info(fl.FlightDescriptor.for_path())
    assert info.total_records == ROWS
    assert info.schema.equals(cache.manifest.arrow_schema)
    assert [len(endpoint.locations) for endpoint in info.endpoints] == [2, 2, 2]
    for which in (0, 1):
        found = []
        for endpoint in info.endpoints:
            with fl.FlightClient(endpoint.locations[which]) as worker:
                found += worker.do_get(endpoint.ticket).read_all()["id"].to_pylist()
        assert found == list(range(ROWS))
    assert client.get_schema(fl.FlightDescriptor.for_path()).schema.equals(info.schema)
    assert len(list(client.list_flights())) == 1


@pytest.mark.parametrize("world", [1, 4, 9])
def test_the_references_clients_have_their_shares(cache: Cluster, world: int) -> None:
    client = fl.connect(cache.address)
    found = []
    for rank in range(world):
        for endpoint in client.get_flight_info(fl.FlightDescriptor.for_path(str(rank), str(world))).endpoints:
            with fl.FlightClient(endpoint.locations[0]) as worker:
                found += worker.do_get(endpoint.ticket).read_all()["id"].to_pylist()
    assert found == list(range(ROWS))


@pytest.mark.parametrize(
    "path", [("4", "4"), ("0", "0"), ("x", "2"), ("-1", "2"), ("1",), ("1", "2", "3"), ("9" * 30, "1")]
)
def test_a_share_that_is_nobodys_is_refused(cache: Cluster, path: tuple[str, ...]) -> None:
    with pytest.raises(fl.FlightError, match=r"trainplane (Invalid|Partition)"):
        fl.connect(cache.address).get_flight_info(fl.FlightDescriptor.for_path(*path))


def attacks(cache: Cluster) -> dict[str, bytes]:
    name, total = cache.manifest.name, cache.manifest.rows
    good = cache.signer.grant(name, 0, total, 4e9)
    return {
        "no ticket at all": b"",
        "one of another key": ticket(Signer(b"x" * 32).grant(name, 0, total, 4e9)),
        "an expired one": ticket(cache.signer.grant(name, 0, total, 1.0)),
        "a block that is not there": ticket(good, (1 << 31,)),
        "a block outside of the grant": ticket(cache.signer.grant(name, 0, 10, 4e9), (5,)),
        "more rows than there are": ticket(cache.signer.grant(name, 0, total + 1, 4e9)),
    }


@pytest.mark.parametrize("which", range(6))
def test_attacks_by_ticket_are_turned_away(cache: Cluster, which: int) -> None:
    attack = list(attacks(cache).values())[which]
    for worker in cache.workers.values():
        with fl.FlightClient(worker.location) as client, pytest.raises(fl.FlightUnauthorizedError):
            client.do_get(fl.Ticket(attack)).read_all()


def test_nobody_without_the_key_can_say_that_he_is_a_worker(cache: Cluster) -> None:
    line = HeadLine(cache.address)
    for signed in (b"", b"{}", Signer(b"x" * 32).sign("hello", b"{}"), cache.signer.sign("grant", b"{}")):
        with pytest.raises(DeniedError):
            line._ask(HELLO, signed)
    with pytest.raises(InvalidError):
        line.hello(cache.signer, Hello("../../etc", "file:///", 1.0))
    with pytest.raises(DeniedError, match="clocks"):
        line.hello(cache.signer, Hello("w", "grpc://w:1", 1.0))


def test_a_worker_does_not_listen_to_a_head_without_the_key(cache: Cluster) -> None:
    class Impostor(fl.FlightServerBase):  # type: ignore[misc] # pyarrow has no types
        def do_action(self, context: Any, action: Any) -> Any:
            del context, action
            answer = Welcome("e" * 64, ("w",), 2)
            return iter([Signer(b"x" * 32).sign("welcome", msgspec.json.encode(answer))])

    with Impostor("grpc://127.0.0.1:0") as head, pytest.raises(DeniedError, match="signature"):
        HeadLine(f"127.0.0.1:{head.port}").hello(cache.signer, Hello("w", "grpc://w:1", 1.0))


def test_a_worker_that_was_away_attaches_what_it_has(cache: Cluster) -> None:
    written = {path: path.stat().st_mtime_ns for path in cache.disk("worker-0").rglob("*.arrow")}
    cache.stop("worker-0")
    cache.start("worker-0")
    cache.wait_ready()
    assert cache.workers["worker-0"].held == cache.placed("worker-0")
    assert {path: path.stat().st_mtime_ns for path in cache.disk("worker-0").rglob("*.arrow")} == written
    with cache.reading() as reading:
        assert ids(reading) == list(range(ROWS))


def test_a_cache_with_tls_and_a_token_lets_in_who_has_both(tmp_path: Path) -> None:
    certificate, key = self_signed()
    write_parquet(tmp_path / "data", 5_000)
    source = Source(kind="parquet", location=str(tmp_path / "data"), block_bytes=32 << 10)
    door: dict[str, Any] = {"host": "localhost", "certificate": certificate, "key": key, "token": b"let me in"}
    with cluster(source, tmp_path / "disks", **door) as cache:
        with cache.reading() as reading:
            assert ids(reading) == list(range(5_000))
        with pytest.raises(DeniedError, match="token"):
            Reading(HeadLine(cache.address, Access(certificate, b"wrong")), Share())
        with pytest.raises(fl.FlightError), fl.FlightClient(cache.address) as stranger:
            stranger.get_flight_info(fl.FlightDescriptor.for_path())
        for worker in cache.workers.values():
            with fl.FlightClient(worker.location, tls_root_certs=certificate) as thief, pytest.raises(fl.FlightError):
                thief.do_get(fl.Ticket(ticket(cache.signer.grant(cache.manifest.name, 0, 1, 4e9)))).read_all()


def test_a_reader_is_told_when_the_head_serves_another_dataset(tmp_path: Path) -> None:
    write_parquet(tmp_path / "data", 40_000)
    source = Source(kind="parquet", location=str(tmp_path / "data"), block_bytes=8 << 10)
    with cluster(source, tmp_path / "disks") as cache, cache.reading(ahead=2) as reading:
        batches = reading.batches(100)
        next(batches)
        write_parquet(tmp_path / "data", 40_000, 5)
        other = reader(source, {}).plan(source)
        cache.restart_head(other)
        cache.manifest = other
        cache.wait_ready()
        with pytest.raises(ChangedError, match="another dataset"):
            list(batches)
