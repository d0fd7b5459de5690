"""Pods of a cache as a cluster starts, probes and ends them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import grpc
import pyarrow.flight as fl
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from lab.processes import wait_for
from tests.cache.certificates import self_signed
from tests.cache.loopback import cluster, ids
from tests.cache.nodes import TOKEN, Nodes
from tests.unit.cache.data import table, write_parquet
from trainplane.cache.errors import DeniedError
from trainplane.cache.front import Behind, Front
from trainplane.cache.manifest import Source
from trainplane.cache.opening import Access, HeadLine
from trainplane.cache.reading import Reading
from trainplane.cache.reference import pair, rows
from trainplane.cache.serving import Door
from trainplane.cache.writing import Writing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS = 12_000


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    root = tmp_path_factory.mktemp("nodes")
    write_parquet(root / "data", 5_000, 4_000, 3_000)
    running = Nodes(root, 3)
    try:
        for index in (2, 1):  # before there is a head
            running.start(index)
        assert probe(running, 2, patient=True) == "NOT_SERVING"
        running.start(0)
        running.wait_ready()
        wait_held_twice(running)
        yield running
    finally:
        running.close()


def probe(nodes: Nodes, index: int, service: str = "", *, patient: bool = False) -> str:
    """Return what the kubelet's probe is answered; `patient` waits for a port that is not there yet."""
    with grpc.insecure_channel(f"127.0.0.1:{nodes.ports[index]['cache']}") as channel:
        request = health_pb2.HealthCheckRequest(service=service)
        stub = health_pb2_grpc.HealthStub(channel)
        answer = stub.Check(request, timeout=100 if patient else 30, wait_for_ready=patient)
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))


def wait_held_twice(nodes: Nodes) -> None:
    """Wait until the head has heard of both copies of everything."""
    with fl.connect(f"grpc://{nodes.address}") as client:
        wait_for(
            "two copies of every fragment",
            lambda: all(len(endpoint.locations) >= 2 for endpoint in infos(client).endpoints),
            seconds=100,
        )


def infos(client: Any, *path: str) -> Any:
    return client.get_flight_info(fl.FlightDescriptor.for_path(*path))


def test_pods_start_in_any_order_and_answer_the_kubelets_probe(nodes: Nodes) -> None:
    assert [probe(nodes, index) for index in range(3)] == ["SERVING"] * 3
    assert probe(nodes, 0, "arrow.flight.protocol.FlightService") == "SERVING"
    with pytest.raises(grpc.RpcError) as refused:
        probe(nodes, 0, "something.Else")
    assert refused.value.code() == grpc.StatusCode.NOT_FOUND


def test_ranks_read_everything_once_through_the_port_that_everybody_knows(nodes: Nodes) -> None:
    with Reading.open(nodes.address, seed=3) as reading:
        assert sorted(ids(reading)) == list(range(ROWS))
        assert reading.counts.failovers == 0


def test_rows_come_from_the_workers_own_ports(nodes: Nodes) -> None:
    data = {f"grpc://127.0.0.1:{ports['data']}" for ports in nodes.ports[1:]}
    with fl.connect(f"grpc://{nodes.address}") as client:
        endpoints = infos(client).endpoints
    assert {location.uri.decode() for endpoint in endpoints for location in endpoint.locations} == data
    assert all(len(endpoint.locations) == 2 for endpoint in endpoints)


def test_rows_can_be_had_from_a_workers_known_port_and_not_from_the_head(nodes: Nodes) -> None:
    with fl.connect(f"grpc://{nodes.address}") as head:
        endpoint = infos(head).endpoints[0]
        with pytest.raises((OSError, fl.FlightError), match="the head has no rows"):
            head.do_get(endpoint.ticket)
    with fl.connect(f"grpc://127.0.0.1:{nodes.ports[1]['cache']}") as worker:
        assert worker.do_get(endpoint.ticket).read_all()["id"].to_pylist() == list(range(5_000))


def test_a_rank_beyond_the_rows_is_refused_with_the_references_code(nodes: Nodes) -> None:
    with grpc.insecure_channel(nodes.address) as channel:
        ask = channel.unary_unary("/arrow.flight.protocol.FlightService/GetFlightInfo")
        for path, code in (
            (("3", "3"), grpc.StatusCode.OUT_OF_RANGE),
            (("12000", "13000"), grpc.StatusCode.OUT_OF_RANGE),
            (("0", "0"), grpc.StatusCode.OUT_OF_RANGE),
            (("a", "3"), grpc.StatusCode.INVALID_ARGUMENT),
            (("-1", "3"), grpc.StatusCode.INVALID_ARGUMENT),
            (("1",), grpc.StatusCode.INVALID_ARGUMENT),
        ):
            with pytest.raises(grpc.RpcError) as refused:
                ask(fl.FlightDescriptor.for_path(*path).serialize(), timeout=30)
            assert refused.value.code() == code, path
            assert ("Invalid partition range" in refused.value.details()) == (code == grpc.StatusCode.OUT_OF_RANGE)


def test_a_share_names_its_rows_as_the_reference_does(nodes: Nodes) -> None:
    with fl.connect(f"grpc://{nodes.address}") as client:
        info = infos(client, "1", "3")
    assert info.total_records == 4_000
    spans = [rows(endpoint.app_metadata) for endpoint in info.endpoints]
    assert spans == [(4_000, 5_000), (5_000, 8_000)]
    assert [len(endpoint.locations) for endpoint in info.endpoints] == [1, 1]


