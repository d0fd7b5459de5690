"""TrainJobs on a cluster: each call is one or two requests, whatever the number of jobs."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, Literal

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.client.backends.kubernetes.collecting import Collector
from trainplane.client.backends.kubernetes.failures import translated
from trainplane.client.backends.kubernetes.hub import Hub
from trainplane.client.backends.kubernetes.logs import Reading
from trainplane.client.backends.kubernetes.mirror import Mirror, pods_of
from trainplane.client.backends.kubernetes.replacing import MANAGER, replace, retrying, scaling
from trainplane.client.backends.kubernetes.runtime_kind import names_kind, with_kind, with_open_kind
from trainplane.client.backends.kubernetes.surveying import Survey
from trainplane.client.backends.kubernetes.wanted import Wanted
from trainplane.client.errors import InvalidError
from trainplane.client.reading.events import choose_events, read_events
from trainplane.client.reading.history import read_history
from trainplane.client.reading.jobs import read_job
from trainplane.client.reading.runtimes import read_runtime
from trainplane.client.reading.timeline import read_timeline
from trainplane.client.together import together
from trainplane.client.types.runtimes import RuntimeKind
from trainplane.explain.facts import Facts
from trainplane.explain.faults import kept_fault
from trainplane.explain.holding import is_held
from trainplane.explain.pods import job_of
from trainplane.explain.standing import is_dispatched
from trainplane.kube import errors as kube
from trainplane.kube.client import Client
from trainplane.kube.clock import SystemClock
from trainplane.kube.codec import key_of
from trainplane.kube.loading import load_config
from trainplane.kube.resource import Key
from trainplane.kube.transport import TransportSettings
from trainplane.lifecycle.conditions import conditions_of, is_finished
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, CONFIG_MAPS, EVENTS, PODS, TRAIN_JOBS, TRAINING_RUNTIMES

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
    from datetime import datetime

    from trainplane.api.tree import Tree
    from trainplane.client.backends.kubernetes.replacing import Change
    from trainplane.client.reading.history import Points
    from trainplane.client.types.backends import KubernetesBackendConfig
    from trainplane.client.types.jobs import Event, LogLine, TrainJob
    from trainplane.client.types.overview import Overview
    from trainplane.client.types.runtimes import Runtime
    from trainplane.kube.clock import Clock
    from trainplane.kube.resource import Resource

_log = logging.getLogger(__name__)
SETTINGS: Final = TransportSettings(streams=4096)
"""A log that is followed holds a stream for each node."""


class KubernetesBackend:
    """A cluster. Nothing is sent before the first call.

    Args:
        config: which cluster and namespace.
        client: a client to use in place of one of its own; whoever gives it closes it.
        clock: time, for tests.
    """

    def __init__(
        self, config: KubernetesBackendConfig, *, client: Client | None = None, clock: Clock | None = None
    ) -> None:
        self._own = client is None
        self._client = client or Client.connect(_cluster(config), settings=SETTINGS, clock=clock)
        self._clock = clock or SystemClock()
        self.namespace = config.namespace or self._client.namespace
        self._hub = Hub(self._client, self.namespace)

    @property
    def kind(self) -> Literal["kubernetes"]:
        """Where options must work that this backend is given."""
        return "kubernetes"

    # -- runtimes -------------------------------------------------------------------------------------------------

    async def list_runtimes(self) -> list[Runtime]:
        """Return the runtimes, by name: a namespace's in place of the cluster's of the same name."""
        found: dict[str, Runtime] = {}
        for kind, trees_ in (await self._runtime_trees()).items():
            found |= _runtimes(trees_, kind)
        return [found[name] for name in sorted(found)]

    async def list_runtime_documents(self) -> list[Tree]:
        """Return the runtimes as the API server has them, the cluster's first."""
        return [
            {"apiVersion": names.API_VERSION, "kind": kind.value, **tree}
            for kind, trees_ in (await self._runtime_trees()).items()
            for tree in trees_
        ]

    async def _runtime_trees(self) -> dict[RuntimeKind, list[Tree]]:
        with translated("runtimes cannot be listed"):
            shared, own = await asyncio.gather(
                self._client.list_all(CLUSTER_TRAINING_RUNTIMES, limit=0),
                self._client.list_all(TRAINING_RUNTIMES, self.namespace, limit=0),
                return_exceptions=True,
            )
            shared, own = _allowed(shared, own)
        return {RuntimeKind.CLUSTER_TRAINING_RUNTIME: shared, RuntimeKind.TRAINING_RUNTIME: own}

    async def get_runtime(self, name: str) -> Runtime:
        """Return a runtime: the namespace's, else the cluster's."""
        return read_runtime(await self.runtime_document({"spec": {"runtimeRef": {"name": name}}}))

    async def _runtime_of(self, job: Tree) -> Runtime | None:
        """Return the runtime that a TrainJob names; None if it is gone, or cannot be read."""
        try:
            return read_runtime(await self._named_runtime(job))
        except (kube.ApiError, InvalidError, ValueError):
            return None

    async def _named_runtime(self, job: Tree) -> Tree:
        ref = trees.fields(job, "spec", "runtimeRef")
        name = str(ref.get("name") or "")
        if ref.get("kind") == names.TRAINING_RUNTIME:
            return await self._client.get(TRAINING_RUNTIMES, name, self.namespace)
        return await self._client.get(CLUSTER_TRAINING_RUNTIMES, name)

    async def runtime_document(self, job: Tree) -> Tree:
        """Return the runtime that a TrainJob's document names, as it is now; by name alone the namespace's first."""
        ref = trees.fields(job, "spec", "runtimeRef")
        missing = (
            f"there is no {ref.get('kind') or 'runtime'} {ref.get('name')}, neither of namespace {self.namespace} nor "
            "of the cluster: list_runtimes() says which there are"
        )
        with translated(f"runtime {ref.get('name')} cannot be read", missing=missing):
            if not names_kind(job):
                try:
                    return await self._named_runtime(with_kind(job, names.TRAINING_RUNTIME))
                except kube.NotFoundError:
                    pass
            return await self._named_runtime(job)

    # -- what changes things --------------------------------------------------------------------------------------

    async def submit(self, job: Tree) -> str:
        """Create a TrainJob; returns its name.

        A runtime by name alone may be the namespace's or the cluster's: our operator is asked to choose (see
        `with_open_kind`); another operator takes the cluster's, and if it refuses and there is none, the namespace's
        is named in a second request.
        """
        name = str(trees.get(job, "metadata", "name"))
        with translated(f"TrainJob {name} cannot be created"):
            try:
                created = await self._create(with_open_kind(job))
            except (kube.ForbiddenError, kube.InvalidError) as refusal:
                if names_kind(job) or not await self._lacks(CLUSTER_TRAINING_RUNTIMES, job):
                    raise
                try:
                    created = await self._create(with_kind(job, names.TRAINING_RUNTIME))
                except kube.ApiError as second:
                    raise (refusal if await self._lacks(TRAINING_RUNTIMES, job) else second) from None
        _say_if_not_queued(created)
        return str(created["metadata"]["name"])

    async def _lacks(self, kind: Resource, job: Tree) -> bool:
        """Return whether there is no runtime of a kind with the name that a TrainJob gives, as far as can be seen."""
        name = str(trees.get(job, "spec", "runtimeRef", "name"))
        try:
            await self._client.get(kind, name, self.namespace if kind.namespaced else None, type_=bytes)
        except kube.NotFoundError:
            return True
        except kube.KubeError:
            return False
        return False

    async def _create(self, job: Tree) -> Tree:
        """Create a TrainJob, once: where the answer is lost, look whether it is there."""
        try:
            return await self._client.create(TRAIN_JOBS, job, self.namespace, field_manager=MANAGER)
        except kube.TransportError as lost:
            try:
                found = await self._client.get(TRAIN_JOBS, job["metadata"]["name"], self.namespace)
            except kube.KubeError:
                raise lost from None
            if trees.get(found, "spec", "trainer") != trees.get(job, "spec", "trainer"):
                raise
            return found

    async def patch_job(self, name: str, patch: Tree) -> None:
        """Merge-patch a TrainJob."""
        with translated(f"TrainJob {name} cannot be changed", missing=self._missing(name)):
            await self._client.patch(TRAIN_JOBS, name, patch, self.namespace, field_manager=MANAGER, type_=bytes)

    async def scale_job(self, name: str, num_nodes: int) -> None:
        """Let a TrainJob start again with another number of nodes."""

        async def is_done(job: Tree) -> bool:
            return await self._nodes_of(job) == num_nodes

        with translated(f"TrainJob {name} cannot be scaled to {num_nodes}", missing=self._missing(name)):
            await self._replace(name, scaling(num_nodes), is_done)

    async def restart_job(self, name: str) -> None:
        """Create a TrainJob that is over again, in its place."""

        async def is_done(_: Tree) -> bool:
            return False

        with translated(f"TrainJob {name} cannot be retried", missing=self._missing(name)):
            await self._replace(name, retrying(), is_done)

    async def _replace(self, name: str, change: Change, is_done: Callable[[Tree], Awaitable[bool]]) -> None:
        options: Any = {"clock": self._clock, "create": self._create, "is_done": is_done}
        await replace(self._client, self.namespace, name, change, **options)

    async def _nodes_of(self, job: Tree) -> int | None:
        """Return how many nodes a TrainJob has; None where neither it nor a runtime says so."""
        said = trees.number(job, "spec", "trainer", "numNodes")
        if said is not None:
            return said
        runtime = await self._runtime_of(job)
        return runtime.trainer.num_nodes if runtime else None

    async def delete_job(self, name: str) -> None:
        """Delete a TrainJob; what it is made of follows."""
        with translated(f"TrainJob {name} cannot be deleted", missing=self._missing(name)):
            await self._client.delete(TRAIN_JOBS, name, self.namespace, type_=bytes)

    # -- what is seen ---------------------------------------------------------------------------------------------

    async def list_jobs(
        self, runtime: str | None = None, *, labels: str | None = None, everywhere: bool = False
    ) -> list[TrainJob]:
        """Return the TrainJobs, oldest first: one request for them, and one for their pods.

        On a hub, what is dispatched is asked of the hub view in place of pods, or beside them where there are both.

        Args:
            runtime: only those that run on it.
            labels: only those that a selector of Kubernetes chooses, such as `team=vision`.
            everywhere: of every namespace, in place of the backend's own.
        """
        namespace = None if everywhere else self.namespace
        with translated("TrainJobs cannot be listed"):
            jobs = await self._documents(namespace, runtime, labels)
            local = not all(map(is_dispatched, jobs))
            pods, views = await together(
                self._client.list_all(PODS, namespace, labels=names.LABEL_JOBSET_NAME, limit=0)
                if local
                else _nothing([]),
                self._hub.views(namespace) if any(map(is_dispatched, jobs)) else _nothing({}),
            )
        by_job: dict[Key, list[Tree]] = {}
        for pod in pods:
            by_job.setdefault(Key(key_of(pod).namespace, job_of(pod) or ""), []).append(pod)
        found = [
            read_job(job, pods_of(job, by_job.get(key, ())), runtime=None, view=views.get(key))
            for key, job in ((key_of(job), job) for job in jobs)
        ]
        return sorted(found, key=lambda job: (job.creation_timestamp, job.namespace, job.name))

    async def list_documents(
        self, runtime: str | None = None, *, labels: str | None = None, everywhere: bool = False
    ) -> list[Tree]:
        """Return the TrainJobs as the API server has them; chosen as in `list_jobs`."""
        with translated("TrainJobs cannot be listed"):
            found = await self._documents(None if everywhere else self.namespace, runtime, labels)
        return [{"apiVersion": TRAIN_JOBS.api_version, "kind": TRAIN_JOBS.kind, **tree} for tree in found]

    async def _documents(self, namespace: str | None, runtime: str | None, labels: str | None) -> list[Tree]:
        found: list[Tree] = await self._client.list_all(TRAIN_JOBS, namespace, labels=labels, limit=0)
        if runtime is None:
            return found
        return [job for job in found if trees.get(job, "spec", "runtimeRef", "name") == runtime]

    async def get_document(self, name: str) -> Tree:
        """Return a TrainJob as the API server has it."""
        with translated(f"TrainJob {name} cannot be read", missing=self._missing(name)):
            found: Tree = await self._client.get(TRAIN_JOBS, name, self.namespace)
        return found

    async def get_job(self, name: str) -> TrainJob:
        """Return a TrainJob: itself, its pods, its runtime.

        Where it failed and its status does not keep the first fault, logs too, and events where pods are gone.
        """
        with translated(f"TrainJob {name} cannot be read", missing=self._missing(name)):
            job, pods, view = await self._look(name)
            runtime = await self._runtime_of(job)
            found = read_job(job, pods, runtime=runtime, view=view)
            if is_finished(conditions_of(job)) and found.cause and not (kept_fault(job) or kept_fault(view)):
                if found.cause.step is None:
                    found = read_job(job, pods, runtime=runtime, view=view, events=await self._events(job, pods))
                else:
                    reading = Reading(self._client, self._hub, self.namespace, self._clock)
                    logs = await Collector(reading).read_logs(job, pods)
                    found = read_job(job, pods, runtime=runtime, view=view, logs=logs)
        if found.progress is not None:
            found.metrics_history = await self._history(name)
        found.timeline = read_timeline(Facts(job, pods, view=view), found.metrics_history)
        return found

    async def _history(self, name: str) -> Mapping[str, Points]:
        """Return the points of a TrainJob's metrics; none where there are none, or we may not see them."""
        try:
            kept = await self._client.get(CONFIG_MAPS, names.history_name(name), self.namespace)
        except kube.KubeError:
            return {}
        return read_history(kept)

    async def watch_job(self, name: str) -> AsyncGenerator[TrainJob, None]:
        """Yield the TrainJob as it is, then after each change that shows, until it is deleted."""
        last: TrainJob | None = None
        async with Mirror(self._client, self.namespace, name, self._hub, self._clock) as mirror:
            runtime = await self._runtime_of(mirror.job)
            while not mirror.gone:
                news = mirror.news.next
                job = read_job(mirror.job, mirror.pods, runtime=runtime, view=mirror.view)
                if job != last:
                    last = job
                    yield job
                await mirror.wait(news)

    async def read_logs(
        self,
        name: str,
        steps: Sequence[str] | None,
        *,
        follow: bool,
        tail: int | None = None,
        since: datetime | None = None,
        previous: bool = False,
    ) -> AsyncGenerator[LogLine, None]:
        """Yield what the steps printed, merged in the order of time; `tail`: only the last lines of each step."""
        wanted = Wanted(None if steps is None else frozenset(steps), tail, since, previous)
        reading = Reading(self._client, self._hub, self.namespace, self._clock)
        if follow:
            lines = reading.follow(name, wanted)
        else:
            with translated(f"logs of TrainJob {name} cannot be read", missing=self._missing(name)):
                job, pods, _ = await self._look(name)
            if is_dispatched(job):
                await self._hub.need(name)
            lines = reading.now(job, pods, wanted)
        async with aclosing(lines):
            async for line in lines:
                if wanted.has_line(line):
                    yield line

    async def list_events(self, name: str) -> list[Event]:
        """Return what happened to the TrainJob and to what it is made of, in the order of time."""
        with translated(f"events of TrainJob {name} cannot be listed", missing=self._missing(name)):
            job = await self._client.get(TRAIN_JOBS, name, self.namespace)
            return read_events(await self._events(job, ()))

    async def collect(self, name: str) -> Facts:
        """Return all that is known of the TrainJob, with the last lines of its steps."""
        with translated(f"TrainJob {name} cannot be read", missing=self._missing(name)):
            job, pods, view = await self._look(name)
            events, queue = await together(
                self._events(job, pods), self._hub.queue(name) if is_held(job, view) else _nothing(None)
            )
            reading = Reading(self._client, self._hub, self.namespace, self._clock)
            return await Collector(reading).collect(job, pods, events=events, view=view, queue=queue)

    async def explain_queue(self, name: str) -> Tree | None:
        """Return why the TrainJob is queued, as the hub's API answers; None where there is no such API."""
        return await self._hub.queue(name)

    async def survey(self, *, whole: bool = True) -> Overview:
        """Return the cluster at a glance, as far as the caller may see it."""
        return await Survey(self._client, self.namespace, whole=whole).look()

    async def close(self) -> None:
        """Close every connection."""
        if self._own:
            await self._client.close()

    async def _look(self, name: str) -> tuple[Tree, list[Tree], Tree | None]:
        """Return a TrainJob, its pods and, if it is dispatched, the hub's view of it."""
        labels = {names.LABEL_JOBSET_NAME: name}
        job, pods = await together(
            self._client.get(TRAIN_JOBS, name, self.namespace),
            self._client.list_all(PODS, self.namespace, labels=labels, limit=0),
        )
        if not is_dispatched(job):
            return job, pods_of(job, pods), None
        view, remote = await self._hub.look(name)
        return job, remote, view

    async def _events(self, job: Tree, pods: Sequence[Tree]) -> list[Tree]:
        if is_dispatched(job):
            found = await self._hub.events(str(trees.get(job, "metadata", "name")))
            if found is not None:
                return found
        return choose_events(await self._client.list_all(EVENTS, self.namespace), job, pods)

    def _missing(self, name: str) -> str:
        return f"there is no TrainJob {name} in namespace {self.namespace}"


