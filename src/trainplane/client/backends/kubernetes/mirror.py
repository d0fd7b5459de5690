"""One TrainJob and its pods, kept as they are by watches, for as long as somebody looks.

Broken connections, restarted API servers and forgotten versions are the reflectors' business (`kube.reflector`). Pods
of a dispatched job are on another cluster, and the hub view cannot be watched: the view, which is small, is asked for
when the TrainJob changes, and every two seconds while it is not over. Its pods, of which there may be thousands, are
asked for when the view or the TrainJob tells of a change, and else more and more seldom: what neither tells, why a pod
still waits say, is seen so.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.moments import BEGINNING, read_moment
from trainplane.client.backends.kubernetes.failures import translate
from trainplane.client.errors import NotFoundError
from trainplane.explain.pods import created
from trainplane.explain.standing import is_dispatched
from trainplane.kube.backoff import Backoff
from trainplane.kube.errors import ForbiddenError, KubeError, UnauthorizedError
from trainplane.kube.notifier import Notifier
from trainplane.kube.observer import Unobserved
from trainplane.kube.reflector import Reflector, ReflectorSettings
from trainplane.kube.resource import Key
from trainplane.kube.store import Store
from trainplane.lifecycle.conditions import conditions_of, is_finished
from trainplane.resources import PODS, TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from trainplane.api.tree import Tree
    from trainplane.client.backends.kubernetes.hub import Hub
    from trainplane.client.errors import TrainplaneError
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.resource import Resource
    from trainplane.kube.store import Change

POLL_SECONDS: Final = 2.0
"""Seconds between two looks at the hub view of a TrainJob."""
LONGEST_SECONDS: Final = 30.0
"""Seconds after which its pods are asked for although nothing told of a change; it begins with POLL_SECONDS."""
SETTINGS: Final = ReflectorSettings(backoff=Backoff(base=0.2, cap=5.0))
"""One client waits for one job: it may knock sooner than an operator."""


def pods_of(job: Tree, pods: Iterable[Tree]) -> list[Tree]:
    """Return the pods that are not an earlier TrainJob's of the same name, on their way out."""
    since = read_moment(trees.get(job, "metadata", "creationTimestamp")) or BEGINNING
    return [pod for pod in pods if created(pod) >= since]


