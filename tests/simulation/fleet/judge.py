"""What a fleet promises, judged at each pod that is made, at looks at the hub's view, and at last.

- A TrainJob of the hub runs on one worker at a time. While a worker is cut off from the hub, what it has goes on there,
  and Kueue may give the job to the other; so the promise is about workers that were not cut off within `SWEPT` seconds.
- One that is over on the hub gets no pod anywhere, with the same exception.
- The hub server writes nothing.
- The view says where a job is, what it does and how many pods it has, once that is so for `SEEN` seconds and nothing
  between the server and those clusters is or just was broken. While a worker is cut off for `NOTICED` seconds or more,
  what is said of its jobs comes with a problem that names it. What the server cannot tell yet it does not answer.
- Of a log, no line is kept twice nor out of order; where nothing breaks, every line of a pod that ended is kept.
- At last each cluster keeps its own promises (`settled`), nothing is left on workers, and the hub server knows what is
  there and remembers nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulation import settled
from tests.simulation.apiserver import TRAINJOBS
from tests.simulation.fleet import workload as wl
from tests.simulation.fleet.breaking import HEALS, Health
from tests.simulation.fleet.history import CLUSTERS, HUB, WORKERS
from tests.simulation.fleet.kept import judge_logs
from tests.simulation.fleet.memory import judge_memory
from tests.simulation.fleet.truth import Truth
from tests.simulation.judge import Violation
from tests.simulation.people import NAMESPACE
from tests.simulation.settled import end_of
from trainplane.kube.resource import Key
from trainplane.kube.testing.verbs import collection_of
from trainplane.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.simulation.fleet.cluster import Cluster
    from tests.simulation.fleet.hubserver import HubServer
    from tests.simulation.fleet.multikueue import MultiKueue
    from tests.simulation.loop import VirtualLoop
    from trainplane.kube.testing.storage import Change, Tree
    from trainplane.kube.testing.verbs import Asking

_PODS = collection_of(PODS)
SWEPT = 150.0
"""Seconds after which nothing is left on a worker of what the hub wants gone: it is connected again within 10, copies
are looked for every 60, and a garbage collector that is slow takes 60."""
SEEN = 8.0
"""Seconds within which the view shows what is so, where nothing is broken."""
NOTICED = 30.0
"""Seconds within which the hub server notices that a worker is cut off: it looks every 5, and asks for 5 and again."""


class FleetJudge:
    """See the module's docstring."""

    def __init__(
        self,
        clusters: Mapping[str, Cluster],
        multikueue: MultiKueue,
        view: HubServer,
        loop: VirtualLoop,
        violations: list[Violation],
    ) -> None:
        self.clusters = clusters
        self.violations = violations
        self.view = view
        self.health = Health(loop)
        self.is_fair = True
        """Whether nothing breaks in this history."""
        self._multikueue = multikueue
        self._loop = loop
        self._over: dict[str, str] = {}
        """Workloads of TrainJobs that are over on the hub, and how."""
        self.truth = Truth({name: cluster.server for name, cluster in clusters.items()}, loop)
        clusters[HUB].server.storage.listeners.append(self._on_hub)
        for name in WORKERS:
            clusters[name].server.storage.listeners.append(self._on_worker(name))
        view.sent.append(self._sent)

    def broken(self, rule: str, what: str) -> None:
        """Note a violation."""
        self.violations.append(Violation(rule, round(self._loop.time(), 3), what))

    # -- always

    def _sent(self, name: str, asking: Asking) -> None:
        self.broken("the hub server writes nothing", f"{name} sends {asking.verb} {asking.path}")

    def _on_hub(self, change: Change, _: str) -> None:
        job = change.after
        if change.collection == TRAINJOBS and job is not None and self.truth.is_dispatched(job):
            end = end_of(job)
            if end is not None:
                self._over[wl.made_for(job)["metadata"]["name"]] = end[0]

    def _on_worker(self, name: str) -> Callable[[Change, str], None]:
        def changed(change: Change, _: str) -> None:
            if change.collection == _PODS and change.before is None and change.after is not None:
                self._begins(name, change.after)

        return changed

    def _begins(self, worker: str, pod: Tree) -> None:
        """Judge that a pod is made."""
        workload = self.truth.workload_of(worker, pod)
        if workload and workload in self._over and not self._multikueue.was_cut(worker, SWEPT):
            self.broken("a finished job never runs again", f"{workload} is {self._over[workload]} and runs on {worker}")
        for other in WORKERS:
            if other == worker or any(self._multikueue.was_cut(one, SWEPT) for one in (worker, other)):
                continue
            if any(workload and self.truth.workload_of(other, one) == workload for one in self.truth.running(other)):
                self.broken("a job runs on one worker", f"{workload} begins on {worker} and runs on {other}")

    # -- the view

    async def look(self) -> None:
        """Judge what the view says now."""
        server = self.view
        if not self.may_ask():
            return
        is_new = self.is_new()
        found = await server.ask(f"namespaces/{NAMESPACE}/trainjobs")
        if found is None:
            if self.may_ask() and not is_new:
                self.broken("the view answers", "it does not list TrainJobs")
            return
        shown = {one["metadata"]["name"]: one for one in found["items"]}
        for key, job in sorted(self.clusters[HUB].server.storage.objects.get(TRAINJOBS, {}).items()):
            if self.truth.still_for(key.name) > SEEN:
                self._judge_view(key, job, shown.get(key.name), is_new=is_new)

    def may_ask(self) -> bool:
        """Return whether the view must answer."""
        return self.view.runs and self.health.is_well(HUB)

    def is_new(self) -> bool:
        """Return whether the hub server has just started, and need not know everything."""
        return self._loop.time() - self.view.began < NOTICED

    def job(self, name: str) -> Tree | None:
        """Return a TrainJob of the hub."""
        return self.clusters[HUB].server.find(TRAINJOBS, Key(NAMESPACE, name))

    def _judge_view(self, key: Key, job: Tree, shown: Tree | None, *, is_new: bool) -> None:
        if shown is None or shown["metadata"]["uid"] != job["metadata"]["uid"]:
            self.broken("the view is true", f"{key} is not shown")
            return
        status = shown["status"]
        expected = self.truth.of(job, status["cluster"])
        if expected is None:
            return
        if is_new:  # it has not seen all pods yet, and says so of none; where jobs are it knows, or does not answer
            if status["cluster"] != expected["cluster"]:
                self.broken("the view is true", f"{key} is shown on {status['cluster']!r} and is {expected}")
            return
        worker = expected["cluster"] if expected["cluster"] in WORKERS else ""
        problem = status.get("problem") or ""
        if worker and self.health.cut_for(worker) > NOTICED and worker not in problem:
            self.broken("the view says what it does not know", f"{key} is on {worker}, which is cut off: {status}")
        concerned = (HUB, expected["cluster"]) if expected["cluster"] else CLUSTERS  # from which pods are not gone yet
        if not all(self.health.is_well(name) for name in concerned):
            return
        if any(self._is_in_doubt(name) for name in WORKERS if name != worker):
            return  # another worker may have had it, and what ended there meanwhile is not seen yet
        if problem:
            self.broken("the view says what it does not know", f"{key}: {problem}, and nothing is wrong")
        said = {name: status.get(name) for name in expected}
        if said != expected:
            self.broken("the view is true", f"{key} is shown as {said} and is {expected}")

    def _is_in_doubt(self, worker: str) -> bool:
        """Return whether a worker is cut off and that is not noticed yet, or was until now, or brings nothing."""
        if self.health.is_deaf(worker):
            return True
        return self._multikueue.was_cut(worker, HEALS) and self.health.cut_for(worker) <= NOTICED

    # -- at last

    def misplaced(self) -> None:
        """Judge what runs elsewhere than its queue says."""
        for name in WORKERS:
            for what in settled.misplaced(self.clusters[name].judge):
                self.broken("quota equals pods", f"{name}: {what}")

    def is_calm(self) -> bool:
        """Return whether all is as it must be at last, but for the view."""
        before = list(self.violations)
        self._settle()
        calm = self.violations == before
        self.violations[:] = before
        return calm

    async def at_last(self) -> None:
        """Judge how everything stands when nothing was broken for long enough."""
        self._settle()
        await self.look()
        if self.is_fair:
            for key, job in sorted(self.clusters[HUB].server.storage.objects.get(TRAINJOBS, {}).items()):
                await self._judge_testimony(key, job)

    def _settle(self) -> None:
        for cluster in self.clusters.values():
            settled.judge(cluster.judge)
        for name in WORKERS:
            objects = self.clusters[name].server.storage.objects
            for kind in (TRAINJOBS, wl.COLLECTION):
                for key in sorted(objects.get(kind, {})):
                    self.broken("nothing is left behind", f"{kind.plural} {key} is still on {name}")
        if self.view.ends:
            self.broken("the hub server runs", f"{self.view.ends[0]!r}"[:300])
        process: Any = self.view.process
        if process is None or not self.view.runs:
            self.broken("the hub server runs", "it does not")
            return
        judge_memory(self, process)
        judge_logs(self, process)

    async def _judge_testimony(self, key: Key, job: Tree) -> None:
        """Judge what the view tells of a job that is over: what its worker's operator told, although that copy went."""
        shown, end = await self.view.ask(f"namespaces/{NAMESPACE}/trainjobs/{key.name}"), end_of(job)
        status = {} if shown is None else shown["status"]
        if end is not None and not status.get("timeline"):
            self.broken("what a worker told is kept", f"{key} is {end[0]} and has no timeline")
        fails = end is not None and end[1] in {"FailedJobs", "ReachedMaxRestarts"}
        knows = status.get("cluster") or not self.truth.left(job)
        if fails and knows and not status.get("firstFault"):
            self.broken("what a worker told is kept", f"{key} is {end} and nothing says what went wrong first")
