"""Where the lab keeps things: a cache that outlives checkouts, and state that must not outlive a cluster."""

from __future__ import annotations

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent


def cache_root() -> Path:
    """Return the folder of built engines and images; `TRAINPLANE_LAB_CACHE` moves it.

    It lies outside the checkout so that a fresh clone on the same machine builds nothing.
    """
    chosen = os.environ.get("TRAINPLANE_LAB_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "trainplane-lab"


def state_root() -> Path:
    """Return the folder of running clusters.

    It lies beside the cache, because a node's image store is made of hard links into it.
    """
    return cache_root() / "clusters"
