"""What a large fleet costs the hub server while nothing happens: `python -m benchmarks.hub.idle [--workers 200]`.

Fake clusters run in a process of their own, behind TLS; this process is the hub server's part that looks after them:
mirrors of every worker's pods, a stream for each container, who the workers are. It counts its requests and its CPU
time over some quiet seconds. `--unwatched` asks who the workers are at each look, for comparison.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

from tests.unit.hub.fakeworker import kubeconfig, serving
from tests.unit.hub.hubstage import MULTIKUEUE, reference
from tests.unit.hub.kept import NAMESPACE_UID, pod
from tests.unit.hub.test_workers import put_worker
from trainplane.api import names
from trainplane.hub.logarchive.archive import Archive
from trainplane.hub.logarchive.collector import LogCollector
from trainplane.hub.logarchive.jobs import Jobs
from trainplane.hub.logarchive.retention import Retention
from trainplane.hub.main import connect_worker
from trainplane.hub.watched import Watched
from trainplane.hub.workers import Workers
from trainplane.kube import openfiles
from trainplane.kube.client import Client
from trainplane.kube.clock import SystemClock
from trainplane.kube.config import Config
from trainplane.kube.resource import PODS
from trainplane.kube.testing.server import FakeServer
from trainplane.kube.transport import Transport
from trainplane.resources import JOB_SETS, JOBS, NAMESPACES, TRAIN_JOBS, WORKLOADS

PATIENCE = 900.0
"""Seconds until every container must be followed."""


def fill(hub: FakeServer, worker: FakeServer, name: str, pods: int) -> None:
    """Give a worker a TrainJob with so many pods, as MultiKueue does."""
    uid = f"job-{name}"
    place = {"name": name, "namespace": "team"}
    hub.put(TRAIN_JOBS, {"metadata": {**place, "uid": uid}, "spec": {"managedBy": MULTIKUEUE}, "status": {}})
    labels = {names.LABEL_JOB_UID: uid}
    meta = {"name": f"trainjob-{name}", "namespace": "team", "uid": f"workload-{name}", "labels": labels}
    hub.put(WORKLOADS, {"metadata": meta, "status": {"clusterName": name}})
    copy = {names.LABEL_MULTIKUEUE_ORIGIN: "multikueue", names.PREBUILT_WORKLOAD: f"trainjob-{name}"}
    worker.put(TRAIN_JOBS, {"metadata": {**place, "uid": f"copy-{name}", "labels": copy}})
    owner = reference(TRAIN_JOBS, name, f"copy-{name}")
    for kind, called in ((JOB_SETS, name), (JOBS, f"{name}-node-0")):
        own = f"{kind.plural}-{name}"
        metadata = {"name": called, "namespace": "team", "uid": own, "ownerReferences": [owner]}
        worker.put(kind, {"metadata": metadata})
        owner = reference(kind, called, own)
    for number in range(pods):
        worker.put(PODS, pod(f"{name}-node-0-{number}-abcde", job=name, index=number, owner=owner))


async def serve(workers: int, pods: int) -> None:
    """Be the clusters, until standard input ends."""
    openfiles.raise_limit()
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(FakeServer())
        hub.put(NAMESPACES, {"metadata": {"name": "team", "uid": NAMESPACE_UID}})
        for number in range(workers):
            name = f"w{number}"
            worker = await stack.enter_async_context(FakeServer(tokens={"t"}, tls=serving()))
            put_worker(hub, name, kubeconfig(worker.url))
            fill(hub, worker, name, pods // workers)
        print(hub.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


async def measure(url: str, folder: Path, pods: int, seconds: float, *, unwatched: bool) -> dict[str, Any]:
    """Look after the fleet; return the figures."""
    openfiles.raise_limit()
    counts: Counter[str] = Counter()

    def requested(method: str, host: str, code: int | str) -> None:
        counts["hub" if host in url else "workers"] += 1
        counts[f"{method} {code}"] += 1

    clock = SystemClock()
    began = time.monotonic()
    async with Client(Transport(Config(server=url), requested=requested)) as client:
        watched = Watched(client, clock, namespace="kueue-system")
        connect = partial(connect_worker, requested=requested)
        async with Workers(client if unwatched else watched, connect=connect) as workers:
            archive, jobs = Archive(folder, Retention(), clock), Jobs(client, clock)
            collector = LogCollector(client, workers, jobs, archive, clock=clock)
            reflectors = [*jobs.reflectors, *(() if unwatched else watched.reflectors)]
            tasks = [asyncio.create_task(part) for part in (collector.run(), *(each.run() for each in reflectors))]
            while (followed := sum(places.open for places in collector.streams.values())) < pods:
                await asyncio.sleep(0.5)
                if time.monotonic() - began > PATIENCE:
                    raise SystemExit(f"only {followed} of {pods} containers are followed")
            start_seconds, start_cpu = time.monotonic() - began, time.process_time()
            await asyncio.sleep(2 * collector.settings.interval)
            counts.clear()
            cpu, wall = time.process_time(), time.monotonic()
            await asyncio.sleep(seconds)
            cpu, wall = time.process_time() - cpu, time.monotonic() - wall
            figures = {
                "seconds": round(wall, 1),
                "hub_requests_per_second": round(counts["hub"] / wall, 3),
                "worker_requests_per_second": round(counts["workers"] / wall, 3),
                "requests": dict(counts),
                "cpu_percent_of_a_core": round(100 * cpu / wall, 2),
                "start_seconds": round(start_seconds, 1),
                "start_cpu_seconds": round(start_cpu, 1),
                "memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
            }
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            archive.close()
    return figures


def main() -> None:
    """Measure, and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", type=int, default=200)
    parser.add_argument("--pods", type=int, default=10_000, help="of all workers")
    parser.add_argument("--seconds", type=float, default=120.0, help="that are measured")
    parser.add_argument("--unwatched", action="store_true", help="ask who the workers are at each look")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    flags = parser.parse_args()
    pods = flags.pods // flags.workers * flags.workers
    if flags.serve:
        uvloop.run(serve(flags.workers, pods))
        return
    command = [sys.executable, "-m", "benchmarks.hub.idle", "--serve", f"--workers={flags.workers}", f"--pods={pods}"]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as fleet,
    ):
        url = fleet.stdout.readline().strip() if fleet.stdout else ""
        measured = measure(url, Path(folder) / "data", pods, flags.seconds, unwatched=flags.unwatched)
        figures = uvloop.run(measured)
        if fleet.stdin:
            fleet.stdin.close()
    print(json.dumps({"workers": flags.workers, "pods": pods, **figures}, indent=2))


if __name__ == "__main__":
    main()
