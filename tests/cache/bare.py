"""What our servers are measured beside: `-m tests.cache.bare LOCATION FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl


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


if __name__ == "__main__":
    Bare(*sys.argv[1:]).serve()
