"""TrainJob: one training run, said in terms of a runtime."""

from typing import Annotated, ClassVar, Final

from msgspec import field

from trainplane.api import names
from trainplane.api.declaration import IMMUTABLE, Envelope, Field, Moment, Rule, always, keyed
from trainplane.api.meta import Condition, ObjectMeta
from trainplane.api.patches import PodTemplateOverride, RuntimePatch, TargetedPodSpecOverride
from trainplane.api.runtime import MOST_NODES, PROCESS_WORDS
from trainplane.api.tree import Tree

_INT32_MAX = 2**31 - 1
_INT32_MIN = -(2**31)

_MOST_WORDS: Final = 8192
"""Entries of a command or of arguments: 64 times v2.3's limit, which real jobs pass."""
_MOST_VARIABLES: Final = 2048
"""Variables of a container: 16 times v2.3's limit, which real jobs pass."""

_ENV = Field(ref="core.v1.EnvVar")

_URI_OR_EMPTY = Rule(
    "self == '' || self.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+$')",
    "must be empty or a URI with a scheme, as in hf://org/name or s3://bucket/path",
)

_KNOWN_MANAGER = Rule(
    f"self in ['{names.MANAGED_BY_TRAINER}', '{names.MANAGED_BY_MULTIKUEUE}']",
    f"must be {names.MANAGED_BY_TRAINER} or {names.MANAGED_BY_MULTIKUEUE}",
)

# Admission turns the group that old documents use into today's, also in TrainJobs that an older release stored.
RUNTIME_REF_FIXED = Rule(
    f"self == oldSelf || (oldSelf.apiGroup == '{names.LEGACY_GROUP}' && self.apiGroup == '{names.GROUP}' "
    "&& self.kind == oldSelf.kind && self.name == oldSelf.name)",
    IMMUTABLE.message,
)

# Admission turns numProcPerNode from a text into a number, or leaves a word out, also in TrainJobs that older releases
# stored. So the trainer is held fixed part by part: which parts there are, and (`IMMUTABLE` on each) what they say.
FIXED_PARTS = ("image", "command", "args", "env", "numNodes", "resourcesPerNode")
SAME_PARTS = Rule(
    " && ".join(f"has(self.{name}) == has(oldSelf.{name})" for name in FIXED_PARTS)
    + " && (has(self.numProcPerNode) == has(oldSelf.numProcPerNode)"
    + f" || (has(oldSelf.numProcPerNode) && oldSelf.numProcPerNode in {list(PROCESS_WORDS)}))",
    IMMUTABLE.message,
)
SAME_OR_TURNED = Rule(
    "self == oldSelf || (type(self) == int && type(oldSelf) == string"
    f" && (string(self) == oldSelf || oldSelf in {list(PROCESS_WORDS)}))",
    IMMUTABLE.message,
)


class RuntimeRef(Envelope, frozen=True):
    """The runtime that a TrainJob runs on."""

    name: Annotated[str, Field("The runtime's name.", min_length=1, max_length=253)]
    api_group: Annotated[
        str,
        Field(
            "The runtime's API group. kubeflow.org, as old documents have it, means trainer.kubeflow.org.",
            max_length=253,
            default=names.GROUP,
        ),
    ] = names.GROUP
    kind: Annotated[
        str,
        Field(
            "TrainingRuntime (of the TrainJob's namespace) or ClusterTrainingRuntime.",
            max_length=253,
            default=names.CLUSTER_TRAINING_RUNTIME,
        ),
    ] = names.CLUSTER_TRAINING_RUNTIME


class InitializerSource(Envelope, frozen=True):
    """What an initializer fetches before training, and with which credentials."""

    storage_uri: Annotated[str | None, Field("Where to fetch from.", max_length=2048, rules=(_URI_OR_EMPTY,))] = None
    env: Annotated[
        list[Tree], keyed("Variables for the initializer.", "name", max_items=_MOST_VARIABLES, each=_ENV)
    ] = field(default_factory=list)
    secret_ref: Annotated[
        Tree | None,
        Field("A Secret whose keys become the initializer's variables.", ref="core.v1.LocalObjectReference"),
    ] = None


class Initializer(Envelope, frozen=True):
    """What is fetched before training starts."""

    dataset: Annotated[InitializerSource | None, Field("The dataset, put at /workspace/dataset.")] = None
    model: Annotated[InitializerSource | None, Field("The pretrained model, put at /workspace/model.")] = None


