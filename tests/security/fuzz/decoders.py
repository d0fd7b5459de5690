"""Which targets coverage-guided fuzzing runs, how many inputs of each, and where its corpus is."""

from __future__ import annotations

from pathlib import Path
from typing import Final

CORPUS: Final = Path(__file__).parent / "corpus"
RUNS: Final = {
    "review-bytes": 2_500,
    "kubeconfigs": 9_000,
    "snapshots": 5_500,
    "log-queries": 35_000,
    "watches": 4_000,
    "quantities": 55_000,
}
"""Targets whose input is what stands on the wire or in a file, byte for byte; and how many inputs of each a short run
tries: about two seconds of work on two cores that others use, besides the time to instrument the code."""
DECODERS: Final = tuple(RUNS)
