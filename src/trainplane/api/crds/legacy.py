"""The CRDs of the older kinds, which an admin installs where they are wanted: `manifests/crds-legacy/`.

They are apart from ours because a cluster may still have the operators that they come from, whose CRDs have the same
names: installing ours is taking over, and nobody does that unasked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api.crds import emit, older
from trainplane.api.legacy import kinds, names
from trainplane.api.legacy.jaxjob import JAXJob
from trainplane.api.legacy.mpijob import MPIJob, MPIJobV1
from trainplane.api.legacy.paddlejob import PaddleJob
from trainplane.api.legacy.pytorchjob import PyTorchJob
from trainplane.api.legacy.tfjob import TFJob
from trainplane.api.legacy.xgboostjob import XGBoostJob

if TYPE_CHECKING:
    import msgspec

_STATE: Final = ("State", "string", ".status.conditions[-1:].type")
_AGE: Final = ("Age", "date", ".metadata.creationTimestamp")


def _kind(kind: kinds.Kind, type_: type[msgspec.Struct], *others: emit.Version) -> emit.Kind:
    """Return a kind of job: the version that is stored, and others that are served."""
    stored = emit.Version(
        kind.version,
        type_,
        columns=(_STATE, _AGE),
        has_status=True,
        scaled=kind.specs if kind.scaled else "",
    )
    return emit.Kind(kind.name, kind.plural, "Namespaced", (stored, *others), group=names.GROUP)


KINDS: Final = (
    _kind(kinds.PYTORCH, PyTorchJob),
    _kind(kinds.TENSORFLOW, TFJob),
    _kind(kinds.XGBOOST, XGBoostJob),
    _kind(kinds.PADDLE, PaddleJob),
    _kind(kinds.JAX, JAXJob),
    _kind(kinds.MPI, MPIJob, emit.Version(names.V1, MPIJobV1, columns=(_AGE, _STATE), has_status=True)),
    *older.KINDS,
)
"""Every older kind that has a CRD, each structurally that of the operator it comes from; and
the older TrainJob shape, which comes from none."""