class Trainer(Envelope, frozen=True):
    """What runs on each training node, where it differs from the runtime."""

    image: Annotated[str | None, Field("The image of the training container.", max_length=500, rules=(IMMUTABLE,))] = (
        None
    )
    command: Annotated[
        list[str],
        Field(
            "The command of the training container.",
            list_type="atomic",
            max_items=_MOST_WORDS,
            each=Field(max_length=1048576),
            rules=(IMMUTABLE,),
        ),
    ] = field(default_factory=list)
    args: Annotated[
        list[str],
        Field(
            "The arguments of the training container.",
            list_type="atomic",
            max_items=_MOST_WORDS,
            each=Field(max_length=1048576),
            rules=(IMMUTABLE,),
        ),
    ] = field(default_factory=list)
    env: Annotated[
        list[Tree],
        keyed("Variables of the training container.", "name", max_items=_MOST_VARIABLES, each=_ENV, rules=(IMMUTABLE,)),
    ] = field(default_factory=list)
    num_nodes: Annotated[
        int | None,
        Field("How many nodes train together.", format="int32", maximum=MOST_NODES, rules=(IMMUTABLE,)),
    ] = None
    resources_per_node: Annotated[
        Tree | None,
        Field(
            "Resources of the training container on each node.", ref="core.v1.ResourceRequirements", rules=(IMMUTABLE,)
        ),
    ] = None
    num_proc_per_node: Annotated[
        int | str | None,
        Field(
            "How many processes each node runs. v2.0 and v2.1 also took a text; admission turns it into a number.",
            minimum=_INT32_MIN,
            maximum=_INT32_MAX,
            rules=(SAME_OR_TURNED,),
        ),
    ] = None


class TrainJobSpec(Envelope, frozen=True):
    """What to train, on which runtime, and how it differs from the runtime."""

    runtime_ref: Annotated[RuntimeRef, Field("The runtime that says how to run.", rules=(RUNTIME_REF_FIXED,))]
    initializer: Annotated[Initializer | None, Field("What to fetch before training.", rules=(IMMUTABLE,))] = None
    trainer: Annotated[Trainer | None, Field("What to run on each node.", rules=(SAME_PARTS,))] = None
    runtime_patches: Annotated[
        list[RuntimePatch], keyed("Changes to the runtime, for this TrainJob alone.", "manager", max_items=16)
    ] = field(default_factory=list)
    suspend: Annotated[bool, Field("Whether to hold the TrainJob back, or stop it.", default=False)] = False
    active_deadline_seconds: Annotated[
        int,
        Field(
            "How long the TrainJob may run, in seconds, before it fails.",
            format="int64",
            minimum=1,
            rules=(IMMUTABLE,),
        ),
    ] = 0
    managed_by: Annotated[
        str,
        Field(
            "Which controller runs the TrainJob.",
            max_length=253,
            default=names.MANAGED_BY_TRAINER,
            rules=(_KNOWN_MANAGER, IMMUTABLE),
        ),
    ] = names.MANAGED_BY_TRAINER
    labels: Annotated[
        dict[str, str], Field("v2.0 and v2.1: labels for the JobSet and pods. Becomes runtimePatches.")
    ] = field(default_factory=dict)
    annotations: Annotated[
        dict[str, str], Field("v2.0 and v2.1: annotations for the JobSet and pods. Becomes runtimePatches.")
    ] = field(default_factory=dict)
    pod_spec_overrides: Annotated[
        list[TargetedPodSpecOverride],
        Field("v2.0: changes to pods. Becomes runtimePatches.", list_type="atomic"),
    ] = field(default_factory=list)
    pod_template_overrides: Annotated[
        list[PodTemplateOverride],
        Field("v2.1: changes to pods. Becomes runtimePatches.", list_type="atomic"),
    ] = field(default_factory=list)


class JobStatus(Envelope, frozen=True, omit_defaults=False):
    """How far the Jobs of one replicated job are. Kueue needs every count, zeros too."""

    name: Annotated[str, Field("The replicated job.", min_length=1, max_length=253)]
    ready: Annotated[int, Field("Jobs whose pods are ready or done.", format="int32", minimum=0, required=True)] = 0
    succeeded: Annotated[int, Field("Jobs that succeeded.", format="int32", minimum=0, required=True)] = 0
    failed: Annotated[int, Field("Jobs that failed.", format="int32", minimum=0, required=True)] = 0
    active: Annotated[int, Field("Jobs with pods that run or wait.", format="int32", minimum=0, required=True)] = 0
    suspended: Annotated[int, Field("Jobs that are suspended.", format="int32", minimum=0, required=True)] = 0


class Metric(Envelope, frozen=True):
    """A figure that the training code reported."""

    name: Annotated[str, Field("The figure's name.", min_length=1, max_length=64)]
    value: Annotated[str, Field("Its value, as a text.", min_length=1, max_length=64)]


class TrainerStatus(Envelope, frozen=True):
    """What the training code last reported of its progress."""

    __schema__: ClassVar[Field] = Field(
        rules=(Rule("has(self.lastUpdatedTime)", "a report of progress must carry lastUpdatedTime"),)
    )

    progress_percentage: Annotated[
        int | None, Field("How much is done, 0 to 100.", format="int32", minimum=0, maximum=100)
    ] = None
    estimated_remaining_seconds: Annotated[
        int | None, Field("How long the rest will take, in seconds.", format="int32", minimum=0)
    ] = None
    metrics: Annotated[list[Metric], Field("The latest figures.", list_type="atomic", max_items=256)] = field(
        default_factory=list
    )
    last_updated_time: Annotated[Moment | None, Field("When this was reported.", format="date-time")] = None


