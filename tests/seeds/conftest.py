"""One node cluster for the whole suite, that of `make e2e`: our operator under its own rights, GPUs in name only."""

from __future__ import annotations

from tests.e2e.conftest import cluster, user

__all__ = ["cluster", "user"]
