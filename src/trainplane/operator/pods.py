"""Pods of TrainJobs as the operator mirrors them: where each stands, whether it is ready, and how it ended.

Only pods of JobSets are watched, and of each only what says how it is doing: some 600 bytes. Commands, variables and
volumes are where people put their secrets, and nobody reads them here. A pod says itself whose it is, so it counts
only with the uid of the TrainJob's JobSet. Who may make pods in a namespace and read that uid can still mislead about
the jobs of that namespace, and about no others.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from trainplane.api import names
from trainplane.api.moments import read_moment
from trainplane.api.podindex import PodIndex, attempt, read_index
from trainplane.explain.pods import GIVEN_UP
from trainplane.kube.codec import MALFORMED, decoder
from trainplane.kube.projection import Index, Projection
from trainplane.kube.resource import Key
from trainplane.kube.store import Store
from trainplane.lifecycle.timeline import NEVER, PodTimes
from trainplane.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.api.tree import Tree
    from trainplane.kube.projection import ObjectHeader
    from trainplane.kube.store import Change

Training: TypeAlias = Literal["running", "succeeded", "failed"]
"""How training stands, in the words that a sender of output is told."""

NEWS_SECONDS: Final = 1.0
"""How long news of pods that are well may wait for more of the same TrainJob: a hundred pods start within a second."""

STOPPED_SECONDS: Final = 0.2
"""How long a pod that was stopped may wait for others: its object is deleted a second or two after it has ended, and a
suspended TrainJob stops all its pods at once."""

_MESSAGE: Final = 1024
"""Letters of a message that are kept; the kubelet itself cuts at 4096."""
_OUTPUT: Final = 4096
"""Letters of what the sender of output says at its end: all that the kubelet keeps, for it is data."""
_TIME: Final = 32
"""Letters of a time."""
_CONTAINERS: Final = 16
"""Containers whose states are kept, of each kind; real pods have a handful."""
_LABELS: Final = frozenset(
    {
        names.LABEL_JOBSET_NAME,
        names.LABEL_JOBSET_UID,
        names.LABEL_REPLICATED_JOB,
        names.LABEL_JOB_INDEX,
        names.LABEL_RESTART_ATTEMPT,
        names.LABEL_RESTARTS,
        names.ANNOTATION_COMPLETION_INDEX,
    }
)
_CONDITIONS: Final = frozenset({"PodScheduled", "Ready", "DisruptionTarget"})
_BY_JOB_SET: Final = "jobset"


class _Part(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True):
    """A part of a pod, spelled as the API spells it; what is empty is left out."""


class _Metadata(_Part, frozen=True):
    name: str
    namespace: str = ""
    uid: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int = 0
    labels: dict[str, str] = {}


class _Resources(_Part, frozen=True):
    limits: dict[str, Any] = {}


class _Container(_Part, frozen=True):
    name: str
    image: str = ""
    resources: _Resources | None = None
    readiness_probe: dict[str, Any] | None = None
    startup_probe: dict[str, Any] | None = None

    @property
    def is_probed(self) -> bool:
        """Whether it has to answer before it counts as ready."""
        return self.readiness_probe is not None or self.startup_probe is not None


class _Spec(_Part, frozen=True):
    node_name: str = ""
    containers: list[_Container] = []
    readiness_gates: list[Any] = []
    restart_policy: str = "OnFailure"

    @property
    def is_probed(self) -> bool:
        """Whether more than the start of its containers makes it ready."""
        return bool(self.readiness_gates) or any(one.is_probed for one in self.containers)


class _Condition(_Part, frozen=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None

    @property
    def holds(self) -> bool:
        """Whether it is True."""
        return self.status == "True"


class _Waiting(_Part, frozen=True):
    reason: str = ""
    message: str = ""


class _Terminated(_Part, frozen=True, omit_defaults=False):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: datetime | None = None


class _State(_Part, frozen=True):
    waiting: _Waiting | None = None
    running: dict[str, Any] | None = None
    terminated: _Terminated | None = None

    @property
    def started(self) -> str:
        """When the run was started; empty if it was not."""
        if self.running is not None:
            return str(self.running.get("startedAt", ""))
        return (self.terminated.started_at or "") if self.terminated is not None else ""


class _ContainerStatus(_Part, frozen=True):
    name: str
    restart_count: int = 0
    state: _State = _State()
    last_state: _State = _State()

    @property
    def started(self) -> str:
        """When its run was started, or if it waits for the next one, the run before; empty if none was."""
        return self.state.started or self.last_state.started


class _Status(_Part, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[_Condition] = []
    init_container_statuses: list[_ContainerStatus] = []
    container_statuses: list[_ContainerStatus] = []

    @property
    def all_containers(self) -> list[_ContainerStatus]:
        """Its containers, those that are started first, first."""
        return [*self.init_container_statuses, *self.container_statuses]


class SeenPod(_Part, frozen=True):
    """A pod as far as the operator looks."""

    metadata: _Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def step(self) -> str:
        """Its replicated job."""
        return self.metadata.labels.get(names.LABEL_REPLICATED_JOB, "")

    @property
    def attempt(self) -> int:
        """How often the TrainJob had been restarted when the pod was created."""
        return attempt(self.metadata.labels)

    @property
    def place(self) -> PodIndex:
        """Where it stands in its TrainJob; a pod that takes its place has the same."""
        return read_index(self.metadata.labels, {})

    @property
    def was_run_again(self) -> bool:
        """Whether one of its containers was started again."""
        return any(one.restart_count for one in self.status.all_containers)

    @property
    def is_scheduled(self) -> bool:
        """Whether it has a machine."""
        return bool(self.spec.node_name)

    @property
    def mounts(self) -> bool:
        """Whether it has a machine and none of its containers was started: it gets its volumes, or its image, now."""
        waits = self.status.phase in {"", "Pending"} and self.metadata.deletion_timestamp is None
        return self.is_scheduled and waits and not any(one.started for one in self.status.all_containers)

    @property
    def is_ready(self) -> bool:
        """Whether it is ready, or has done its work."""
        return self.is_done or self.holds("Ready")

    @property
    def is_done(self) -> bool:
        """Whether it has done its work."""
        return self.status.phase == "Succeeded"

    @property
    def runs(self) -> bool:
        """Whether one of its containers runs."""
        return any(one.state.running is not None for one in self.status.container_statuses)

    @property
    def wait(self) -> str:
        """What it waits for that may not come by itself, in the scheduler's or kubelet's word; empty if for nothing."""
        for condition in self.status.conditions:
            if condition.type == "PodScheduled" and condition.status == "False":
                return condition.reason or "Unschedulable"
        for one in self.status.all_containers:
            if one.state.waiting is not None and one.state.waiting.reason not in _COMING:
                return _SAME.get(one.state.waiting.reason, one.state.waiting.reason)
        return ""

    @property
    def is_damaged(self) -> bool:
        """Whether it, or a run of one of its containers, ended badly, or it is given up with its node."""
        return self.status.phase == "Failed" or bool(self.bad_ends) or self.is_given_up

    @property
    def is_given_up(self) -> bool:
        """Whether it is given up with its node, whose kubelet may never tell how it ended."""
        return not self.is_done and any(
            one.type == "DisruptionTarget" and one.status == "True" and one.reason in GIVEN_UP
            for one in self.status.conditions
        )

    @property
    def bad_ends(self) -> list[datetime]:
        """When runs of its containers ended badly, as far as the kubelet still tells."""
        return [
            state.terminated.finished_at or _LONG_AGO
            for one in self.status.all_containers
            for state in (one.last_state, one.state)
            if state.terminated is not None and state.terminated.exit_code != 0
        ]

    @property
    def disrupted_at(self) -> datetime | None:
        """When it was drained, preempted, evicted, or lost with its node; None if it was not."""
        for one in self.status.conditions:
            if one.type == "DisruptionTarget" and one.holds:
                return read_moment(one.last_transition_time) or _LONG_AGO
        return None

    @property
    def is_stopped(self) -> bool:
        """Whether it was disrupted or deleted before it ended by itself."""
        stops = [moment for moment in (self.disrupted_at, self.removed_at) if moment is not None]
        if not stops:
            return False
        bad = [end for end in self.bad_ends if end != _LONG_AGO]  # one that had not started ends without a time
        ends = bad or ([self.done_at] if self.done_at is not None else [])
        return not ends or min(stops) <= min(ends)

    @property
    def created_at(self) -> datetime:
        """When it was created."""
        return read_moment(self.metadata.creation_timestamp) or _LONG_AGO

    @property
    def done_at(self) -> datetime | None:
        """When the last container of a pod that succeeded ended."""
        ends = [one.state.terminated for one in self.status.container_statuses]
        times = [end.finished_at for end in ends if end is not None and end.finished_at is not None]
        return max(times) if times and self.is_done else None

    @property
    def removed_at(self) -> datetime | None:
        """When somebody asked for its removal; None if nobody has."""
        meta = self.metadata
        if meta.deletion_timestamp is None:
            return None
        return meta.deletion_timestamp - timedelta(seconds=meta.deletion_grace_period_seconds)

    @property
    def training(self) -> Training:
        """How its own part of the training stands: what all its containers do but the one that sends output."""
        ends = [one.state.terminated for one in self.status.container_statuses if one.name != names.OUTPUT]
        if self.spec.restart_policy == "Never" and any(end is not None and end.exit_code != 0 for end in ends):
            return "failed"
        expected = sum(one.name != names.OUTPUT for one in self.spec.containers)
        done = sum(end is not None and end.exit_code == 0 for end in ends)
        return "succeeded" if done == expected > 0 else "running"

    @property
    def output(self) -> str | None:
        """What the sender of output said at its end; None if it has not ended, or there is none."""
        ends = (one.state.terminated for one in self.status.container_statuses if one.name == names.OUTPUT)
        return next((end.message for end in ends if end is not None), None)

    @property
    def times(self) -> PodTimes:
        """When it got on."""
        containers = self.status.container_statuses
        ends = [one.state.terminated.finished_at for one in containers if one.state.terminated is not None]
        started = max((one.started for one in containers), default="")
        return PodTimes(
            created=self.metadata.creation_timestamp or "",
            scheduled=self._since("PodScheduled"),
            started=started,
            ready=self._since("Ready") or (started if self.bad_ends and not self.spec.is_probed else ""),
            done=max((str(end) for end in ends if end), default="") if self.is_done else "",
            waits=not all(one.started for one in containers),
        )

    def _since(self, condition: str) -> str:
        """Return since when a condition is True; empty if it is not."""
        return next(
            (one.last_transition_time or "" for one in self.status.conditions if one.type == condition and one.holds),
            "",
        )

    def is_run_again(self, container: str) -> bool:
        """Return whether a container was started again, so that its bad end is that of the run before."""
        return any(
            one.name == container and one.state.terminated is None and one.last_state.terminated is not None
            for one in self.status.all_containers
        )

    def holds(self, condition: str) -> bool:
        """Return whether a condition is True."""
        return any(one.type == condition and one.holds for one in self.status.conditions)


_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_COMING: Final = frozenset({"", "ContainerCreating", "PodInitializing"})
"""What a container waits for that comes by itself."""
_SAME: Final = {"ErrImagePull": "ImagePullBackOff"}
"""Words that take turns and mean one thing: each turn would cost a write."""

_read: Final[Callable[[msgspec.Raw], SeenPod]] = decoder(SeenPod).decode


def _cut(header: ObjectHeader) -> Any:
    """Return what is kept of a pod; of one that does not fit, only who it is."""
    try:
        pod = _read(header.raw)
    except MALFORMED:
        return SeenPod(_Metadata(header.key.name, header.key.namespace, header.uid))
    meta, spec, status = pod.metadata, pod.spec, pod.status
    labels = {name: value for name, value in meta.labels.items() if name in _LABELS}
    return SeenPod(
        msgspec.structs.replace(meta, labels=labels),
        msgspec.structs.replace(
            spec,
            containers=[_cut_container(one) for one in spec.containers[:_CONTAINERS]],
            readiness_gates=[{}] if spec.readiness_gates else [],
        ),
        msgspec.structs.replace(
            status,
            message=status.message[:_MESSAGE],
            conditions=[_cut_condition(one) for one in status.conditions if one.type in _CONDITIONS],
            init_container_statuses=[_cut_status(one) for one in status.init_container_statuses[:_CONTAINERS]],
            container_statuses=[_cut_status(one) for one in status.container_statuses[:_CONTAINERS]],
        ),
    )


def _cut_container(container: _Container) -> _Container:
    limits = container.resources.limits if container.resources else {}
    kept = {"memory": limits["memory"]} if isinstance(limits.get("memory"), str | int) else {}
    probe: Tree | None = {} if container.is_probed else None
    return _Container(container.name, container.image[:_MESSAGE], _Resources(kept) if kept else None, probe)


def _cut_condition(condition: _Condition) -> _Condition:
    return msgspec.structs.replace(condition, message=condition.message[:_MESSAGE])


def _cut_status(status: _ContainerStatus) -> _ContainerStatus:
    letters = _OUTPUT if status.name == names.OUTPUT else _MESSAGE
    return msgspec.structs.replace(
        status, state=_cut_state(status.state, letters), last_state=_cut_state(status.last_state)
    )


def _cut_state(state: _State, letters: int = _MESSAGE) -> _State:
    if state.running is not None:
        since = state.running.get("startedAt")
        return _State(running={"startedAt": since} if isinstance(since, str) and len(since) <= _TIME else {})
    if state.terminated is not None:
        message = state.terminated.message[-letters:]  # its end tells more
        since = (state.terminated.started_at or "")[:_TIME]
        since = None if since in {"", NEVER} else since
        return _State(terminated=msgspec.structs.replace(state.terminated, message=message, started_at=since))
    if state.waiting is not None:
        return _State(waiting=_Waiting(state.waiting.reason, state.waiting.message[:_MESSAGE]))
    return state


class _Labelled(msgspec.Struct, frozen=True):
    metadata: _Metadata


_OF_JOB_SET: Final = Index(
    _Labelled,
    lambda pod: (f"{pod.metadata.namespace}/{pod.metadata.labels.get(names.LABEL_JOBSET_NAME, '')}",),
)


def pod_store() -> Store:
    """Return the mirror of pods."""
    return Store(PODS, Projection(transform=_cut), {_BY_JOB_SET: _OF_JOB_SET})


@dataclass(frozen=True, slots=True)
class PodMirror:
    """The pods of TrainJobs."""

    store: Store

    def of(self, key: Key, jobset_uid: str) -> list[SeenPod]:
        """Return the pods of a JobSet."""
        found = (self.store.decode(pod, SeenPod) for pod in self.store.by_index(_BY_JOB_SET, str(key)))
        return [pod for pod in found if pod and pod.metadata.labels.get(names.LABEL_JOBSET_UID) == jobset_uid]

    def tree(self, pod: SeenPod) -> Tree | None:
        """Return what is kept of a pod, as a document; None if it is gone."""
        return self.store.decode(Key(pod.metadata.namespace, pod.metadata.name), dict)


def news(change: Change) -> tuple[Key, float] | None:
    """Return the TrainJob that a change of a pod is news of, and how long it may wait; None if it is no news.

    A pod changes a dozen times in its life, mostly in what is not kept.
    """
    new, old = change.new, change.old
    if change.initial or (new is not None and old is not None and new.data == old.data):
        return None
    entry = new or old
    if entry is None or not entry.indexed[0]:
        return None
    namespace, _, name = entry.indexed[0][0].partition("/")
    pod = None if new is None else new.decode(SeenPod)
    if pod is None:
        return Key(namespace, name), NEWS_SECONDS
    if pod.is_damaged:
        return Key(namespace, name), 0.0
    return Key(namespace, name), STOPPED_SECONDS if pod.is_stopped else NEWS_SECONDS
