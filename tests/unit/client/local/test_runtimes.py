from __future__ import annotations

import http.server
import threading
from typing import TYPE_CHECKING

import pytest

from trainplane.client.backends.local.runtimes import load, load_all, shipped
from trainplane.client.errors import InvalidError, NotFoundError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ONE = "kind: TrainingRuntime\nmetadata: {name: one}\nspec: {}\n"
TWO = (
    "kind: List\nitems:\n- {kind: ClusterTrainingRuntime, metadata: {name: two}}\n- {kind: Pod, metadata: {name: p}}\n"
)


def test_those_that_we_ship_are_there() -> None:
    assert {"torch-distributed", "jax-distributed", "deepspeed-distributed"} <= set(load_all([]))
    assert (shipped() / "torch-distributed.yaml").exists()


def test_the_users_come_before_ours(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(ONE.replace("one", "torch-distributed"))
    (tmp_path / "b.yml").write_text(f"{TWO}---\n{ONE}")
    (tmp_path / "notes.txt").write_text("no: [")
    found = load_all([str(tmp_path)])
    assert found["torch-distributed"]["kind"] == "TrainingRuntime"
    assert {"one", "two"} <= set(found)
    assert "p" not in found
    assert load("two", [f"file://{tmp_path}/b.yml"])["kind"] == "ClusterTrainingRuntime"


def test_what_is_wrong_with_a_source_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no runtime 'nine' for local jobs; there are .*torch-distributed"):
        load("nine", [])
    with pytest.raises(InvalidError, match="there is no such file or folder"):
        load_all([str(tmp_path / "none")])
    with pytest.raises(InvalidError, match="write a path, file://"):
        load_all(["github://a/b"])
    (tmp_path / "bad.yaml").write_text("a: [")
    with pytest.raises(InvalidError, match=r"bad\.yaml: not YAML"):
        load_all([str(tmp_path)])


@pytest.fixture
def address() -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/one.yaml" else 404)
            self.end_headers()
            self.wfile.write(ONE.encode())

        def log_message(self, *_: object) -> None:
            """Return nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_runtime_is_fetched(address: str) -> None:
    assert load("one", [f"{address}/one.yaml"])["kind"] == "TrainingRuntime"
    with pytest.raises(UnreachableError, match="404"):
        load("one", [f"{address}/two.yaml"])
