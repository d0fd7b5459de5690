"""Which TrainJobs in Kueue's queues use which runtime: an index of the TrainJob store.

Finished ones are in no queue. A cluster without Kueue has none, and pays nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.api import names
from trainplane.kube.projection import Index

if TYPE_CHECKING:
    from collections.abc import Iterable


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, frozen=True):
    conditions: list[_Condition] | None = None


class _Ref(msgspec.Struct, frozen=True):
    kind: str = ""
    name: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    runtime_ref: _Ref = _Ref()


class _Meta(msgspec.Struct, frozen=True):
    namespace: str = ""
    labels: dict[str, str] | None = None


class _Job(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()
    status: _Status | None = None


def used(kind: str, namespace: str, name: str) -> str:
    """Return what the index finds the users of a runtime by; a ClusterTrainingRuntime has no namespace."""
    return f"{kind} {namespace}/{name}"


def _used(job: _Job) -> Iterable[str]:
    if not (job.metadata.labels or {}).get(names.LABEL_QUEUE):
        return ()
    conditions = (job.status.conditions if job.status else None) or ()
    if any(one.status == "True" and one.type in {names.COMPLETE, names.FAILED} for one in conditions):
        return ()
    ref = job.spec.runtime_ref
    namespace = job.metadata.namespace if ref.kind == names.TRAINING_RUNTIME else ""
    return (used(ref.kind, namespace, ref.name),)


QUEUED: Final = Index(_Job, _used)
"""The index."""
