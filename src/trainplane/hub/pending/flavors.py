"""Which flavors a job gets, or what each of them lacks: Kueue's assignment, without preemption.

Pod sets are served in order, and what one takes the next does not find. For each resource group of the ClusterQueue the
flavors are tried in their order: a flavor whose taints or labels the pods do not match is passed over, one with too
little quota is noted, the first that fits is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from trainplane.api.quantity import ZERO, Quantity
from trainplane.hub.pending.nodes import affinity_allows, untolerated
from trainplane.hub.pending.quota import FlavorResource, QuotaNode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trainplane.api.tree import Tree
    from trainplane.hub.pending.workload import PodSetNeed

Lack: TypeAlias = Literal["Quota", "Limit", "Uncovered", "Mismatch"]
"""Too little is free; more than there can ever be; no quota of that resource; the pods do not match the flavor."""

_PODS = "pods"
"""A resource that every pod needs one of, if the ClusterQueue has quota for it."""

_TOPOLOGY_WANTED = "the pods ask for a topology and the flavor has none (spec.topologyName)"
_TOPOLOGY_ONLY = "the flavor is for pods that ask for a topology, and these ask for none"


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Why one flavor cannot serve a pod set."""

    pod_set: str
    flavor: str
    """Empty if no flavor has the resource."""
    resource: str
    """Empty if the flavor does not match at all."""
    lack: Lack
    need: Quantity = ZERO
    """With what earlier pod sets of the job take."""
    available: Quantity = ZERO
    potential: Quantity = ZERO
    used: Quantity = ZERO
    """In this ClusterQueue."""
    nominal: Quantity = ZERO
    borrowing_limit: Quantity | None = None
    detail: str = ""
    spared: bool = False
    """Another flavor may serve the pod set when others give back quota: this one need not."""

    @property
    def of(self) -> FlavorResource:
        """The quota in question."""
        return FlavorResource(self.flavor, self.resource)


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a job would get now: the quota it would take, or what stands in the way."""

    usage: Mapping[FlavorResource, Quantity]
    flavors: Mapping[str, tuple[str, ...]]
    """The flavors that each pod set would get."""
    shortfalls: tuple[Shortfall, ...] = ()
    never: bool = False
    """It could not be served even if nobody else used anything."""

    @property
    def fits(self) -> bool:
        """Whether Kueue would reserve quota now."""
        return not self.shortfalls


def assign(queue: Tree, node: QuotaNode, flavors: Mapping[str, Tree], needs: Iterable[PodSetNeed]) -> Assignment:
    """Return what a ClusterQueue would give for these needs, with what is in use now.

    Ends at the first pod set that cannot be served, as Kueue does: what the later ones would find depends on it.
    """
    usage: dict[FlavorResource, Quantity] = {}
    given: dict[str, tuple[str, ...]] = {}
    for pod_sets in _grouped(needs):
        shortfalls: list[Shortfall] = []
        never = False
        search = _Search(queue, node, flavors, pod_sets, usage)
        for group, wanted in search.groups():
            found = search.flavor_of(group, wanted)
            if isinstance(found, str):
                for resource, amount in wanted.items():
                    of = FlavorResource(found, resource)
                    usage[of] = usage.get(of, ZERO) + amount
                for pod_set in pod_sets:
                    given[pod_set.name] = tuple(dict.fromkeys((*given.get(pod_set.name, ()), found)))
            else:
                hopeful = {each.flavor for each in found} - {each.flavor for each in found if each.lack != "Quota"}
                shortfalls += [replace(each, spared=bool(hopeful) and each.flavor not in hopeful) for each in found]
                never = never or not hopeful
        if shortfalls:
            return Assignment(usage, given, tuple(shortfalls), never)
    return Assignment(usage, given)


def mismatch(flavor: Tree, pod_sets: Sequence[PodSetNeed], *, topologies_only: bool) -> str:
    """Return why pods do not match a flavor, or nothing if they do.

    `topologies_only`: all flavors of the ClusterQueue have a topology, so pods that ask for none get one all the same.
    """
    spec = flavor.get("spec") or {}
    labels = spec.get("nodeLabels") or {}
    for pod_set in pod_sets:
        pod = pod_set.template.get("spec") or {}
        tolerations = [*(pod.get("tolerations") or ()), *(spec.get("tolerations") or ())]
        taint = untolerated(spec.get("nodeTaints") or (), tolerations)
        if taint is not None:
            text = f"{taint['key']}={taint.get('value', '')}:{taint['effect']}"
            return f"its nodes have taint {text}, which the pods do not tolerate"
        if not affinity_allows(pod, labels, keys=labels):
            stated = ", ".join(f"{key}={value}" for key, value in labels.items())
            return f"the pods' node selector or affinity excludes its nodes ({stated})"
        if not topologies_only and _wants_topology(pod_set) != bool(spec.get("topologyName")):
            return _TOPOLOGY_WANTED if _wants_topology(pod_set) else _TOPOLOGY_ONLY
    return ""


class _Search:
    """The flavors for one group of pod sets."""

    def __init__(
        self,
        queue: Tree,
        node: QuotaNode,
        flavors: Mapping[str, Tree],
        pod_sets: Sequence[PodSetNeed],
        usage: Mapping[FlavorResource, Quantity],
    ) -> None:
        spec = queue.get("spec") or {}
        self.node = node
        self.flavors = flavors
        self.pod_sets = pod_sets
        self.usage = usage
        self.resource_groups: list[Tree] = spec.get("resourceGroups") or []
        fungibility = spec.get("flavorFungibility") or {}
        entries = [entry["name"] for group in self.resource_groups for entry in group.get("flavors") or ()]
        self.topologies_only = all((flavors.get(name, {}).get("spec") or {}).get("topologyName") for name in entries)
        self.looks_on_when_borrowing = fungibility.get("whenCanBorrow") == "TryNextFlavor"

    def groups(self) -> list[tuple[Tree | None, dict[str, Quantity]]]:
        """Return each resource group with what is wanted of it; None has what no group covers."""
        wanted: dict[str, Quantity] = {}
        for pod_set in self.pod_sets:
            for resource, amount in {**pod_set.total, _PODS: Quantity(pod_set.count * 10**9)}.items():
                wanted[resource] = wanted.get(resource, ZERO) + amount
        shares: list[tuple[Tree | None, dict[str, Quantity]]] = []
        for group in self.resource_groups:
            covered = set(group.get("coveredResources") or ())
            share = {resource: amount for resource, amount in wanted.items() if resource in covered}
            wanted = {resource: amount for resource, amount in wanted.items() if resource not in covered}
            if share:
                shares.append((group, share))
        uncovered = {r: amount for r, amount in wanted.items() if r != _PODS and not amount.is_zero()}
        return [*shares, (None, uncovered)] if uncovered else shares

    def flavor_of(self, group: Tree | None, wanted: Mapping[str, Quantity]) -> str | list[Shortfall]:
        """Return the flavor that serves what is wanted of a resource group, or what each flavor lacks."""
        name = self.pod_sets[0].name
        if group is None:
            return [Shortfall(name, "", resource, "Uncovered", amount) for resource, amount in wanted.items()]
        lacks: list[Shortfall] = []
        best: tuple[int, str] | None = None
        for entry in group.get("flavors") or ():
            flavor = entry["name"]
            found = self._lacks(flavor, wanted)
            lacks += found
            if found:
                continue
            level = max(self.node.borrowing_level(of, self._with_earlier(of, q)) for of, q in _each(flavor, wanted))
            if best is None or level < best[0]:
                best = (level, flavor)
            if not (level and self.looks_on_when_borrowing):
                break
        return lacks if best is None else best[1]

    def _lacks(self, flavor: str, wanted: Mapping[str, Quantity]) -> list[Shortfall]:
        name = self.pod_sets[0].name
        if flavor not in self.flavors:
            return [Shortfall(name, flavor, "", "Mismatch", detail="the ResourceFlavor does not exist")]
        why = mismatch(self.flavors[flavor], self.pod_sets, topologies_only=self.topologies_only)
        if why:
            return [Shortfall(name, flavor, "", "Mismatch", detail=why)]
        lacks = []
        for of, amount in _each(flavor, wanted):
            need, available, potential = (
                self._with_earlier(of, amount),
                self.node.available(of),
                self.node.potential(of),
            )
            if need > available:
                lack: Lack = "Limit" if need > potential else "Quota"
                quota, used = self.node.quota(of), self.node.used(of)
                amounts = (need, available, potential, used, quota.nominal, quota.borrowing_limit)
                lacks.append(Shortfall(name, flavor, of.resource, lack, *amounts))
        return lacks

    def _with_earlier(self, of: FlavorResource, amount: Quantity) -> Quantity:
        return self.usage.get(of, ZERO) + amount


def _each(flavor: str, wanted: Mapping[str, Quantity]) -> list[tuple[FlavorResource, Quantity]]:
    return [(FlavorResource(flavor, resource), amount) for resource, amount in wanted.items()]


def _grouped(needs: Iterable[PodSetNeed]) -> list[list[PodSetNeed]]:
    groups: dict[str | int, list[PodSetNeed]] = {}
    for index, need in enumerate(needs):
        groups.setdefault(need.group or index, []).append(need)
    return list(groups.values())


def _wants_topology(pod_set: PodSetNeed) -> bool:
    request = pod_set.topology or {}
    return any(request.get(kind) for kind in ("required", "preferred", "unconstrained", "podSetSliceRequiredTopology"))
