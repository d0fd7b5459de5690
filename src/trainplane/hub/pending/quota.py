"""Quotas as Kueue counts them: what a ClusterQueue has, may borrow from its cohort, and uses.

ClusterQueues are the leaves of a tree of Cohorts. Each node has quotas of its own; a `lendingLimit` keeps the rest of
them to the node, a `borrowingLimit` bounds what it takes from above. What is used beyond a node's own share counts
against its parent. The rules are those of Kueue 0.19, amount by amount, so that what we call free Kueue gives.

What is used is read from `status.flavorsReservation` of the ClusterQueues: quota is taken when it is reserved, before
admission checks have spoken.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from trainplane.api.quantity import ZERO, Quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from trainplane.api.tree import Tree


DEEPEST: Final = 64
"""Cohorts above one another; people make two or three, and each costs a look at each quota."""


class FlavorResource(NamedTuple):
    """What a quota is of: a resource on the nodes of a flavor."""

    flavor: str
    resource: str


@dataclass(frozen=True, slots=True)
class Quota:
    """What one node of the tree has of one resource in one flavor."""

    nominal: Quantity = ZERO
    borrowing_limit: Quantity | None = None
    """None: as much as the cohort has."""
    lending_limit: Quantity | None = None
    """None: everything."""


@dataclass(slots=True)
class QuotaNode:
    """A ClusterQueue or a Cohort in the tree of quotas."""

    name: str
    quotas: dict[FlavorResource, Quota]
    parent: QuotaNode | None = None
    subtree: dict[FlavorResource, Quantity] = field(default_factory=dict)
    """Its own quotas and what its children lend."""
    usage: dict[FlavorResource, Quantity] = field(default_factory=dict)
    """What counts against `subtree`."""

    def ancestors(self) -> Iterator[QuotaNode]:
        """Iterate over the Cohorts above, nearest first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def quota(self, of: FlavorResource) -> Quota:
        """Return the node's own quota, nothing if it names none."""
        return self.quotas.get(of, _NOTHING)

    def used(self, of: FlavorResource) -> Quantity:
        """Return what is used of the node's quota."""
        return self.usage.get(of, ZERO)

    def total(self, of: FlavorResource) -> Quantity:
        """Return the node's own quota and what its children lend to it."""
        return self.subtree.get(of, ZERO)

    def kept(self, of: FlavorResource) -> Quantity:
        """Return the part of its quota that the node never lends."""
        limit = self.quota(of).lending_limit
        return ZERO if limit is None else max(ZERO, self.total(of) - limit)

    def available(self, of: FlavorResource) -> Quantity:
        """Return what can be taken now without preempting anyone; negative if more is used than there is."""
        if self.parent is None:
            return self.total(of) - self.used(of)
        from_above = self.parent.available(of)
        limit = self.quota(of).borrowing_limit
        if limit is not None:
            lent = self.total(of) - self.kept(of)
            taken = max(ZERO, self.used(of) - self.kept(of))
            from_above = min(from_above, lent - taken + limit)
        return max(ZERO, self.kept(of) - self.used(of)) + from_above

    def potential(self, of: FlavorResource) -> Quantity:
        """Return what could be taken if nobody used anything: more than this never fits."""
        if self.parent is None:
            return self.total(of)
        most = self.kept(of) + self.parent.potential(of)
        limit = self.quota(of).borrowing_limit
        return most if limit is None else min(most, self.total(of) + limit)

    def borrowing_level(self, of: FlavorResource, need: Quantity) -> int:
        """Return how far up the tree `need` reaches: 0 if the ClusterQueue's own quota covers it."""
        if self.parent is None or self.used(of) + need <= self.quota(of).nominal:
            return 0
        need -= max(ZERO, self.kept(of) - self.used(of))
        level = 0
        for level, node in enumerate(self.ancestors(), start=1):  # noqa: B007 the last level is the answer
            if node.used(of) + need <= node.total(of):
                break
            need -= max(ZERO, node.kept(of) - node.used(of))
        return level


_NOTHING = Quota()


