"""Streams of watches, as an API server or whoever answers in its place sends them: into mirrors, and out as status.

A worker's API server is not ours: what it sends must end as an event, a KubeError that the reflector waits out, or a
decoding error that the reconcile reports; anything else would end the mirror and with it the process.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from prometheus_client import CollectorRegistry

from tests.security.fuzz.errorlog import ErrorLog
from tests.security.fuzz.mutations import Mutator, copied, encode
from tests.security.fuzz.target import BrokenPromiseError, Target
from trainplane.api import names
from trainplane.api.errors import DecodeError
from trainplane.kube.codec import Lines, decode_event, decode_page, error_from_status
from trainplane.kube.errors import KubeError
from trainplane.kube.reflector import Reflector
from trainplane.kube.testing.clock import FakeClock
from trainplane.lifecycle import deadline, events
from trainplane.lifecycle.status import observe
from trainplane.operator import status
from trainplane.operator.metrics import TrainJobMetrics
from trainplane.operator.stores import Stores

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from random import Random

    from trainplane.kube.codec import Page, WatchEvent
    from trainplane.kube.store import Store

Tree = dict[str, Any]

_META: Final[Tree] = {
    "name": "job",
    "namespace": "team",
    "uid": "1",
    "resourceVersion": "5",
    "generation": 1,
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "ownerReferences": [{"apiVersion": "v1", "kind": "TrainJob", "name": "job", "uid": "1", "controller": True}],
    "labels": {"kueue.x-k8s.io/queue-name": "q"},
    "annotations": {"a": "b"},
    "managedFields": [{"manager": "x", "fieldsV1": {"f:a": {}}}],
}
_CONDITION: Final[Tree] = {
    "type": "Suspended",
    "status": "False",
    "reason": "Resumed",
    "message": "m",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "observedGeneration": 1,
}
_COUNTS: Final[Tree] = {"name": "node", "ready": 1, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}
_OBJECTS: Final[tuple[Tree, ...]] = (
    {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": _META,
        "spec": {
            "runtimeRef": {"name": "torch"},
            "suspend": False,
            "activeDeadlineSeconds": 60,
            "trainer": {"numNodes": 2},
        },
        "status": {"conditions": [_CONDITION], "jobsStatus": [_COUNTS], "trainerStatus": {"progressPercentage": 1}},
    },
    {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": _META,
        "spec": {"suspend": True, "replicatedJobs": []},
        "status": {
            "conditions": [{**_CONDITION, "type": "Failed", "status": "True"}],
            "replicatedJobsStatus": [_COUNTS],
        },
    },
)
_STATUS: Final[Tree] = {
    "kind": "Status",
    "status": "Failure",
    "code": 429,
    "reason": "TooManyRequests",
    "message": "m",
    "details": {"retryAfterSeconds": 1, "causes": [{"reason": "ResourceVersionTooLarge", "message": "m"}]},
}
_BOOKMARK: Final[Tree] = {
    "kind": "TrainJob",
    "metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}},
}
_BETWEEN: Final = b"\n\n"
"""Between the stream of TrainJobs and that of JobSets: no line of a watch is empty."""
_LONGEST_WAIT: Final = 86400.0
"""Seconds that a server may make us wait."""


class _Server:
    """A cluster that says what a case says: one stream of bytes, as list and as watch."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def watch(self, *_: Any, **__: Any) -> AsyncIterator[WatchEvent]:
        lines = Lines(1 << 20)
        for start in range(0, len(self._data), 700):
            for line in lines.feed(self._data[start : start + 700]):
                if line.strip():
                    yield decode_event(line)

    async def list_pages(self, *_: Any, **__: Any) -> AsyncIterator[Page]:
        yield decode_page(self._data)


