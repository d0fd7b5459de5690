"""Send TrainJobs and time their lives: `python -m benchmarks.life.drive KUBECONFIG PLAN RESULT`.

16 clients create TrainJobs through the webhooks, each the next when the last was answered. When a job's Workload is
admitted, when the last of its pods runs and when it is Complete is taken from watches. All times are this process's own
and count from before the create was sent.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import uvloop

from benchmarks.handover import hand_over
from trainplane.kube.client import Client
from trainplane.kube.loading import load_config
from trainplane.kube.resource import PODS, Resource

if TYPE_CHECKING:
    from collections.abc import Callable

CLIENTS = 16
TRAINJOBS = Resource("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob")
WORKLOADS = Resource("kueue.x-k8s.io", "v1beta2", "workloads", "Workload")
_JOBSET = "jobset.sigs.k8s.io/jobset-name"


class Plan(msgspec.Struct):
    """What to send, and when it is over."""

    namespace: str
    names: list[str]
    job: dict[str, Any]
    """A TrainJob without a name."""
    pods: int
    """Pods of one job."""
    kueue: bool
    complete: int
    """Jobs whose end is awaited."""
    running: int = 0
    """Jobs whose pods are awaited."""
    seconds: float = 600.0
    """How long jobs may be sent."""
    patience: float = 0.0
    """How long after that their ends and pods may be awaited."""


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Status(msgspec.Struct):
    conditions: list[_Condition] = []
    phase: str = ""


class _Owner(msgspec.Struct):
    name: str


class _Meta(msgspec.Struct, rename="camel"):
    name: str
    labels: dict[str, str] = {}
    owner_references: list[_Owner] = []


class Seen(msgspec.Struct):
    """What is read of an object: a TrainJob, a Workload or a pod."""

    metadata: _Meta
    status: _Status = msgspec.field(default_factory=_Status)

    def says(self, kind: str) -> bool:
        """Tell whether a condition is true."""
        return any(condition.type == kind and condition.status == "True" for condition in self.status.conditions)


class Lives:
    """What was seen when, by job."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.sent: dict[str, float] = {}
        self.created: dict[str, float] = {}
        self.admitted: dict[str, float] = {}
        self.running: dict[str, float] = {}
        self.complete: dict[str, float] = {}
        self.failed: list[str] = []
        self._pods: dict[str, set[str]] = {}
        self.over = asyncio.Event()

    def see_workload(self, seen: Seen) -> None:
        """Note that a job's quota is reserved and checked."""
        if seen.says("Admitted") and seen.metadata.owner_references:
            self.admitted.setdefault(seen.metadata.owner_references[0].name, time.monotonic())

    def see_pod(self, seen: Seen) -> None:
        """Note that the last of a job's pods runs; one that has ended already did."""
        if seen.status.phase in {"Running", "Succeeded"}:
            job = seen.metadata.labels.get(_JOBSET, "")
            pods = self._pods.setdefault(job, set())
            pods.add(seen.metadata.name)
            if len(pods) == self._plan.pods:
                self.running.setdefault(job, time.monotonic())
                self._judge()

    def see_job(self, seen: Seen) -> None:
        """Note a job's end."""
        if seen.says("Failed"):
            self.failed.append(seen.metadata.name)
            self.over.set()
        if seen.says("Complete"):
            self.complete.setdefault(seen.metadata.name, time.monotonic())
            self._judge()

    def _judge(self) -> None:
        if len(self.complete) >= self._plan.complete and len(self.running) >= self._plan.running:
            self.over.set()

    def figures(self) -> dict[str, Any]:
        """Return the times of lives, and how fast they passed."""
        begin = min(self.sent.values())
        figures: dict[str, Any] = {
            "creating_s": max(self.created.values()) - begin,
            "jobs_created": len(self.created),
            "jobs_running": len(self.running),
            "jobs_complete": len(self.complete),
            "failed": self.failed,
        }
        if self.complete:
            figures["seconds"] = max(self.complete.values()) - begin
            figures["jobs_per_s"] = len(self.complete) / figures["seconds"]
        for name in ("created", "admitted", "running", "complete"):
            moments: dict[str, float] = getattr(self, name)
            if moments:
                figures |= _quantiles(name, [moments[job] - self.sent[job] for job in moments if job in self.sent])
        return figures


def _quantiles(name: str, waits: list[float]) -> dict[str, float]:
    waits = sorted(waits)
    return {f"{name}_p50_s": waits[len(waits) // 2], f"{name}_p99_s": waits[int(len(waits) * 0.99)]}


async def _watch(client: Client, resource: Resource, plan: Plan, see: Callable[[Seen], None]) -> asyncio.Task[None]:
    """Begin to watch from now on."""
    async for page in client.list_pages(resource, plan.namespace, limit=1):
        since = page.resource_version
        break

    async def follow() -> None:
        async with aclosing(
            client.watch(resource, plan.namespace, resource_version=since, timeout_seconds=3000)
        ) as events:
            async for event in events:
                if event.type not in {"BOOKMARK", "DELETED"}:
                    see(msgspec.json.decode(event.object, type=Seen))

    return asyncio.create_task(follow())


async def main(kubeconfig: str, plan: Plan, result: Path) -> None:
    """Send all, wait for the end and hand over what was measured."""
    lives = Lives(plan)
    async with Client.connect(load_config(kubeconfig)) as client:
        watches = [
            await _watch(client, TRAINJOBS, plan, lives.see_job),
            await _watch(client, PODS, plan, lives.see_pod),
        ]
        if plan.kueue:
            watches.append(await _watch(client, WORKLOADS, plan, lives.see_workload))
        waiting, latest = iter(plan.names), time.monotonic() + plan.seconds

        async def send() -> None:
            for name in waiting:
                if time.monotonic() > latest:
                    return
                job = {**plan.job, "metadata": {**plan.job["metadata"], "name": name}}
                lives.sent[name] = time.monotonic()
                await client.create(TRAINJOBS, job, plan.namespace)
                lives.created[name] = time.monotonic()

        await asyncio.gather(*(send() for _ in range(CLIENTS)))
        hand_over(result.with_suffix(".sent"), {"jobs": len(lives.created)})
        over = asyncio.create_task(lives.over.wait())
        left = max(0.0, latest + plan.patience - time.monotonic())
        await asyncio.wait([over, *watches], timeout=left, return_when=asyncio.FIRST_COMPLETED)
        over.cancel()
        for watch in watches:
            if watch.done():
                watch.result()
                raise RuntimeError("a watch ended before the jobs did")
            watch.cancel()
    hand_over(result, lives.figures())


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], msgspec.json.decode(Path(sys.argv[2]).read_bytes(), type=Plan), Path(sys.argv[3])))
