"""Where a pod stands in its job, by what JobSet, the Job controller and the older operators write on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trainplane.api import names
from trainplane.api.legacy import names as legacy_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_DIGITS: Final = 10
"""Of the largest index or count that is one."""
_MOST: Final = 2**31 - 1
"""The largest count that a status can hold."""
STEP_LABELS: Final = (names.LABEL_REPLICATED_JOB, legacy_names.LABEL_REPLICA_TYPE, legacy_names.LABEL_JOB_ROLE)
"""What may tell which part of a job a pod is, the first that is there: an MPIJob's pods have the role alone."""


class PodIndex(NamedTuple):
    """What a pod is within its job; a pod that takes another's place has the same."""

    replicated_job: str
    """`node`, `launcher`, `dataset-initializer`, `master`, ...; empty for a pod of no job."""
    job_index: int
    """The number of the Job within the replicated job."""
    completion_index: int
    """The number of the pod within the Job."""


def read_index(labels: Mapping[str, Any], annotations: Mapping[str, Any]) -> PodIndex:
    """Return the index that a pod's labels and annotations tell."""
    key = names.ANNOTATION_COMPLETION_INDEX  # an annotation; since Kubernetes 1.28 a label too
    return PodIndex(
        next((str(labels[label]) for label in STEP_LABELS if labels.get(label)), ""),
        as_number(labels.get(names.LABEL_JOB_INDEX)),
        as_number(annotations.get(key) or labels.get(key) or labels.get(legacy_names.LABEL_REPLICA_INDEX)),
    )


def number_pods(indexes: Iterable[PodIndex]) -> dict[PodIndex, int]:
    """Return the number of each pod within its replicated job, through all Jobs of that, in order."""
    known = sorted(set(indexes))
    widths: dict[str, int] = {}
    for index in known:
        widths[index.replicated_job] = max(widths.get(index.replicated_job, 1), index.completion_index + 1)
    return {index: index.job_index * widths[index.replicated_job] + index.completion_index for index in known}


def attempt(labels: Mapping[str, Any]) -> int:
    """Return how often the TrainJob had been restarted before: by the operator, and by its JobSet since."""
    restarts = as_number(labels.get(names.LABEL_RESTARTS)) + as_number(labels.get(names.LABEL_RESTART_ATTEMPT))
    return min(restarts, _MOST)


def as_number(value: Any) -> int:
    """Return the number that a label or variable writes as text; 0 for what is none."""
    text = str(value or 0)
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else 0
