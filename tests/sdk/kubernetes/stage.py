"""A namespace, a backend whose requests are counted, and TrainJobs that run a line of shell."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from lab.images import reference as image
from trainplane.client.backends.kubernetes import KubernetesBackend
from trainplane.client.types.backends import KubernetesBackendConfig
from trainplane.kube.client import Client
from trainplane.kube.errors import KubeError
from trainplane.kube.loading import load_config
from trainplane.kube.resource import PODS
from trainplane.kube.transport import Transport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path
    from typing import Self

    from lab.cluster import Cluster
    from trainplane.client.types.jobs import Event, LogLine, TrainJob

Tree = dict[str, Any]

PATIENCE = 180.0
"""Seconds that anything may take on a busy machine of two cores."""
API = "trainer.kubeflow.org/v1alpha1"


def runtime(name: str, program: str, *, kind: str = "TrainingRuntime", backoff: int = 0, **pod: Any) -> Tree:
    """Return a runtime that runs a shell program; `pod` adds to its pod's spec, `container` to its container.

    Its Job fails after more than `backoff` failures: those of a container that its kubelet starts again count too.
    """
    container = {
        "name": "node",
        "image": image("python"),
        "imagePullPolicy": "Never",
        "command": ["bash", "-c", program],
        **pod.pop("container", {}),
    }
    spec = {"terminationGracePeriodSeconds": 0, "restartPolicy": "Never", "containers": [container], **pod}
    job = {
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"backoffLimit": backoff, "template": {"spec": spec}},
        },
    }
    return {
        "apiVersion": API,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": [job]}}},
    }


def train_job(name: str, runtime: str = "shell", *, kind: str | None = "TrainingRuntime", **spec: Any) -> Tree:
    """Return a TrainJob document as the SDK composes it."""
    ref = {"name": runtime, "kind": kind} if kind else {"name": runtime}
    return {"apiVersion": API, "kind": "TrainJob", "metadata": {"name": name}, "spec": {"runtimeRef": ref, **spec}}


class Stage:
    """See the module's docstring."""

    def __init__(self, cluster: Cluster, namespace: str, kubeconfig: Path | None = None) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.requests = 0
        config = load_config(kubeconfig or cluster.kubeconfig)
        self.client = Client(Transport(config, requested=self._count))
        self.backend = KubernetesBackend(KubernetesBackendConfig(namespace=namespace), client=self.client)

    def _count(self, *_: object) -> None:
        self.requests += 1

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()

    def apply(self, *documents: Tree) -> None:
        """Apply objects in the namespace, as an admin."""
        for document in documents:
            document["metadata"].setdefault("namespace", self.namespace)
            if document["kind"] == "ClusterTrainingRuntime":
                del document["metadata"]["namespace"]
        self.cluster.apply(*documents)

    async def tell(self, name: str) -> None:
        """Let the pods of a TrainJob go on.

        One may have gone on and ended before we hear that the file is there: the test sees it end.
        """
        labels = {"jobset.sigs.k8s.io/jobset-name": name}
        for pod in await self.client.list_all(PODS, self.namespace, labels=labels):
            with suppress(KubeError):
                await self.client.exec(self.namespace, pod["metadata"]["name"], ["touch", "/tmp/go"], container="node")

    async def wait(self, name: str, *statuses: str) -> TrainJob:
        """Wait until a TrainJob has one of these statuses, as its watch says."""
        return await self.shown(name, " or ".join(statuses), lambda job: job.status in statuses)

    async def shown(self, name: str, what: str, holds: Callable[[TrainJob], bool]) -> TrainJob:
        """Wait until a TrainJob is as it should be, as its watch says."""
        async with asyncio.timeout(PATIENCE), aclosing(self.backend.watch_job(name)) as changes:
            async for job in changes:
                if holds(job):
                    return job
        message = f"TrainJob {name} was deleted before it was {what}"
        raise AssertionError(message)

    async def told(self, name: str, *news: tuple[str, str], words: str = "") -> list[Event]:
        """Return the events of a TrainJob once these are among them: they follow a moment after what they tell of.

        Each is named by the kind of what it is about, and its reason; `words` stand in the message of one.
        """
        async with asyncio.timeout(PATIENCE):
            while True:
                events = await self.backend.list_events(name)
                there = {(event.involved_object_kind, event.reason) for event in events} >= set(news)
                if there and any(words in event.message for event in events):
                    return events
                await asyncio.sleep(0.2)

    async def logs(self, name: str, *, follow: bool = False, **others: Any) -> list[LogLine]:
        """Return the lines of all steps, or of `steps`."""
        lines = self.backend.read_logs(name, others.pop("steps", None), follow=follow, **others)
        async with asyncio.timeout(PATIENCE):
            return [line async for line in lines]

    async def until(self, lines: AsyncIterator[LogLine], into: list[LogLine], count: int) -> None:
        """Read so many lines of a log that is followed."""
        async with asyncio.timeout(PATIENCE):
            async for line in lines:
                into.append(line)
                if len(into) >= count:
                    return


@asynccontextmanager
async def staged(cluster: Cluster, name: str) -> AsyncIterator[Stage]:
    """Make a namespace of the test's own with a backend; it is deleted afterwards, without waiting."""
    namespace = f"{name}-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", namespace)
    async with Stage(cluster, namespace) as stage:
        yield stage
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")


def texts(lines: list[LogLine], step: str) -> list[str]:
    """Return what a step printed."""
    return [line.text for line in lines if line.step == step]


def count_late(lines: list[LogLine]) -> int:
    """Return how often a line comes after one of a later time."""
    times = [line.time for line in lines if line.time is not None]
    assert len(times) == len(lines)
    return sum(one > other for one, other in itertools.pairwise(times))
