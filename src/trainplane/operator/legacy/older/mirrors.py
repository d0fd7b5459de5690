"""What the operator sees of the older shape: three mirrors, and which TrainJobs mean a runtime."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.api import names
from trainplane.api.legacy import v2alpha1
from trainplane.kube.projection import Index
from trainplane.kube.store import Store
from trainplane.legacy.older.lowering import meant_by
from trainplane.resources import OLDER_CLUSTER_TRAINING_RUNTIMES, OLDER_TRAIN_JOBS, OLDER_TRAINING_RUNTIMES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.kube.resource import Key
    from trainplane.kube.store import Change


class _Ref(msgspec.Struct, frozen=True):
    kind: str = ""
    name: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    runtime_ref: _Ref | None = None


class _Meta(msgspec.Struct, frozen=True):
    namespace: str = ""


class _Status(msgspec.Struct, frozen=True):
    state: str = ""


class _Using(msgspec.Struct, frozen=True):
    """The few fields that tell which runtime a TrainJob waits for, or uses."""

    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()
    status: _Status | None = None


def _used(job: _Using) -> tuple[str, ...]:
    ref, state = job.spec.runtime_ref, "" if job.status is None else job.status.state
    if ref is None or state in {v2alpha1.SUCCESS, v2alpha1.FAILED}:
        return ()
    return (_place(ref.kind, job.metadata.namespace, ref.name),)


def _place(kind: str, namespace: str, name: str) -> str:
    return f"{kind} {namespace if kind == names.TRAINING_RUNTIME else ''}/{name}"


USED: Final = Index(_Using, _used)
"""The index of the older TrainJobs by runtime, of those that are not over."""


@dataclass(frozen=True, slots=True)
class Mirrors:
    """The older objects, empty until reflectors fill them."""

    train_jobs: Store = field(default_factory=lambda: Store(OLDER_TRAIN_JOBS, indexes={"used": USED}))
    training_runtimes: Store = field(default_factory=lambda: Store(OLDER_TRAINING_RUNTIMES))
    cluster_training_runtimes: Store = field(default_factory=lambda: Store(OLDER_CLUSTER_TRAINING_RUNTIMES))

    def users(self, change: Change, kind: str) -> Iterable[Key]:
        """Map a runtime that changed, of the older shape or today's, to the TrainJobs that may mean it."""
        namespace, name = change.key
        return {key for one in meant_by(name) for key in self.train_jobs.by_index("used", _place(kind, namespace, one))}
