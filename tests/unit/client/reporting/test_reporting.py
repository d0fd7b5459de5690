"""Progress reports, against a real server with TLS."""

from __future__ import annotations

import json
import logging
import ssl
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from trainplane.api import names
from trainplane.client import reporting
from trainplane.client.errors import InvalidError
from trainplane.client.reporting import Reporter, update_trainjob_status
from trainplane.client.topology import get_tpu_num_nodes
from trainplane.kube.pki import CertificatePolicy, renew

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass
class Operator:
    """Takes progress."""

    answer: int = 200
    seen: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(reporting, "_reporter", Reporter(clock))
    return clock


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Iterator[Operator]:
    operator = Operator()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            operator.seen.append((self.path, self.headers["Authorization"], body))
            self.send_response(operator.answer)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: Any) -> None:
            pass

    material, _ = renew(None, CertificatePolicy(("localhost",)), datetime.now(UTC))
    for name in ("ca_crt", "tls_crt", "tls_key"):
        (tmp_path / name).write_bytes(getattr(material, name))
    (tmp_path / "token").write_text("first\n")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls_crt", tmp_path / "tls_key")
    server = HTTPServer(("localhost", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    path = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs/job/status"
    monkeypatch.setenv(names.STATUS_URL, f"https://localhost:{server.server_address[1]}{path}")
    monkeypatch.setenv(names.STATUS_CA_CERT, str(tmp_path / "ca_crt"))
    monkeypatch.setenv(names.STATUS_TOKEN, str(tmp_path / "token"))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    yield operator
    server.shutdown()
    thread.join()
    server.server_close()


def test_progress_arrives_as_the_protocol_has_it(operator: Operator) -> None:
    assert update_trainjob_status(42, 60, {"loss": 0.25, "step": 7, "phase": "warm"})
    ((path, token, body),) = operator.seen
    status = body["trainerStatus"]
    assert path == "/apis/trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs/job/status"
    assert token == "Bearer first"
    assert datetime.fromisoformat(status.pop("lastUpdatedTime")).tzinfo is not None
    assert status == {
        "progressPercentage": 42,
        "estimatedRemainingSeconds": 60,
        "metrics": [
            {"name": "loss", "value": "0.25"},
            {"name": "step", "value": "7"},
            {"name": "phase", "value": "warm"},
        ],
    }


def test_it_reports_every_five_seconds_at_most(operator: Operator, clock: Clock) -> None:
    assert update_trainjob_status(1)
    clock.now += 4.9
    assert not update_trainjob_status(2)
    clock.now += 0.1
    assert update_trainjob_status(3)
    assert [body["trainerStatus"]["progressPercentage"] for _, _, body in operator.seen] == [1, 3]


def test_the_end_is_always_reported(operator: Operator) -> None:
    assert update_trainjob_status(99)
    assert update_trainjob_status(100)


def test_a_new_token_is_used(operator: Operator, clock: Clock, tmp_path: Path) -> None:
    update_trainjob_status(1)
    (tmp_path / "token").write_text("second")
    clock.now += 5
    update_trainjob_status(2)
    assert [token for _, token, _ in operator.seen] == ["Bearer first", "Bearer second"]


def test_values_are_cut_to_what_the_operator_takes(operator: Operator) -> None:
    update_trainjob_status(170, -5, {f"m{n}" + "x" * 100: "v" * 100 for n in range(300)})
    status = operator.seen[0][2]["trainerStatus"]
    assert status["progressPercentage"] == 100
    assert status["estimatedRemainingSeconds"] == 0
    assert len(status["metrics"]) == 256
    assert {len(entry[key]) for entry in status["metrics"] for key in ("name", "value")} == {64}


def test_a_refusal_is_logged_and_may_be_tried_again(operator: Operator, caplog: pytest.LogCaptureFixture) -> None:
    operator.answer = 403
    assert not update_trainjob_status(1)
    (record,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert record.message == "progress was refused"
    assert vars(record)["status"] == 403
    operator.answer = 200
    assert update_trainjob_status(2)


def test_a_server_that_is_not_trusted_gets_no_token(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(names.STATUS_CA_CERT)
    assert not update_trainjob_status(1)
    assert operator.seen == []
    assert [record.message for record in caplog.records] == ["progress was not reported"]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        (names.STATUS_URL, "http://localhost:1/x"),
        (names.STATUS_URL, "https://localhost:1/x"),
        (names.STATUS_TOKEN, "/no/such/file"),
        (names.STATUS_CA_CERT, "/no/such/file"),
    ],
)
def test_nothing_that_is_wrong_stops_a_training(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    assert update_trainjob_status(1) is False
    assert operator.seen == []


def test_outside_a_job_it_does_nothing(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    monkeypatch.delenv(names.STATUS_URL, raising=False)
    assert update_trainjob_status(1) is False


@pytest.mark.parametrize(
    ("slices", "topology", "chips", "nodes"),
    [(1, "2x2", 4, 1), (2, "2x2x4", 4, 8), (1, "1x1", 4, 1), (3, "4X4", 8, 6), (1, "2x2x1", 4, 1)],
)
def test_tpu_slices_need_so_many_nodes(slices: int, topology: str, chips: int, nodes: int) -> None:
    assert get_tpu_num_nodes(slices, topology, chips) == nodes


@pytest.mark.parametrize(
    ("slices", "topology", "chips", "message"),
    [
        (0, "2x2", 4, "num_slices must be a number from 1 on, and is 0"),
        (1, "2x2", 0, "chips_per_host must be"),
        (1, "4", 4, "topology must be two or three numbers from 1 on, such as 4x4 or 2x2x4, and is '4'"),
        (1, "", 4, "topology must be"),
        (1, "2x0", 4, "topology must be"),
        (1, "axb", 4, "topology must be"),
        (1, "2x3", 4, "topology 2x3 has 6 chips, which machines of 4 do not fill"),
    ],
)
def test_topologies_that_cannot_be(slices: int, topology: str, chips: int, message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        get_tpu_num_nodes(slices, topology, chips)
