"""TrainingRuntime and ClusterTrainingRuntime: how trainings of a kind are run, written by the platform's admin."""

from typing import Annotated, ClassVar, Final

from msgspec import field

from trainplane.api import names
from trainplane.api.declaration import Envelope, Field, Rule, always, keyed
from trainplane.api.meta import ObjectMeta, TemplateMeta
from trainplane.api.tree import Tree

PROCESS_WORDS = ("auto", "cpu", "gpu")
"""Texts that numProcPerNode may be; a text of digits is a number."""

OPENMPI: Final = "OpenMPI"
INTEL: Final = "Intel"
MPICH: Final = "MPICH"
MPI_SPELLINGS: Final = {INTEL: INTEL, "IntelMPI": INTEL, MPICH: MPICH}
"""What mpiImplementation may say beside OpenMPI, and what it means. Admission stores it as an annotation: the trainer's
Go code, Kueue's copy of it too, breaks at any other word than OpenMPI."""

MOST_NODES: Final = 100_000
"""Pods that Kubernetes takes of one Indexed Job, which the nodes of a training are: more could never run."""

_PROCESSES = Rule(
    f"type(self) == int ? self > 0 : (self in {list(PROCESS_WORDS)} || string(self).matches('^[1-9][0-9]*$'))",
    "must be auto, cpu, gpu or a number from 1",
)


class EnvInjectionTarget(Envelope, frozen=True):
    """Containers of one replicated job that get torch's variables too."""

    job_name: Annotated[str, Field("The replicated job's name.", min_length=1, max_length=253)]
    container_names: Annotated[
        list[str],
        Field(
            "Its containers beside the training container.",
            list_type="set",
            min_items=1,
            max_items=8,
            each=Field(max_length=63),
            rules=(
                Rule(
                    "!self.exists(c, c == 'node')",
                    "leave node out: the training container always gets torch's variables",
                ),
            ),
        ),
    ]


class EnvInjection(Envelope, frozen=True):
    """Which further containers get torch's variables."""

    targets: Annotated[list[EnvInjectionTarget], keyed("Containers by replicated job.", "jobName", max_items=16)] = (
        field(default_factory=list)
    )


class ElasticPolicy(Envelope, frozen=True):
    """v2.0 and v2.1: between how many nodes torch may scale."""

    min_nodes: Annotated[int | None, Field("The fewest nodes.", format="int32", maximum=MOST_NODES)] = None
    max_nodes: Annotated[int | None, Field("The most nodes.", format="int32", maximum=MOST_NODES)] = None
    max_restarts: Annotated[int | None, Field("How often torchrun may restart.", format="int32")] = None
    metrics: Annotated[
        list[Tree],
        Field("Figures to scale by.", list_type="atomic", each=Field(ref="autoscaling.v2.MetricSpec")),
    ] = field(default_factory=list)

    @property
    def least_nodes(self) -> int:
        """The fewest nodes that train; one where nothing is said."""
        return max(1, self.min_nodes or 1)

    @property
    def most_nodes(self) -> int:
        """The most nodes that train."""
        return max(self.least_nodes, self.max_nodes or 1)


class TorchPolicy(Envelope, frozen=True):
    """PyTorch: torchrun on every node."""

    env_injection: Annotated[EnvInjection | None, Field("Further containers that get torch's variables.")] = None
    num_proc_per_node: Annotated[
        int | str | None,
        Field("v2.0 and v2.1: processes per node: auto, cpu, gpu or a number.", rules=(_PROCESSES,)),
    ] = None
    elastic_policy: Annotated[ElasticPolicy | None, Field("v2.0 and v2.1: between how many nodes to scale.")] = None


class MPIPolicy(Envelope, frozen=True):
    """MPI: a launcher that reaches every node over SSH."""

    num_proc_per_node: Annotated[int, Field("Slots per node in the hostfile.", format="int32", default=1)] = 1
    mpi_implementation: Annotated[
        str,
        Field(
            "The MPI in the image; others than OpenMPI are stored as an annotation.",
            enum=(OPENMPI, *MPI_SPELLINGS, ""),
            default=OPENMPI,
        ),
    ] = OPENMPI
    ssh_auth_mount_path: Annotated[
        str,
        Field("Where the SSH keys are mounted.", max_length=4096, default=names.MPI_SSH_MOUNT_PATH),
    ] = names.MPI_SSH_MOUNT_PATH
    run_launcher_as_node: Annotated[bool, Field("Whether the launcher trains too.", default=False)] = False


class FluxPolicy(Envelope, frozen=True):
    """Flux: a Flux instance across the nodes."""

    num_proc_per_node: Annotated[
        int,
        Field(
            "Tasks per node.",
            format="int32",
            default=1,
            rules=(Rule("self >= 1", "flux needs at least one process per node"),),
        ),
    ] = 1


class JAXPolicy(Envelope, frozen=True):
    """JAX: one process per node, joined by a coordinator."""


class XGBoostPolicy(Envelope, frozen=True):
    """XGBoost: workers joined by a tracker on the first node."""


