"""The reference's data cache, its own programs: a head and two workers over an Iceberg table on this machine's disk."""

from __future__ import annotations

import socket
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog

from lab.engines import binary
from lab.processes import wait_for
from tests.cache.sides import serving

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

HEAD: Final = 50051
WORKERS: Final = (50052, 50053)
"""With RUNTIME_ENV its head looks for them here, and nowhere else."""
_SECONDS: Final = 600


def table(files: list[Path], folder: Path) -> str:
    """Write the rows of Parquet files as an Iceberg table, file by file; return where its metadata is.

    Iceberg has no lists of a fixed length, so the floats of a row are a list there.
    """
    folder.mkdir()
    catalog = SqlCatalog("tests", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("speed")
    schema = pa.schema([("id", pa.int64()), ("x", pa.list_(pa.float32()))])
    made = catalog.create_table("speed.rows", schema=schema)
    for path in files:
        made.append(pq.read_table(path).cast(schema))
    catalog.close()
    return str(made.metadata_location)


@contextmanager
def reference_cache(metadata: str) -> Iterator[tuple[subprocess.Popen[bytes], ...]]:
    """Run the programs until the head answers, which it does when all rows are loaded; yield them."""
    dataset = {"METADATA_LOC": metadata, "SCHEMA_NAME": "speed", "TABLE_NAME": "rows", "RUST_LOG": "warn"}
    with ExitStack() as stack:

        def started(kind: str, port: int) -> subprocess.Popen[bytes]:
            env = {**dataset, "RUNTIME_ENV": "local", "HEALTH_PORT": str(port + 1000)}
            return stack.enter_context(serving([binary(f"data-cache-{kind}"), "127.0.0.1", str(port)], env=env))

        workers = [started("worker", port) for port in WORKERS]
        for port in WORKERS:
            _wait(port)
        head = started("head", HEAD)
        _wait(HEAD)
        yield head, *workers


def _wait(port: int) -> None:
    """Wait until a server listens: asked anything but what they serve, these panic."""

    def listens() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            return False
        return True

    wait_for(f"a server on port {port}", listens, seconds=_SECONDS)
