"""The older TrainJob shape of documents, `kubeflow.org/v2alpha1`: a TrainJob with or without a runtime, and runtimes.

**What they are called.** Their kinds are those of today's API: TrainJob, TrainingRuntime, ClusterTrainingRuntime. The
resources behind them are not: `v2alpha1trainjobs`, one of them a `v2alpha1trainjob`. kubectl finds a resource by its
plural, singular and kind, and among groups it takes the first that has it, which is this one: with the plural
`trainjobs` here, `kubectl get trainjobs` would show no TrainJob of today's. `kubectl apply` finds a resource by
apiVersion and kind, so the documents' files work whatever the plural is.

**What they say.** Only what today's objects can say, in the documents' words, so a TrainJob of this shape is lowered
without loss (`legacy.older`). What today's TrainJob holds fixed is fixed here by the same rules: an edit that could not
be handed on is refused where it is made.
"""

from typing import Annotated, ClassVar, Final

from msgspec import field

from trainplane.api import names, runtime, trainjob
from trainplane.api.declaration import IMMUTABLE, Envelope, Field, Rule, always, keyed
from trainplane.api.legacy import names as legacy_names
from trainplane.api.meta import Condition, ObjectMeta
from trainplane.api.patches import TargetedPodSpecOverride
from trainplane.api.tree import Tree

API_VERSION: Final = f"{names.LEGACY_GROUP}/{legacy_names.V2ALPHA1}"

MANAGED_BY_TRAINER: Final = "kubeflow.org/trainjob-controller"
"""How this shape spells the controller that runs a TrainJob here."""

IN_SYNC: Final = "InSync"
"""The condition that says whether today's objects are as this one says."""

RUNNING: Final = "RUNNING"
SUCCESS: Final = "SUCCESS"
FAILED: Final = "FAILED"
STATES: Final = (RUNNING, SUCCESS, FAILED)

LONGEST_RUNTIME: Final = 200
"""Characters of a runtime's name: the one that it is lowered to is longer, and must be a name too."""

ANNOTATION_CLAIM_STORAGE: Final = "trainplane.dev/claim-storage"
"""On a TrainJob without a runtimeRef: how large the claim is that holds what is fetched, as 200Gi."""

_TRAINER: Final = "(has(self.trainer) && has(self.trainer.{}))"
_FIXED: Final = ("runtimeRef", "numNodes", "trainer", "modelConfig", "datasetConfig", "managedBy")
_ONE_URI: Final = Rule(
    "self == '' || self.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+$')",
    "must be empty or a URI with a scheme, as in hf://org/name or s3://bucket/path",
)


class RuntimeRef(Envelope, frozen=True):
    """The runtime that a TrainJob runs on."""

    name: Annotated[str, Field("The runtime's name.", min_length=1, max_length=253)]
    api_group: Annotated[
        str,
        Field(
            "kubeflow.org: a runtime of this shape, or where there is none, of trainer.kubeflow.org. "
            "trainer.kubeflow.org: of that one.",
            enum=(names.LEGACY_GROUP, names.GROUP),
            default=names.LEGACY_GROUP,
        ),
    ] = names.LEGACY_GROUP
    kind: Annotated[
        str,
        Field(
            "TrainingRuntime (of the TrainJob's namespace) or ClusterTrainingRuntime.",
            enum=(names.TRAINING_RUNTIME, names.CLUSTER_TRAINING_RUNTIME),
            default=names.CLUSTER_TRAINING_RUNTIME,
        ),
    ] = names.CLUSTER_TRAINING_RUNTIME


class ModelInput(trainjob.InitializerSource, frozen=True):
    """The model that training begins with."""

    __schema__: ClassVar[Field] = Field(
        rules=(Rule("!(has(self.config) && has(self.storageUri))", "name the model once: by config or by storageUri"),)
    )

    config: Annotated[str | None, Field("The model, by its URI.", max_length=2048, rules=(_ONE_URI,))] = None

    @property
    def uri(self) -> str | None:
        """Where the model is."""
        return self.config if self.storage_uri is None else self.storage_uri


class ModelOutput(Envelope, frozen=True):
    """Where what was trained is sent."""

    storage_uri: Annotated[str, Field("Where to send it.", min_length=1, max_length=2048, rules=(_ONE_URI,))]
    secret_ref: Annotated[
        Tree | None, Field("A Secret whose keys become the sender's variables.", ref="core.v1.LocalObjectReference")
    ] = None


class ModelConfig(Envelope, frozen=True):
    """The model before and after training."""

    input: Annotated[ModelInput | None, Field("The pretrained model, put at /workspace/model.")] = None
    output: Annotated[ModelOutput | None, Field("Where what is in /workspace/output is sent at the end.")] = None


