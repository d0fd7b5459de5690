"""Make TrainJobs and time what becomes of them: `python drive.py MODE KUBECONFIG COUNT RESULT`.

MODE `controller`: 32 writers create TrainJobs; a controller makes their JobSets. MODE `bare`: the writers make all
three writes of a job themselves (TrainJob, snapshot, JobSet), with bodies of our renderer: nothing can be faster.
Then the JobSets are marked as completed, and with a controller the TrainJobs' completion is timed. All times are this
process's own: from the answer to a create to the watch event of what follows from it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import uvloop

from benchmarks.handover import hand_over
from trainplane.api.document import read
from trainplane.api.runtime import ClusterTrainingRuntime
from trainplane.api.trainjob import TrainJob
from trainplane.kube.client import Client
from trainplane.kube.loading import load_config
from trainplane.kube.resource import Resource
from trainplane.render.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable

WRITERS = 32
TRAINJOBS = Resource("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob")
RUNTIMES = Resource("trainer.kubeflow.org", "v1alpha1", "clustertrainingruntimes", "ClusterTrainingRuntime", False)
JOBSETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
NAMESPACE = "bench"
MANAGER = "trainer"


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Status(msgspec.Struct):
    conditions: list[_Condition] = []


class _Meta(msgspec.Struct, rename="camel"):
    name: str


class _Seen(msgspec.Struct):
    metadata: _Meta
    status: _Status = msgspec.field(default_factory=_Status)


def trainjob(name: str) -> dict[str, Any]:
    """Return a TrainJob of four nodes."""
    trainer = {
        "numNodes": 4,
        "image": "registry.example.test/team/image:1",
        "command": ["torchrun", "train.py"],
        "env": [{"name": "EPOCHS", "value": "10"}],
        "resourcesPerNode": {"requests": {"cpu": "4", "memory": "16Gi"}},
    }
    return {
        "apiVersion": TRAINJOBS.api_version,
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer},
    }


def _finished(seen: _Seen) -> bool:
    return any(condition.type == "Complete" and condition.status == "True" for condition in seen.status.conditions)


async def _watch(
    client: Client,
    resource: Resource,
    since: str,
    *,
    wanted: int,
    times: dict[str, float],
    ready: Callable[[_Seen], bool],
) -> None:
    """Note when each of `wanted` objects was first seen ready."""
    async with aclosing(client.watch(resource, NAMESPACE, resource_version=since, timeout_seconds=3000)) as events:
        async for event in events:
            if event.type == "BOOKMARK":
                continue
            seen = msgspec.json.decode(event.object, type=_Seen)
            if seen.metadata.name not in times and ready(seen):
                times[seen.metadata.name] = time.monotonic()
                if len(times) == wanted:
                    return


async def _version(client: Client, resource: Resource) -> str:
    async for page in client.list_pages(resource, NAMESPACE, limit=1):
        return page.resource_version
    raise AssertionError("a list has at least one page")


async def _by_writers(names: list[str], write: Callable[[str], Any]) -> None:
    waiting = iter(names)

    async def work() -> None:
        for name in waiting:
            await write(name)

    await asyncio.gather(*(work() for _ in range(WRITERS)))


def _summary(begin: float, starts: dict[str, float], ends: dict[str, float]) -> dict[str, float]:
    waits = sorted(max(0.0, ends[name] - starts[name]) for name in ends)
    return {
        "jobs_per_s": len(ends) / (max(ends.values()) - begin),
        "p50_s": waits[len(waits) // 2],
        "p99_s": waits[int(len(waits) * 0.99)],
        "seconds": max(ends.values()) - begin,
    }


async def main(mode: str, kubeconfig: str, count: int, result: Path) -> None:
    """Run both phases and write what was measured."""
    names = [f"job-{number}" for number in range(count)]
    async with Client.connect(load_config(kubeconfig)) as client:
        begun: dict[str, float] = {}
        made: dict[str, float] = {}
        writes = await _bare_writes(client) if mode == "bare" else None

        async def create(name: str) -> None:
            answer = await client.create(TRAINJOBS, trainjob(name), NAMESPACE)
            begun[name] = time.monotonic()
            if writes is not None:
                await writes(answer)

        since = await _version(client, JOBSETS)
        watching = asyncio.create_task(_watch(client, JOBSETS, since, wanted=count, times=made, ready=lambda _: True))
        begin = time.monotonic()
        await _by_writers(names, create)
        await watching
        figures: dict[str, Any] = {"create": _summary(begin, begun, made)}
        hand_over(result.with_suffix(".created"), figures)
        if mode != "bare":
            await _proceed(result)
            figures["complete"] = await _complete(client, names)
    hand_over(result, figures)


async def _proceed(result: Path) -> None:
    """Wait until the bench has read the controller's CPU time between the phases."""
    while not result.with_suffix(".go").exists():  # noqa: ASYNC110 a file is how the bench speaks to us
        await asyncio.sleep(0.05)


async def _complete(client: Client, names: list[str]) -> dict[str, float]:
    marked: dict[str, float] = {}
    done: dict[str, float] = {}
    since = await _version(client, TRAINJOBS)
    watching = asyncio.create_task(_watch(client, TRAINJOBS, since, wanted=len(names), times=done, ready=_finished))
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    condition = {
        "type": "Completed",
        "status": "True",
        "reason": "AllJobsCompleted",
        "message": "jobset completed successfully",
        "lastTransitionTime": moment,
    }
    counts = {"name": "node", "ready": 0, "succeeded": 1, "failed": 0, "active": 0, "suspended": 0}
    status = {"status": {"conditions": [condition], "replicatedJobsStatus": [counts]}}

    async def mark(name: str) -> None:
        await client.patch(JOBSETS, name, status, namespace=NAMESPACE, subresource="status")
        marked[name] = time.monotonic()

    begin = time.monotonic()
    await _by_writers(names, mark)
    await watching
    return _summary(begin, marked, done)


async def _bare_writes(client: Client) -> Callable[[dict[str, Any]], Any]:
    """Return the two writes that follow a TrainJob's creation."""
    runtime_tree = await client.get(RUNTIMES, "torch-distributed")
    runtime = read(runtime_tree, ClusterTrainingRuntime)
    pipeline = Pipeline.default()
    text = json.dumps(runtime_tree)

    async def write(created: dict[str, Any]) -> None:
        jobset = pipeline.render(read(created, TrainJob), runtime).jobset.tree
        owner = jobset["metadata"]["ownerReferences"]
        name = created["metadata"]["name"]
        metadata = {"name": f"{name}-runtime-snapshot", "namespace": NAMESPACE, "ownerReferences": owner}
        snapshot = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"runtime": text}}
        await client.apply(CONFIG_MAPS, snapshot, field_manager=MANAGER)
        await client.apply(JOBSETS, jobset, field_manager=MANAGER)

    return write


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])))