class QuotaTree:
    """All ClusterQueues and Cohorts of a cluster.

    A Cohort that ClusterQueues name and nobody made has no quota of its own. Cohorts that are their own ancestors stop
    everything in them, which Kueue says on the ClusterQueue; here such a Cohort counts as a root, and so does one above
    which there are more than `DEEPEST`.
    """

    def __init__(self, cluster_queues: Iterable[Tree], cohorts: Iterable[Tree] = ()) -> None:
        self.cohorts: dict[str, QuotaNode] = {}
        self.cluster_queues: dict[str, QuotaNode] = {}
        parents: dict[str, str] = {}
        for cohort in cohorts:
            name = cohort["metadata"]["name"]
            self.cohorts[name] = QuotaNode(name, quotas_of(cohort))
            parents[name] = (cohort.get("spec") or {}).get("parentName") or ""
        for name, parent in parents.items():
            self.cohorts[name].parent = self._cohort(parent) if parent else None
        for cohort_node in tuple(self.cohorts.values()):
            _cut_cycle(cohort_node)
        for queue in cluster_queues:
            name = queue["metadata"]["name"]
            node = QuotaNode(name, quotas_of(queue), usage=reserved_of(queue))
            parent = (queue.get("spec") or {}).get("cohortName") or ""
            node.parent = self._cohort(parent) if parent else None
            self.cluster_queues[name] = node
        self._add_up()

    def members(self, cluster_queue: str) -> tuple[str, ...]:
        """Return the ClusterQueues that share quota with this one: itself, then those under the same root."""
        root = _root(self.cluster_queues[cluster_queue])
        others = (name for name, node in self.cluster_queues.items() if _root(node) is root and name != cluster_queue)
        return (cluster_queue, *sorted(others))

    def _cohort(self, name: str) -> QuotaNode:
        return self.cohorts.setdefault(name, QuotaNode(name, {}))

    def _add_up(self) -> None:
        """Fill `subtree` and `usage` from the leaves upwards."""
        nodes = [*self.cohorts.values(), *self.cluster_queues.values()]
        for node in nodes:
            node.subtree = {of: quota.nominal for of, quota in node.quotas.items()}
        for node in sorted(nodes, key=lambda each: -sum(1 for _ in each.ancestors())):
            if node.parent is None:
                continue
            for of in node.subtree.keys() | node.usage.keys():
                lent = node.total(of) - node.kept(of)
                beyond = max(ZERO, node.used(of) - node.kept(of))
                node.parent.subtree[of] = node.parent.total(of) + lent
                node.parent.usage[of] = node.parent.used(of) + beyond


def quotas_of(queue: Tree) -> dict[FlavorResource, Quota]:
    """Return the quotas that a ClusterQueue or a Cohort names."""
    quotas = {}
    for flavor, resource in _resources(queue):
        quotas[FlavorResource(flavor, resource["name"])] = Quota(
            Quantity.of(resource.get("nominalQuota") or 0),
            _limit(resource, "borrowingLimit"),
            _limit(resource, "lendingLimit"),
        )
    return quotas


def reserved_of(cluster_queue: Tree) -> dict[FlavorResource, Quantity]:
    """Return what is reserved in a ClusterQueue, borrowed or its own."""
    usage = {}
    for flavor in (cluster_queue.get("status") or {}).get("flavorsReservation") or ():
        for resource in flavor.get("resources") or ():
            usage[FlavorResource(flavor["name"], resource["name"])] = Quantity.of(resource.get("total") or 0)
    return usage


def _resources(queue: Tree) -> Iterator[tuple[str, Tree]]:
    for group in (queue.get("spec") or {}).get("resourceGroups") or ():
        for flavor in group.get("flavors") or ():
            for resource in flavor.get("resources") or ():
                yield flavor["name"], resource


def _limit(resource: Mapping[str, str], name: str) -> Quantity | None:
    value = resource.get(name)
    return None if value is None else Quantity.of(value)


def _root(node: QuotaNode) -> QuotaNode:
    return [node, *node.ancestors()][-1]


def _cut_cycle(node: QuotaNode) -> None:
    seen = {id(node)}
    while node.parent is not None:
        if id(node.parent) in seen or len(seen) >= DEEPEST:
            node.parent = None
            return
        node = node.parent
        seen.add(id(node))
