"""A pod as the hub keeps it: what readers of logs and of the view need, judged before anything is done with it.

A pod is written by others: its author, its worker, whoever may patch it. So it is parsed once, where it comes in, into
types that cannot hold anything else, and what does not fit is refused with the reason. Fields are kept by a list of
what is needed, never by one of what is not: commands, arguments, probes, hooks, volumes' content and the values of
variables are where people put their secrets and their code, and nobody reads them here. Whatever its author does, what
is left of a pod is some KB (`POD_BYTES` at most).
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from trainplane.api import names
from trainplane.api.legacy import names as legacy_names
from trainplane.api.podindex import STEP_LABELS, PodIndex, read_index
from trainplane.hub.errors import PodRefusedError
from trainplane.kube.codec import decoder
from trainplane.kube.resource import Key

POD_BYTES: Final = 64 << 10
"""Bytes of a kept pod, far above what one with a handful of containers comes to."""
CONTAINERS: Final = 64
"""Containers of a pod, of each kind; each is a stream and a file. Real pods have a handful."""
_ENTRIES: Final = 64
"""Labels, conditions, volumes and resources that are kept of each; what we read ourselves comes first."""
_TEXT: Final = 1024
"""Letters of a message that are kept; the kubelet itself cuts at 4096."""
_LARGEST: Final = (1 << 31) - 1
UNREADABLE: Final = (ValueError, RecursionError)
"""What decoding raises: for what does not fit, is no JSON, is no UTF-8, and is nested without end."""

_SIZES: Final = frozenset(
    {
        names.TORCH_NNODES,
        names.TORCH_NPROC_PER_NODE,
        names.JAX_NUM_PROCESSES,
        names.XGBOOST_NUM_WORKER,
        names.PADDLE_NNODES,
    }
)
"""Variables whose values are kept where they are numbers: how many nodes and processes there are."""
_FRAMEWORKS: Final = frozenset(
    {names.XGBOOST_TRACKER_URI, names.TENSORFLOW_CONFIG, names.PADDLE_MASTER, names.FLUX_VIEW_IMAGE}
)
"""Variables of which it is kept that they are there: they tell the framework."""
_SIZE: Final = re.compile(r"[0-9]{1,10}(:[0-9]{1,10})?|auto|cpu|gpu|xpu")
_DIGITS: Final = re.compile(r"[0-9]{1,10}")
_LABELS: Final = (
    names.LABEL_JOBSET_NAME,
    names.LABEL_REPLICATED_JOB,
    names.LABEL_JOB_INDEX,
    names.ANNOTATION_COMPLETION_INDEX,
    names.LABEL_RESTART_ATTEMPT,
    legacy_names.LABEL_OPERATOR_NAME,
    legacy_names.LABEL_JOB_NAME,
    legacy_names.LABEL_REPLICA_TYPE,
    legacy_names.LABEL_REPLICA_INDEX,
    legacy_names.LABEL_JOB_ROLE,
)
_ANNOTATIONS: Final = (names.ANNOTATION_COMPLETION_INDEX,)

Name = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?\Z", max_length=253)]
"""A name or uid as Kubernetes gives it; it may be a file's."""
Label = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z", max_length=63)]
Count = Annotated[int, Meta(ge=0, le=_LARGEST)]
Amount = str | int | float


class _Part(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True):
    """A part of a pod: its fields are spelled as the API spells them, and empty ones are left out."""


class OwnerReference(_Part, frozen=True):
    """Who made an object."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None


class Metadata(_Part, frozen=True):
    """Who a pod is."""

    name: Name
    namespace: Name
    uid: Name
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None


class Variable(_Part, frozen=True):
    """A variable of a container."""

    name: str
    value: str | None = None


class Resources(_Part, frozen=True):
    """What a container asks for and gets."""

    limits: dict[str, Amount] | None = None
    requests: dict[str, Amount] | None = None


class Container(_Part, frozen=True):
    """A container of a pod."""

    name: Label
    image: str | None = None
    resources: Resources | None = None
    restart_policy: str | None = None
    env: list[Variable] | None = None


class Volume(_Part, frozen=True):
    """A volume of a pod, without what it holds."""

    name: str


class Spec(_Part, frozen=True):
    """What a pod is made of."""

    containers: Annotated[list[Container], Meta(min_length=1, max_length=CONTAINERS)]
    init_containers: Annotated[list[Container], Meta(max_length=CONTAINERS)] | None = None
    node_name: str | None = None
    restart_policy: str | None = None
    service_account_name: str | None = None
    priority_class_name: str | None = None
    volumes: list[Volume] | None = None


class Condition(_Part, frozen=True):
    """What is said of a pod."""

    type: str
    status: str
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class Waiting(_Part, frozen=True):
    """A container that waits."""

    reason: str | None = None
    message: str | None = None


class Running(_Part, frozen=True):
    """A container that runs."""

    started_at: str | None = None


class Terminated(_Part, frozen=True):
    """A container that has ended."""

    exit_code: int = 0
    signal: int | None = None
    reason: str | None = None
    message: str | None = None
    started_at: str | None = None
    finished_at: str | None = None


class State(_Part, frozen=True):
    """What a container does."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(_Part, frozen=True):
    """How a container does."""

    name: str
    restart_count: Count = 0
    ready: bool = False
    state: State | None = None
    last_state: State | None = None


