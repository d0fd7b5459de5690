"""The resources that the SDK asks an API server for."""

from __future__ import annotations

from typing import Final

from trainplane.api import names
from trainplane.kube.resource import EVENTS, PODS, Resource

__all__ = ["CLUSTER_TRAINING_RUNTIMES", "EVENTS", "HUB_TRAIN_JOBS", "PODS", "TRAINING_RUNTIMES", "TRAIN_JOBS"]

TRAIN_JOBS: Final = Resource(names.GROUP, names.VERSION, "trainjobs", names.TRAIN_JOB)
TRAINING_RUNTIMES: Final = Resource(names.GROUP, names.VERSION, "trainingruntimes", names.TRAINING_RUNTIME)
CLUSTER_TRAINING_RUNTIMES: Final = Resource(
    names.GROUP, names.VERSION, "clustertrainingruntimes", names.CLUSTER_TRAINING_RUNTIME, namespaced=False
)
HUB_TRAIN_JOBS: Final = Resource(names.HUB_GROUP, names.HUB_VERSION, "trainjobs", names.TRAIN_JOB)
"""The hub's view of TrainJobs, with `pods`, `events`, `log` and `queue` below each (docs/hub.md)."""