def test_a_ticket_in_the_references_words_gives_those_rows_or_an_error(nodes: Nodes) -> None:
    with fl.connect(f"grpc://127.0.0.1:{nodes.ports[1]['data']}") as worker:
        assert worker.do_get(fl.Ticket(pair(300, 9_001))).read_all()["id"].to_pylist() == list(range(300, 9_001))
        for forged in (pair(0, ROWS + 1), b"\xfb\x01", b"\xfb\x01\x00\x05", b"\x05\x04", b"\x05", pair(0, 1) + b"\0"):
            with pytest.raises(fl.FlightError, match=r"\[trainplane Denied\]"):
                worker.do_get(fl.Ticket(forged)).read_all()


def test_figures_can_be_scraped(nodes: Nodes) -> None:
    with Reading.open(nodes.address) as reading:
        ids(reading)
    refused = 3
    with fl.connect(f"grpc://127.0.0.1:{nodes.ports[1]['data']}") as client:
        for _ in range(refused):
            with pytest.raises(fl.FlightError):
                client.do_get(fl.Ticket(b"forged")).read_all()
    head, worker = (figures(nodes.get(index, "/metrics")[1]) for index in (0, 1))
    assert head["rows"] == ROWS
    assert head["filled_bytes"] == head["source_bytes"] > 0
    assert head["workers"] == 2
    assert worker["held_bytes"] == head["source_bytes"]
    assert worker["served_blocks_total"] > 0
    assert worker["served_bytes_total"] > 0
    assert worker["failures_total"] >= refused
    assert (worker["clients"], worker["waiting_bytes"]) == (0, 0)


def figures(text: str) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name.removeprefix("trainplane_cache_"): float(value) for name, _, value in lines}


def test_pods_end_at_once_when_told_and_a_job_puts_others_in_their_place(nodes: Nodes) -> None:
    assert [nodes.end(index) for index in (0, 2, 1)] == [143, 143, 143]  # of one that succeeded there is no other


def test_one_pod_alone_is_head_and_worker_and_ends_when_nobody_reads(tmp_path: Path) -> None:
    write_parquet(tmp_path / "data", 2_000)
    alone = Nodes(tmp_path, 1, IDLE_SECONDS="10")
    try:
        alone.start(0)
        alone.wait_ready()
        with fl.connect(f"grpc://{alone.address}") as client:
            endpoint = infos(client).endpoints[0]
            assert client.do_get(endpoint.ticket).read_all()["id"].to_pylist() == list(range(2_000))
        assert alone.wait(0) == 0
    finally:
        alone.close()


def test_workers_end_with_an_idle_head(tmp_path: Path) -> None:
    write_parquet(tmp_path / "data", 2_000)
    source = Source(kind="parquet", location=str(tmp_path / "data"))
    with cluster(source, tmp_path / "disks") as cache:
        assert not cache.head.ended
        cache.head.end()
        for name in list(cache.workers):
            cache.wait_ended(name)
        assert cache.head.ended


def test_pods_with_tls_and_a_token_are_written_to_and_read_from_by_who_has_both(tmp_path: Path) -> None:
    certificate, key = self_signed()
    for name, content in (("cert", certificate), ("tls-key", key), ("token", TOKEN.encode())):
        (tmp_path / name).write_bytes(content)
    pods = Nodes(
        tmp_path,
        2,
        STORAGE_URI="write://reviews",
        CACHE_TOKEN_FILE=str(tmp_path / "token"),
        TLS_CERT_FILE=str(tmp_path / "cert"),
        TLS_KEY_FILE=str(tmp_path / "tls-key"),
        TLS_CA_FILE=str(tmp_path / "cert"),
    )
    pods.host = "localhost"
    access = Access(certificate, TOKEN.encode())
    try:
        for index in range(2):
            pods.start(index)
        pods.wait_ready()
        with Writing.open(pods.address, "reviews", access=access) as writing:
            writing.put("a", table(0, 1_000).to_batches())
            assert writing.commit().rows == 1_000
        pods.kill(0)
        pods.start(0)  # it knows nothing but its key
        with Reading.open(pods.address, access=access, patience=60) as reading:
            assert ids(reading) == list(range(1_000))
        with pytest.raises(DeniedError):
            HeadLine(pods.address, Access(certificate, b"guessed")).status()
        known = f"grpc+tls://localhost:{pods.ports[1]['cache']}"
        with access.connect(known) as worker:
            assert worker.do_get(fl.Ticket(pair(0, 1_000)), access.options(30)).read_all().num_rows == 1_000
    finally:
        pods.close()


def test_calls_that_stand_still_never_keep_a_probe_waiting() -> None:
    released = threading.Event()

    def silent() -> Iterator[bytes]:
        released.wait(60)
        yield from ()

    with (
        fl.FlightServerBase("grpc://127.0.0.1:0") as server,
        Front(Door(), words=Behind(server.port), rows=Behind(server.port), ready=lambda: True) as front,
        grpc.insecure_channel(f"127.0.0.1:{front.port}") as channel,
    ):
        put = channel.stream_stream("/arrow.flight.protocol.FlightService/DoPut")
        standing = [put(silent(), timeout=60) for _ in range(64)]
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=30)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        finally:
            for call in standing:
                call.cancel()
            released.set()
