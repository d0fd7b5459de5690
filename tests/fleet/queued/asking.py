"""Asking why jobs of a team are queued, on a worker as on any cluster or on the hub with its workers."""

from __future__ import annotations

import asyncio
import copy
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.fleet import objects
from trainplane.hub.pending.explain import answer
from trainplane.hub.workers import Workers
from trainplane.kube.client import Client
from trainplane.kube.loading import load_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tests.fleet.team import Team
    from trainplane.hub.pending.answer import Answer, Suggestion

Tree = dict[str, Any]

GPU = "nvidia.com/gpu"
PLENTY = {"cpu": "1000", "memory": "1000Gi"}
"""Of what these tests are not about."""


@dataclass(frozen=True)
class Desk:
    """Where a team asks; `on` is the cluster that it works on."""

    team: Team
    on: str = "worker1"

    def ask(self, *names: str) -> dict[str, Answer]:
        """Return the answers for these jobs."""
        cluster = self.team.cluster(self.on)
        with cluster.sandbox.entered():
            return asyncio.run(self._ask(names, load_config(cluster.kubeconfig)))

    def wait_answer(self, name: str, *codes: str) -> Answer:
        """Wait until the causes of a job are these, what blocks first; return the answer."""
        return self.wait_answers({name: codes})[name]

    def wait_answers(self, expected: Mapping[str, Iterable[str]]) -> dict[str, Answer]:
        """Wait until every job's causes are as expected; a failure shows what they are."""
        found: dict[str, Answer] = {}

        def unlike() -> list[str]:
            return [
                name for name, codes in expected.items() if name not in found or causes(found[name]) != tuple(codes)
            ]

        def as_expected() -> bool:
            found.update(self.ask(*unlike()))
            return not unlike()

        try:
            self.team.wait("the answers", as_expected)
        except Exception as error:
            told = [found[name].to_text() for name in unlike()]
            raise AssertionError("\n".join(told)) from error
        return found

    def submit(self, name: str, **job: Any) -> Tree:
        """Create a TrainJob that runs until the test ends it."""
        return self.team.submit(name, on=self.on, **({"runtime": objects.HELD} | job))

    def wait_started(self, *names: str) -> None:
        """Wait until jobs are unsuspended."""

        def started() -> bool:
            jobs = self.team.api(self.on).list("trainjobs", self.team.namespace)
            return set(names) <= {job["metadata"]["name"] for job in jobs if not job["spec"]["suspend"]}

        self.team.wait(f"{', '.join(names)} to start", started)

    def wait_reserved(self, *names: str) -> None:
        """Wait until jobs have quota."""
        self._wait_quota(names, lambda quota: quota["status"] == "True")

    def wait_refused(self, *names: str) -> None:
        """Wait until Kueue has looked at jobs and found no quota for them."""
        self._wait_quota(names, lambda quota: quota["status"] == "False" and "insufficient" in quota["message"])

    def _wait_quota(self, names: Iterable[str], holds: Callable[[Tree], bool]) -> None:
        """Wait until what Kueue says about the quota of jobs holds for all of them."""

        def told() -> set[str]:
            workloads = self.team.api(self.on).list("workloads", self.team.namespace)
            return {
                workload["metadata"]["ownerReferences"][0]["name"]
                for workload in workloads
                for condition in (workload.get("status") or {}).get("conditions") or ()
                if condition["type"] == "QuotaReserved" and holds(condition)
            }

        self.team.wait(f"the quota of {', '.join(names)}", lambda: set(names) <= told())

    def wait_counted(self, gpus: Mapping[str, int], *, on: str = "") -> None:
        """Wait until the status of ClusterQueues, by whole name, tells of so many GPUs that they have given away.

        Kueue writes it after it has given them, and answers are made of it. `on` is another cluster than the desk's.
        """

        def told() -> dict[str, int]:
            return {one["metadata"]["name"]: _given(one) for one in self.team.api(on or self.on).list("clusterqueues")}

        self.team.wait("the queues to tell what they have given away", lambda: gpus.items() <= told().items())

    def queue(
        self, name: str, gpus: str, *, local: Tree | None = None, limits: Tree | None = None, **spec: Any
    ) -> Tree:
        """Make a ClusterQueue with GPUs and a LocalQueue of that name; return the ClusterQueue.

        `local` adds to the LocalQueue's spec, `limits` to the quota of GPUs, `spec` to the ClusterQueue's.
        """
        whole = f"{self.team.namespace}-{name}"
        spec = {"namespaceSelector": {}, **spec}
        queue = objects.cluster_queue(whole, {**PLENTY, GPU: gpus}, **spec)
        amounts = queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
        next(amount for amount in amounts if amount["name"] == GPU).update(limits or {})
        leading = objects.local_queue(self.team.namespace, name=name, cluster_queue=whole)
        leading["spec"] |= local or {}
        self.team.api(self.on).apply(queue, leading)
        return copy.deepcopy(queue)

    def check(self, name: str) -> str:
        """Make an admission check that the test itself speaks for; return its whole name."""
        whole, api = f"{self.team.namespace}-{name}", self.team.api(self.on)
        meta, spec = {"name": whole}, {"controllerName": "example.com/by-hand"}
        api.apply({"apiVersion": objects.KUEUE, "kind": "AdmissionCheck", "metadata": meta, "spec": spec})
        return whole

    def work_on(self, check: str) -> None:
        """Return that somebody works on an admission check."""
        active = {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": clock()}
        self.team.api(self.on).patch("admissionchecks", "", check, {"status": {"conditions": [active]}}, part="status")

    def remove(self) -> None:
        """Delete what `queue` and `check` made; the rest goes with the team."""
        api = self.team.api(self.on)
        for plural in ("clusterqueues", "admissionchecks", "cohorts", "resourceflavors"):
            for one in api.list(plural):
                if one["metadata"]["name"].startswith(f"{self.team.namespace}-"):
                    api.delete(plural, "", one["metadata"]["name"])

    async def _ask(self, names: Iterable[str], config: Any) -> dict[str, Answer]:
        async with Client.connect(config) as client, Workers(client) as workers:
            told = await asyncio.gather(*(answer(client, self.team.namespace, name, workers) for name in names))
        return dict(zip(names, told, strict=True))


def _given(queue: Tree) -> int:
    """Return how many GPUs a ClusterQueue has given away, as its status tells."""
    flavors = (queue.get("status") or {}).get("flavorsReservation") or ()
    return sum(int(one.get("total", 0)) for flavor in flavors for one in flavor["resources"] if one["name"] == GPU)


def checked(*checks: str) -> Tree:
    """Return what a ClusterQueue with admission checks adds to its spec."""
    return {"admissionChecksStrategy": {"admissionChecks": [{"name": check} for check in checks]}}


def clock(ahead: float = 0) -> str:
    """Return the time some seconds ahead, as the API server writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + ahead))


def causes(told: Answer) -> tuple[str, ...]:
    """Return the codes of an answer's causes, each once."""
    return tuple(dict.fromkeys(cause.code for cause in told.causes))


def suggestion(told: Answer, kind: str) -> Suggestion:
    """Return the one suggestion of a kind."""
    (found,) = (each for each in told.suggestions if each.kind == kind)
    return found