class Mirror:
    """See the module's docstring. `async with`; wait for `news` and read `job`, `pods` and `view` again.

    Entering raises NotFoundError if there is no such TrainJob, and what else keeps it from being watched.
    """

    def __init__(self, client: Client, namespace: str, name: str, hub: Hub, clock: Clock) -> None:
        self.name = name
        self.gone = False
        """The TrainJob was deleted."""
        self.error: TrainplaneError | None = None
        """Why it cannot be watched any more."""
        self.view: Tree | None = None
        self.news = Notifier()
        self._key = Key(namespace, name)
        self._hub = hub
        self._clock = clock
        self._uid = ""
        self._jobs = Store(TRAIN_JOBS)
        self._pods: dict[Key, Tree] = {}
        self._remote: list[Tree] = []
        self._last: Tree = {}
        self._refused = asyncio.Event()
        observer = _Refusals(self)
        fields, labels = {"metadata.name": name}, {names.LABEL_JOBSET_NAME: name}
        common = {"namespace": namespace, "settings": SETTINGS, "observer": observer}
        self._reflectors = (
            Reflector(client, TRAIN_JOBS, self._jobs, [self._on_job], clock, fields=fields, **common),  # type: ignore[arg-type] # a dict of several types
            Reflector(client, PODS, Store(PODS), [self._on_pod], clock, labels=labels, **common),  # type: ignore[arg-type] # as above
        )
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def job(self) -> Tree:
        """The TrainJob; as last seen, once it is gone."""
        entry = self._jobs.entry(self._key)
        if entry is not None and entry.uid == (self._uid or entry.uid):
            self._last = entry.decode(dict)
        return self._last

    @property
    def pods(self) -> list[Tree]:
        """Its pods; of a dispatched job those that the hub shows, also former ones."""
        if is_dispatched(self.job):
            return self._remote
        return pods_of(self.job, self._pods.values())

    @property
    def is_over(self) -> bool:
        """Whether the TrainJob has finished or is gone, so that no pod of it will start any more."""
        return self.gone or is_finished(conditions_of(self.job))

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(_run(reflector)) for reflector in self._reflectors]
        try:
            await self._begin()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def wait(self, news: asyncio.Event, seconds: float | None = None) -> None:
        """Wait for news, so many seconds at most; raises `error`."""
        if self.error is None:
            with contextlib.suppress(TimeoutError):
                async with self._clock.timeout(seconds) if seconds is not None else contextlib.nullcontext():
                    await news.wait()
        if self.error is not None:
            raise self.error

    def refuse(self, resource: Resource, error: Exception) -> None:
        """Take note that a watch failed: what will not mend by itself ends the mirror, and so does a bad beginning."""
        hopeless = isinstance(error, ForbiddenError | UnauthorizedError)
        if isinstance(error, KubeError) and (hopeless or not self._uid):
            self.error = translate(error, f"{resource.plural} of TrainJob {self.name} cannot be watched")
            self._refused.set()
            self.news.notify()

    async def _begin(self) -> None:
        synced, refused = asyncio.create_task(self._synced()), asyncio.create_task(self._refused.wait())
        try:
            await asyncio.wait((synced, refused), return_when=asyncio.FIRST_COMPLETED)
        finally:
            synced.cancel()
            refused.cancel()
        if self.error is not None:
            raise self.error
        uid = self._jobs.uid(self._key)
        if uid is None:
            raise NotFoundError(f"there is no TrainJob {self.name} in namespace {self._key.namespace}")
        self._uid = uid
        if is_dispatched(self.job):
            self.view, self._remote = await self._hub.look(self.name)
            self._tasks.append(asyncio.create_task(self._poll()))

    async def _synced(self) -> None:
        for reflector in self._reflectors:
            await reflector.synced.wait()

    async def _poll(self) -> None:
        gap = POLL_SECONDS
        due = self._clock.monotonic() + gap
        while True:
            over, before = self.is_over, self.job
            await self._pause()
            view, pods = await self._hub.view(self.name), self._remote
            changed = _told(view) != _told(self.view) or self.job != before
            if changed or over or self._clock.monotonic() >= due:
                pods = await self._hub.pods(self.name) or []
                gap = POLL_SECONDS if changed else min(2 * gap, LONGEST_SECONDS)
                due = self._clock.monotonic() + gap
            if (view, pods) != (self.view, self._remote) and (view or pods):
                self.view, self._remote = view, pods
                self.news.notify()
            if over:
                return

    async def _pause(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with self._clock.timeout(POLL_SECONDS):
                await self.news.next.wait()

    def _on_job(self, change: Change) -> None:
        if self._uid and (change.new is None or change.new.uid != self._uid):
            self.gone = True
        self.news.notify()

    def _on_pod(self, change: Change) -> None:
        """Decode what changed, once: a job of a thousand nodes changes thousands of times while it starts."""
        if change.new is None:
            self._pods.pop(change.key, None)
        else:
            self._pods[change.key] = change.new.decode(dict)
        self.news.notify()


def _told(view: Tree | None) -> Tree:
    """Return what a view tells of pods: logs grow all the time, and are asked for in another way."""
    return {key: value for key, value in ((view or {}).get("status") or {}).items() if key != "keptLogBytes"}


async def _run(reflector: Reflector) -> None:
    await reflector.run()


class _Refusals(Unobserved):
    """Tells a mirror of watches that failed."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror

    def stream_failed(self, resource: Resource, error: Exception) -> None:
        """Tell it."""
        self._mirror.refuse(resource, error)
