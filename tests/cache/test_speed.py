"""How fast blocks come through, beside bare Flight over the same memory-mapped bytes.

Servers are processes of their own; both ways are taken in turns, and medians are told. Absolute figures are the
machine's; how the two compare is ours.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pds
import pyarrow.flight as fl
import pyarrow.parquet as pq

from tests.cache.test_program import free_port
from tests.size import sized
from trainplane.cache.errors import UnreachableError
from trainplane.cache.opening import HeadLine
from trainplane.cache.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.suite import SuiteReport

FILES = sized(2, full=100)
"""Of 100 MB each, once decoded."""
ROWS_PER_FILE = 375_000
WIDTH = 64
"""Floats of a row."""
ROUNDS = sized(5, full=7, small=3)


def write(folder: Path) -> int:
    """Write the dataset; return its bytes once decoded."""
    folder.mkdir()
    size = 0
    for number in range(FILES):
        drawn = np.random.default_rng(number).standard_normal((ROWS_PER_FILE, WIDTH), dtype=np.float32)
        x = pa.FixedSizeListArray.from_arrays(pa.array(drawn.reshape(-1)), WIDTH)
        ids = np.arange(number * ROWS_PER_FILE, (number + 1) * ROWS_PER_FILE)
        table = pa.table({"id": ids, "x": x})
        size += table.nbytes
        pq.write_table(table, folder / f"{number:03}.parquet", compression="zstd", row_group_size=65_536)
    return size


class Bare(fl.FlightServerBase):  # type: ignore[misc] # pyarrow has no types
    """Flight and nothing else: everything that segments hold, in their blocks."""

    def __init__(self, location: str, folder: str) -> None:
        super().__init__(location)
        maps = [pa.memory_map(str(path)) for path in sorted(Path(folder).rglob("*.arrow"))]
        self._table = pa.concat_tables([pa.ipc.open_file(one).read_all() for one in maps])

    def do_get(self, context: object, ticket: object) -> object:
        """Send all of it."""
        del context, ticket
        return fl.RecordBatchStream(self._table)


@contextmanager
def running(*commands: list[str], env: dict[str, str]) -> Iterator[None]:
    processes = [
        subprocess.Popen(command, env={**os.environ, **env}, stdout=subprocess.DEVNULL) for command in commands
    ]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def read_bare(location: str) -> int:
    with fl.FlightClient(location) as client:
        return sum(chunk.data.num_rows for chunk in client.do_get(fl.Ticket(b"all")))


def read_ours(address: str, seed: int | None) -> int:
    with Reading.open(address, seed=seed, patience=60) as reading:
        return sum(batch.num_rows for batch in reading.batches(8192))


def answers(location: str) -> bool:
    try:
        with fl.FlightClient(location) as client:
            client.wait_for_available(timeout=1)
            client.do_get(fl.Ticket(b"all"), fl.FlightCallOptions(timeout=30)).read_chunk()
    except (fl.FlightError, pa.ArrowException):
        return False
    return True


def test_blocks_come_nearly_as_fast_as_bare_flight_gives_them(tmp_path: Path, report: SuiteReport) -> None:
    size = write(tmp_path / "data")
    total = FILES * ROWS_PER_FILE
    (tmp_path / "key").write_bytes(os.urandom(32))
    head, worker, bare = free_port(), free_port(), free_port()
    env = {
        "CACHE_KEY_FILE": str(tmp_path / "key"),
        "STORAGE_URI": str(tmp_path / "data"),
        "HEAD_ADDRESS": f"127.0.0.1:{head}",
        "WORKER_NAME": "one",
        "CACHE_DIR": str(tmp_path / "disk"),
        "HEALTH_PORT": "0",
    }
    program = [sys.executable, "-m", "trainplane.cache"]
    began = time.perf_counter()
    with running([*program, "head", "127.0.0.1", str(head)], [*program, "worker", "127.0.0.1", str(worker)], env=env):
        wait_ready(f"127.0.0.1:{head}")
        report.figure("ready_s", time.perf_counter() - began)
        code = "import sys; from tests.cache.test_speed import Bare; Bare(*sys.argv[1:]).serve()"
        served = [f"grpc://127.0.0.1:{bare}", str(tmp_path / "disk")]
        with running([sys.executable, "-c", code, *served], env={}):
            until(lambda: answers(f"grpc://127.0.0.1:{bare}"))
            took = measure(
                size,
                total,
                bare=lambda: read_bare(f"grpc://127.0.0.1:{bare}"),
                ours=lambda: read_ours(f"127.0.0.1:{head}", None),
                shuffled=lambda: read_ours(f"127.0.0.1:{head}", 7),
                parquet=lambda: sum(batch.num_rows for batch in pds.dataset(tmp_path / "data").to_batches()),
            )
        for name, speed in took.items():
            report.figure(f"{name}_gb_per_s", speed)
        report.figure("ours_by_bare", took["ours"] / took["bare"])
        report.figure("resume_s", resumed(f"127.0.0.1:{head}"))
        report.figure("wait_ms_per_step", waited(f"127.0.0.1:{head}"))


def measure(size: int, total: int, **ways: Callable[[], int]) -> dict[str, float]:
    """Return GB/s of each way, by the median of rounds in which each has its turn."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            began = time.perf_counter()
            assert way() == total
            seconds[name].append(time.perf_counter() - began)
    return {name: size / statistics.median(took) / 1e9 for name, took in seconds.items()}


def resumed(address: str) -> float:
    """Return how long a new reader takes from a cursor in mid-epoch to its first batch."""
    with Reading.open(address, seed=1, patience=60) as reading:
        for _ in islice(reading.batches(1000), 100):
            pass
        state = reading.state_dict()
    began = time.perf_counter()
    with Reading.open(address, patience=60) as reading:
        reading.load_state_dict(state)
        next(reading.batches(1000))
        return time.perf_counter() - began


def waited(address: str) -> float:
    """Return how many milliseconds a loop waits for each step that uses 100 MB/s, after the first."""
    rows, steps = 4096, 60
    with Reading.open(address, seed=1, patience=60) as reading:
        batches = reading.batches(rows)
        pace = next(batches).nbytes / 100e6
        before = reading.counts.wait_s
        for _ in islice(batches, steps):
            time.sleep(pace)
        return (reading.counts.wait_s - before) / steps * 1000


def wait_ready(address: str) -> None:
    def ready() -> bool:
        try:
            return HeadLine(address).status().ready
        except UnreachableError:
            return False

    until(ready)


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)
