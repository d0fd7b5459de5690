"""Manifests of made-up fragments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from trainplane.cache.manifest import Fragment, Manifest, Source

if TYPE_CHECKING:
    from collections.abc import Sequence


def plan(counts: Sequence[int], block_rows: int) -> Manifest:
    """Return a plan of fragments with so many rows."""
    return Manifest(
        source=Source(kind="parquet", location="/data"),
        schema=pa.schema([("id", pa.int64())]).serialize().to_pybytes(),
        block_rows=block_rows,
        fragments=tuple(Fragment(f"{n}.parquet", rows, rows * 8, "1") for n, rows in enumerate(counts)),
    )
