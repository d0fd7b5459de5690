"""Names and ports of pods on one machine."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from tests.unit.client.local.documents import job, plan
from trainplane.client.backends.process.addresses import PORTS, Addresses, free_port

if TYPE_CHECKING:
    from collections.abc import Iterable


def next_port(taken: Iterable[int]) -> int:
    return 21000 + len(list(taken))


@pytest.fixture
def addresses() -> Addresses:
    return Addresses.of(plan(job("node", 12)), next_port)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a-node-0-0.a", "127.0.0.1"),
        ("a-node-0-0", "127.0.0.1"),
        ("a-node-0-0.a.team.svc.cluster.local", "127.0.0.1"),
        ("tcp://a-node-0-1.a:29500/x", "tcp://127.0.0.1:21000/x"),
        (
            '{"worker": ["a-node-0-0.a:2222", "a-node-0-1.a:2222"]}',
            '{"worker": ["127.0.0.1:21000", "127.0.0.1:21001"]}',
        ),
        ("a-node-0-0.a:29500,a-node-0-0.a:29500", "127.0.0.1:21000,127.0.0.1:21000"),
        ("a-node-0-11.a:1", "127.0.0.1:21000"),
        ("a-node-0-12.a", "a-node-0-12.a"),
        ("data-node-0-0.a", "data-node-0-0.a"),
        ("a-node-0-0-x7k2p", "a-node-0-0-x7k2p"),
        ("my.a-node-0-0", "my.a-node-0-0"),
    ],
)
def test_names_are_replaced_where_they_are_names(addresses: Addresses, text: str, expected: str) -> None:
    assert addresses.translate(text) == expected


def test_a_port_moves_with_the_host_named_beside_it(addresses: Addresses) -> None:
    given = {
        "PET_MASTER_ADDR": "a-node-0-0.a",
        "PET_MASTER_PORT": "29500",
        "JAX_COORDINATOR_ADDRESS": "a-node-0-0.a:29500",
        "DMLC_TRACKER_URI": "a-node-0-0.a",
        "DMLC_TRACKER_PORT": "9091",
        "HTTP_PORT": "80",
        "OTHER_PORT": "any",
        "DB_HOST": "db.example.com",
        "DB_PORT": "5432",
    }
    assert addresses.variables(given) == {
        **given,
        "PET_MASTER_ADDR": "127.0.0.1",
        "PET_MASTER_PORT": "21000",
        "JAX_COORDINATOR_ADDRESS": "127.0.0.1:21000",
        "DMLC_TRACKER_URI": "127.0.0.1",
        "DMLC_TRACKER_PORT": "21001",
    }


def test_hosts_of_mpi_become_one(addresses: Addresses) -> None:
    assert addresses.translate_file("a-node-0-0.a slots=4\na-node-0-1.a slots=4\n") == "127.0.0.1 slots=8\n"
    assert addresses.translate_file("a-node-0-0.a:2\na-node-0-1.a:2\n") == "127.0.0.1:4\n"
    assert addresses.translate_file("Host a-node-0-0.a\n") == "Host 127.0.0.1\n"
    assert addresses.translate_file("") == ""


def test_a_free_port_is_free() -> None:
    port = free_port()
    assert port in PORTS
    with socket.socket() as taken:
        taken.bind(("", port))
        assert free_port() != port


def test_ports_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match="no port between"):
        free_port(PORTS)