class Status(_Part, frozen=True):
    """How a pod does."""

    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    start_time: str | None = None
    pod_ip: str | None = msgspec.field(default=None, name="podIP")
    host_ip: str | None = msgspec.field(default=None, name="hostIP")
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class Pod(_Part, frozen=True):
    """A pod. Made by `parse` alone, so whoever has one need not judge it again."""

    metadata: Metadata
    spec: Spec
    status: Status = Status()

    @property
    def key(self) -> Key:
        """The pod's place in its cluster."""
        return Key(self.metadata.namespace, self.metadata.name)

    @property
    def name(self) -> str:
        """The pod's name."""
        return self.metadata.name

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.metadata.uid

    @property
    def step(self) -> str:
        """The part of the job that it is: the name of its replicated job or its replica type; empty without one."""
        return self.index.replicated_job

    @property
    def index(self) -> PodIndex:
        """Where in its job it stands; the pod that comes after it has the same."""
        return read_index(self.metadata.labels or {}, self.metadata.annotations or {})

    @property
    def containers(self) -> tuple[str, ...]:
        """The names of its containers."""
        return tuple(container.name for container in self.spec.containers)

    @property
    def init_containers(self) -> tuple[str, ...]:
        """The names of its init containers."""
        return tuple(container.name for container in self.spec.init_containers or ())

    @property
    def controller(self) -> OwnerReference | None:
        """Who made it and looks after it."""
        return controller_of(self.metadata.owner_references)

    def status_of(self, container: str) -> ContainerStatus | None:
        """Return how a container does; None before the kubelet has said anything of it."""
        groups = (self.status.container_statuses, self.status.init_container_statuses)
        return next((each for group in groups for each in group or () if each.name == container), None)

    def to_tree(self) -> dict[str, Any]:
        """Return the pod as the API would show it."""
        tree: dict[str, Any] = msgspec.to_builtins(self)
        return {"apiVersion": "v1", "kind": "Pod", **tree}


def controller_of(owners: list[OwnerReference] | None) -> OwnerReference | None:
    """Return the owner that is the controller, of which there is one at most."""
    return next((owner for owner in owners or () if owner.controller), None)


def parse(raw: bytes | msgspec.Raw) -> Pod:
    """Return what is kept of a pod; raises PodRefusedError for one that no API server and no operator makes."""
    try:
        pod = trimmed(decoder(Pod).decode(raw))
    except UNREADABLE as error:
        raise PodRefusedError(str(error)) from error
    labels, annotations = pod.metadata.labels or {}, pod.metadata.annotations or {}
    for where, values in (("labels", labels), ("annotations", annotations)):
        for key in (names.LABEL_JOB_INDEX, names.ANNOTATION_COMPLETION_INDEX, legacy_names.LABEL_REPLICA_INDEX):
            _check_number(f"metadata.{where}[{key}]", values.get(key, "0"))
    if pod.step and not _is_label(pod.step):
        raise PodRefusedError(f"its labels name no part of a job: {', '.join(STEP_LABELS)}")
    size = len(msgspec.json.encode(pod))
    if size > POD_BYTES:
        raise PodRefusedError(f"what is kept of it would be {size} bytes, {POD_BYTES} at most")
    return pod


