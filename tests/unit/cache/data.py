"""Rows that each say which one they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path


def table(start: int, rows: int, width: int = 4) -> pa.Table:
    """Return rows that each say which one they are."""
    ids = np.arange(start, start + rows)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(np.repeat(ids, width).astype(np.float32)), width)
    return pa.table({"id": ids, "x": lists, "text": pa.array([f"row {n}" for n in ids], pa.string())})


def write_parquet(folder: Path, *counts: int) -> None:
    """Write one file for each count of rows."""
    folder.mkdir(parents=True, exist_ok=True)
    start = 0
    for number, rows in enumerate(counts):
        pq.write_table(table(start, rows), folder / f"{number:03}.parquet", row_group_size=1000)
        start += rows
