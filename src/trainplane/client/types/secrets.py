"""Secrets by reference: a value that the cluster knows and the TrainJob does not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SecretRef:
    """One key of a Secret in the TrainJob's namespace.

    Where a token is asked for, give this in its place: the pod reads it from the Secret, and neither the TrainJob, nor
    its events, nor whoever may list TrainJobs sees it. Local backends read `secrets` of their configuration.
    """

    name: str
    """The Secret: `kubectl create secret generic NAME --from-literal=KEY=…`."""
    key: str
    """The key in it."""
