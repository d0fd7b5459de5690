"""Why a job is queued, from documents of the hub and of a worker, which may say anything."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from tests.security.fuzz.mutations import Mutator, encode
from tests.security.fuzz.target import BrokenPromiseError, Target
from tests.unit.hub import pending_world as world
from trainplane.api import names
from trainplane.hub.errors import HubError
from trainplane.hub.pending.explain import answer
from trainplane.kube.client import Client
from trainplane.kube.codec import decode
from trainplane.kube.errors import KubeError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

    from trainplane.kube.resource import Resource

Tree = dict[str, Any]


class _Cluster(Client):
    """A cluster that has what a case says, by kind; names and selectors are not looked at, the first is the answer."""

    def __init__(self, objects: Tree) -> None:
        self._objects = objects
        self.is_garbled = False
        """Whether it sent something that is no object."""

    async def get(self, resource: Resource, name: str, namespace: str | None = None, **options: Any) -> Any:  # noqa: ARG002 the client's
        found = self._objects.get(resource.plural)
        if not isinstance(found, list) or not found:
            raise NotFoundError(f"{resource.plural} {name!r} not found")
        return self._decoded(found[0], options.get("type_", dict))

    async def list_all(self, resource: Resource, namespace: str | None = None, **options: Any) -> Any:  # noqa: ARG002 the client's
        found = self._objects.get(resource.plural)
        return self._decoded(found if isinstance(found, list) else [], list[dict[str, Any]])

    def _decoded(self, found: Any, type_: Any) -> Any:
        try:
            return decode(encode(found), type_)
        except KubeError:
            self.is_garbled = True
            raise


class _Workers:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def client(self, name: str) -> Client:  # noqa: ARG002 there is one
        return self._client


def _seed() -> Tree:
    job = world.job(managedBy="kueue.x-k8s.io/multikueue")
    mine = world.workload(clusterName=None, resourceRequests=[{"name": "node", "resources": {world.GPU: "8"}}])
    mine["metadata"]["labels"] = {names.LABEL_JOB_UID: "uid-job"}
    other = world.holder("other", "4")
    queue = world.cluster_queue(
        used="4", cohortName="co", admissionChecksStrategy={"admissionChecks": [{"name": "mk"}]}
    )
    check = world.check("mk", controller=world.MULTIKUEUE, parameters={"kind": "MultiKueueConfig", "name": "mk"})
    event = {
        "metadata": {"name": "e", "creationTimestamp": world.EARLIER},
        "involvedObject": {"kind": "TrainJob", "name": "job"},
        "reason": "r",
        "message": "m",
        "type": "Warning",
    }
    one: Tree = {
        "trainjobs": [job],
        "workloads": [mine, other],
        "localqueues": [world.local_queue()],
        "clusterqueues": [queue],
        "cohorts": [{"metadata": {"name": "co"}, "spec": {}}],
        "resourceflavors": [world.flavor(nodeLabels={"a": "b"}, nodeTaints=[{"key": "k", "effect": "NoSchedule"}])],
        "admissionchecks": [check],
        "multikueueconfigs": [{"metadata": {"name": "mk"}, "spec": {"clusters": ["worker1"]}}],
        "namespaces": [{"metadata": {"name": "team", "labels": {"a": "b"}}}],
        "nodes": [world.node("n1", labels={"a": "b"}), world.node("n2")],
        "events": [event],
    }
    return one


class Queues(Target):
    """Answers to "why is it queued?"."""

    name: ClassVar[str] = "queues"
    cases: ClassVar[int] = 60_000

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._seed = msgspec.json.encode(_seed())

    def close(self) -> None:
        self._loop.close()

    def generate(self, random: Random) -> bytes:
        mutator = Mutator(random)
        hub, worker = msgspec.json.decode(self._seed), msgspec.json.decode(self._seed)
        if mutator.chance(0.3):
            hub["workloads"] = []
        kinds = list(hub)
        for _ in range(mutator.few(3)):
            side = mutator.pick((hub, worker))
            kind = mutator.pick(kinds)
            side[kind] = mutator.tree(side[kind])
        return encode({"hub": hub, "worker": worker})

    def run(self, data: bytes) -> str:
        try:
            case = msgspec.json.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return "no case"
        if not isinstance(case, dict) or not all(isinstance(case.get(side), dict) for side in ("hub", "worker")):
            return "no case"
        hub, worker = _Cluster(case["hub"]), _Cluster(case["worker"])
        try:
            found = self._loop.run_until_complete(answer(hub, "team", "job", _Workers(worker)))  # type: ignore[arg-type] # as far as it asks
        except (HubError, KubeError) as error:
            if worker.is_garbled and not hub.is_garbled:
                raise BrokenPromiseError(f"a worker keeps the hub from answering: {error}") from error
            return type(error).__name__
        msgspec.json.encode(found.to_tree())
        found.to_text().encode()
        return found.state

    def seeds(self) -> Iterable[bytes]:
        """Return the good case."""
        return (b'{"hub":' + self._seed + b',"worker":' + self._seed + b"}",)
