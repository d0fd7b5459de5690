"""Versions as servers and images tell them, and the oldest Kubernetes that is supported."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

Release: TypeAlias = tuple[int, int]
"""Major and minor: what decides what something can do."""

OLDEST: Final[Release] = (1, 31)
"""The oldest Kubernetes that is tried, and so supported; docs/versions.md has what was tried."""


def release(version: str) -> Release | None:
    """Return the release of a version such as `v1.31.2-gke.100`; None if it says none."""
    match = re.match(r"v?(\d{1,6})\.(\d{1,6})", version)
    return (int(match[1]), int(match[2])) if match else None


def is_too_old(version: str) -> bool:
    """Return whether a Kubernetes is older than what is supported; one that does not say is taken for new enough."""
    found = release(version)
    return found is not None and found < OLDEST


def oldest() -> str:
    """Return the oldest supported release as people write it: `v1.31`."""
    return "v{}.{}".format(*OLDEST)
