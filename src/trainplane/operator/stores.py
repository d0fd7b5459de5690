"""What the operator sees of the cluster: five mirrors, each cut to what is read.

TrainJobs and runtimes are kept whole, since they are rendered. Of a JobSet only its metadata and status are; its
template is a copy of ours and ten times as large. Whether it is suspended or expires, how many pods train, whether they
may report progress, know the first node's address and send output is learnt as it passes by. So is, of a TrainJob,
under which labels it counts (`TALLY`) and, until it has finished, which runtime it uses (`USED`, and `QUEUED` if it is
in one of Kueue's queues), and which TrainJob it waits for (`AFTER`): nothing walks over 100,000 TrainJobs. Of pods, see
`pods`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime  # noqa: TC003 msgspec reads annotations as it runs
from typing import TYPE_CHECKING, Any, Final

import msgspec

from trainplane.api import document, names
from trainplane.api.meta import Condition  # noqa: TC001 msgspec reads annotations as it runs
from trainplane.api.podindex import as_number
from trainplane.api.trainjob import TrainJob
from trainplane.kube.projection import Index, Projection
from trainplane.kube.store import Store
from trainplane.lifecycle.after import awaited
from trainplane.lifecycle.conditions import is_finished
from trainplane.lifecycle.status import JobSetStatus
from trainplane.operator.pods import pod_store
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, JOB_SETS, TRAIN_JOBS, TRAINING_RUNTIMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trainplane.api.document import Document
    from trainplane.kube.resource import Key

SEPARATOR: Final = "\n"
"""Between the parts of a tally's value; in no name of Kubernetes."""
_JOB_SET_FIELDS: Final = Projection(
    fields=frozenset({"status"}),
    metadata=frozenset(
        {"generation", "creationTimestamp", "deletionTimestamp", "ownerReferences", "labels", "annotations"}
    ),
)


_PREPARING: Final = frozenset({names.ANCESTOR_DATASET, names.ANCESTOR_MODEL, names.ANCESTOR_CACHE})


class Owner(msgspec.Struct, frozen=True, rename="camel"):
    """The part of an owner reference that says whose an object is."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Meta(msgspec.Struct, frozen=True, rename="camel"):
    """The part of metadata that says which object this is, in which state, and whose."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = "0"
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: str | None = None
    owner_references: list[Owner] = []
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}

    @property
    def controller(self) -> Owner | None:
        """The owner that controls the object, or None."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class _WrittenStatus(msgspec.Struct, frozen=True, rename="camel"):
    runtime_digest: str = ""


class Written(msgspec.Struct, frozen=True):
    """What we read of the answer to a write."""

    metadata: Meta = Meta()
    status: _WrittenStatus = _WrittenStatus()


class _Conditions(msgspec.Struct, frozen=True):
    conditions: list[Condition] = []


class Standing(msgspec.Struct, frozen=True):
    """What we read of a TrainJob to see whether its mirror is old."""

    metadata: Meta = Meta()
    status: _Conditions = _Conditions()


class JobSet(msgspec.Struct, frozen=True):
    """A JobSet as far as the operator looks."""

    metadata: Meta = Meta()
    status: JobSetStatus = JobSetStatus()


@dataclass(frozen=True, slots=True)
class SeenJobSet:
    """A JobSet, whether its spec holds it back, whether it says when to be removed, and whether its pods may report."""

    meta: Meta
    status: JobSetStatus
    suspended: bool
    expires: bool
    trainers: int = 0
    """Pods that train, and do not prepare data."""
    reports: bool = False
    """Whether its pods were made to report progress: one that another release or the reference made may not be."""
    has_master: bool = False
    """Whether its containers know the first node as MASTER_ADDR: torch's do, unless another release made them."""
    has_cache: bool = False
    """Whether a step of it was made its data cache: an older release let the step's own image do what it does."""
    sender: str = ""
    """The replicated job whose pods send the output; empty if it was made without a sender."""
    has_keys: bool = False
    """Whether its pods mount Secrets of its own."""
    has_others: bool = False
    """Whether its pods need ConfigMaps of its own, a group or a Service."""
    targets: frozenset[str] = frozenset()
    """The replicated jobs that must succeed for it to complete; empty if all must."""
    deletes_pods: bool = False
    """Whether a policy of its Jobs deletes running pods: a deadline, or a success policy that some pods satisfy."""

    @property
    def attempt(self) -> int:
        """How often the TrainJob was restarted before the present attempt."""
        before = as_number(self.meta.labels.get(names.LABEL_RESTARTS))
        return min(before + self.status.restarts, 2**31 - 1)

    def must_succeed(self, step: str) -> bool:
        """Return whether the JobSet completes only if a replicated job succeeds."""
        return not self.targets or step in self.targets

    @property
    def is_active(self) -> bool:
        """Whether any of its Jobs has pods."""
        return any(job.active for job in self.status.replicated_jobs_status or ())


