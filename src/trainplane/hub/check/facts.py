"""What a fleet check knows of hub and workers: gathered by `check_gather`, judged by `check`.

Whatever could not be read is `Unseen` with the reason, never empty: an empty list of runtimes and a list that we may
not see lead to different findings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from trainplane import resources
from trainplane.api import names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainplane.api.tree import Tree
    from trainplane.hub.kinds import JobKind
    from trainplane.kube.resource import Key, Resource


@dataclass(frozen=True, slots=True)
class Unseen:
    """Something that could not be read."""

    why: Literal["missing", "forbidden", "failed"]
    """The cluster does not have such a resource; we may not read it; reading broke."""
    detail: str


Objects: TypeAlias = "Mapping[Key, Tree] | Unseen"

COMPARED: Final[tuple[Resource, ...]] = (
    resources.CLUSTER_TRAINING_RUNTIMES,
    resources.TRAINING_RUNTIMES,
    resources.NAMESPACES,
    resources.LOCAL_QUEUES,
    resources.CLUSTER_QUEUES,
    resources.COHORTS,
    resources.RESOURCE_FLAVORS,
    resources.WORKLOAD_PRIORITY_CLASSES,
    resources.PRIORITY_CLASSES,
)
"""What is read whole from every cluster."""

OF_THE_HUB: Final[tuple[Resource, ...]] = (
    resources.ADMISSION_CHECKS,
    resources.MULTIKUEUE_CONFIGS,
    resources.MULTIKUEUE_CLUSTERS,
)
"""What is read from the hub beside it."""

NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    names.API_VERSION: ("trainjobs", "trainjobs/status", "trainingruntimes", "clustertrainingruntimes"),
    names.JOBSET_API_VERSION: ("jobsets",),
    resources.WORKLOADS.api_version: ("workloads", "workloads/status", "localqueues", "clusterqueues"),
}
"""What every cluster of a fleet must serve: the hub too computes pods from runtimes, as JobSets."""

LEGACY: Final[tuple[str, ...]] = tuple(dict.fromkeys(one.api_version for one in resources.LEGACY_JOBS.values()))
"""What a cluster may serve beside it."""


class Permission(NamedTuple):
    """One thing that somebody may do in a whole cluster."""

    group: str
    resource: str
    verb: str


_ALL: Final = ("create", "update", "patch", "delete", "get", "list", "watch")
_READ: Final = ("get", "list", "watch")

PERMISSIONS: Final[tuple[Permission, ...]] = tuple(
    Permission(group, resource, verb)
    for group, resource, verbs in (
        (names.KUEUE_GROUP, "workloads", _ALL),
        (names.KUEUE_GROUP, "workloads/status", ("get", "patch", "update")),
        (names.KUEUE_GROUP, "clusterqueues", _READ),
        (names.KUEUE_GROUP, "localqueues", _READ),
        (names.GROUP, "trainjobs", _ALL),
        (names.GROUP, "trainjobs/status", ("get",)),
    )
    for verb in verbs
)
"""What MultiKueue does on a worker, and so must be allowed to."""


def permissions_for(kind: JobKind) -> tuple[Permission, ...]:
    """Return what MultiKueue does on a worker with jobs of a kind."""
    group, plural = kind.resource.group, kind.plural
    return (*(Permission(group, plural, verb) for verb in _ALL), Permission(group, f"{plural}/status", "get"))


VIEW_PERMISSIONS: Final[tuple[Permission, ...]] = tuple(
    Permission(group, resource, verb)
    for group, resource, verbs in (
        ("", "pods", _READ),
        ("", "pods/log", ("get",)),
        ("", "events", ("list",)),
        (resources.JOBS.group, "jobs", ("get",)),
        (resources.JOB_SETS.group, "jobsets", ("get",)),
        (names.GROUP, "trainjobs", _READ),
    )
    for verb in verbs
)
"""What the hub view does there with the same credentials, where it is installed: pods, whose they are, their logs, and
what is told of their TrainJobs. Of other kinds it needs less than MultiKueue itself."""


class Reference(NamedTuple):
    """An object that the pods of a job name, in the job's namespace or in none."""

    resource: Resource
    name: str
    by: str
    """What names it: `container node of the pods of node`."""
    fatal: bool = True
    """Whether no pod starts without it; a secret for pulling images may be more than is needed."""

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What is known of a cluster."""

    server: str
    version: str
    """Of Kubernetes."""
    engines: Mapping[str, str] = field(default_factory=dict)
    """Versions of what is installed, by name (`Kueue`), as far as their Deployments can be seen."""
    served: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The plurals and subresources behind each of `NEEDED` and `LEGACY`; absent if that version is not served."""
    other_versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By group: the versions that are served."""
    frameworks: frozenset[str] | None = None
    """What Kueue integrates, by its own names; None where its configuration cannot be seen."""
    runtime_patches: bool | Unseen = True
    """Whether the TrainJob CRD has `spec.runtimePatches`."""
    objects: Mapping[Resource, Objects] = field(default_factory=dict)

    def of(self, resource: Resource) -> Objects:
        """Return the objects of a resource, by key."""
        return self.objects.get(resource, Unseen("missing", "it was not looked at"))

    def seen(self, resource: Resource) -> Mapping[Key, Tree]:
        """Return the objects of a resource that can be seen."""
        found = self.of(resource)
        return {} if isinstance(found, Unseen) else found


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """What is known of a worker."""

    name: str
    place: str = ""
    """Where MultiKueue has its kubeconfig from."""
    looked_as: str = ""
    """Whose admin_clients saw it: empty for MultiKueue's own credentials, else the context that was used instead."""
    active: Tree | None = None
    """What Kueue says of its connection: the condition `Active` of the MultiKueueCluster."""
    refusals: tuple[str, ...] = ()
    """Why the kubeconfig must not be used."""
    token_end: datetime | None = None
    certificate_end: datetime | None = None
    trouble: str = ""
    """Why it cannot be reached; empty if it can."""
    cluster: ClusterFacts | None = None
    """None if it cannot be reached."""
    permissions: Mapping[Permission, bool] | Unseen = field(default_factory=dict)
    """What MultiKueue's credentials may do there."""
    view_permissions: Mapping[Permission, bool] | Unseen = field(default_factory=dict)
    """What of `VIEW_PERMISSIONS` they may do there; empty on a hub without the hub view."""
    references: Mapping[Reference, bool | Unseen] = field(default_factory=dict)
    """Whether it has what the given job names."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a fleet."""

    hub: ClusterFacts
    workers: tuple[WorkerFacts, ...] = ()
    trainjob: Tree | None = None
    """The job whose way is judged, of whichever kind, if one was given."""
    now: datetime = field(default_factory=lambda: datetime.now(UTC))


def each(cluster: ClusterFacts, resource: Resource) -> Iterator[tuple[Key, Tree]]:
    """Iterate over what can be seen of a resource, in the order of names."""
    yield from sorted(cluster.seen(resource).items())
