"""PaddleJob: a training with PaddlePaddle, at fixed size or elastic."""

from typing import Annotated, ClassVar

from msgspec import field

from trainplane.api.declaration import Envelope, Field, always
from trainplane.api.legacy import kinds
from trainplane.api.legacy.job import METRICS, REPLICAS, RUN_POLICY, STATUS, JobStatus, ReplicaSpec, RunPolicy
from trainplane.api.meta import ObjectMeta
from trainplane.api.tree import Tree


class PaddleElasticPolicy(Envelope, frozen=True):
    """How many workers an elastic training may have."""

    min_replicas: Annotated[int | None, Field("With how many workers it can go on.", format="int32")] = None
    max_replicas: Annotated[int | None, Field("How many workers it can use.", format="int32")] = None
    max_restarts: Annotated[int | None, Field("How often pods are started anew.", format="int32")] = None
    metrics: Annotated[list[Tree], METRICS] = field(default_factory=list)


class PaddleJobSpec(Envelope, frozen=True):
    """What to train with PaddlePaddle."""

    replica_specs: Annotated[dict[str, ReplicaSpec], REPLICAS] = field(name=kinds.PADDLE.specs)
    run_policy: Annotated[RunPolicy, RUN_POLICY] = RunPolicy()
    elastic_policy: Annotated[PaddleElasticPolicy | None, Field("How workers may come and go.")] = None


class PaddleJob(Envelope, frozen=True):
    """A PaddleJob as the API server stores it."""

    __schema__: ClassVar[Field] = Field("A PaddleJob trains with PaddlePaddle, collectively or by parameter servers.")

    spec: Annotated[PaddleJobSpec, Field("What to train.", required=False)]
    api_version: str = always(kinds.PADDLE.api_version)
    kind: str = always(kinds.PADDLE.name)
    metadata: ObjectMeta = ObjectMeta()
    status: Annotated[JobStatus, STATUS] = JobStatus()