class _TemplateMeta(msgspec.Struct, frozen=True):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None

    @property
    def has_group(self) -> bool:
        """Whether a gang scheduler is told of a group."""
        return names.LABEL_COSCHEDULING_POD_GROUP in (self.labels or {}) or (
            names.ANNOTATION_VOLCANO_POD_GROUP in (self.annotations or {})
        )


class _Named(msgspec.Struct, frozen=True):
    name: str = ""


class _Container(msgspec.Struct, frozen=True):
    name: str = ""
    env: list[_Named] | None = None


class _Mounted(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    secret_name: str = ""


class _Volume(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    secret: _Mounted | None = None
    config_map: _Mounted | None = None


class _PodSpec(msgspec.Struct, frozen=True):
    volumes: list[_Volume] | None = None
    containers: list[_Container] | None = None


class _PodTemplate(msgspec.Struct, frozen=True):
    metadata: _TemplateMeta = _TemplateMeta()
    spec: _PodSpec = _PodSpec()


class _BatchSpec(msgspec.Struct, frozen=True, rename="camel"):
    parallelism: int | None = None
    active_deadline_seconds: int | None = None
    success_policy: dict[str, Any] | None = None
    template: _PodTemplate = _PodTemplate()


class _JobTemplate(msgspec.Struct, frozen=True):
    metadata: _TemplateMeta = _TemplateMeta()
    spec: _BatchSpec = _BatchSpec()


class _ReplicatedJob(msgspec.Struct, frozen=True):
    name: str = ""
    replicas: int | None = None
    template: _JobTemplate = _JobTemplate()

    @property
    def trainers(self) -> int:
        """Its pods, if they train."""
        if (self.template.metadata.labels or {}).get(names.LABEL_ANCESTOR) in _PREPARING:
            return 0
        replicas, parallelism = self.replicas, self.template.spec.parallelism
        return (1 if replicas is None else replicas) * (1 if parallelism is None else parallelism)


class _SuccessPolicy(msgspec.Struct, frozen=True, rename="camel"):
    operator: str = "All"
    target_replicated_jobs: list[str] | None = None


class _Held(msgspec.Struct, frozen=True, rename="camel"):
    suspend: bool | None = None
    ttl_seconds_after_finished: int | None = None
    replicated_jobs: list[_ReplicatedJob] = []
    success_policy: _SuccessPolicy | None = None


class _JobSetMeta(msgspec.Struct, frozen=True):
    name: str = ""


class _Spec(msgspec.Struct, frozen=True):
    metadata: _JobSetMeta = _JobSetMeta()
    spec: _Held = _Held()


_SUSPENDED: Final = Index(_Spec, lambda jobset: ("yes",) if jobset.spec.suspend else ())
_EXPIRES: Final = Index(_Spec, lambda jobset: ("yes",) if jobset.spec.ttl_seconds_after_finished is not None else ())
_TRAINERS: Final = Index(_Spec, lambda jobset: (str(sum(one.trainers for one in jobset.spec.replicated_jobs)),))


def _pods(jobset: _Spec) -> Iterable[_PodSpec]:
    return (job.template.spec.template.spec for job in jobset.spec.replicated_jobs)


def _reports(jobset: _Spec) -> tuple[str, ...]:
    volumes = (volume.name for pod in _pods(jobset) for volume in pod.volumes or ())
    return ("yes",) if names.STATUS_VOLUME in volumes else ()


def _knows(variable: str) -> Callable[[_Spec], tuple[str, ...]]:
    """Return what tells whether any container of a JobSet has a variable."""

    def knows(jobset: _Spec) -> tuple[str, ...]:
        variables = (entry.name for pod in _pods(jobset) for one in pod.containers or () for entry in one.env or ())
        return ("yes",) if variable in variables else ()

    return knows


def _sender(jobset: _Spec) -> tuple[str, ...]:
    return tuple(
        job.name
        for job in jobset.spec.replicated_jobs
        for one in job.template.spec.template.spec.containers or ()
        if one.name == names.OUTPUT and any(entry.name == names.ENV_OUTPUT_URI for entry in one.env or ())
    )


def _has_keys(jobset: _Spec) -> tuple[str, ...]:
    own = f"{jobset.metadata.name}-"
    volumes = (volume for pod in _pods(jobset) for volume in pod.volumes or ())
    return ("yes",) if any(one.secret is not None and one.secret.secret_name.startswith(own) for one in volumes) else ()


def _has_others(jobset: _Spec) -> tuple[str, ...]:
    own = f"{jobset.metadata.name}-"
    volumes = (volume for pod in _pods(jobset) for volume in pod.volumes or ())
    has_maps = any(one.config_map is not None and one.config_map.name.startswith(own) for one in volumes)
    has_group = any(job.template.spec.template.metadata.has_group for job in jobset.spec.replicated_jobs)
    return ("yes",) if has_maps or has_group or _HAS_CACHE.values(jobset) else ()


def _targets(jobset: _Spec) -> tuple[str, ...]:
    policy = jobset.spec.success_policy
    return tuple(policy.target_replicated_jobs or ()) if policy is not None else ()


def _deletes_pods(jobset: _Spec) -> tuple[str, ...]:
    policy = jobset.spec.success_policy
    jobs = [job.template.spec for job in jobset.spec.replicated_jobs]
    ends = any(job.active_deadline_seconds is not None or job.success_policy is not None for job in jobs)
    return ("yes",) if ends or (policy is not None and policy.operator == "Any") else ()


_SENDER: Final = Index(_Spec, _sender)
_REPORTS: Final = Index(_Spec, _reports)
_HAS_MASTER: Final = Index(_Spec, _knows(names.MASTER_ADDR))
_HAS_CACHE: Final = Index(_Spec, _knows(names.ENV_CACHE_SUBDOMAIN))


def _job_sets() -> Store:
    indexes = {
        "suspended": _SUSPENDED,
        "expires": _EXPIRES,
        "trainers": _TRAINERS,
        "reports": _REPORTS,
        "master": _HAS_MASTER,
        "cache": _HAS_CACHE,
        "sender": _SENDER,
        "keys": Index(_Spec, _has_keys),
        "others": Index(_Spec, _has_others),
        "targets": Index(_Spec, _targets),
        "deletes": Index(_Spec, _deletes_pods),
    }
    return Store(JOB_SETS, _JOB_SET_FIELDS, indexes)


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class _JobStatus(msgspec.Struct, frozen=True):
    conditions: list[_Condition] | None = None


class _Ref(msgspec.Struct, frozen=True):
    kind: str = ""
    name: str = ""


class _JobSpec(msgspec.Struct, frozen=True, rename="camel"):
    runtime_ref: _Ref = _Ref()
    suspend: bool | None = None


class _JobMeta(msgspec.Struct, frozen=True):
    namespace: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class IndexView(msgspec.Struct, frozen=True):
    """The few fields of a TrainJob that indexes read, decoded once for all of them, at each of its changes."""

    metadata: _JobMeta = _JobMeta()
    spec: _JobSpec = _JobSpec()
    status: _JobStatus | None = None

    @property
    def conditions(self) -> list[_Condition]:
        """Its conditions."""
        return (self.status.conditions if self.status else None) or []


def state_of(*, suspend: bool, true_conditions: set[str]) -> str:
    """Return the one state of a TrainJob."""
    if names.FAILED in true_conditions:
        return "failed"
    if names.COMPLETE in true_conditions:
        return "finished"
    return "suspended" if suspend else "active"


def _tally(job: IndexView) -> tuple[str]:
    holding = {condition.type for condition in job.conditions if condition.status == "True"}
    state = state_of(suspend=bool(job.spec.suspend), true_conditions=holding)
    return (SEPARATOR.join((job.metadata.namespace, job.spec.runtime_ref.name, state)),)


TALLY: Final = Index(IndexView, _tally)
"""The index of the TrainJob store that says under which labels each TrainJob counts."""


def used(kind: str, namespace: str, name: str) -> str:
    """Return what the index finds the users of a runtime by; a ClusterTrainingRuntime has no namespace."""
    return f"{kind} {namespace}/{name}"


def _queued(job: IndexView) -> Iterable[str]:
    return _used(job) if (job.metadata.labels or {}).get(names.LABEL_QUEUE) else ()


def _used(job: IndexView) -> Iterable[str]:
    if is_finished(job.conditions):
        return ()
    ref = job.spec.runtime_ref
    namespace = job.metadata.namespace if ref.kind == names.TRAINING_RUNTIME else ""
    return (used(ref.kind, namespace, ref.name),)


USED: Final = Index(IndexView, _used)
"""The index of the TrainJob store by runtime, of those that have not finished."""
QUEUED: Final = Index(IndexView, _queued)
"""The same, of those in Kueue's queues."""


def followers(namespace: str, name: str) -> str:
    """Return what the index finds those by that begin after a TrainJob."""
    return f"{namespace}/{name}"


def _after(job: IndexView) -> Iterable[str]:
    earlier = awaited(job.metadata.annotations or {})
    return (followers(job.metadata.namespace, earlier),) if earlier else ()


AFTER: Final = Index(IndexView, _after)
"""The index of the TrainJob store by the TrainJob that is waited for."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The mirrors, empty until reflectors fill them."""

    train_jobs: Store = field(
        default_factory=lambda: Store(
            TRAIN_JOBS, indexes={"tally": TALLY, "used": USED, "queued": QUEUED, "after": AFTER}
        )
    )
    job_sets: Store = field(default_factory=_job_sets)
    training_runtimes: Store = field(default_factory=lambda: Store(TRAINING_RUNTIMES))
    cluster_training_runtimes: Store = field(default_factory=lambda: Store(CLUSTER_TRAINING_RUNTIMES))
    pods: Store = field(default_factory=pod_store)

    def all(self) -> tuple[Store, ...]:
        """Return every mirror, what others refer to first."""
        return self.cluster_training_runtimes, self.training_runtimes, self.pods, self.job_sets, self.train_jobs

    def train_job(self, key: Key) -> Document[TrainJob] | None:
        """Return a TrainJob; raises `api.errors.DecodeError` if it is none."""
        entry = self.train_jobs.entry(key)
        return None if entry is None else document.decode(entry.data, TrainJob)

    def job_set(self, key: Key) -> SeenJobSet | None:
        """Return a JobSet."""
        entry = self.job_sets.entry(key)
        if entry is None:
            return None
        seen = entry.decode(JobSet)
        suspended, expires, trainers, reports, master, cache, sender, keys, others, targets, deletes = entry.indexed
        return SeenJobSet(
            seen.metadata,
            seen.status,
            suspended=bool(suspended),
            expires=bool(expires),
            trainers=int(trainers[0]) if trainers else 0,
            reports=bool(reports),
            has_master=bool(master),
            has_cache=bool(cache),
            sender=sender[0] if sender else "",
            has_keys=bool(keys),
            has_others=bool(others),
            targets=frozenset(targets),
            deletes_pods=bool(deletes),
        )
