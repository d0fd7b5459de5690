"""Head and workers as processes of their own, killed as a node's end kills them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import urllib.request
from itertools import islice
from typing import TYPE_CHECKING

import pytest

from lab.processes import wait_for
from tests.cache.loopback import ids
from tests.cache.nodes import free_ports
from tests.unit.cache.data import write_parquet
from trainplane.cache.errors import UnreachableError
from trainplane.cache.opening import HeadLine
from trainplane.cache.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS = 60_000


class Processes:
    """A head and three workers."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        names = ("head", "w0", "w1", "w2", "health")
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))
        (root / "key").write_bytes(os.urandom(32))
        self.address = f"127.0.0.1:{self.ports['head']}"

    def start(self, name: str) -> None:
        env = {
            **os.environ,
            "CACHE_KEY_FILE": str(self.root / "key"),
            "STORAGE_URI": str(self.root / "data"),
            "HEAD_ADDRESS": self.address,
            "BLOCK_BYTES": "16384",
            "WORKER_NAME": name,
            "CACHE_DIR": str(self.root / name),
            "HEALTH_PORT": str(self.ports["health"]) if name == "head" else "0",
        }
        kind = "head" if name == "head" else "worker"
        command = [sys.executable, "-m", "trainplane.cache", kind, "127.0.0.1", str(self.ports[name])]
        self._running[name] = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)

    def kill(self, name: str) -> None:
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def end(self, name: str) -> int:
        """Ask a process to end; return its exit code."""
        process = self._running.pop(name)
        process.terminate()
        return process.wait(30)

    def wait_loaded(self) -> None:
        """Wait until every worker is there and has loaded what it should."""
        names = ("w0", "w1", "w2")
        wait_for("every worker to load", lambda: self.ready() and all(map(self._loaded, names)), seconds=100)

    def _loaded(self, name: str) -> bool:
        try:
            status = HeadLine(f"127.0.0.1:{self.ports[name]}").status()
        except UnreachableError:
            return False
        return status.ready and status.held > 0

    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['health']}/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def close(self) -> None:
        for name in list(self._running):
            self.kill(name)


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    root = tmp_path_factory.mktemp("processes")
    write_parquet(root / "data", *[ROWS // 6] * 6)
    running = Processes(root)
    try:
        for name in ("head", "w0", "w1", "w2"):
            running.start(name)
        running.wait_loaded()
        yield running
    finally:
        running.close()


@pytest.mark.parametrize("wiped", [False, True])
def test_a_worker_is_killed_in_mid_epoch_and_no_row_is_missing(processes: Processes, wiped: bool) -> None:
    with Reading.open(processes.address, seed=1, ahead=2, patience=60) as reading:
        batches = reading.batches(1000)
        had = [n for batch in islice(batches, 5) for n in batch["id"].to_pylist()]
        processes.kill("w1")
        if wiped:
            shutil.rmtree(processes.root / "w1")
        had += [n for batch in islice(batches, 20) for n in batch["id"].to_pylist()]
        processes.start("w1")
        had += [n for batch in batches for n in batch["id"].to_pylist()]
        assert reading.counts.failovers > 0
    assert sorted(had) == list(range(ROWS))
    processes.wait_loaded()


def test_a_head_is_killed_in_mid_epoch_and_nobody_notices(processes: Processes) -> None:
    with Reading.open(processes.address, seed=1, ahead=2, patience=60) as reading:
        batches = reading.batches(1000)
        had = [n for batch in islice(batches, 5) for n in batch["id"].to_pylist()]
        name = HeadLine(processes.address).status().manifest
        processes.kill("head")
        had += [n for batch in islice(batches, 5) for n in batch["id"].to_pylist()]
        processes.start("head")
        processes.wait_loaded()
        assert HeadLine(processes.address).status().manifest == name
        had += [n for batch in batches for n in batch["id"].to_pylist()]
    assert sorted(had) == list(range(ROWS))


def test_everything_ends_when_told_and_attaches_again(processes: Processes) -> None:
    assert [processes.end(name) for name in ("w0", "w1", "w2", "head")] == [0, 0, 0, 0]
    for name in ("head", "w0", "w1", "w2"):
        processes.start(name)
    processes.wait_loaded()
    with Reading.open(processes.address, patience=60) as reading:
        assert ids(reading) == list(range(ROWS))


@pytest.mark.parametrize(
    ("arguments", "env", "words"),
    [
        ([], {}, "usage"),
        (["head", "127.0.0.1", "x"], {}, "PORT is 'x'"),
        (["head", "127.0.0.1", "0"], {"CACHE_KEY_FILE": ""}, "CACHE_KEY_FILE is not set"),
        (["head", "127.0.0.1", "0"], {}, "METADATA_LOC"),
        (["head", "127.0.0.1", "0"], {"STORAGE_URI": "/nowhere"}, "no /nowhere"),
        (["head", "127.0.0.1", "0"], {"STORAGE_URI": "/x", "WHERE": "[[1]]"}, "WHERE"),
        (["head", "127.0.0.1", "0"], {"STORAGE_URI": "/x", "FORMAT": "xls"}, "FORMAT"),
        (["worker", "127.0.0.1", "0"], {}, "HEAD_ADDRESS is not set"),
    ],
)
def test_a_mistake_is_said_in_one_line(
    arguments: list[str], env: dict[str, str], words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from trainplane.cache.program import main  # noqa: PLC0415 for this alone

    (tmp_path / "key").write_bytes(b"k" * 32)
    assert main(arguments, {"CACHE_KEY_FILE": str(tmp_path / "key"), **env}) == 1
    said = capfd.readouterr().err
    assert words in said
    assert said.count("\n") == 1
