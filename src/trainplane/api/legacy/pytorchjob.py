"""PyTorchJob: a training with torch, at fixed size or elastic."""

from typing import Annotated, ClassVar

from msgspec import field

from trainplane.api.declaration import Envelope, Field, always
from trainplane.api.legacy import kinds
from trainplane.api.legacy.job import METRICS, REPLICAS, RUN_POLICY, STATUS, JobStatus, ReplicaSpec, RunPolicy
from trainplane.api.meta import ObjectMeta
from trainplane.api.tree import Tree


class RendezvousSetting(Envelope, frozen=True):
    """One setting of torchrun's rendezvous."""

    key: Annotated[str, Field("Its name.")] = ""
    value: Annotated[str, Field("Its value.")] = ""


class ElasticPolicy(Envelope, frozen=True):
    """How many workers an elastic training may have, and how they meet."""

    min_replicas: Annotated[int | None, Field("With how many workers it can go on.", format="int32")] = None
    max_replicas: Annotated[int | None, Field("How many workers it can use.", format="int32")] = None
    rdzv_backend: Annotated[str | None, Field("By what the workers meet: c10d, etcd or etcd-v2.")] = None
    rdzv_port: Annotated[int | None, Field("The port at which they meet.", format="int32")] = None
    rdzv_host: Annotated[str | None, Field("The host at which they meet; worker 0, if not set.")] = None
    rdzv_id: Annotated[str | None, Field("Which of the meetings there is theirs; the job's name, if not set.")] = None
    rdzv_conf: Annotated[list[RendezvousSetting], Field("Further settings of the meeting.")] = field(
        default_factory=list
    )
    standalone: Annotated[bool | None, Field("Whether each worker trains alone, on a meeting of its own.")] = None
    nproc_per_node: Annotated[int | None, Field("Deprecated: use spec.nprocPerNode instead.", format="int32")] = field(
        default=None, name="nProcPerNode"
    )
    max_restarts: Annotated[int | None, Field("How often torchrun starts the workers anew.", format="int32")] = None
    metrics: Annotated[list[Tree], METRICS] = field(default_factory=list)


class PyTorchJobSpec(Envelope, frozen=True):
    """What to train with torch."""

    replica_specs: Annotated[dict[str, ReplicaSpec], REPLICAS] = field(name=kinds.PYTORCH.specs)
    run_policy: Annotated[RunPolicy, RUN_POLICY] = RunPolicy()
    elastic_policy: Annotated[ElasticPolicy | None, Field("How workers may come and go.")] = None
    nproc_per_node: Annotated[
        str | None, Field("Processes of each replica: a number, auto, cpu or gpu; auto, if not set.")
    ] = None


class PyTorchJob(Envelope, frozen=True):
    """A PyTorchJob as the API server stores it."""

    __schema__: ClassVar[Field] = Field("A PyTorchJob trains with torch, on a master and workers or on workers alone.")

    spec: Annotated[PyTorchJobSpec, Field("What to train.", required=False)]
    api_version: str = always(kinds.PYTORCH.api_version)
    kind: str = always(kinds.PYTORCH.name)
    metadata: ObjectMeta = ObjectMeta()
    status: Annotated[JobStatus, STATUS] = JobStatus()
