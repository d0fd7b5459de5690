"""Why a job waits, as the hub server tells it, against what is so.

The server reads all that an answer rests on when it is asked, so an answer is judged by how things stand then: one is
not judged if anything that it rests on changed meanwhile, or if Kueue has not counted it yet. What is so is read from
the models, by their own counting:

- what runs, is over, or is held back by a person is said to be so; what waits is told what it waits for: its own
  deactivation, a stop that is not over, a queue that is stopped, quota, MultiKueue's check;
- amounts of quota are those that the queue has, and its place in line is the one that it has;
- "never" is said only of what no flavor could ever hold;
- each worker is told apart: that it would take the job, that it would not, that it cannot be asked;
- what is advised would help: queues that are stopped, too small or of nodes that pods may not be on do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.simulation.fleet import workload as wl
from tests.simulation.fleet.history import HUB, WORKERS
from tests.simulation.jobset import condition
from tests.simulation.people import NAMESPACE, QUEUE_LABEL
from tests.simulation.settled import end_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.fleet.cluster import Cluster
    from tests.simulation.fleet.judge import FleetJudge
    from trainplane.kube.testing.storage import Tree

RULE = "it is told why a job waits"

NEEDED = {
    "Suspended": "SuspendedByUser",
    "Unknown": "NoWorkload",
    "Deactivated": "Deactivated",
    "Stopping": "Stopping",
    "Admitted": "NotStarted",
    "Checked": "AdmissionCheck",
    "HeldBack": "Backoff",
}
"""What must be told of a job, by how it stands; of one that waits for quota it depends on its queue."""
STATES = frozenset({"Finished", "Started", "Suspended"})
"""How a job stands that is not queued."""
HOPES = frozenset({"NotStarted", "NextInLine", "AdmissionCheck"})
"""What is only said of a job that nothing but time keeps from running."""


async def ask(court: FleetJudge, name: str) -> None:
    """Ask why a TrainJob of the hub waits, and judge the answer; `court` notes what is wrong with it."""
    job, truth, health = court.job(name), court.truth, court.health
    if job is None or not court.may_ask():
        return
    changes, cut = truth.changes, {one for one in WORKERS if health.cut_for(one) > 0}
    told = await court.view.ask(f"namespaces/{NAMESPACE}/trainjobs/{name}/queue")
    counted = all(cluster.queue.is_published() for cluster in court.clusters.values())
    if truth.changes != changes or not counted or not court.may_ask():
        return
    if told is None:
        if not court.is_new():
            court.broken(RULE, f"{name}: there is no answer")
        return
    cut = {one for one in cut if health.cut_for(one) > 0}
    well = {one for one in WORKERS if health.is_well(one)}
    for what in Asked(court, job, told, frozenset(cut), frozenset(well)).faults():
        court.broken(RULE, f"{name}: {what}; it is told {told['state']}: {told['summary']}")


@dataclass(frozen=True)
class Asked:
    """A TrainJob of the hub, and what is told of it while these workers are cut off and those are well."""

    court: FleetJudge
    job: Tree
    told: Tree
    cut: frozenset[str]
    well: frozenset[str]

    @property
    def one(self) -> Tree | None:
        """The Workload on the hub."""
        return self.court.truth.copy_of(self.job, HUB)

    @property
    def pods(self) -> int:
        """How many pods it wants."""
        return int(self.job["spec"]["trainer"]["numNodes"])

    def cluster(self, name: str) -> Cluster:
        """Return a cluster."""
        return self.court.clusters[name]

    @property
    def stand(self) -> str:
        """How the job stands on the hub, in a word."""
        if end_of(self.job) is not None:
            return "Finished"
        if not self.job["spec"].get("suspend"):
            return "Started"
        if QUEUE_LABEL not in self.job["metadata"]["labels"]:
            return "Suspended"
        return "Unknown" if self.one is None else _stand_of(self.one)

    def faults(self) -> Iterator[str]:
        """Yield what is wrong with the answer."""
        stand = self.stand
        if self.told["state"] != (stand if stand in STATES else "Queued"):
            yield f"it is {stand}"
        codes = _blocking(self.told)
        if stand in {"Finished", "Started"}:
            if codes or self.told["suggestions"]:
                yield f"it is {stand}, and {sorted(codes)} are in its way"
            where = wl.cluster_of(self.one) if self.one is not None and stand == "Started" else ""
            if where and where not in self.told["summary"]:
                yield f"it is on {where}"
            return
        yield from self._causes(stand, codes)
        yield from self._amounts(HUB, self.told)
        if self.one is not None and stand != "Suspended":
            yield from self._line(stand)
            yield from self._workers()
            yield from self._advice(stand)
            yield from self._holders()

    # -- what is in the way

    def _causes(self, stand: str, codes: set[str]) -> Iterator[str]:
        needed, queue, check = NEEDED.get(stand), self.cluster(HUB).queue, wl.check_of(self.one or {})
        if stand == "Waiting":
            needed = "ClusterQueueStopped" if queue.is_drained else _by_quota(queue.quota, self.pods)
            needed = "NextInLine" if queue.takes(self.pods) else needed
        if stand == "Checked" and check == wl.READY:  # Kueue is about to admit it
            needed = None
        if needed and needed not in codes:
            yield f"it is {stand}, and {needed} is not among {sorted(codes)}"
        wrong = codes & HOPES - {needed}
        if wrong:
            yield f"it is {stand}, and {sorted(wrong)} are told"
        if stand == "Checked" and check == wl.PENDING:
            asked = ((self.one or {}).get("status") or {}).get("nominatedClusterNames") or ()
            said = " ".join(cause["what"] for cause in self.told["causes"])  # a stopped queue comes first
            missing = [name for name in asked if name not in said]
            if missing:
                yield f"{missing} were asked to take it, and are not named"

    def _amounts(self, where: str, told: Tree) -> Iterator[str]:
        """Judge the numbers of quota, and whether what is called too much for ever is."""
        queue = self.cluster(where).queue
        for cause in told["causes"]:
            short = cause.get("quota")
            if cause["code"] == "ExceedsQuota" and cause["blocks"] and self.pods <= max(queue.quota.values()):
                yield f"{where} has {queue.quota} for {self.pods} pods, and it is told that it never starts"
            if not short or short.get("resource") != "pods":
                continue
            quota, used = queue.quota[short["flavor"]], queue.used(short["flavor"])
            right = {"need": self.pods, "available": quota - used, "used": used, "nominal": quota, "maximum": quota}
            said = {name: int(short[name]) for name in right}
            if said != right:
                yield f"{where}, {short['flavor']}: {said} are {right}"

    def _line(self, stand: str) -> Iterator[str]:
        """Judge its place among those that wait on the hub."""
        waiting = sorted(map(_rank, filter(_waits, self.cluster(HUB).queue.all())))
        place = waiting.index(_rank(self.one or {})) + 1 if stand == "Waiting" else None
        if self.told.get("position") != place:
            yield f"it is number {place} of {len(waiting)} in line, and {self.told.get('position')} is told"
        if place and self.told["pending"] != len(waiting):
            yield f"{len(waiting)} wait, and {self.told['pending']} are told"

    # -- workers

    def _takes(self, worker: str) -> bool | None:
        """Return whether a worker would take the job, or has; None where that is about to change."""
        copy, queue = self.court.truth.copy_of(self.job, worker), self.cluster(worker).queue
        if copy is None:
            return queue.takes(self.pods)
        if wl.says(copy, wl.FINISHED):
            return None
        if not copy["spec"]["active"] or wl.denies(copy, wl.REQUEUED):
            return False
        if wl.flavor_in(copy):
            return not wl.says(copy, wl.EVICTED)
        return queue.takes(self.pods)

    def _workers(self) -> Iterator[str]:
        told = {one["cluster"]: one for one in self.told["clusters"]}
        if set(told) != set(WORKERS):
            yield f"workers that it may go to are {WORKERS}, and {sorted(told)} are told"
            return
        for name, one in told.items():
            codes = _blocking(one)
            if name in self.cut and ("fits" in one or "WorkerUnreachable" not in codes):
                yield f"{name} is cut off, and {one['summary']!r} is told of it"
            if name not in self.well:
                continue
            takes = self._takes(name)
            if takes is not None and one.get("fits") != takes:
                yield f"{name} would {'' if takes else 'not '}take it, and {one['summary']!r} is told of it"
            if self.cluster(name).queue.is_drained and "ClusterQueueStopped" not in codes:
                yield f"{name} is drained, and {one['summary']!r} is told of it"
            yield from self._amounts(name, one)

    # -- advice

    def _advice(self, stand: str) -> Iterator[str]:
        found = {one["kind"]: one for one in self.told["suggestions"]}
        if stand in {"Deactivated", "Stopping"} and any(one["now"] for one in found.values()):
            yield f"it is {stand}, and {sorted(found)} would let it start at once"
        if "FewerNodes" in found:
            yield from self._fewer(found["FewerNodes"])
        if "OtherQueue" in found and not self._elsewhere():
            yield "another queue is advised that would not take it, here or on any worker"
        if "OtherCluster" in found and self._takes(found["OtherCluster"]["cluster"]) is False:
            yield f"{found['OtherCluster']['cluster']} is advised, and would not take it"

    def _elsewhere(self) -> bool:
        """Return whether the other queue would take the job, on the hub and on a worker."""
        on_workers = any(self.cluster(name).spare.takes(self.pods) for name in WORKERS)
        return on_workers and self.cluster(HUB).spare.takes(self.pods)

    def _fewer(self, advice: Tree) -> Iterator[str]:
        nodes = advice["numNodes"]
        if not advice["now"]:
            if nodes > max(max(self.cluster(name).queue.quota.values()) for name in WORKERS):
                yield f"{nodes} nodes are advised, and are more than any worker has"
            return
        if not self._starts_with(nodes):
            yield f"{nodes} nodes are advised, and would not start either"
        if self.well >= set(WORKERS) and nodes + 1 < self.pods and self._starts_with(nodes + 1):
            yield f"at most {nodes} nodes are advised, and {nodes + 1} would start too"

    def _starts_with(self, nodes: int) -> bool:
        """Return whether the job would start at once if it were made again with so many nodes."""
        has = wl.flavor_in(self.one or {}) if not wl.says(self.one or {}, wl.EVICTED) else ""
        here = bool(has) or self.cluster(HUB).queue.takes(nodes)
        return here and any(self.cluster(name).queue.takes(nodes) for name in WORKERS)

    def _holders(self) -> Iterator[str]:
        """Judge who is said to have the quota."""
        queue, found = self.cluster(HUB).queue, self.told["holders"]
        for flavor in dict.fromkeys(one["flavor"] for one in found):
            told = sorted((one["job"], int(one["amount"])) for one in found if one["flavor"] == flavor)
            right = sorted(
                (f"TrainJob/{one['metadata']['ownerReferences'][0]['name']}", wl.pods_in(one))
                for one in queue.all()
                if wl.flavor_in(one) == flavor
            )
            if told != right:
                yield f"{right} have {flavor}, and {told} are told"


def _stand_of(one: Tree) -> str:
    """Return how a Workload of the hub stands, in a word."""
    if not one["spec"]["active"]:
        return "Deactivated"
    if not wl.flavor_in(one):
        return "HeldBack" if wl.denies(one, wl.REQUEUED) else "Waiting"
    if wl.says(one, wl.EVICTED):
        return "Stopping"
    return "Admitted" if wl.says(one, wl.ADMITTED) else "Checked"


def _blocking(told: Tree) -> set[str]:
    return {cause["code"] for cause in told["causes"] if cause["blocks"]}


def _by_quota(quota: dict[str, int], pods: int) -> str:
    return "QuotaInUse" if any(pods <= most for most in quota.values()) else "ExceedsQuota"


def _waits(one: Tree) -> bool:
    is_out = wl.flavor_in(one) or wl.says(one, wl.FINISHED) or wl.denies(one, wl.REQUEUED)
    return bool(one["spec"]["active"]) and not is_out


def _rank(one: Tree) -> tuple[str, str]:
    """Return by what Kueue orders those that wait: when it was made, or when MultiKueue's check evicted it."""
    evicted = condition(one, wl.EVICTED)
    if evicted is not None and (evicted["status"], evicted["reason"]) == ("True", "AdmissionCheck"):
        return evicted["lastTransitionTime"], one["metadata"]["uid"]
    return one["metadata"]["creationTimestamp"], one["metadata"]["uid"]