class Watches(Target):
    """Bytes of watch streams through a reflector into the operator's mirrors, and what the operator makes of them."""

    name: ClassVar[str] = "watches"
    cases: ClassVar[int] = 110_000

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._clock = FakeClock()
        self._seeds = [msgspec.json.encode(tree) for tree in _OBJECTS]
        self._metrics = TrainJobMetrics(CollectorRegistry())
        self._errors = ErrorLog()

    def close(self) -> None:
        self._errors.close()
        self._loop.close()

    def generate(self, random: Random) -> bytes:
        mutator = Mutator(random)
        data = _BETWEEN.join(self._stream(mutator, seed) for seed in self._seeds)
        return mutator.bytes(data) if mutator.chance(0.25) else data

    def _stream(self, mutator: Mutator, seed: bytes) -> bytes:
        events: list[Any] = []
        for number in range(mutator.few(3)):
            tree: Any = msgspec.json.decode(seed)
            tree["metadata"]["resourceVersion"] = str(5 + number)
            events.append({"type": mutator.pick(("ADDED", "ADDED", "ADDED", "MODIFIED", "DELETED")), "object": tree})
        if mutator.chance(0.1):
            events.append({"type": "ERROR", "object": copied(_STATUS)})
        if mutator.chance(0.8):
            events.append({"type": "BOOKMARK", "object": copied(_BOOKMARK)})
        if mutator.chance(0.5):
            place = mutator.below(len(events))
            part = events[place]["object"]
            if mutator.chance(0.7) and isinstance(part.get("status"), dict):
                part["status"] = mutator.tree(part["status"])
            else:
                events[place] = mutator.tree(events[place])
        return b"".join(encode(event) + b"\n" for event in events)

    def run(self, data: bytes) -> str:
        stores = Stores()
        said = []
        for store, stream in zip((stores.train_jobs, stores.job_sets), data.split(_BETWEEN), strict=False):
            said.append(self._loop.run_until_complete(self._reflect(store, stream)))
            self._errors.check()
        keys = {*stores.train_jobs, *stores.job_sets}
        told = max((self._tell(stores, key) for key in keys), default=min(said))
        self._forget(stores.train_jobs)
        return told

    def _forget(self, store: Store) -> None:
        """Let every TrainJob be deleted: whatever was counted of it must not be counted any more."""
        for key in store.keys():  # noqa: SIM118 a copy, since they go
            for change in store.remove(key, store.resource_version(key) or 0):
                self._metrics.changed(change)
        if self._metrics._counts:
            self._metrics._counts.clear()
            raise BrokenPromiseError("TrainJobs that are gone are still counted")

    async def _reflect(self, store: Store, data: bytes) -> str:
        """Let a reflector have the stream, as a list and as a watch after it, and decide how to go on."""
        changed = [self._metrics.changed] if store.resource.kind == names.TRAIN_JOB else []
        reflector = Reflector(_Server(data), store.resource, store, changed, self._clock)
        said = "streamed"
        for streams in (True, False):
            reflector._streams_lists = streams
            try:
                await reflector._list_and_watch()
            except KubeError as error:
                said = type(error).__name__
                wait = reflector._recover(error)
                if not 0 <= wait <= _LONGEST_WAIT:
                    raise BrokenPromiseError(f"the reflector would wait {wait} s") from error
        refusal = error_from_status(data[:2000], 500, {"Retry-After": data[:20].decode("latin-1")})
        if not 0 <= (refusal.retry_after or 0) <= _LONGEST_WAIT:
            raise BrokenPromiseError(f"a request would wait {refusal.retry_after} s")
        return said

    def _tell(self, stores: Stores, key: Any) -> str:
        """Read an object from the mirrors as the reconcile does."""
        try:
            job, jobset = stores.train_job(key), stores.job_set(key)
        except (DecodeError, KubeError):
            return "unreadable"
        if job is None:
            return "jobset"
        after = observe(job.view, jobset.status if jobset else None, self._clock.now())
        deadline.seconds_left(job.view, after.conditions, self._clock.now())
        patch = status.merge_patch(job.view, after)
        msgspec.json.encode(patch)
        list(events.of_change(job.view.status, after))
        return "observed"

    def seeds(self) -> Iterable[bytes]:
        """Return short streams."""
        for tree in _OBJECTS:
            yield (
                encode({"type": "ADDED", "object": tree})
                + b"\n"
                + encode({"type": "BOOKMARK", "object": _BOOKMARK})
                + b"\n"
            )
        yield encode({"type": "ERROR", "object": _STATUS}) + b"\n"
