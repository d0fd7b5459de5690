"""Which TrainJobs in Kueue's queues use which runtime: an index of the TrainJob store.

Finished ones are in no queue. A cluster without Kueue has none, and pays nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.kube.projection import Index
from trainplane.lifecycle.conditions import is_finished
from trainplane.operator.index_view import IndexView

if TYPE_CHECKING:
    from collections.abc import Iterable


def used(kind: str, namespace: str, name: str) -> str:
    """Return what the index finds the users of a runtime by; a ClusterTrainingRuntime has no namespace."""
    return f"{kind} {namespace}/{name}"


def _used(job: IndexView) -> Iterable[str]:
    if not (job.metadata.labels or {}).get(names.LABEL_QUEUE):
        return ()
    if is_finished(job.conditions):
        return ()
    ref = job.spec.runtime_ref
    namespace = job.metadata.namespace if ref.kind == names.TRAINING_RUNTIME else ""
    return (used(ref.kind, namespace, ref.name),)


QUEUED: Final = Index(IndexView, _used)
"""The index."""