class TrainJobSpec(Envelope, frozen=True):
    """What to train: on a runtime, or without one on nodes of which all is said here."""

    __schema__: ClassVar[Field] = Field(
        rules=(
            Rule(
                f"has(self.runtimeRef) || has(self.numNodes) || {_TRAINER.format('numNodes')}",
                "numNodes must say how many nodes train, unless there is a runtimeRef",
            ),
            Rule(
                f"has(self.runtimeRef) || {_TRAINER.format('image')}",
                "trainer.image must say which image trains, unless there is a runtimeRef",
            ),
            Rule(
                f"has(self.runtimeRef) || {_TRAINER.format('resourcesPerNode')}",
                "trainer.resourcesPerNode must say what a node needs, unless there is a runtimeRef",
            ),
            Rule(
                f"!(has(self.numNodes) && {_TRAINER.format('numNodes')}) || self.numNodes == self.trainer.numNodes",
                "numNodes and trainer.numNodes differ: keep one",
            ),
            Rule(" && ".join(f"has(self.{name}) == has(oldSelf.{name})" for name in _FIXED), IMMUTABLE.message),
        )
    )

    runtime_ref: Annotated[
        RuntimeRef | None, Field("The runtime that says how to run; without one, one is made.", rules=(IMMUTABLE,))
    ] = None
    num_nodes: Annotated[
        int | None,
        Field("How many nodes train.", format="int32", minimum=1, maximum=runtime.MOST_NODES, rules=(IMMUTABLE,)),
    ] = None
    trainer: Annotated[trainjob.Trainer | None, Field("What to run on each node.", rules=(trainjob.SAME_PARTS,))] = None
    model_config: Annotated[ModelConfig | None, Field("The model before and after.", rules=(IMMUTABLE,))] = None
    dataset_config: Annotated[
        trainjob.InitializerSource | None, Field("The dataset, put at /workspace/dataset.", rules=(IMMUTABLE,))
    ] = None
    pod_spec_overrides: Annotated[
        list[TargetedPodSpecOverride], Field("Changes to pods.", list_type="atomic", max_items=100)
    ] = field(default_factory=list)
    labels: Annotated[dict[str, str], Field("Labels for the JobSet and pods.")] = field(default_factory=dict)
    annotations: Annotated[dict[str, str], Field("Annotations for the JobSet and pods.")] = field(default_factory=dict)
    suspend: Annotated[bool, Field("Whether to hold the TrainJob back, or stop it.", default=False)] = False
    managed_by: Annotated[
        str,
        Field(
            "Which controller runs the TrainJob.",
            enum=(MANAGED_BY_TRAINER, names.MANAGED_BY_TRAINER, names.MANAGED_BY_MULTIKUEUE),
            default=MANAGED_BY_TRAINER,
            rules=(IMMUTABLE,),
        ),
    ] = MANAGED_BY_TRAINER

    @property
    def nodes(self) -> int | None:
        """How many nodes train, wherever that is said."""
        if self.num_nodes is not None or self.trainer is None:
            return self.num_nodes
        return self.trainer.num_nodes


class TrainJobStatus(Envelope, frozen=True):
    """How a TrainJob is doing, as today's TrainJob says."""

    state: Annotated[str, Field("RUNNING, SUCCESS or FAILED; nothing before it runs.", enum=STATES)] = ""
    conditions: Annotated[
        list[Condition],
        keyed("What is true of the TrainJob: Suspended, Complete, Failed; InSync.", "type", max_items=16),
    ] = field(default_factory=list)
    jobs_status: Annotated[
        list[trainjob.JobStatus], keyed("How far each replicated job is.", "name", max_items=100)
    ] = field(default_factory=list)
    progress_percentage: Annotated[
        int | None, Field("How much is done, 0 to 100.", format="int32", minimum=0, maximum=100)
    ] = None
    metrics: Annotated[
        list[trainjob.Metric], Field("The latest figures of the training.", list_type="atomic", max_items=256)
    ] = field(default_factory=list)


class TrainJob(Envelope, frozen=True):
    """A TrainJob of the older shape, as the API server stores it."""

    __schema__: ClassVar[Field] = Field(
        "A TrainJob of the older shape. It becomes a TrainJob of trainer.kubeflow.org that has its name.",
        rules=trainjob.TrainJob.__schema__.rules,
    )

    spec: Annotated[TrainJobSpec, Field("What to train.")]
    api_version: str = always(API_VERSION)
    kind: str = always(names.TRAIN_JOB)
    metadata: ObjectMeta = ObjectMeta()
    status: Annotated[TrainJobStatus, Field("How it is doing; written by the controller.")] = TrainJobStatus()


class RuntimeStatus(Envelope, frozen=True):
    """Whether today's runtime is as this one says."""

    conditions: Annotated[list[Condition], keyed("What is true of the runtime: InSync.", "type", max_items=8)] = field(
        default_factory=list
    )


_SHORT_ENOUGH: Final = Rule(
    f"size(self.metadata.name) <= {LONGEST_RUNTIME}", f"metadata.name must have at most {LONGEST_RUNTIME} characters"
)


class TrainingRuntime(Envelope, frozen=True):
    """A runtime of the older shape for the TrainJobs of its namespace."""

    __schema__: ClassVar[Field] = Field(
        "A TrainingRuntime of the older shape. It becomes one of trainer.kubeflow.org.", rules=(_SHORT_ENOUGH,)
    )

    spec: Annotated[runtime.TrainingRuntimeSpec, Field("How to run.")] = runtime.TrainingRuntimeSpec()
    api_version: str = always(API_VERSION)
    kind: str = always(names.TRAINING_RUNTIME)
    metadata: ObjectMeta = ObjectMeta()
    status: Annotated[RuntimeStatus, Field("Written by the controller.")] = RuntimeStatus()


class ClusterTrainingRuntime(Envelope, frozen=True):
    """A runtime of the older shape for the TrainJobs of every namespace."""

    __schema__: ClassVar[Field] = Field(
        "A ClusterTrainingRuntime of the older shape. It becomes one of trainer.kubeflow.org.", rules=(_SHORT_ENOUGH,)
    )

    spec: Annotated[runtime.TrainingRuntimeSpec, Field("How to run.")] = runtime.TrainingRuntimeSpec()
    api_version: str = always(API_VERSION)
    kind: str = always(names.CLUSTER_TRAINING_RUNTIME)
    metadata: ObjectMeta = ObjectMeta()
    status: Annotated[RuntimeStatus, Field("Written by the controller.")] = RuntimeStatus()
