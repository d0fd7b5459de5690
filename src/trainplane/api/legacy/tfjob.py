"""TFJob: a training with TensorFlow, by parameter servers or by workers among themselves."""

from typing import Annotated, ClassVar

from msgspec import field

from trainplane.api.declaration import Envelope, Field, always
from trainplane.api.legacy import kinds
from trainplane.api.legacy.job import REPLICAS, RUN_POLICY, STATUS, JobStatus, ReplicaSpec, RunPolicy
from trainplane.api.meta import ObjectMeta


class TFJobSpec(Envelope, frozen=True):
    """What to train with TensorFlow."""

    replica_specs: Annotated[dict[str, ReplicaSpec], REPLICAS] = field(name=kinds.TENSORFLOW.specs)
    run_policy: Annotated[RunPolicy, RUN_POLICY] = RunPolicy()
    success_policy: Annotated[
        str | None,
        Field("Whose success is the job's where there is no chief: worker 0's if empty, or AllWorkers."),
    ] = None
    enable_dynamic_worker: Annotated[
        bool, Field("Whether workers may come and go: each is told of itself and the parameter servers alone.")
    ] = False


class TFJob(Envelope, frozen=True):
    """A TFJob as the API server stores it."""

    __schema__: ClassVar[Field] = Field("A TFJob trains with TensorFlow: chief, workers, parameter servers, evaluator.")

    spec: Annotated[TFJobSpec, Field("What to train.", required=False)]
    api_version: str = always(kinds.TENSORFLOW.api_version)
    kind: str = always(kinds.TENSORFLOW.name)
    metadata: ObjectMeta = ObjectMeta()
    status: Annotated[JobStatus, STATUS] = JobStatus()
