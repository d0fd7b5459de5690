"""JAXJob: a training with JAX, on workers of which the first is the coordinator."""

from typing import Annotated, ClassVar

from msgspec import field

from trainplane.api.declaration import Envelope, Field, always
from trainplane.api.legacy import kinds
from trainplane.api.legacy.job import REPLICAS, RUN_POLICY, STATUS, JobStatus, ReplicaSpec, RunPolicy
from trainplane.api.meta import ObjectMeta


class JAXJobSpec(Envelope, frozen=True):
    """What to train with JAX."""

    replica_specs: Annotated[dict[str, ReplicaSpec], REPLICAS] = field(name=kinds.JAX.specs)
    run_policy: Annotated[RunPolicy, RUN_POLICY] = RunPolicy()


class JAXJob(Envelope, frozen=True):
    """A JAXJob as the API server stores it."""

    __schema__: ClassVar[Field] = Field("A JAXJob trains with JAX, on workers that meet at the first of them.")

    spec: Annotated[JAXJobSpec, Field("What to train.", required=False)]
    api_version: str = always(kinds.JAX.api_version)
    kind: str = always(kinds.JAX.name)
    metadata: ObjectMeta = ObjectMeta()
    status: Annotated[JobStatus, STATUS] = JobStatus()
