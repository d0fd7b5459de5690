"""MPIJob: a launcher that starts processes on workers, over SSH.

One CRD serves two versions. v2beta1, mpi-operator's, is stored and run. v1, training-operator's, is converted to it
(`legacy.mpi.conversion`): there the launcher came to the workers by `kubectl exec`, here it comes by SSH.
"""

from typing import Annotated, ClassVar

from msgspec import field

from trainplane.api.declaration import Envelope, Field, always, keyed
from trainplane.api.legacy import kinds, names
from trainplane.api.legacy.job import (
    CLEAN_POD_POLICY,
    REPLICAS,
    RUN_POLICY,
    STATUS,
    Course,
    JobCondition,
    JobStatus,
    ReplicaSpec,
    RunPolicy,
    SchedulingPolicy,
)
from trainplane.api.meta import ObjectMeta

_SLOTS = "How many processes a worker has room for, as the hostfile says."


class MPISchedulingPolicy(SchedulingPolicy, frozen=True):
    """What a gang scheduler is told; mpi-operator lets the queue be changed."""

    queue: Annotated[str, Field("The scheduler's queue.")] = ""


class MPIRunPolicy(RunPolicy, frozen=True):
    """How an MPIJob of v2beta1 is run."""

    scheduling_policy: Annotated[MPISchedulingPolicy | None, Field("What a gang scheduler is told of the job.")] = None


class MPIJobSpec(Envelope, frozen=True):
    """What to run under MPI."""

    replica_specs: Annotated[dict[str, ReplicaSpec], REPLICAS] = field(name=kinds.MPI.specs)
    slots_per_worker: Annotated[int | None, Field(_SLOTS, format="int32", default=1)] = None
    run_launcher_as_worker: Annotated[
        bool | None, Field("Whether the launcher is one of the hosts too.", default=False)
    ] = None
    run_policy: Annotated[MPIRunPolicy, RUN_POLICY] = MPIRunPolicy()
    ssh_auth_mount_path: Annotated[
        str, Field("The folder of each pod where the SSH keys are.", default="/root/.ssh")
    ] = "/root/.ssh"
    launcher_creation_policy: Annotated[
        str,
        Field(
            "When the launcher is made: AtStartup, with the workers, or WaitForWorkersReady.",
            default=names.LAUNCHER_AT_STARTUP,
        ),
    ] = names.LAUNCHER_AT_STARTUP
    mpi_implementation: Annotated[
        str,
        Field("The MPI in the image.", enum=names.MPI_IMPLEMENTATIONS, default=names.MPI_OPENMPI),
    ] = names.MPI_OPENMPI


class MPIJobCondition(JobCondition, frozen=True):
    """One thing that is, or was, true of an MPIJob."""

    status: Annotated[str, Field("Whether it is true.", enum=("True", "False", "Unknown"))]


class MPIJobStatus(Course, frozen=True):
    """How an MPIJob is doing."""

    conditions: Annotated[list[MPIJobCondition], keyed("What is true of the job.", "type")] = field(
        default_factory=list
    )


class MPIJob(Envelope, frozen=True):
    """An MPIJob as the API server stores it."""

    __schema__: ClassVar[Field] = Field("An MPIJob starts processes on workers from a launcher, over SSH.")

    spec: Annotated[MPIJobSpec, Field("What to run.", required=False)]
    api_version: str = always(kinds.MPI.api_version)
    kind: str = always(kinds.MPI.name)
    metadata: ObjectMeta = ObjectMeta()
    status: Annotated[MPIJobStatus, STATUS] = MPIJobStatus()


class MPIJobSpecV1(Envelope, frozen=True):
    """What to run under MPI, as training-operator had it."""

    replica_specs: Annotated[dict[str, ReplicaSpec], REPLICAS] = field(name=kinds.MPI.specs)
    slots_per_worker: Annotated[int | None, Field(_SLOTS, format="int32")] = None
    clean_pod_policy: Annotated[str | None, CLEAN_POD_POLICY] = None
    main_container: Annotated[str, Field("The container that runs the program, where a pod has several.")] = ""
    run_policy: Annotated[RunPolicy, RUN_POLICY] = RunPolicy()


class MPIJobV1(Envelope, frozen=True):
    """An MPIJob as it is written and read in v1."""

    __schema__: ClassVar[Field] = Field("An MPIJob in the form of training-operator v1; kept and run as v2beta1.")

    spec: Annotated[MPIJobSpecV1, Field("What to run.", required=False)]
    api_version: str = always(f"{names.GROUP}/{names.V1}")
    kind: str = always(kinds.MPI.name)
    metadata: ObjectMeta = ObjectMeta()
    status: Annotated[JobStatus, STATUS] = JobStatus()
