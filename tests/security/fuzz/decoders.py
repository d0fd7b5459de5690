"""Which targets coverage-guided fuzzing runs, and where its corpus is."""

from __future__ import annotations

from pathlib import Path
from typing import Final

CORPUS: Final = Path(__file__).parent / "corpus"
DECODERS: Final = ("review-bytes", "kubeconfigs", "snapshots", "log-queries", "watches", "quantities")
"""Targets whose input is what stands on the wire or in a file, byte for byte."""