def _cluster(config: KubernetesBackendConfig) -> Any:
    if config.client_configuration is not None:
        return config.client_configuration
    try:
        return load_config(config.config_file, context=config.context)
    except kube.ConfigError as error:
        raise InvalidError(f"{error}. To run on this machine, give LocalProcessBackendConfig()") from error


def _allowed(*answers: list[Tree] | BaseException) -> list[list[Tree]]:
    """Return lists, empty where the caller may not see one, which is logged; raises if none may be seen, and else."""
    failed = [one for one in answers if isinstance(one, BaseException)]
    for one in failed:
        if not isinstance(one, kube.ForbiddenError) or len(failed) == len(answers):
            raise one
        _log.warning("not all runtimes are shown: %s", one)
    return [[] if isinstance(one, BaseException) else one for one in answers]


async def _nothing(value: Any) -> Any:
    return value


def _runtimes(trees_: Sequence[Tree], kind: RuntimeKind) -> dict[str, Runtime]:
    """Return runtimes by name; what no TrainJob can run on is left out."""
    found = {}
    for tree in trees_:
        try:
            runtime = read_runtime({**tree, "kind": kind.value})
        except InvalidError:
            continue
        found[runtime.name] = runtime
    return found


def _say_if_not_queued(created: Tree) -> None:
    """Log that a queue holds nothing: Kueue suspends what it queues as it is created."""
    queue = trees.get(created, "metadata", "labels", names.LABEL_QUEUE)
    if queue and not trees.get(created, "spec", "suspend"):
        _log.warning(
            "TrainJob %s is in no queue and runs at once: Kueue did not take it into %s. Kueue is not installed here, "
            "or does not manage TrainJobs of this namespace: ask an admin, or leave the queue out",
            trees.get(created, "metadata", "name"),
            queue,
        )
