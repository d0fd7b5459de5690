"""XGBoostJob: a training with XGBoost or LightGBM."""

from typing import Annotated, ClassVar

from msgspec import field

from trainplane.api.declaration import Envelope, Field, always
from trainplane.api.legacy import kinds
from trainplane.api.legacy.job import REPLICAS, RUN_POLICY, STATUS, JobStatus, ReplicaSpec, RunPolicy
from trainplane.api.meta import ObjectMeta


class XGBoostJobSpec(Envelope, frozen=True):
    """What to train with XGBoost."""

    replica_specs: Annotated[dict[str, ReplicaSpec], REPLICAS] = field(name=kinds.XGBOOST.specs)
    run_policy: Annotated[RunPolicy, RUN_POLICY] = RunPolicy()


class XGBoostJob(Envelope, frozen=True):
    """An XGBoostJob as the API server stores it."""

    __schema__: ClassVar[Field] = Field("An XGBoostJob trains with XGBoost or LightGBM, on a master and workers.")

    spec: Annotated[XGBoostJobSpec, Field("What to train.", required=False)]
    api_version: str = always(kinds.XGBOOST.api_version)
    kind: str = always(kinds.XGBOOST.name)
    metadata: ObjectMeta = ObjectMeta()
    status: Annotated[JobStatus, STATUS] = JobStatus()
