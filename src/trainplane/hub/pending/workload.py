"""A Workload, read: what it needs, how Kueue ranks it, what its conditions say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.quantity import ZERO, Quantity
from trainplane.lifecycle import after
from trainplane.render.demand import pod_requests

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.api.tree import Tree
    from trainplane.hub.pending.nodes import Requests

"""On a job and its Workload: who must agree before Kueue looks at it, comma-separated."""

FINISHED: Final = "Finished"
QUOTA_RESERVED: Final = "QuotaReserved"
ADMITTED: Final = "Admitted"
EVICTED: Final = "Evicted"
REQUEUED: Final = "Requeued"

_RANKED_BY_EVICTION: Final = ("PodsReadyTimeout", "AdmissionCheck")
"""Reasons of an eviction after which Kueue ranks a Workload by the time of it, not of its creation."""


@dataclass(frozen=True, slots=True)
class PodSetNeed:
    """What the pods of one pod set need together."""

    name: str
    count: int
    per_pod: Requests
    template: Tree
    topology: Tree | None = None
    """`topologyRequest`, if the pods must lie close to each other."""

    @property
    def total(self) -> dict[str, Quantity]:
        """What all pods need."""
        return {resource: amount * self.count for resource, amount in self.per_pod.items()}

    @property
    def group(self) -> str | None:
        """The pod sets of one group get the same flavors."""
        return (self.topology or {}).get("podSetGroupName")

    def scaled(self, count: int) -> PodSetNeed:
        """Return the need of another number of the same pods."""
        return replace(self, count=count)


def needs_of(workload: Tree) -> tuple[PodSetNeed, ...]:
    """Return what a Workload needs, pod set by pod set.

    The amounts are Kueue's own where it wrote them down (`status.resourceRequests` after a first look, what it assigned
    after admission): they have the defaults of LimitRanges and the transformations of Kueue's configuration in them.
    Before that they are the pods' requests.
    """
    known = _known_amounts(workload)
    needs = []
    for pod_set in trees.get(workload, "spec", "podSets") or ():
        name, template = pod_set["name"], pod_set.get("template") or {}
        count = max(0, int(pod_set.get("count", 1)) - _reclaimable(workload, name))
        amounts = known.get(name)
        if amounts is None or not count:
            per_pod = {r: _whole(r, q) for r, q in pod_requests(template.get("spec") or {}).items()}
        else:
            per_pod = {r: Quantity(q.nanos // count, q.family) for r, q in amounts.items()}
        needs.append(PodSetNeed(name, count, per_pod, template, pod_set.get("topologyRequest")))
    return tuple(needs)


def trainer_of(needs: Iterable[PodSetNeed], name: str = names.JOB_NODE) -> PodSetNeed | None:
    """Return the pod set whose size people choose (`spec.trainer.numNodes`): the one of a name, or the only one."""
    needs = tuple(needs)
    named = next((need for need in needs if need.name == name), None)
    return named or (needs[0] if len(needs) == 1 else None)


def condition(obj: Tree | None, kind: str) -> Tree | None:
    """Return a condition, whatever its status, or None."""
    found: Tree | None = trees.get(obj, "status", "conditions", ("type", kind))
    return found


def holds(obj: Tree | None, kind: str) -> bool:
    """Return whether a condition is true."""
    return (condition(obj, kind) or {}).get("status") == "True"


def message_of(obj: Tree | None, kind: str) -> str:
    """Return what a condition says, or nothing."""
    return str((condition(obj, kind) or {}).get("message") or "")


def waits(workload: Tree, now: datetime) -> bool:
    """Return whether Kueue has a Workload in a queue: active, unfinished, ungated, without quota, not in back-off."""
    return (
        trees.get(workload, "spec", "active") is not False
        and not gates_of(workload)
        and not holds(workload, FINISHED)
        and not holds(workload, QUOTA_RESERVED)
        and (condition(workload, QUOTA_RESERVED) or {}).get("reason") != "OnHold"
        and not _backs_off(workload, now)
    )


def _backs_off(workload: Tree, now: datetime) -> bool:
    """Return whether Kueue keeps an evicted Workload out of its queue for a while: it holds nobody up meanwhile."""
    if (condition(workload, REQUEUED) or {}).get("status") == "False":
        return True
    until = moment(trees.get(workload, "status", "requeueState", "requeueAt"))
    return until is not None and now < until


def gates_of(obj: Tree | None) -> tuple[str, ...]:
    """Return who must still agree to an object's admission."""
    return after.gates_of(trees.get(obj, "metadata", "annotations") or {})