class FirstFault(Envelope, frozen=True):
    """What went wrong first, as it was seen when it happened: pods, and their logs with them, may be gone by now.

    Of the present attempt of the JobSet, so of the last one when the TrainJob is over. What pods write is cut and
    cleaned before it gets here.
    """

    cause: Annotated[str, Field("What it is, in a word: docs/troubleshooting.md says what to do.", max_length=63)]
    step: Annotated[str, Field("The replicated job.", max_length=63)] = ""
    index: Annotated[int, Field("The number of the pod in its step, from 0.", format="int32", minimum=0)] = 0
    pod: Annotated[str, Field("The pod.", max_length=253)] = ""
    node: Annotated[str, Field("The machine that it ran on.", max_length=253)] = ""
    container: Annotated[str, Field("The container.", max_length=63)] = ""
    reason: Annotated[str, Field("The kubelet's or scheduler's word for it.", max_length=128)] = ""
    exit_code: Annotated[int | None, Field("The container's exit code.", format="int32")] = None
    message: Annotated[str, Field("What was told of it: the end of its termination message.", max_length=1024)] = ""
    log: Annotated[
        list[str],
        Field("The telling lines of the log.", list_type="atomic", max_items=16, each=Field(max_length=512)),
    ] = field(default_factory=list)
    restart: Annotated[int, Field("How often the TrainJob had been restarted then.", format="int32", minimum=0)] = 0
    time: Annotated[Moment | None, Field("When it happened, by the clock of its machine.", format="date-time")] = None


class Milestone(Envelope, frozen=True):
    """A stage that a TrainJob reached, or that it began again."""

    stage: Annotated[
        str,
        Field(
            "Queued, Admitted, Initialized, Scheduled, Pulled, Running, FirstStep; Restarted, PodRestarted, Suspended, "
            "Resumed, each time anew; Succeeded or Failed.",
            max_length=16,
        ),
    ]
    time: Annotated[Moment, Field("When, by the clock of whoever reported it.", format="date-time")]
    reason: Annotated[str, Field("Why, or by what, in a few words.", max_length=128)] = ""
    number: Annotated[
        int, Field("Of what happens again: the how manieth attempt or stop it was, from 1.", format="int32", minimum=0)
    ] = 0


class TrainJobStatus(Envelope, frozen=True):
    """How a TrainJob is doing."""

    __schema__: ClassVar[Field] = Field(min_properties=1)

    conditions: Annotated[
        list[Condition], keyed("What is true of the TrainJob: Suspended, Complete, Failed.", "type", max_items=8)
    ] = field(default_factory=list)
    jobs_status: Annotated[list[JobStatus], keyed("How far each replicated job is.", "name", max_items=100)] = field(
        default_factory=list
    )
    trainer_status: Annotated[TrainerStatus | None, Field("What the training code last reported.")] = None
    runtime_digest: Annotated[
        str,
        Field(
            "The digest of the runtime that the TrainJob began with: of the text in its ConfigMap -runtime-snapshot. "
            "No other runtime is run.",
            pattern="^sha256:[0-9a-f]{64}$",
            max_length=71,
        ),
    ] = ""
    phase: Annotated[
        str,
        Field(
            "Where it stands, in one word: Suspended, Queued, Pending, Running, Restarting, Succeeded or Failed.",
            max_length=16,
        ),
    ] = ""
    nodes_ready: Annotated[str, Field("How many pods of the training are ready, of how many.", max_length=24)] = ""
    reason: Annotated[str, Field("Why it is in this phase, in a word, where that is known.", max_length=63)] = ""
    first_fault: Annotated[FirstFault | None, Field("What went wrong first, if anything did.")] = None
    restarts: Annotated[
        int, Field("How often the TrainJob was restarted, after faults and disruptions.", format="int32", minimum=0)
    ] = 0
    restarts_count_towards_max: Annotated[
        int,
        Field(
            "How many of these restarts followed a fault and count towards the runtime's "
            "runPolicy.failurePolicy.maxRestarts.",
            format="int32",
            minimum=0,
        ),
    ] = 0
    timeline: Annotated[
        list[Milestone],
        Field(
            "When it reached each stage, as far as that was written with other news; the newest of what happens again.",
            list_type="atomic",
            max_items=16,
        ),
    ] = field(default_factory=list)


class TrainJob(Envelope, frozen=True):
    """A TrainJob as the API server stores it."""

    __schema__: ClassVar[Field] = Field(
        "A TrainJob runs one training on a runtime: on many nodes together, from start to end.",
        rules=(
            Rule(
                "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                "metadata.name must begin with a small letter, end with a small letter or digit, "
                "and hold only these and hyphens: pods are addressed by it",
            ),
            Rule("size(self.metadata.name) <= 63", "metadata.name must have at most 63 characters: it is a DNS label"),
        ),
    )

    spec: Annotated[TrainJobSpec, Field("What to train.", required=False)]
    api_version: str = always(names.API_VERSION)
    kind: str = always(names.TRAIN_JOB)
    metadata: ObjectMeta = ObjectMeta()
    status: Annotated[TrainJobStatus, Field("How it is doing; written by the controller.")] = TrainJobStatus()