def trimmed(pod: Pod) -> Pod:
    """Return a pod with no more of everything than is kept."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    replace = msgspec.structs.replace
    controller = controller_of(meta.owner_references)
    return Pod(
        replace(
            meta,
            creation_timestamp=_cut(meta.creation_timestamp, 40),
            deletion_timestamp=_cut(meta.deletion_timestamp, 40),
            labels=_some(meta.labels, _LABELS),
            annotations=_known(meta.annotations, _ANNOTATIONS),
            owner_references=None if controller is None else [controller],
        ),
        replace(
            spec,
            containers=[_container(each) for each in spec.containers],
            init_containers=[_container(each) for each in spec.init_containers or ()] or None,
            node_name=_cut(spec.node_name, 253),
            restart_policy=_cut(spec.restart_policy, 40),
            service_account_name=_cut(spec.service_account_name, 253),
            priority_class_name=_cut(spec.priority_class_name, 253),
            volumes=[Volume(each.name[:253]) for each in _volumes(spec.volumes or ())] or None,
        ),
        replace(
            status,
            phase=_cut(status.phase, 40),
            reason=_cut(status.reason),
            message=_cut(status.message),
            start_time=_cut(status.start_time, 40),
            pod_ip=_cut(status.pod_ip, 64),
            host_ip=_cut(status.host_ip, 64),
            conditions=[_condition(each) for each in (status.conditions or ())[:_ENTRIES]] or None,
            container_statuses=_statuses(status.container_statuses),
            init_container_statuses=_statuses(status.init_container_statuses),
        ),
    )


def _container(container: Container) -> Container:
    resources = container.resources or Resources()
    env = [kept for variable in container.env or () if (kept := _variable(variable)) is not None]
    return Container(
        container.name,
        _cut(container.image, 512),
        Resources(_some(resources.limits), _some(resources.requests)),
        _cut(container.restart_policy, 40),
        list({variable.name: variable for variable in env}.values()) or None,
    )


def _variable(variable: Variable) -> Variable | None:
    if variable.name in _SIZES and _SIZE.fullmatch(variable.value or ""):
        return variable
    return Variable(variable.name) if variable.name in _SIZES | _FRAMEWORKS else None


def _volumes(volumes: Any) -> list[Volume]:
    """Return the first volumes, those first by which a framework is told."""
    return sorted(volumes, key=lambda volume: volume.name != names.MPI_SSH_VOLUME)[:_ENTRIES]


def _condition(condition: Condition) -> Condition:
    return Condition(
        condition.type[:316],
        condition.status[:40],
        _cut(condition.reason),
        _cut(condition.message),
        _cut(condition.last_transition_time, 40),
    )


def _statuses(statuses: list[ContainerStatus] | None) -> list[ContainerStatus] | None:
    return [
        ContainerStatus(each.name[:63], each.restart_count, each.ready, _state(each.state), _state(each.last_state))
        for each in (statuses or ())[:CONTAINERS]
    ] or None


def _state(state: State | None) -> State | None:
    if state is None:
        return None
    waiting, running, ended = state.waiting, state.running, state.terminated
    return State(
        waiting and Waiting(_cut(waiting.reason), _cut(waiting.message)),
        running and Running(_cut(running.started_at, 40)),
        ended
        and Terminated(
            ended.exit_code,
            ended.signal,
            _cut(ended.reason),
            _cut(ended.message),
            _cut(ended.started_at, 40),
            _cut(ended.finished_at, 40),
        ),
    )


def _some(values: dict[str, Any] | None, first: tuple[str, ...] = ()) -> dict[str, Any] | None:
    """Return so many entries of a map at most, some of them before all others, none longer than the API lets be."""
    if not values:
        return None
    order = dict.fromkeys([*(key for key in first if key in values), *values])
    short = (key for key in order if len(key) <= 317)
    return {key: _cut(value, 63) if isinstance(value, str) else value for key, value in _first(short, values)}


def _first(keys: Any, values: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(key, values[key]) for _, key in zip(range(_ENTRIES), keys, strict=False)]


def _known(values: dict[str, str] | None, keys: tuple[str, ...]) -> dict[str, str] | None:
    return {key: values[key][:63] for key in keys if key in values} or None if values else None


def _cut(text: str | None, limit: int = _TEXT) -> str | None:
    return None if text is None else text[:limit]


def _check_number(field: str, value: str) -> None:
    """Refuse what `int` would take and nobody means: other scripts' digits, signs, spaces, a number of any length."""
    if not _DIGITS.fullmatch(value) or int(value) > _LARGEST:
        raise PodRefusedError(f"{field} is no number from 0 to {_LARGEST}")


def _is_label(text: str) -> bool:
    try:
        msgspec.convert(text, Label)
    except msgspec.ValidationError:
        return False
    return True
