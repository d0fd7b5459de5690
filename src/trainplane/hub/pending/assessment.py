"""One job before one ClusterQueue: what it needs, what it would get, where it stands in line."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Final

from trainplane.api import tree as trees
from trainplane.hub.kinds import kind_of
from trainplane.hub.pending.flavors import Assignment, assign, mismatch
from trainplane.hub.pending.nodes import NodeFit, fit, selects
from trainplane.hub.pending.quota import QuotaTree
from trainplane.hub.pending.workload import (
    QUOTA_RESERVED,
    PodSetNeed,
    holds,
    message_of,
    needs_of,
    rank,
    trainer_of,
    waits,
)

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.hub.pending.facts import Facts

_TOPOLOGY: Final = re.compile(
    r'topology "[^"]+" (?:allows to fit only (?P<some>\d+) out of \d+ (?P<unit>pod|slice)|doesn\'t allow to fit)'
)
"""How Kueue says that free nodes do not lie together as the pods must: it counts slices where pods go by slices."""


class Assessment:
    """A job and a ClusterQueue, its own or another that it could go to."""

    def __init__(self, facts: Facts, queue: Tree) -> None:
        self.facts = facts
        self.queue = queue
        self.name: str = queue["metadata"]["name"]
        self.needs = needs_of(facts.sized or {})
        groups = trees.get(queue, "spec", "resourceGroups") or ()
        self.flavor_names = [flavor["name"] for group in groups for flavor in group.get("flavors") or ()]
        known = facts.flavors if facts.flavors is not None else [{"metadata": {"name": n}} for n in self.flavor_names]
        self.flavors: dict[str, Tree] = {flavor["metadata"]["name"]: flavor for flavor in known}
        self.is_own = queue is facts.cluster_queue

    # -- quota ----------------------------------------------------------------------------------------------------

    @cached_property
    def tree(self) -> QuotaTree:
        """The quotas of the cluster, as they are used now."""
        return QuotaTree(self.facts.cluster_queues, self.facts.cohorts)

    @cached_property
    def idle_tree(self) -> QuotaTree:
        """The quotas of the cluster if nobody used any."""
        return QuotaTree(({**q, "status": {}} for q in self.facts.cluster_queues), self.facts.cohorts)

    @cached_property
    def assignment(self) -> Assignment:
        """What the job would get now."""
        return self.assigned(self.needs)

    def assigned(self, needs: tuple[PodSetNeed, ...], *, idle: bool = False) -> Assignment:
        """Return what would be given for other needs, now or if nobody used anything."""
        tree = self.idle_tree if idle else self.tree
        return assign(self.queue, tree.cluster_queues[self.name], self.flavors, needs)

    @property
    def is_reserved(self) -> bool:
        """Whether the job has its quota already."""
        return self.is_own and holds(self.facts.workload, QUOTA_RESERVED)

    # -- the line -------------------------------------------------------------------------------------------------

    @cached_property
    def line(self) -> list[Tree]:
        """The Workloads that wait in this ClusterQueue, in Kueue's order."""
        now = self.facts.now
        return sorted((one for one in self.facts.pending if waits(one, now) and self._leads_here(one)), key=rank)

    @property
    def position(self) -> int | None:
        """The job's place in line, from 1; None if it does not stand in it."""
        name = trees.get(self.facts.workload, "metadata", "uid")
        return next((at for at, one in enumerate(self.line, start=1) if one["metadata"].get("uid") == name), None)

    @property
    def is_strict(self) -> bool:
        """Whether the first in line holds up the others."""
        return bool(trees.get(self.queue, "spec", "queueingStrategy") == "StrictFIFO")

    @property
    def order_is_known(self) -> bool:
        """Whether priority and time alone decide the order."""
        return trees.get(self.queue, "spec", "admissionScope") is None

    def newcomer_waits(self) -> bool:
        """Return whether a job of the same priority that came now would have to wait for others, whatever is free."""
        if not self.is_strict:
            return False
        mine = rank(self.facts.sized or {})[0]
        own = trees.get(self.facts.workload, "metadata", "uid")
        return any(rank(one)[0] <= mine for one in self.line if one["metadata"].get("uid") != own)

    def _leads_here(self, workload: Tree) -> bool:
        namespace = workload["metadata"]["namespace"]
        queue = self.facts.find_local_queue(namespace, workload["spec"].get("queueName") or "")
        stopped = trees.get(queue, "spec", "stopPolicy") not in {None, "", "None"}
        return trees.get(queue, "spec", "clusterQueue") == self.name and not stopped and self._takes_from(namespace)

    def _takes_from(self, namespace: str) -> bool:
        """Return whether the queue's selector has a namespace, as far as is known: what it has not holds nobody up."""
        labels = (self.facts.namespace_labels or {}).get(namespace)
        return labels is None or selects(trees.get(self.queue, "spec", "namespaceSelector"), labels)

    # -- nodes ----------------------------------------------------------------------------------------------------

    def node_fit(self, need: PodSetNeed) -> NodeFit | None:
        """Return how many of these pods the nodes of the best flavor could carry; None if nodes are not known."""
        if self.facts.nodes is None:
            return None
        flavors = [self.flavors[name] for name in self.flavor_names if name in self.flavors]
        alike: list[Tree | None] = [f for f in flavors if not mismatch(f, (need,), topologies_only=True)]
        fits = [fit(self.facts.nodes, need.template, flavor) for flavor in alike or [None]]
        return max(fits, key=lambda each: each.pods)

    @property
    def topology_room(self) -> int | None:
        """How many pods lie together as they must, when Kueue last looked; None if it did not complain of that."""
        found = _TOPOLOGY.search(message_of(self.facts.workload, QUOTA_RESERVED))
        if found is None:
            return None
        return int(found["some"] or 0) * (self.slice_size if found["unit"] == "slice" else 1)

    @property
    def slice_size(self) -> int:
        """How many training pods must lie together in each slice; 1 where the job asks for none."""
        topology = None if self.trainer is None else self.trainer.topology
        return max(1, int((topology or {}).get("podSetSliceSize") or 1))

    # -- other sizes ----------------------------------------------------------------------------------------------

    @cached_property
    def trainer(self) -> PodSetNeed | None:
        """The pod set whose size people choose."""
        return trainer_of(self.needs, kind_of(self.facts.job).pod_set)

    def with_pods(self, count: int) -> tuple[PodSetNeed, ...]:
        """Return the job's needs with another number of training pods."""
        return tuple(need.scaled(count) if need is self.trainer else need for need in self.needs)

    def takes(self, count: int, *, idle: bool = False) -> bool:
        """Return whether the job with this number of training pods would get quota, now or if nobody used any."""
        if not self.is_reserved and not self.assigned(self.with_pods(count), idle=idle).fits:
            return False
        room = self.topology_room
        return idle or room is None or not self.is_own or count <= room

    def carries(self, count: int) -> bool:
        """Return whether the cluster has nodes for this number of training pods, as far as is known."""
        found = None if self.trainer is None else self.node_fit(self.trainer)
        return found is None or count <= found.pods
