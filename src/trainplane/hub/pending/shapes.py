"""What an object must look like for us to reason about it: the fields that are read here, with their types.

Objects stay trees, since their schemas are Kueue's and Kubernetes'. But a worker's API server is not the hub's, and may
send anything: what does not have its kind's shape is set aside when it is read (`facts`), and the answer says so.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec

from trainplane.api.declaration import Moment  # noqa: TC001 msgspec reads annotations as it runs
from trainplane.api.legacy.kinds import BY_PLURAL
from trainplane.api.quantity import Quantity
from trainplane.resources import (
    ADMISSION_CHECKS,
    CLUSTER_QUEUES,
    COHORTS,
    EVENTS,
    LOCAL_QUEUES,
    MULTIKUEUE_CONFIGS,
    NAMESPACES,
    NODES,
    RESOURCE_FLAVORS,
    TRAIN_JOBS,
    WORKLOADS,
)

Texts: TypeAlias = dict[str, str]
Amounts: TypeAlias = dict[str, Quantity]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class Shape(msgspec.Struct, rename="camel"):
    """Base of all: names as on the wire, what is not listed may be anything."""


class Owner(Shape):
    """Whose an object is."""

    kind: str
    name: str


class Metadata(Shape):
    """Which object it is."""

    name: str
    namespace: str | None = None
    uid: str | None = None
    labels: Texts | None = None
    annotations: Texts | None = None
    owner_references: list[Owner] | None = None
    creation_timestamp: Moment | None = None
    deletion_timestamp: Moment | None = None


class Object(Shape):
    """What every object has."""

    metadata: Metadata


class InNamespace(Metadata):
    """Which object of a namespace it is."""

    namespace: str
    uid: str | None = None


class Condition(Shape):
    """What a controller says of an object."""

    type: str
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: Moment | None = None


class Conditions(Shape):
    """A status that has conditions."""

    conditions: list[Condition] | None = None


# --- pods


class Resources(Shape):
    """What a container or a pod asks for."""

    limits: Amounts | None = None
    requests: Amounts | None = None


class Container(Shape):
    """A container."""

    resources: Resources | None = None
    restart_policy: str | None = None


class Expression(Shape):
    """A requirement on labels."""

    key: str | None = None
    operator: str | None = None
    values: list[str] | None = None


class Selector(Shape):
    """A label selector."""

    match_labels: Texts | None = None
    match_expressions: list[Expression] | None = None


class Terms(Shape):
    """Alternatives of node affinity."""

    node_selector_terms: list[Selector] | None = None


class NodeAffinity(Shape):
    """Which nodes pods must be on."""

    required_during_scheduling_ignored_during_execution: Terms | None = None


class Affinity(Shape):
    """Where pods want to be."""

    node_affinity: NodeAffinity | None = None


class Taint(Shape):
    """What keeps pods away from a node, or lets them."""

    key: str | None = None
    value: str | None = None
    effect: str | None = None
    operator: str | None = None


class NodeTaint(Taint):
    """What keeps pods away from a node."""

    key: str


class PodSpec(Shape):
    """A pod, as the scheduler looks at it."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    resources: Resources | None = None
    overhead: Amounts | None = None
    node_selector: Texts | None = None
    affinity: Affinity | None = None
    tolerations: list[Taint] | None = None


class PodTemplate(Shape):
    """A template of pods."""

    spec: PodSpec | None = None


# --- Kueue


class Named(Shape):
    """A reference."""

    name: str


class TopologyRequest(Shape):
    """How close pods must lie."""

    pod_set_group_name: str | None = None


class PodSet(Named):
    """Pods of one kind."""

    count: Count = 1
    template: PodTemplate | None = None
    topology_request: TopologyRequest | None = None


class WorkloadSpec(Shape):
    """What a job wants."""

    queue_name: str | None = None
    priority: int | None = None
    active: bool | None = None
    maximum_execution_time_seconds: Count | None = None
    pod_sets: list[PodSet] | None = None


class AssignedPods(Named):
    """What a pod set was given."""

    count: Count | None = None
    flavors: Texts | None = None
    resource_usage: Amounts | None = None


class Admission(Shape):
    """What a Workload was given."""

    cluster_queue: str | None = None
    pod_set_assignments: list[AssignedPods] | None = None


class Requests(Named):
    """What a pod set was counted to need."""

    resources: Amounts | None = None


class Reclaimable(Named):
    """Pods that are done."""

    count: Count | None = None


class CheckState(Named):
    """What an admission check says."""

    state: str | None = None
    message: str | None = None


class RequeueState(Shape):
    """When it is queued again."""

    count: Count | None = None
    requeue_at: Moment | None = None


class WorkloadStatus(Conditions):
    """How a Workload is doing."""

    admission: Admission | None = None
    resource_requests: list[Requests] | None = None
    reclaimable_pods: list[Reclaimable] | None = None
    admission_checks: list[CheckState] | None = None
    requeue_state: RequeueState | None = None
    nominated_cluster_names: list[str] | None = None
    cluster_name: str | None = None
    accumulated_past_execution_time_seconds: Count | None = None


class Workload(Shape):
    """A Workload."""

    metadata: InNamespace
    spec: WorkloadSpec
    status: WorkloadStatus | None = None


