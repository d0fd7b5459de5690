"""The hub server's own process before a fake API server: what a tenant can write is put there, and a user asks."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import yaml

from lab.paths import REPOSITORY
from lab.pki import Authority
from tests.security.test_front_proxy import HEADERS, NAMES, Willing
from tests.unit.hub.hubstage import MULTIKUEUE, reference
from tests.unit.hub.kept import pod
from tests.unit.hub.kubelet import SECOND, START
from trainplane.api import names
from trainplane.hub.apiserver.delegated_auth import CONFIG_MAP
from trainplane.kube.resource import PODS, Key
from trainplane.resources import CONFIG_MAPS, JOB_SETS, JOBS, NAMESPACES, TRAIN_JOBS, WORKLOADS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from trainplane.kube.testing.podlogs import ContainerLogs

Tree = dict[str, Any]

PATIENCE = 60
"""Seconds for what must happen: for a bug, not for pacing."""
ROOT = "/apis/hub.trainplane.dev/v1alpha1"


class HubProcess:
    """A hub, its server's process and its tenants. Made by `hub_process`."""

    def __init__(self, folder: Path, server: Willing, flags: tuple[str, ...]) -> None:
        self.server = server
        self.data = folder / "data"
        self.log = folder / "log"
        self._folder = folder
        self._flags = flags
        self._authority = Authority.create(folder / "pki", "front")
        self._pair = self._authority.issue("front-proxy", "front-proxy")
        self._process: asyncio.subprocess.Process | None = None
        data = {
            "requestheader-client-ca-file": (folder / "pki/ca.crt").read_text(),
            **HEADERS,
            NAMES: '["front-proxy"]',
        }
        server.put(CONFIG_MAPS, {"metadata": {"name": CONFIG_MAP, "namespace": "kube-system"}, "data": data})
        cluster = {"name": "hub", "cluster": {"server": server.url}}
        context = {"name": "hub", "context": {"cluster": "hub"}}
        config = {"current-context": "hub", "contexts": [context], "clusters": [cluster]}
        (folder / "kubeconfig").write_text(yaml.safe_dump(config))

    # -- the process ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the server over what is on the volume, and wait until it serves; raises if it ends instead."""
        pair = self._authority.issue("tls", "hub", hosts=("127.0.0.1",))
        command = [
            *(sys.executable, "-m", "trainplane.hub", f"--kubeconfig={self._folder / 'kubeconfig'}"),
            *(f"--data={self.data}", "--namespace=hub", "--listen=127.0.0.1:0"),
            *(f"--tls-cert-dir={pair.certificate.parent}", *self._flags),
        ]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
        with self.log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(*command, stderr=log, stdout=log, env=environment)
        await self.until("a start", lambda: self.has_ended or self.said("hub server runs"))
        assert not self.has_ended, f"the server does not start: {self.log.read_text()[-3000:]}"

    @property
    def has_ended(self) -> bool:
        return self._process is None or self._process.returncode is not None

    async def kill(self) -> None:
        if self._process is not None:
            if self._process.returncode is None:
                self._process.kill()
            await self._process.wait()

    async def restart(self) -> None:
        await self.kill()
        await self.start()

    def said(self, message: str) -> list[Tree]:
        """Return the log lines of a message."""
        whole = (line for line in self.log.read_text().splitlines(keepends=True) if line.endswith("}\n"))
        lines = [json.loads(line) for line in whole if line.startswith("{")]
        return [line for line in lines if line["msg"] == message]

    async def until(self, what: str, done: Callable[[], object]) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not done():  # noqa: ASYNC110 what another process does has no event here
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"{what}: {self.log.read_text()[-3000:]}") from None

    # -- what is on the hub ---------------------------------------------------------------------------------------

    def put_namespace(self, name: str, uid: str = "") -> None:
        self.server.put(NAMESPACES, {"metadata": {"name": name, "uid": uid or f"ns-{name}"}})

    def put_job(self, namespace: str, name: str, uid: str, *, condition: str = "", cluster: str | None = None) -> None:
        """Store a TrainJob that runs on the hub itself, or was sent to a cluster."""
        conditions = [{"type": condition, "status": "True", "reason": "R", "message": "M"}] if condition else []
        metadata = {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": "2026-11-15T05:00:00Z"}
        spec = {"managedBy": MULTIKUEUE} if cluster else {}
        self.server.put(TRAIN_JOBS, {"metadata": metadata, "spec": spec, "status": {"conditions": conditions}})

    def put_workload(self, namespace: str, name: str, job_uid: str, cluster: str, created: str) -> None:
        labels = {names.LABEL_JOB_UID: job_uid}
        metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels}
        self.server.put(
            WORKLOADS, {"metadata": metadata | {"creationTimestamp": created}, "status": {"clusterName": cluster}}
        )

    def put_owners(self, namespace: str, job: str, uid: str) -> Tree:
        """Store the JobSet and the Job of a TrainJob; return the reference to the Job."""
        owner = reference(TRAIN_JOBS, job, uid)
        for resource, name in ((JOB_SETS, job), (JOBS, f"{job}-node-0")):
            own = f"{resource.plural}-{uid}"
            metadata = {"name": name, "namespace": namespace, "uid": own, "ownerReferences": [owner]}
            self.server.put(resource, {"metadata": metadata})
            owner = reference(resource, name, own)
        return owner

    def put_pod(self, namespace: str, name: str, job: str, owner: Tree | None, **fields: Any) -> ContainerLogs:
        """Store a pod that says it is of a TrainJob; return what it prints to."""
        changes, container = fields.pop("metadata", {}), fields.pop("container", {})
        tree = pod(name, job=job, owner=owner, uid=f"{namespace}-{name}", **fields)
        tree["metadata"] |= {"namespace": namespace, **changes}
        tree["spec"]["containers"][0] |= container
        self.server.put(PODS, tree)
        return self.server.pods.containers[Key(namespace, name), "node"]

    @staticmethod
    def print(logs: ContainerLogs, text: str, count: int = 1, first: int = 0) -> None:
        for number in range(first, first + count):
            logs.write(START + number * SECOND // 50, f"{text} {number}".encode())

    # -- what a user sees -----------------------------------------------------------------------------------------

    async def get(self, namespace: str, path: str) -> tuple[int, str]:
        """Ask for something of a namespace's TrainJobs; return the status and the text."""
        (line,) = self.said("hub server runs")
        context = ssl.create_default_context(cafile=str(self._folder / "pki/ca.crt"))
        context.load_cert_chain(self._pair.certificate, self._pair.key)
        base = f"https://127.0.0.1:{line['port']}"
        async with (
            aiohttp.ClientSession(base, connector=aiohttp.TCPConnector(ssl=context)) as session,
            session.get(f"{ROOT}/namespaces/{namespace}/trainjobs/{path}", headers={"X-Remote-User": "ana"}) as answer,
        ):
            return answer.status, await answer.text()

    async def until_log(self, namespace: str, name: str, lines: int) -> list[str]:
        """Wait until the log of a job has so many lines; return them."""
        found: list[str] = []
        async with asyncio.timeout(PATIENCE):
            while len(found) < lines:
                status, text = await self.get(namespace, f"{name}/log")
                found = text.splitlines() if status == 200 else []
                assert not self.has_ended, self.log.read_text()[-3000:]
        return found

    async def pods(self, namespace: str, name: str) -> list[str]:
        """Return the pods that are shown of a job, once any are."""
        async with asyncio.timeout(PATIENCE):
            while True:
                status, text = await self.get(namespace, f"{name}/pods")
                if status == 200 and json.loads(text)["items"]:
                    return [item["metadata"]["name"] for item in json.loads(text)["items"]]
                assert not self.has_ended, self.log.read_text()[-3000:]


@asynccontextmanager
async def hub_process(folder: Path, *flags: str, start: bool = True) -> AsyncIterator[HubProcess]:
    """Run a hub server's process; nothing of it stays."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(Willing())
        hub = HubProcess(folder, server, flags)
        stack.push_async_callback(hub.kill)
        if start:
            await hub.start()
        yield hub
