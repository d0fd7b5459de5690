"""The shared node cluster and a user in it, as for `make e2e`."""

from __future__ import annotations

from tests.e2e.conftest import cluster, user

__all__ = ["cluster", "user"]