def rank(workload: Tree) -> tuple[int, datetime, str]:
    """Return the key by which Kueue sorts a queue: priority, then time, then uid.

    A Workload that was evicted because its pods were not ready in time, or by an admission check, is as old as its
    eviction: that is Kueue's default (`requeuingStrategy.timestamp: Eviction`).
    """
    since = trees.get(workload, "metadata", "creationTimestamp")
    evicted = condition(workload, EVICTED) or {}
    if evicted.get("status") == "True" and evicted.get("reason") in _RANKED_BY_EVICTION:
        since = evicted.get("lastTransitionTime") or since
    priority = trees.get(workload, "spec", "priority") or 0
    return -int(priority), moment(since) or _BEGINNING, str(trees.get(workload, "metadata", "uid") or "")


def moment(text: str | None) -> datetime | None:
    """Return the time that the API server wrote, or None."""
    return datetime.fromisoformat(text) if text else None


def reserved_at(workload: Tree) -> datetime | None:
    """Return since when a Workload holds quota."""
    return moment((condition(workload, QUOTA_RESERVED) or {}).get("lastTransitionTime"))


def ends_at(workload: Tree, job: Tree | None) -> datetime | None:
    """Return when a Workload is expected to give its quota back, if anything says so.

    The job's own estimate of what remains, or else the time at which Kueue ends it.
    """
    progress = trees.get(job, "status", "trainerStatus") or {}
    remaining, told = progress.get("estimatedRemainingSeconds"), moment(progress.get("lastUpdatedTime"))
    if remaining is not None and told is not None:
        return _later(told, int(remaining))
    longest = trees.get(workload, "spec", "maximumExecutionTimeSeconds")
    admitted = moment((condition(workload, ADMITTED) or {}).get("lastTransitionTime"))
    if longest is None or admitted is None or not holds(workload, ADMITTED):
        return None
    past = int(trees.get(workload, "status", "accumulatedPastExecutionTimeSeconds") or 0)
    return _later(admitted, int(longest) - past)


def _later(moment: datetime, seconds: int) -> datetime | None:
    """Return a time so much later; None past the end of the calendar, which a time in an object may be close to."""
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return None


def usage_of(workload: Tree) -> dict[tuple[str, str], Quantity]:
    """Return what a Workload with quota holds, by flavor and resource."""
    usage: dict[tuple[str, str], Quantity] = {}
    counts = {need.name: need.count for need in needs_of(workload)}
    for assigned in trees.get(workload, "status", "admission", "podSetAssignments") or ():
        count = int(assigned.get("count") or 0)
        for resource, flavor in (assigned.get("flavors") or {}).items():
            amount = Quantity.of((assigned.get("resourceUsage") or {}).get(resource) or 0)
            left = min(count, counts.get(assigned["name"], count))
            if 0 < left < count:
                amount = Quantity(amount.nanos // count * left, amount.family)
            usage[flavor, resource] = usage.get((flavor, resource), ZERO) + (amount if left or not count else ZERO)
    return usage


_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _known_amounts(workload: Tree) -> dict[str, dict[str, Quantity]]:
    requests = trees.get(workload, "status", "resourceRequests") or ()
    known = {each["name"]: each.get("resources") or {} for each in requests}
    for assigned in trees.get(workload, "status", "admission", "podSetAssignments") or ():
        known.setdefault(assigned["name"], assigned.get("resourceUsage") or {})
    return {name: {r: Quantity.of(q) for r, q in amounts.items()} for name, amounts in known.items()}


def _reclaimable(workload: Tree, pod_set: str) -> int:
    given = trees.get(workload, "status", "reclaimablePods", ("name", pod_set), "count")
    return int(given or 0)


def _whole(resource: str, amount: Quantity) -> Quantity:
    """Round as Kueue counts: thousandths of CPU, whole units of everything else."""
    return amount.round_up(-3 if resource == "cpu" else 0)
