"""Two stores, a controller between them, a writer, and witnesses of what they promise.

The writer changes ConfigMaps. The controller keeps a Widget of the same name at the size that the ConfigMap says. What
must hold at every moment is checked as it happens and noted in `broken`; what must hold at the end is for the test.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from tests.integration.kube.support import CONFIGMAPS, WIDGETS, configmap, widget
from trainplane.kube.backoff import Backoff
from trainplane.kube.controller import DONE, Controller, ControllerSettings, RequeueAfter, own_key
from trainplane.kube.errors import ConflictError, KubeError, NotFoundError
from trainplane.kube.expectations import Expectations
from trainplane.kube.observer import Unobserved
from trainplane.kube.projection import WHOLE, Projection
from trainplane.kube.reflector import Reflector, ReflectorSettings
from trainplane.kube.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.kube.client import Client
    from trainplane.kube.controller import Result
    from trainplane.kube.resource import Key, Resource
    from trainplane.kube.store import Change

RATE = 50
"""Writes a second."""
NAMES = 300
SELECTOR = {"role": "source"}
SILENCE = 6.0
SIZES = Projection(fields=frozenset({"spec"}))


class Data(msgspec.Struct):
    size: str


class Source(msgspec.Struct):
    data: Data


class Spec(msgspec.Struct):
    size: int


class Copy(msgspec.Struct):
    spec: Spec


class Writer:
    """Creates, changes and deletes ConfigMaps at a steady rate, whether the server is there or not."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._random = random.Random(4)  # noqa: S311 no secret
        self._present: dict[str, bool] = {}
        self._busy: set[str] = set()
        self.done = 0
        self.failed = 0
        self.deleted = 0

    async def run(self, stop: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        async with asyncio.TaskGroup() as group:
            while not stop.is_set():
                due = max(due + 1 / RATE, loop.time() - 1)
                await asyncio.sleep(due - loop.time())
                name = f"c-{self._random.randrange(NAMES):03}"
                if name not in self._busy:
                    self._busy.add(name)
                    group.create_task(self._write(name))

    async def _write(self, name: str) -> None:
        try:
            if not self._present.get(name):
                body = configmap(name, self._namespace, labels=SELECTOR, size=str(self._random.randrange(1000)))
                await self._client.apply(CONFIGMAPS, body)
                self._present[name] = True
            elif self._random.random() < 0.3:
                self._present[name] = False
                await self._client.delete(CONFIGMAPS, name, self._namespace)
                self.deleted += 1
            else:
                await self._patch(name, {"data": {"size": str(self._random.randrange(1000))}})
                if self._random.random() < 0.5:  # news that changes nothing for whoever remembers what it just wrote
                    self.done += 1
                    await self._patch(name, {"metadata": {"annotations": {"touched": str(self.done)}}})
            self.done += 1
        except NotFoundError:
            self._present[name] = False  # a delete whose answer was lost had succeeded
        except KubeError:
            self.failed += 1
        finally:
            self._busy.discard(name)

    async def _patch(self, name: str, patch: dict[str, Any]) -> None:
        await self._client.patch(CONFIGMAPS, name, patch, self._namespace)


class Witness:
    """Follows a reflector's changes and says when one cannot follow from the last; ends with the same as the store."""

    def __init__(self, broken: list[str]) -> None:
        self.seen: dict[Key, tuple[int, bytes]] = {}
        self.changes = 0
        self._broken = broken

    def __call__(self, change: Change) -> None:
        self.changes += 1
        known = self.seen.get(change.key)
        if (change.type == "ADDED") != (known is None):
            self._broken.append(f"{change.type} of {change.key}, which was {'unknown' if known is None else 'known'}")
        if change.new is None:
            self.seen.pop(change.key, None)
            return
        if known is not None and change.new.resource_version <= known[0]:
            self._broken.append(f"{change.key} went from version {known[0]} to {change.new.resource_version}")
        self.seen[change.key] = (change.new.resource_version, change.new.data)


class Ear(Unobserved):
    """Counts what the runtime tells about itself."""

    def __init__(self) -> None:
        self.lists = 0
        self.failures: Counter[str] = Counter()

    def listed(self, resource: Resource, *, objects: int, seconds: float) -> None:  # noqa: ARG002 an Observer's
        self.lists += 1

    def stream_failed(self, resource: Resource, error: Exception) -> None:  # noqa: ARG002 an Observer's
        self.failures[type(error).__name__] += 1


class Copier:
    """The controller: reads both stores, writes Widgets, and trusts its own writes before the stores."""

    def __init__(self, client: Client, namespace: str, sources: Store, copies: Store, broken: list[str]) -> None:
        self._client = client
        self._namespace = namespace
        self._sources = sources
        self._copies = copies
        self._broken = broken
        self._writes = Expectations(copies)
        self._working: set[Key] = set()
        self._written: dict[Key, str] = {}
        self.reconciles = 0
        self.waits = 0

    async def reconcile(self, key: Key) -> Result:
        if key in self._working:
            self._broken.append(f"{key} is worked on twice at once")
        self._working.add(key)
        self.reconciles += 1
        try:
            if self._writes.pending(key):
                self.waits += 1
                return RequeueAfter(0.5)
            await self._bring_in_step(key)
        finally:
            self._working.discard(key)
        return DONE

    async def _bring_in_step(self, key: Key) -> None:
        source = self._sources.decode(key, Source)
        copy = self._copies.decode(key, Copy)
        if source is None:
            if copy is not None:
                self._written.pop(key, None)
                await self._delete(key)
            return
        size = int(source.data.size)
        if copy is not None and copy.spec.size == size:
            return
        before = self._written.pop(key, None)  # and stays so if the answer is lost
        applied = await self._client.apply(WIDGETS, widget(key.name, key.namespace, size))
        version = applied["metadata"]["resourceVersion"]
        if version == before:
            self._broken.append(f"{key} was written again at version {version}: the cache was older than our own write")
        self._written[key] = version
        self._writes.note(key, version)

    async def _delete(self, key: Key) -> None:
        try:
            await self._client.delete(WIDGETS, key.name, key.namespace, preconditions_uid=self._copies.uid(key))
        except (NotFoundError, ConflictError):
            return  # gone already, and the watch will say so


class Mirror:
    """All of it, wired; `lagging` is the way by which the controller sees its own writes, late."""

    def __init__(self, client: Client, namespace: str, *, writer: Client, lagging: Client) -> None:
        self.broken: list[str] = []
        self.errors: list[Exception] = []
        self.sources = Store(CONFIGMAPS, WHOLE)
        self.copies = Store(WIDGETS, SIZES)
        self.writer = Writer(writer, namespace)
        self.copier = Copier(client, namespace, self.sources, self.copies, self.broken)
        settings = ControllerSettings(workers=8, deadline_seconds=20, backoff=Backoff(cap=2.0))
        self.controller: Controller[Key] = Controller(
            "copier", self.copier.reconcile, settings=settings, on_error=self._note_error
        )
        self.witnesses = {store: Witness(self.broken) for store in (self.sources, self.copies)}
        self.ear = Ear()
        options: dict[str, Any] = {
            "namespace": namespace,
            "settings": ReflectorSettings(silence_seconds=SILENCE),
            "observer": self.ear,
        }
        self.reflectors = [
            Reflector(client, CONFIGMAPS, self.sources, labels=SELECTOR, **options),
            Reflector(lagging, WIDGETS, self.copies, **options),
        ]
        for reflector in self.reflectors:
            reflector.add_handler(self.witnesses[reflector.store])
            reflector.add_handler(self.controller.source(own_key))

    def _note_error(self, key: Key, error: Exception) -> None:  # noqa: ARG002 the hook's signature
        if not isinstance(error, KubeError | TimeoutError):
            self.errors.append(error)

    def in_step(self) -> bool:
        """Tell whether each source has its copy, of its size, and no copy is without a source."""
        return sizes(self.sources, Source, lambda view: int(view.data.size)) == sizes(
            self.copies, Copy, lambda view: view.spec.size
        )


def sizes(store: Store, type_: type[Any], size: Callable[[Any], int]) -> dict[Key, int]:
    return {key: size(store.decode(key, type_)) for key in store}


async def listed(client: Client, like: Store, namespace: str, labels: dict[str, str] | None = None) -> Store:
    """Return a new store of a fresh list, under the same projection."""
    store = Store(like.resource, WHOLE if like.resource == CONFIGMAPS else SIZES)
    async for page in client.list_pages(like.resource, namespace, labels=labels):
        for raw in page.items:
            store.put(store.read(raw))
    return store


def contents(store: Store) -> dict[Key, tuple[int, str, bytes]]:
    """Return everything a store knows."""
    found = {}
    for key in store:
        entry = store.entry(key)
        assert entry is not None
        found[key] = (entry.resource_version, entry.uid, entry.data)
    return found
