"""What the doctor knows: read by `reading` and `machine`, judged by `judge`.

Whatever could not be read is `Unseen` with the reason, never empty: no queue and queues that we may not see lead to
different findings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from trainplane import resources
from trainplane.api import names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta

    from trainplane.api.tree import Tree
    from trainplane.kube.resource import Resource


@dataclass(frozen=True, slots=True)
class Unseen:
    """Something that could not be read."""

    why: Literal["missing", "forbidden", "failed"]
    """The cluster does not have it; the caller may not read it; reading broke."""
    detail: str


Objects: TypeAlias = "Sequence[Tree] | Unseen"


class Right(NamedTuple):
    """One thing that the caller does with a resource in the namespace."""

    resource: Resource
    verb: str
    subresource: str = ""

    def __str__(self) -> str:
        place = f"{self.resource.plural}/{self.subresource}" if self.subresource else self.resource.plural
        return f"{self.verb} {place}.{self.resource.group}".rstrip(".")


class Deed(NamedTuple):
    """What a person does, and the rights that it takes."""

    name: str
    rights: tuple[Right, ...]
    needed: bool = False
    """Whether nothing of use is left without it."""


def _rights(resource: Resource, *verbs: str) -> tuple[Right, ...]:
    return tuple(Right(resource, verb) for verb in verbs)


DEEDS: Final[tuple[Deed, ...]] = (
    Deed("see jobs: list, get, watch", _rights(resources.TRAIN_JOBS, "get", "list", "watch"), needed=True),
    Deed("run jobs", _rights(resources.TRAIN_JOBS, "create"), needed=True),
    Deed("suspend and resume", _rights(resources.TRAIN_JOBS, "patch")),
    Deed("delete, scale and retry", _rights(resources.TRAIN_JOBS, "delete")),
    Deed("see nodes of a job", _rights(resources.PODS, "get", "list", "watch")),
    Deed("read logs", (Right(resources.PODS, "get", "log"),)),
    Deed("read events", _rights(resources.EVENTS, "list")),
    Deed(
        "choose a runtime",
        (
            *_rights(resources.CLUSTER_TRAINING_RUNTIMES, "get", "list"),
            *_rights(resources.TRAINING_RUNTIMES, "get", "list"),
        ),
    ),
    Deed("explain", (*_rights(resources.JOB_SETS, "get"), *_rights(resources.JOBS, "list"))),
    Deed("see charts of metrics", _rights(resources.CONFIG_MAPS, "get")),
)
"""What the commands do, and the SDK behind them."""

QUEUE_DEEDS: Final[tuple[Deed, ...]] = (
    Deed("see queues", _rights(resources.LOCAL_QUEUES, "list")),
    Deed("explain why a job waits", _rights(resources.WORKLOADS, "list")),
)
"""And where there is Kueue."""

NEEDED: Final[Mapping[str, tuple[Resource, ...]]] = {
    names.API_VERSION: (
        resources.TRAIN_JOBS,
        resources.TRAINING_RUNTIMES,
        resources.CLUSTER_TRAINING_RUNTIMES,
    ),
    names.JOBSET_API_VERSION: (resources.JOB_SETS,),
}
"""What every cluster must serve, by API version."""

ENGINES: Final[Mapping[str, str]] = {
    names.GROUP: "the operator",
    resources.JOB_SETS.group: "JobSet",
    names.KUEUE_GROUP: "Kueue",
}
"""Who serves an API group, and reviews its objects by webhooks."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that the doctor runs on."""

    python: tuple[int, int]
    system: str
    """Linux, macOS, Windows, or what Python calls another."""
    engine: str = ""
    """The container engine that answers, empty if none does."""
    engine_trouble: str = ""
    torch: bool = False
    """Whether PyTorch can be imported."""


@dataclass(frozen=True, slots=True)
class Access:
    """How the cluster is reached, and as whom."""

    server: str
    context: str
    """Empty in a pod."""
    namespace: str
    certificate_end: datetime | None = None
    token_end: datetime | None = None


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook that reviews TrainJobs or what they are made of."""

    configuration: str
    name: str
    groups: frozenset[str]
    """The API groups that it reviews."""
    fails_closed: bool
    """Whether a request is refused when it does not answer."""
    service: str = ""
    """NAMESPACE/NAME, empty where it has a URL."""
    endpoints: int | Unseen | None = None
    """How many ready addresses its Service has; None without a Service."""
    authorities: int = 0
    """Certificates in its caBundle."""
    authority_end: datetime | None = None
    """When the last of them ends."""


@dataclass(frozen=True, slots=True)
class Trial:
    """How the API server answered a TrainJob that was created for trial, with nothing kept (a dry run)."""

    runtime: str
    refusal: str = ""
    """Empty if it was taken."""
    why: Literal["", "webhook", "forbidden", "refused", "failed"] = ""


@dataclass(frozen=True, slots=True)
class Cluster:
    """What is known of a cluster that answers."""

    version: str
    ahead: timedelta | None = None
    """How far its clock is ahead of ours; None if it does not say."""
    namespace: bool | Unseen = True
    """Whether the namespace is there."""
    served: Mapping[str, frozenset[str] | Unseen] = field(default_factory=dict)
    """By API version of `NEEDED`, of Kueue and of the hub view: the plurals behind it."""
    definitions: Mapping[str, Tree | Unseen] = field(default_factory=dict)
    """CRDs by name, of `NEEDED`."""
    engines: Mapping[str, str] = field(default_factory=dict)
    """Versions of what is installed, as far as their Deployments can be seen."""
    webhooks: Sequence[Webhook] | Unseen = ()
    runtimes: Sequence[str] | Unseen = ()
    """Names, of the cluster and of the namespace."""
    queues: Objects = ()
    quotas: Objects = ()
    workers: int | Unseen = 0
    """How many workers MultiKueue has here."""
    rights: Mapping[Right, bool] | Unseen = field(default_factory=dict)
    trial: Trial | None = None
    """None where there was nothing to try it with."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All that is known at one moment."""

    now: datetime
    machine: Machine
    runtime: str
    """The runtime of jobs that name none."""
    access: Access | None = None
    cluster: Cluster | None = None
    trouble: str = ""
    """Why there is no access, or no cluster."""
