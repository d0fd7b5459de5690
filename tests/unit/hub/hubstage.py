"""A whole hub server before fake clusters: a hub and a worker that are fake API servers, and a user with curl."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp

from lab.pki import Authority
from tests.unit.hub.kept import NAMESPACE_UID, pod
from tests.unit.hub.kubelet import SECOND, START
from tests.unit.kube.io.support import until
from tests.unit.kube.ticking import TickingClock
from trainplane.api import names
from trainplane.hub.apiserver.api import Api
from trainplane.hub.apiserver.delegated_auth import Access, FrontProxy
from trainplane.hub.apiserver.serving import Server
from trainplane.hub.errors import NoSuchWorkerError
from trainplane.hub.kinds import TRAIN_JOB
from trainplane.hub.logarchive.archive import Archive
from trainplane.hub.logarchive.collector import CollectorSettings, LogCollector
from trainplane.hub.logarchive.jobs import Jobs
from trainplane.hub.logarchive.retention import Retention
from trainplane.hub.metrics import HubMetrics
from trainplane.kube.certificates import ServingContext
from trainplane.kube.errors import ForbiddenError
from trainplane.kube.listener import ListenerSettings
from trainplane.kube.metrics import Metrics
from trainplane.kube.resource import PODS, Key
from trainplane.kube.testing.server import FakeServer
from trainplane.kube.transport import TransportSettings
from trainplane.resources import JOB_SETS, JOBS, NAMESPACES, TRAIN_JOBS, WORKLOADS

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from trainplane.hub.kinds import JobKind
    from trainplane.kube.access import User
    from trainplane.kube.client import Client
    from trainplane.kube.resource import Resource
    from trainplane.kube.testing.podlogs import ContainerLogs

ROOT = "/apis/hub.trainplane.dev/v1alpha1"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
QUICK = TransportSettings(attempts=1)
PATIENCE = 60
"""Seconds for what must happen: for a bug, not for pacing."""


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


class FakeWorkers:
    """The workers that a hub has, by name."""

    def __init__(self, clients: dict[str, Client]) -> None:
        self.clients = clients

    async def names(self) -> tuple[str, ...]:
        return tuple(self.clients)

    async def client(self, name: str) -> Client:
        if name not in self.clients:
            raise NoSuchWorkerError(name)
        return self.clients[name]

    async def forget(self, name: str) -> None:
        """Do nothing: who made a client closes it."""


class Rules:
    """Who may do what; everybody everything until told otherwise."""

    def __init__(self) -> None:
        self.denied: set[tuple[str, str]] = set()
        self.asked: list[tuple[User, Access]] = []

    async def check(self, user: User, access: Access) -> None:
        self.asked.append((user, access))
        if (user.name, access.subresource) in self.denied:
            raise ForbiddenError(f'user "{user.name}" cannot {access}')


def reference(resource: Resource, name: str, uid: str) -> dict[str, Any]:
    """Return the reference to an owner that is the controller."""
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**kind, "name": name, "uid": uid, "controller": True}


class HubStage:
    """Use `async with`."""

    def __init__(self, folder: Path, *, kinds: tuple[JobKind, ...] = (TRAIN_JOB,), **settings: Any) -> None:
        self.folder = folder
        self.kinds = kinds
        self.settings = CollectorSettings(**{"interval": 0.05, "flush_interval": 0.05, **settings})
        self.hub = FakeServer()
        self.worker = FakeServer()
        self.rules = Rules()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        stack = self._stack
        self.clock = await stack.enter_async_context(TickingClock())
        for server in (self.hub, self.worker):
            await stack.enter_async_context(server)
        self.hub_client = await stack.enter_async_context(self.hub.client(clock=self.clock))
        self.worker_client = await stack.enter_async_context(self.worker.client(settings=QUICK, clock=self.clock))
        self.workers = FakeWorkers({"worker1": self.worker_client})
        self.authority = Authority.create(self.folder / "pki", "unit")
        self.hub.put(NAMESPACES, {"metadata": {"name": "team", "uid": NAMESPACE_UID}})
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        await self._stack.aclose()

    async def start(self) -> None:
        """Start the hub server, over what an earlier one left."""
        clock = self.clock
        self.archive = Archive(self.folder / "data", Retention(), clock)
        self.jobs = Jobs(self.hub_client, clock, self.kinds)
        self.collector = LogCollector(
            self.hub_client,
            self.workers,  # type: ignore[arg-type]
            self.jobs,
            self.archive,
            clock=clock,
            settings=self.settings,
        )
        api = Api(self.hub_client, self.workers, self.jobs, self.collector, self.archive, self.rules, clock)  # type: ignore[arg-type]
        serving = ServingContext()
        pair = self.authority.issue("serving", "hub", hosts=("127.0.0.1",))
        serving.load(pair.certificate.read_bytes(), pair.key.read_bytes())
        proxy = FrontProxy((self.folder / "pki/ca.crt").read_text(), frozenset({"front-proxy"}))
        listen = ListenerSettings(0, "127.0.0.1", stop_seconds=0.1)
        self.metrics = Metrics(clock)
        counts = HubMetrics(self.metrics.registry, self.collector, self.archive, api.readers)
        self.server = Server(api, proxy, listen, tls=serving, ready=lambda: self.unready, answered=counts.answered)
        self.unready: str | None = None
        await self.server.listener.start()
        self.port = self.server.listener.port
        self._tasks = [
            asyncio.create_task(self.collector.run()),
            *(asyncio.create_task(reflector.run()) for reflector in self.jobs.reflectors),
        ]
        await asyncio.wait_for(self.collector.looked.wait(), PATIENCE)

    async def stop(self) -> None:
        """End the hub server as a kill would: nothing is finished."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.server.listener.stop()
        self.archive.close()

    # -- what there is --------------------------------------------------------------------------------------------

    def put_job(
        self,
        name: str = "x",
        *,
        uid: str = "job-1",
        cluster: str | None = "worker1",
        condition: str = "",
        local: bool = False,
    ) -> None:
        """Store a TrainJob, with a Workload that says where it is."""
        conditions = [{"type": condition, "status": "True", "reason": "R", "message": "M"}] if condition else []
        metadata = {"name": name, "namespace": "team", "uid": uid, "creationTimestamp": "2026-11-15T05:00:00Z"}
        spec = {} if local else {"managedBy": MULTIKUEUE}
        status = {"conditions": conditions, "jobsStatus": [{"name": "node"}]}
        self.hub.put(TRAIN_JOBS, {"metadata": metadata, "spec": spec, "status": status})
        if not local:
            labels = {names.LABEL_JOB_UID: uid}
            meta = {"name": f"trainjob-{uid}", "namespace": "team", "uid": f"w-{uid}", "labels": labels}
            self.hub.put(WORKLOADS, {"metadata": meta, "status": {"clusterName": cluster} if cluster else {}})

    def put_pod(
        self,
        name: str = "x-node-0-0-abcde",
        *,
        server: FakeServer | None = None,
        of: str = "job-1",
        job: str = "x",
        **pod_fields: Any,
    ) -> ContainerLogs:
        """Store a pod on the worker, or on another server, as made for a TrainJob; return what it prints to."""
        server = server or self.worker
        server.put(PODS, pod(name, job=job, owner=self.put_owners(server, of, job), **pod_fields))
        return server.pods.containers[Key("team", name), "node"]

    def put_owners(self, server: FakeServer, of: str, job: str) -> dict[str, Any]:
        """Store what a TrainJob's pods are made by, on a worker with MultiKueue's copy of it; return the last owner."""
        uid = of
        if server is not self.hub:
            uid = f"copy-of-{of}"
            labels = {names.LABEL_MULTIKUEUE_ORIGIN: "multikueue", names.PREBUILT_WORKLOAD: f"trainjob-{of}"}
            server.put(TRAIN_JOBS, {"metadata": {"name": job, "namespace": "team", "uid": uid, "labels": labels}})
        owner = reference(TRAIN_JOBS, job, uid)
        for resource, name in ((JOB_SETS, job), (JOBS, f"{job}-node-0")):
            metadata = {
                "name": name,
                "namespace": "team",
                "uid": f"{resource.plural}-{uid}",
                "ownerReferences": [owner],
            }
            server.put(resource, {"metadata": metadata})
            owner = reference(resource, name, f"{resource.plural}-{uid}")
        return owner

    @staticmethod
    def print(logs: ContainerLogs, count: int, first: int = 0) -> None:
        for number in range(first, first + count):
            logs.write(START + number * SECOND // 50, b"line %d" % number)

    def metric(self, name: str, **labels: str) -> float:
        """Return what a metric shows now."""
        value = self.metrics.registry.get_sample_value(name, labels)
        assert value is not None, name
        return value

    # -- what a user sees -----------------------------------------------------------------------------------------

    def session(self, common_name: str | None = "front-proxy") -> aiohttp.ClientSession:
        context = ssl.create_default_context(cafile=str(self.folder / "pki/ca.crt"))
        if common_name is not None:
            pair = self.authority.issue("client", common_name)
            context.load_cert_chain(pair.certificate, pair.key)
        return aiohttp.ClientSession(f"https://127.0.0.1:{self.port}", connector=aiohttp.TCPConnector(ssl=context))

    async def get(
        self,
        path: str,
        *,
        user: str = "ana",
        common_name: str | None = "front-proxy",
        method: str = "GET",
        **headers: str,
    ) -> Answer:
        async with self.session(common_name) as session:
            url = path if path.startswith("/") else f"{ROOT}/namespaces/team/trainjobs/{path}"
            async with session.request(method, url, headers={"X-Remote-User": user, **headers}) as answer:
                return Answer(answer.status, dict(answer.headers), await answer.read())

    async def until_log(self, lines: int, path: str = "x/log") -> list[str]:
        """Wait until a log has so many lines; return them."""
        async with asyncio.timeout(PATIENCE):
            while True:
                answer = await self.get(path)
                found = answer.text.splitlines() if answer.status == 200 else []
                if len(found) >= lines:
                    return found

    async def until(self, condition: Any) -> None:
        async with asyncio.timeout(PATIENCE):
            await until(condition)