class LocalQueueSpec(Shape):
    """Where a LocalQueue leads."""

    cluster_queue: str | None = None
    stop_policy: str | None = None


class LocalQueue(Shape):
    """A LocalQueue."""

    metadata: InNamespace
    spec: LocalQueueSpec | None = None


class Quota(Named):
    """A quota of a resource."""

    nominal_quota: Quantity | None = None
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None


class FlavorQuotas(Named):
    """The quotas of a flavor."""

    resources: list[Quota] | None = None


class ResourceGroup(Shape):
    """Flavors that share resources."""

    covered_resources: list[str] | None = None
    flavors: list[FlavorQuotas] | None = None


class Checks(Shape):
    """Which checks must agree."""

    admission_checks: list[Named] | None = None


class Fungibility(Shape):
    """When the next flavor is tried."""

    when_can_borrow: str | None = None


class QueueSpec(Shape):
    """What a ClusterQueue or a Cohort has."""

    cohort_name: str | None = None
    parent_name: str | None = None
    stop_policy: str | None = None
    queueing_strategy: str | None = None
    namespace_selector: Selector | None = None
    admission_checks_strategy: Checks | None = None
    flavor_fungibility: Fungibility | None = None
    resource_groups: list[ResourceGroup] | None = None


class Usage(Named):
    """What is used of a resource."""

    total: Quantity | None = None


class FlavorUsage(Named):
    """What is used of a flavor."""

    resources: list[Usage] | None = None


class QueueStatus(Conditions):
    """How a ClusterQueue is doing."""

    flavors_reservation: list[FlavorUsage] | None = None


class Queue(Object):
    """A ClusterQueue or a Cohort."""

    spec: QueueSpec | None = None
    status: QueueStatus | None = None


class FlavorSpec(Shape):
    """The nodes of a flavor."""

    node_labels: Texts | None = None
    node_taints: list[NodeTaint] | None = None
    tolerations: list[Taint] | None = None
    topology_name: str | None = None


class Flavor(Object):
    """A ResourceFlavor."""

    spec: FlavorSpec | None = None


class OptionalName(Shape):
    """A reference that may name nothing."""

    name: str | None = None


class CheckSpec(Shape):
    """Who answers a check, and by what."""

    controller_name: str | None = None
    parameters: OptionalName | None = None


class Check(Object):
    """An AdmissionCheck."""

    spec: CheckSpec | None = None
    status: Conditions | None = None


class ConfigSpec(Shape):
    """The workers of a config."""

    clusters: list[str] | None = None


class MultiKueueConfig(Object):
    """A MultiKueueConfig."""

    spec: ConfigSpec | None = None


# --- ours and Kubernetes'


class Reference(OptionalName):
    """A runtime."""

    kind: str | None = None


class JobSpec(Shape):
    """What a TrainJob says of who runs it."""

    runtime_ref: Reference | None = None
    managed_by: str | None = None
    suspend: bool | None = None


class Progress(Shape):
    """What a training says of itself."""

    estimated_remaining_seconds: Count | None = None
    last_updated_time: Moment | None = None


class JobStatus(Conditions):
    """How a TrainJob is doing."""

    trainer_status: Progress | None = None


class JobMetadata(InNamespace):
    """Which TrainJob it is."""

    uid: str


class LegacyJobSpec(Shape):
    """What a job of kubeflow.org says of who runs it."""

    run_policy: JobSpec | None = None


class LegacyJob(Shape):
    """A job of kubeflow.org."""

    metadata: JobMetadata
    spec: LegacyJobSpec | None = None
    status: Conditions | None = None


class TrainJob(Shape):
    """A TrainJob."""

    metadata: JobMetadata
    spec: JobSpec | None = None
    status: JobStatus | None = None


class NodeSpec(Shape):
    """Who may be on a node."""

    taints: list[NodeTaint] | None = None
    unschedulable: bool | None = None


class NodeStatus(Shape):
    """What a node has."""

    allocatable: Amounts | None = None


class Node(Object):
    """A Node."""

    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class Event(Object):
    """An Event."""

    type: str | None = None
    message: str | None = None


_SHAPES: Final[dict[str, type[Shape]]] = {
    **dict.fromkeys(BY_PLURAL, LegacyJob),
    TRAIN_JOBS.plural: TrainJob,
    WORKLOADS.plural: Workload,
    LOCAL_QUEUES.plural: LocalQueue,
    CLUSTER_QUEUES.plural: Queue,
    COHORTS.plural: Queue,
    RESOURCE_FLAVORS.plural: Flavor,
    ADMISSION_CHECKS.plural: Check,
    MULTIKUEUE_CONFIGS.plural: MultiKueueConfig,
    NODES.plural: Node,
    NAMESPACES.plural: Object,
    EVENTS.plural: Event,
}


def fault(plural: str, tree: Any) -> str:
    """Return what keeps an object from being read as one of its kind; empty if nothing does."""
    try:
        msgspec.convert(tree, _SHAPES[plural], dec_hook=_quantity)
    except (msgspec.ValidationError, RecursionError) as error:
        return str(error)
    return ""


def _quantity(_: type, value: Any) -> Quantity:
    return Quantity.of(value)