class MLPolicy(Envelope, frozen=True):
    """How the nodes of a training find each other."""

    __schema__: ClassVar[Field] = Field(
        rules=(
            Rule(
                "[has(self.torch), has(self.mpi), has(self.jax), has(self.xgboost),has(self.flux)]"
                ".filter(x, x).size() <= 1",
                "name one framework: torch, mpi, jax, xgboost or flux",
            ),
            Rule(
                "!(has(self.numNodes) && (has(self.torch) && has(self.torch.elasticPolicy)))",
                "torch.elasticPolicy says how many nodes: leave numNodes out",
            ),
        )
    )

    num_nodes: Annotated[
        int | None, Field("How many nodes, unless the TrainJob says.", format="int32", maximum=MOST_NODES)
    ] = None
    torch: Annotated[TorchPolicy | None, Field("Train with PyTorch.")] = None
    mpi: Annotated[MPIPolicy | None, Field("Train with MPI.")] = None
    jax: Annotated[JAXPolicy | None, Field("Train with JAX.")] = None
    xgboost: Annotated[XGBoostPolicy | None, Field("Train with XGBoost.")] = None
    flux: Annotated[FluxPolicy | None, Field("Train with Flux.")] = None


class CoschedulingPolicy(Envelope, frozen=True):
    """Gang scheduling by the scheduler plugins."""

    schedule_timeout_seconds: Annotated[
        int, Field("How long the gang may wait for room, in seconds.", format="int32", default=60)
    ] = 60


class NetworkTopology(Envelope, frozen=True):
    """How close Volcano places the pods."""

    mode: Annotated[str, Field("hard: must; soft: should.", enum=("hard", "soft"), default="hard")] = "hard"
    highest_tier_allowed: Annotated[int, Field("The highest tier that pods may span.", default=1)] = 1


class VolcanoPolicy(Envelope, frozen=True):
    """Gang scheduling by Volcano."""

    network_topology: Annotated[NetworkTopology | None, Field("How close to place the pods.")] = None


class PodGroupPolicy(Envelope, frozen=True):
    """Which scheduler starts all pods or none."""

    coscheduling: Annotated[CoschedulingPolicy | None, Field("The scheduler plugins' coscheduling.")] = None
    volcano: Annotated[VolcanoPolicy | None, Field("Volcano.")] = None


class JobSetTemplate(Envelope, frozen=True):
    """The JobSet that every TrainJob of this runtime becomes."""

    __schema__: ClassVar[Field] = Field(min_properties=1)

    metadata: Annotated[TemplateMeta, Field("Labels and annotations for the JobSet.")] = TemplateMeta()
    spec: Annotated[Tree, Field("The JobSet's spec.", ref="jobset.v1alpha2.JobSetSpec")] = field(default_factory=dict)


class FailurePolicy(Envelope, frozen=True):
    """Limit of restarts after faults."""

    max_restarts: Annotated[
        int,
        Field(
            "How often the operator restarts a TrainJob after a fault. Restarts after a disruption (a suspended, "
            "drained, preempted, or deleted pod) do not count. A fault that is certainly an error in the user's code "
            "is not restarted.",
            format="int32",
            minimum=0,
            default=0,
        ),
    ] = 0


class RunPolicy(Envelope, frozen=True):
    """Policy for the runs of a TrainJob."""

    failure_policy: Annotated[FailurePolicy | None, Field("When a TrainJob is restarted.")] = None


class TrainingRuntimeSpec(Envelope, frozen=True):
    """How to run: the framework, the gang scheduler, and the JobSet to fill in."""

    __schema__: ClassVar[Field] = Field(min_properties=1)

    ml_policy: Annotated[MLPolicy | None, Field("The framework and its settings.")] = None
    pod_group_policy: Annotated[PodGroupPolicy | None, Field("Gang scheduling.")] = None
    run_policy: Annotated[RunPolicy | None, Field("What happens when a TrainJob fails.")] = None
    template: Annotated[JobSetTemplate, Field("The JobSet to fill in.")] = JobSetTemplate()

    @property
    def max_restarts(self) -> int:
        """How often the operator restarts a TrainJob of this runtime after a fault."""
        policy = None if self.run_policy is None else self.run_policy.failure_policy
        return 0 if policy is None else policy.max_restarts


class TrainingRuntime(Envelope, frozen=True):
    """A runtime for the TrainJobs of its namespace."""

    __schema__: ClassVar[Field] = Field(
        "A TrainingRuntime says how the TrainJobs of its namespace that name it are run."
    )

    spec: Annotated[TrainingRuntimeSpec, Field("How to run.")] = TrainingRuntimeSpec()
    api_version: str = always(names.API_VERSION)
    kind: str = always(names.TRAINING_RUNTIME)
    metadata: ObjectMeta = ObjectMeta()


class ClusterTrainingRuntime(Envelope, frozen=True):
    """A runtime for the TrainJobs of every namespace."""

    __schema__: ClassVar[Field] = Field("A ClusterTrainingRuntime says how the TrainJobs that name it are run.")

    spec: Annotated[TrainingRuntimeSpec, Field("How to run.")] = TrainingRuntimeSpec()
    api_version: str = always(names.API_VERSION)
    kind: str = always(names.CLUSTER_TRAINING_RUNTIME)
    metadata: ObjectMeta = ObjectMeta()
