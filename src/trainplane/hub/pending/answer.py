"""The answer to "why is it queued?": for people as text, for programs as a tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from trainplane.api.tree import Tree
    from trainplane.hub.pending.flavors import Shortfall

State: TypeAlias = Literal["Queued", "Suspended", "Started", "Finished", "Deleting"]
"""Kueue has it; a person suspended it; it is not suspended; it is over; it is being deleted."""

Code: TypeAlias = Literal[
    "SuspendedByUser",
    "NoQueue",
    "NoWorkload",
    "RuntimeMissing",
    "ManagedBy",
    "NotMirrored",
    "Deactivated",
    "Gated",
    "LocalQueueMissing",
    "LocalQueueStopped",
    "ClusterQueueMissing",
    "ClusterQueueStopped",
    "ClusterQueueInactive",
    "NamespaceMissing",
    "NamespaceNotSelected",
    "Backoff",
    "NoMatchingFlavor",
    "ResourceNotCovered",
    "ExceedsQuota",
    "QuotaInUse",
    "Preempting",
    "Topology",
    "BehindOthers",
    "WaitingForPodsReady",
    "Refused",
    "NextInLine",
    "AdmissionCheck",
    "NotStarted",
    "Stopping",
    "PodsReadyTimeout",
    "NoNodeFits",
    "TooFewNodes",
    "WorkerUnreachable",
]


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that stands in the way, or will."""

    code: Code
    field: str
    """Where to look: a field of the TrainJob, or `Kind name: field` of another object."""
    what: str
    do: str
    blocks: bool = True
    """Whether it keeps the job queued now; what does not block will matter later."""
    quota: Shortfall | None = None

    def to_tree(self) -> Tree:
        """Return the cause for JSON."""
        tree: Tree = {"code": self.code, "field": self.field, "what": self.what, "do": self.do, "blocks": self.blocks}
        if self.quota is not None:
            tree["quota"] = _quota_tree(self.quota)
        return tree


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Something that would let the job start."""

    kind: Literal["FewerNodes", "OtherQueue", "OtherCluster", "Wait"]
    what: str
    do: str
    now: bool
    """Whether it would start at once, as things stand."""
    num_nodes: int | None = None
    queue: str | None = None
    cluster: str | None = None

    def to_tree(self) -> Tree:
        """Return the suggestion for JSON."""
        tree: Tree = {"kind": self.kind, "what": self.what, "do": self.do, "now": self.now}
        details = {"numNodes": self.num_nodes, "queue": self.queue, "cluster": self.cluster}
        return tree | {name: value for name, value in details.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has the quota that the job waits for.

    Jobs of other namespaces are not named: who may ask about this job need not know about those.
    """

    cluster_queue: str
    flavor: str
    resource: str
    amount: str
    workloads: int
    """How many Workloads hold the amount; 1 for a job of the asker's namespace."""
    job: str | None = None
    """`Kind/name` in the asker's namespace; None: others."""
    since: datetime | None = None
    ends: datetime | None = None
    """When the first of them is expected to end, if anything says so."""

    def to_tree(self) -> Tree:
        """Return the holder for JSON."""
        tree: Tree = {
            "clusterQueue": self.cluster_queue,
            "flavor": self.flavor,
            "resource": self.resource,
            "amount": self.amount,
            "workloads": self.workloads,
        }
        details = {"job": self.job, "since": _time(self.since), "ends": _time(self.ends)}
        return tree | {name: value for name, value in details.items() if value is not None}

    def to_text(self) -> str:
        """Return one line."""
        others = f"{self.workloads} workload{'s' if self.workloads > 1 else ''} of other namespaces"
        parts = [f"{self.amount} {self.resource} ({self.flavor}): {self.job or others} in {self.cluster_queue}"]
        if self.since is not None:
            parts.append(f"since {_time(self.since)}")
        if self.ends is not None:
            parts.append(f"expected to end by {_time(self.ends)}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Answer:
    """Why a TrainJob is queued and what would let it start."""

    namespace: str
    name: str
    state: State
    summary: str
    """One sentence in plain words."""
    causes: tuple[Cause, ...] = ()
    """What blocks first, what will matter later last."""
    queue: str | None = None
    cluster_queue: str | None = None
    position: int | None = None
    """Its place among the waiting Workloads of its ClusterQueue, from 1, in Kueue's order."""
    pending: int | None = None
    """How many wait in that ClusterQueue, this one included."""
    position_is_exact: bool = True
    """False where Kueue also orders by what each LocalQueue used lately, which only Kueue knows."""
    suggestions: tuple[Suggestion, ...] = ()
    holders: tuple[Holder, ...] = ()
    clusters: tuple[ClusterAnswer, ...] = ()
    """On a MultiKueue hub: what each worker would say."""
    kueue: str = ""
    """What Kueue itself says on the Workload."""
    unread: tuple[str, ...] = ()
    """What could not be read, so that the answer does without it."""

    def to_tree(self) -> Tree:
        """Return the answer for JSON."""
        tree: Tree = {
            "namespace": self.namespace,
            "name": self.name,
            "state": self.state,
            "summary": self.summary,
            "causes": [cause.to_tree() for cause in self.causes],
            "suggestions": [suggestion.to_tree() for suggestion in self.suggestions],
            "holders": [holder.to_tree() for holder in self.holders],
            "clusters": [cluster.to_tree() for cluster in self.clusters],
        }
        details = {
            "queue": self.queue,
            "clusterQueue": self.cluster_queue,
            "position": self.position,
            "pending": self.pending,
            "kueue": self.kueue or None,
            "unread": list(self.unread) or None,
        }
        tree |= {name: value for name, value in details.items() if value is not None}
        if self.position is not None:
            tree["positionIsExact"] = self.position_is_exact
        return tree

    def to_text(self) -> str:
        """Return the answer as people read it in a terminal."""
        lines = [f"{self.namespace}/{self.name}: {self.summary}"]
        if self.position is not None:
            about = "" if self.position_is_exact else "about "
            lines.append(
                f"Place {about}{self.position} of {self.pending} waiting in ClusterQueue {self.cluster_queue}."
            )
        lines += _section("Why", (f"{cause.what} [{cause.field}]\n    {cause.do}" for cause in self.causes))
        lines += _section("What would let it start", (_suggestion_text(each) for each in self.suggestions))
        lines += _section("Who holds the quota", (holder.to_text() for holder in self.holders))
        lines += _section("Clusters", (f"{each.cluster}: {each.answer.summary}" for each in self.clusters))
        lines += _section("Kueue says", (self.kueue,) if self.kueue else ())
        lines += _section("Could not be read", self.unread)
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class ClusterAnswer:
    """What one worker would say about the job."""

    cluster: str
    fits: bool | None
    """Whether its queue would admit the job now; None: not known."""
    answer: Answer

    def to_tree(self) -> Tree:
        """Return it for JSON."""
        tree = self.answer.to_tree()
        kept = ("state", "summary", "causes", "position", "pending", "kueue", "unread")
        known = {} if self.fits is None else {"fits": self.fits}
        return {"cluster": self.cluster, **known, **{name: tree[name] for name in kept if name in tree}}


def _quota_tree(quota: Shortfall) -> Tree:
    amounts = {
        "need": str(quota.need),
        "available": str(quota.available),
        "maximum": str(quota.potential),
        "used": str(quota.used),
        "nominal": str(quota.nominal),
    }
    tree: Tree = {"podSet": quota.pod_set, "flavor": quota.flavor, "resource": quota.resource}
    tree = {name: value for name, value in tree.items() if value}
    if quota.resource and quota.flavor:
        tree |= amounts
    if quota.borrowing_limit is not None:
        tree["borrowingLimit"] = str(quota.borrowing_limit)
    return tree


def _suggestion_text(suggestion: Suggestion) -> str:
    return f"{'now: ' if suggestion.now else ''}{suggestion.what}\n    {suggestion.do}"


def _section(title: str, lines: Iterable[str]) -> list[str]:
    found = [f"  - {line}" for line in lines]
    return [f"{title}:", *found] if found else []


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")
