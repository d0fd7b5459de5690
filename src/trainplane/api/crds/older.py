"""The CRDs of the older TrainJob shape: kinds of today's names, other resources (`api.legacy.v2alpha1` says why)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api.crds import emit
from trainplane.api.legacy import names, v2alpha1

if TYPE_CHECKING:
    import msgspec

_AGE: Final = ("Age", "date", ".metadata.creationTimestamp")
_IN_SYNC: Final = ("In Sync", "string", f".status.conditions[?(@.type=='{v2alpha1.IN_SYNC}')].status")


def _kind(plural: str, scope: str, type_: type[msgspec.Struct], *columns: tuple[str, str, str]) -> emit.Kind:
    version = emit.Version(names.V2ALPHA1, type_, columns=(*columns, _IN_SYNC, _AGE), has_status=True)
    return emit.Kind(type_.__name__, plural, scope, (version,), group=names.GROUP, singular=plural.removesuffix("s"))


KINDS: Final = (
    _kind(names.V2ALPHA1_TRAIN_JOBS, "Namespaced", v2alpha1.TrainJob, ("State", "string", ".status.state")),
    _kind(names.V2ALPHA1_TRAINING_RUNTIMES, "Namespaced", v2alpha1.TrainingRuntime),
    _kind(names.V2ALPHA1_CLUSTER_TRAINING_RUNTIMES, "Cluster", v2alpha1.ClusterTrainingRuntime),
)
