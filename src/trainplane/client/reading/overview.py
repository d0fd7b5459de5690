"""A cluster at a glance, from its objects. Pure; what is malformed counts for nothing, and does not spoil the rest."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.errors import QuantityError
from trainplane.api.moments import BEGINNING, read_moment
from trainplane.api.quantity import parse
from trainplane.client.reading.devices import is_device
from trainplane.client.reading.jobs import finished_at, is_told_ready
from trainplane.client.types.overview import Concern, DeviceUse, QueueUse, QuotaUse, WorkerState
from trainplane.explain.holding import is_held
from trainplane.lifecycle import phase as phases
from trainplane.lifecycle.conditions import conditions_of, finish
from trainplane.render.demand import pod_requests

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trainplane.api.tree import Tree

PHASES: Final = (
    phases.RUNNING,
    phases.RESTARTING,
    phases.PENDING,
    phases.QUEUED,
    phases.SUSPENDED,
    phases.FAILED,
    phases.SUCCEEDED,
)
MOST_CONCERNS: Final = 50
"""Of each phase."""
_CONCERNING: Final = (phases.FAILED, phases.RESTARTING, phases.PENDING, phases.QUEUED)


def read_phase(job: Tree, view: Tree | None = None) -> str:
    """Return where a TrainJob stands, as the operator wrote it; else by its conditions and counts.

    MultiKueue copies what it knows of a status to the hub, and that is not the phase.
    """
    end = finish(conditions_of(job))
    if end is not None:
        return phases.SUCCEEDED if end["type"] == names.COMPLETE else phases.FAILED
    told = trees.text(job, "status", "phase")
    if told in PHASES:
        return str(told)
    if is_held(job, view):
        return phases.QUEUED if trees.text(job, "metadata", "labels", names.LABEL_QUEUE) else phases.SUSPENDED
    nodes = trees.number(job, "spec", "trainer", "numNodes") or 1
    return phases.RUNNING if is_told_ready(job, nodes, view) else phases.PENDING


def read_concerns(told: Iterable[tuple[Tree, str]]) -> tuple[Concern, ...]:
    """Return the TrainJobs, each with its phase, that somebody may have to look at; see `Overview.concerns`."""
    found: dict[str, list[Concern]] = {phase: [] for phase in _CONCERNING}
    for job, phase in told:
        if phase in found:
            found[phase].append(_concern(job, phase))
    for phase, concerns in found.items():
        concerns.sort(key=lambda one: one.since, reverse=phase == phases.FAILED)
    return tuple(one for concerns in found.values() for one in concerns[:MOST_CONCERNS])


def _concern(job: Tree, phase: str) -> Concern:
    metadata = trees.fields(job, "metadata")
    return Concern(
        str(metadata.get("namespace") or ""),
        str(metadata.get("name") or ""),
        phase,
        finished_at(job) or read_moment(metadata.get("creationTimestamp")) or BEGINNING,
        trees.text(job, "status", "firstFault", "reason") or trees.text(job, "status", "reason") or "",
        trees.text(metadata, "labels", names.LABEL_QUEUE) or "",
    )


def read_queue(queue: Tree) -> QueueUse:
    """Return a ClusterQueue."""
    active = next((one for one in conditions_of(queue) if one.get("type") == "Active"), {})
    stopped = trees.text(queue, "spec", "stopPolicy") or "None"
    is_active = active.get("status") == "True" and stopped == "None"
    return QueueUse(
        str(trees.get(queue, "metadata", "name") or ""),
        trees.number(queue, "status", "pendingWorkloads") or 0,
        trees.number(queue, "status", "admittedWorkloads") or 0,
        is_active,
        "" if is_active else str(active.get("message") or f"stopPolicy is {stopped}"),
        trees.text(queue, "spec", "cohortName") or trees.text(queue, "spec", "cohort") or "",
        tuple(_quotas(queue)),
    )


def _quotas(queue: Tree) -> Iterable[QuotaUse]:
    used = {
        (flavor.get("name"), resource.get("name")): _amount(resource.get("total"))
        for flavor in trees.entries(queue, "status", "flavorsReservation")
        for resource in trees.entries(flavor, "resources")
    }
    for group in trees.entries(queue, "spec", "resourceGroups"):
        for flavor in trees.entries(group, "flavors"):
            for resource in trees.entries(flavor, "resources"):
                key = flavor.get("name"), resource.get("name")
                yield QuotaUse(str(key[0]), str(key[1]), _amount(resource.get("nominalQuota")), used.get(key, 0.0))


def read_worker(cluster: Tree, jobs: int | None) -> WorkerState:
    """Return a MultiKueueCluster; `jobs`: how many it has."""
    active = next((one for one in conditions_of(cluster) if one.get("type") == "Active"), {})
    connected = active.get("status") == "True"
    why = "" if connected else str(active.get("message") or active.get("reason") or "Kueue has not tried yet")
    return WorkerState(str(trees.get(cluster, "metadata", "name") or ""), connected, why, jobs)


def count_jobs(views: Sequence[Tree]) -> Counter[str]:
    """Return how many TrainJobs each worker has that are not over, by the hub's views of them."""
    return Counter(
        str(trees.get(view, "status", "cluster"))
        for view in views
        if trees.get(view, "status", "cluster") and trees.get(view, "status", "placement") == "Dispatched"
    )


def has_devices(nodes: Sequence[Tree]) -> bool:
    """Return whether any node has devices: pods need not be asked for where none has."""
    return any(is_device(str(name)) for node in nodes for name in trees.fields(node, "status", "allocatable"))


def read_devices_of(nodes: Sequence[Tree], pods: Sequence[Tree]) -> tuple[DeviceUse, ...]:
    """Return the devices of nodes, and what pods that are not over ask for."""
    capacity, away, used, waiting = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    serving = set()
    for node in nodes:
        serves = _serves(node)
        if serves:
            serving.add(trees.get(node, "metadata", "name"))
        _count(trees.fields(node, "status", "allocatable"), capacity if serves else away)
    for pod in pods:
        machine = trees.text(pod, "spec", "nodeName")
        if not machine:
            _count(_asked(pod), waiting)
        elif machine in serving:
            _count(_asked(pod), used)
    known = sorted(capacity.keys() | away.keys())
    return tuple(DeviceUse(name, capacity[name], used[name], waiting[name], away[name]) for name in known)


def _asked(pod: Tree) -> Mapping[str, object]:
    try:
        return pod_requests(trees.fields(pod, "spec"))
    except QuantityError:
        return {}


def _serves(node: Tree) -> bool:
    ready = any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions_of(node))
    return ready and not trees.get(node, "spec", "unschedulable")


def _count(amounts: Mapping[str, object], into: Counter[str]) -> None:
    for name, amount in amounts.items():
        if is_device(name) and (number := int(_amount(str(amount)))):
            into[name] += number


def _amount(value: object) -> float:
    try:
        return max(0.0, float(parse(str(value)))) if isinstance(value, str | int) else 0.0
    except (QuantityError, OverflowError):
        return 0.0
