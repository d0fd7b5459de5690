"""The versions of Kubernetes and Kueue that are tried together: docs/versions.md has the same table."""

from __future__ import annotations

from typing import Final, NamedTuple

from trainplane.kube.version import release

_GUARDED: Final = (0, 17)
"""The first Kueue that writes into `spec.runtimePatches`, where our policy keeps others from changing its word."""


class Combination(NamedTuple):
    """One cluster of the matrix, in the words of `LAB_KUBERNETES`, `LAB_KUEUE` and `LAB_JOBSET`."""

    kubernetes: str
    kueue: str
    jobset: str = "0.12.0"
    queues: bool = True
    """Whether TrainJobs in its queues run; else it is tried without, and does not count as supported."""

    @property
    def engines(self) -> dict[str, str]:
        """The engines by name, each with its release."""
        return {"kubernetes": self.kubernetes, "kueue": self.kueue, "jobset": self.jobset}

    @property
    def guarded(self) -> bool:
        """Whether the API server refuses that a tenant starts a TrainJob which waits for Kueue."""
        found = release(self.kueue)
        return found is not None and found >= _GUARDED

    def __str__(self) -> str:
        return f"{self.kubernetes}+{self.kueue}"


MATRIX: Final = (
    Combination("1.31", "0.14.0", jobset="0.10.1", queues=False),  # its API server refuses the CRD of JobSet 0.12
    Combination("1.31", "0.19.2", jobset="0.10.1"),
    Combination("1.36", "0.15.0"),
    Combination("1.36", "0.19.0"),
    Combination("1.36", "0.19.2"),
    Combination("1.37", "0.19.2"),
)
