"""The step before a training: Ray Data reads raw rows, drops those that are none, and writes one CSV file."""

from __future__ import annotations

import sys

import ray


def main(raw: str, clean: str) -> None:
    """Turn the file `raw` into the file `clean`."""
    ray.init(num_cpus=1, include_dashboard=False, logging_level="ERROR")
    rows = ray.data.read_csv(raw).filter(lambda row: row["x"] is not None and row["y"] is not None)
    rows.to_pandas()[["x", "y"]].to_csv(clean, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
