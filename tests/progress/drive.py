"""Report as many pods do: `python drive.py KUBECONFIG JOBS SECONDS RESULT URL...`.

Makes TrainJobs, waits for their JobSets, gives each a pod (an object, nobody runs it) and a token that is bound to it,
as the kubelet would. Then every pod reports every five seconds, to any of the servers: nine of ten on a connection that
they keep, as the official SDK does, one on a new one each time. Times are this process's own.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import uvloop

from trainplane.api import names
from trainplane.kube.client import Client
from trainplane.kube.loading import load_config
from trainplane.kube.resource import PODS, Resource

NAMESPACE = "reporting"
PERIOD = 5.0
WRITERS = 32
LAST_SECONDS = 30.0
"""Seconds within which the last report of each must be there: one turn of ten seconds for each replica, and some."""
TRAIN_JOBS = Resource("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob")
JOB_SETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")
JOBS = Resource("batch", "v1", "jobs", "Job")
NOBODY = "trainplane.dev/nobody"


class Stage:
    """The TrainJobs and their tokens."""

    def __init__(self, client: Client, jobs: int) -> None:
        self.client = client
        self.names = [f"job-{number}" for number in range(jobs)]
        self.tokens: dict[str, str] = {}

    async def set_up(self) -> None:
        """Make everything, and wait until it is there."""
        await self._each(self._create)
        while True:
            found = {one["metadata"]["name"]: one for one in await self.client.list_all(JOB_SETS, NAMESPACE)}
            if len(found) == len(self.names):
                break
            await asyncio.sleep(0.5)
        container = {"name": "node", "image": "none"}
        template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
        spec = {"managedBy": NOBODY, "template": template}
        owner = await self._make(JOBS, {"name": "all"}, spec)
        reference = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": "all",
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }

        async def give_token(name: str) -> None:
            labels = {names.LABEL_JOBSET_UID: found[name]["metadata"]["uid"], names.LABEL_JOBSET_NAME: name}
            meta = {"name": f"{name}-node-0-0-x", "labels": labels, "ownerReferences": [reference]}
            unplaced = {"containers": [container], "schedulerName": NOBODY, "automountServiceAccountToken": False}
            pod = await self._make(PODS, meta, unplaced)
            bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": pod["metadata"]["uid"]}
            request = {"audiences": [names.status_audience(NAMESPACE, name)], "boundObjectRef": bound}
            path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default/token"
            answer = await self.client.raw("POST", path, body={"spec": {**request, "expirationSeconds": 3600}})
            self.tokens[name] = json.loads(answer.body)["status"]["token"]

        await self._each(give_token)

    async def _create(self, name: str) -> None:
        trainer = {"numNodes": 4, "image": "registry.example.test/image:1", "command": ["torchrun", "train.py"]}
        spec = {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer}
        await self._make(TRAIN_JOBS, {"name": name}, spec)

    async def _make(self, resource: Resource, meta: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
        tree = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "spec": spec}
        return await self.client.create(resource, tree, NAMESPACE)

    async def _each(self, act: Any) -> None:
        waiting = iter(self.names)

        async def work() -> None:
            for name in waiting:
                await act(name)

        await asyncio.gather(*(work() for _ in range(WRITERS)))


class Crowd:
    """The pods that report."""

    def __init__(self, stage: Stage, urls: list[str], context: ssl.SSLContext) -> None:
        self.stage, self.urls, self.context = stage, urls, context
        self.waits: list[float] = []
        self.codes: dict[int, int] = {}
        self.last: dict[str, int] = {}

    async def run(self, seconds: float) -> None:
        """Report for so many seconds, each pod at its own moments."""
        kept = aiohttp.TCPConnector(limit=0, ssl=self.context, keepalive_timeout=60)
        fresh = aiohttp.TCPConnector(limit=0, ssl=self.context, force_close=True)
        end = time.monotonic() + seconds
        async with aiohttp.ClientSession(connector=kept) as one, aiohttp.ClientSession(connector=fresh) as other:
            each = enumerate(self.stage.names)
            await asyncio.gather(*(self._report(other if n % 10 == 0 else one, name, end) for n, name in each))

    async def _report(self, session: aiohttp.ClientSession, name: str, end: float) -> None:
        headers = {"Authorization": f"Bearer {self.stage.tokens[name]}", "Content-Type": "application/json"}
        await asyncio.sleep(random.uniform(0, PERIOD))  # noqa: S311 no secret
        step = 0
        while time.monotonic() < end:
            step += 1
            metrics = [{"name": key, "value": str(random.random())} for key in ("loss", "lr", "grad_norm", "epoch")]  # noqa: S311 as above
            status = {
                "progressPercentage": step % 101,
                "metrics": metrics,
                "lastUpdatedTime": datetime.now(UTC).isoformat(),
            }
            url = random.choice(self.urls) + names.status_path(NAMESPACE, name)  # noqa: S311 as above
            began = time.monotonic()
            try:
                async with session.post(url, data=json.dumps({"trainerStatus": status}), headers=headers) as answer:
                    code = answer.status
                    await answer.read()
            except aiohttp.ClientError:
                code = 0
            self.waits.append(time.monotonic() - began)
            self.codes[code] = self.codes.get(code, 0) + 1
            if code == 200:
                self.last[name] = step % 101
            await asyncio.sleep(max(0.0, began + PERIOD - time.monotonic()))


async def main(kubeconfig: str, jobs: int, seconds: float, result: Path, urls: list[str]) -> None:
    """Set up, say so, report, wait for the last of it to be written, and tell what was seen."""
    async with Client.connect(load_config(kubeconfig)) as client:
        stage = Stage(client, jobs)
        await stage.set_up()
        result.with_suffix(".ready").touch()
        while not result.with_suffix(".go").exists():  # noqa: ASYNC110 another process says so
            await asyncio.sleep(0.05)
        context = ssl.create_default_context(cafile=str(result.parent / "pki/ca.crt"))
        crowd = Crowd(stage, urls, context)
        began = time.time()
        await crowd.run(seconds)
        ended = time.time()
        result.with_suffix(".reported").touch()
        lost = jobs
        while lost and time.time() < ended + LAST_SECONDS:
            await asyncio.sleep(1)
            lost = 0
            for job in await client.list_all(TRAIN_JOBS, NAMESPACE):
                shown = ((job.get("status") or {}).get("trainerStatus") or {}).get("progressPercentage")
                lost += shown != crowd.last.get(job["metadata"]["name"])
    waits = sorted(crowd.waits)
    figures = {
        "began": began,
        "ended": ended,
        "reports": len(waits),
        "codes": crowd.codes,
        "p50_ms": waits[len(waits) // 2] * 1000,
        "p99_ms": waits[int(len(waits) * 0.99)] * 1000,
        "lost": lost,
    }
    partial = result.with_suffix(".partial")
    partial.write_text(json.dumps(figures))
    partial.rename(result)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]), sys.argv[5:]))
