"""Ways to read the same rows with our own Python: `-m tests.cache.readers`, as `turns` has it."""

from __future__ import annotations

import time
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as pds
import pyarrow.flight as fl
from datafusion import SessionContext

from tests.cache.turns import BATCH, answer
from trainplane.cache.manifest import Source
from trainplane.cache.reading import Reading
from trainplane.cache.sources import reader as decoder_of
from trainplane.cache.worker import Holding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.cache.turns import Pass


def bare(place: str) -> Pass:
    """Flight's own client, which throws away what it has."""

    def read() -> dict[str, float]:
        with fl.FlightClient(place) as client:
            return _rows(chunk.data for chunk in client.do_get(fl.Ticket(b"all")))

    return read


def reference(place: str) -> Pass:
    """The reference's protocol: all rows of rank 0 of 1, from one worker after the other as its example reads them."""

    def chunks() -> Iterable[Any]:
        with fl.FlightClient(place) as head:
            for endpoint in head.get_flight_info(fl.FlightDescriptor.for_path("0", "1")).endpoints:
                with fl.FlightClient(endpoint.locations[0]) as worker:
                    for chunk in worker.do_get(endpoint.ticket):
                        yield chunk.data

    return lambda: _rows(chunks())


def ours(place: str, seed: int | None = None) -> Pass:
    """Our reader, epoch after epoch, in batches as a training loop takes them; in the order of a seed, if any."""
    reading = Reading.open(place, seed=seed, patience=60)
    return lambda: _rows(reading.batches(BATCH))


def pyarrow(place: str) -> Pass:
    """The Parquet files, by PyArrow."""
    return lambda: _rows(pds.dataset(place).to_batches())


def datafusion(place: str) -> Pass:
    """The Parquet files, by DataFusion."""
    return lambda: _rows(batch.to_pyarrow() for batch in SessionContext().read_parquet(place).execute_stream())


def taken_in(place: str) -> Pass:
    """The Parquet files, decoded into segments as a worker does."""
    source = Source(kind="parquet", location=place)
    decoder = decoder_of(source, {})
    manifest = decoder.plan(source)

    def read() -> dict[str, float]:
        with TemporaryDirectory(dir=Path(place).parent) as folder:
            holding = Holding(manifest, Path(folder), decoder)
            for number in range(len(manifest.fragments)):
                holding.load(number)
        return {"rows": manifest.rows}

    return read


def resumed(place: str) -> Pass:
    """How long a new reader takes from a cursor in mid-epoch to its first batch."""

    def read() -> dict[str, float]:
        with Reading.open(place, seed=1, patience=60) as reading:
            rows = _rows(islice(reading.batches(BATCH), 50))
            state = reading.state_dict()
        began = time.perf_counter()
        with Reading.open(place, patience=60) as reading:
            reading.load_state_dict(state)
            next(reading.batches(BATCH))
            return {**rows, "resume_s": time.perf_counter() - began}

    return read


def _rows(batches: Iterable[Any]) -> dict[str, float]:
    return {"rows": sum(batch.num_rows for batch in batches)}


if __name__ == "__main__":
    answer(bare, reference, ours, pyarrow, datafusion, taken_in, resumed)
