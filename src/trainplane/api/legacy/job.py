"""What the older kinds of jobs share: how a job is run, its replicas, its status."""

from typing import Annotated, Final

from msgspec import field

from trainplane.api.declaration import Envelope, Field, Moment, Rule
from trainplane.api.tree import Tree

CLEAN_POD_POLICY: Final = Field("Which pods are deleted when the job is over: None, Running or All.")
TEMPLATE: Final = Field(
    "The pods of these replicas. What it says of restarts does not count.", ref="core.v1.PodTemplateSpec"
)
METRICS: Final = Field(
    "By what an autoscaler sets the number of workers; without any there is no autoscaler.",
    each=Field(ref="autoscaling.v2.MetricSpec"),
)

_QUEUE_FIXED: Final = Rule("self == oldSelf", "cannot be changed once the job exists: create another job instead")


class SchedulingPolicy(Envelope, frozen=True):
    """What a gang scheduler is told of a job."""

    min_available: Annotated[
        int | None, Field("How many pods must fit before any starts; all, if not set.", format="int32")
    ] = None
    queue: Annotated[str, Field("The scheduler's queue.", rules=(_QUEUE_FIXED,))] = ""
    min_resources: Annotated[
        dict[str, int | str] | None,
        Field("What must be free before any pod starts.", each=Field(ref="resource.Quantity")),
    ] = None
    priority_class: Annotated[str, Field("The priority class of the job.")] = ""
    schedule_timeout_seconds: Annotated[
        int | None, Field("How long the pods wait for each other, in seconds.", format="int32")
    ] = None


class RunPolicy(Envelope, frozen=True):
    """How a job is run, whatever it trains with."""

    clean_pod_policy: Annotated[str | None, CLEAN_POD_POLICY] = None
    ttl_seconds_after_finished: Annotated[
        int | None, Field("How long after its end the job is deleted, in seconds; never, if not set.", format="int32")
    ] = None
    active_deadline_seconds: Annotated[
        int | None, Field("How long the job may run, in seconds, before it fails.", format="int64")
    ] = None
    backoff_limit: Annotated[
        int | None, Field("How often pods are started again before the job fails.", format="int32")
    ] = None
    scheduling_policy: Annotated[SchedulingPolicy | None, Field("What a gang scheduler is told of the job.")] = None
    suspend: Annotated[bool | None, Field("Whether to hold the job back, or stop it.", default=False)] = None
    managed_by: Annotated[
        str | None, Field("Which controller runs the job; the operator of its kind, if not set. Cannot be changed.")
    ] = None


class ReplicaSpec(Envelope, frozen=True):
    """Replicas of one type: how many, and their pods."""

    replicas: Annotated[int | None, Field("How many there are.", format="int32")] = None
    template: Annotated[Tree, TEMPLATE] = field(default_factory=dict)
    restart_policy: Annotated[
        str,
        Field("When a pod is started again: Always, OnFailure, Never, or ExitCode, by which codes from 128 on are."),
    ] = ""


class JobCondition(Envelope, frozen=True):
    """One thing that is, or was, true of a job."""

    type: Annotated[str, Field("Created, Running, Restarting, Suspended, Succeeded or Failed.")]
    status: Annotated[str, Field("Whether it is true: True, False or Unknown.")]
    reason: Annotated[str, Field("Why it changed, in a word.")] = ""
    message: Annotated[str, Field("Why it changed, in a sentence.")] = ""
    last_update_time: Annotated[Moment | None, Field("When anything of it changed last.", format="date-time")] = None
    last_transition_time: Annotated[Moment | None, Field("When its status changed last.", format="date-time")] = None


class ReplicaStatus(Envelope, frozen=True):
    """How the replicas of one type are doing."""

    active: Annotated[int, Field("Pods that run.", format="int32")] = 0
    succeeded: Annotated[int, Field("Pods that succeeded.", format="int32")] = 0
    failed: Annotated[int, Field("Pods that failed.", format="int32")] = 0
    label_selector: Annotated[
        Tree | None, Field("Not written any more: read the selector instead.", ref="meta.v1.LabelSelector")
    ] = None
    selector: Annotated[str, Field("The labels of these pods, as a query; autoscalers read it.")] = ""


class Course(Envelope, frozen=True):
    """How far the replicas of a job are, and since when."""

    replica_statuses: Annotated[dict[str, ReplicaStatus], Field("How each type of replicas is doing.")] = field(
        default_factory=dict
    )
    start_time: Annotated[Moment | None, Field("When the job was first seen, or resumed.", format="date-time")] = None
    completion_time: Annotated[Moment | None, Field("When the job was over.", format="date-time")] = None
    last_reconcile_time: Annotated[
        Moment | None, Field("When the job was last looked at with news of it.", format="date-time")
    ] = None


class JobStatus(Course, frozen=True):
    """How a job is doing."""

    conditions: Annotated[list[JobCondition], Field("What is true of the job.")] = field(default_factory=list)


RUN_POLICY: Final = Field("How the job is run.")
REPLICAS: Final = Field("The replicas by their type.")
STATUS: Final = Field("How it is doing; written by the operator.")
