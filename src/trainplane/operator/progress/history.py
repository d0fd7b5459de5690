"""A short history of what TrainJobs reported, in a ConfigMap that goes with the TrainJob.

The leader sees each progress that is written, whichever replica took the report, and keeps its points (`series`). It
writes them once a minute at most, and at the TrainJob's end, for TrainJobs that report alone. What a leader has not
written when it goes is lost: a minute of points; the next one reads what is there and goes on.

The ConfigMap stands in the tenant's namespace, so it is shown and never believed. One of that name that is not this
TrainJob's own is left alone, and there is no history while it is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.api import names
from trainplane.api.meta import ObjectMeta
from trainplane.kube.controller import DONE, Controller, ControllerSettings, RequeueAfter
from trainplane.kube.errors import DecodeError, NotFoundError
from trainplane.kube.lease import LeadershipLostError
from trainplane.kube.resource import Key
from trainplane.lifecycle.conditions import is_finished
from trainplane.operator.adoption import owned_by
from trainplane.operator.progress import series
from trainplane.operator.stores import Meta
from trainplane.resources import CONFIG_MAPS

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.controller import Result
    from trainplane.kube.observer import Observer
    from trainplane.kube.projection import Entry
    from trainplane.kube.store import Change, Store
    from trainplane.operator.apply import Writer

INTERVAL: Final = 60.0
"""Seconds between two writes of a TrainJob's history; more, where more than 3,000 TrainJobs report."""
WRITES_PER_SECOND: Final = 50
"""Writes of all histories together."""
WRITERS: Final = 4
"""Writes at once: nobody waits for them."""
CONTROLLER: Final = "history_controller"
PROGRESS: Final = "progress"
"""What the percentage is called among the metrics."""


class _Metric(msgspec.Struct, frozen=True):
    name: str = ""
    value: str = ""


class _Progress(msgspec.Struct, frozen=True, rename="camel"):
    progress_percentage: int | None = None
    metrics: list[_Metric] | None = None
    last_updated_time: str = ""


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    trainer_status: _Progress | None = None
    conditions: list[_Condition] | None = None


class _Job(msgspec.Struct, frozen=True):
    status: _Status | None = None


class _Found(msgspec.Struct, frozen=True):
    metadata: Meta = Meta()
    data: dict[str, str] | None = None


class History:
    """Keeps the points of TrainJobs that report. Every replica has one; the leader's does something."""

    def __init__(
        self,
        client: Client,
        writer: Writer,
        train_jobs: Store,
        clock: Clock,
        *,
        leads: Callable[[], bool],
        observer: Observer | None = None,
    ) -> None:
        self._client = client
        self._writer = writer
        self._train_jobs = train_jobs
        self._clock = clock
        self._leads = leads
        self._series: dict[Key, series.Series] = {}
        self._waiting: dict[Key, list[tuple[float, dict[str, str]]]] = {}
        """Points of TrainJobs whose earlier history is not read yet."""
        self._written: dict[Key, float] = {}
        settings = ControllerSettings(workers=WRITERS)
        self.controller = Controller[Key](CONTROLLER, self.write, clock, settings=settings, observer=observer)

    def __len__(self) -> int:
        return len(self._series)

    def changed(self, change: Change) -> None:
        """Take in a change of the TrainJob store."""
        key, new = change.key, change.new
        if new is None or not self._leads():
            self._forget(key)
            return
        after = _status_of(new)
        told = after.trainer_status
        if told is None or change.old is None:  # what was there before we looked, an earlier leader has kept
            return
        if told != _status_of(change.old).trainer_status:
            moment, values = self._clock.now().timestamp(), _values(told)
            if key in self._series:
                self._series[key].add(moment, values)
            else:
                waiting = self._waiting.setdefault(key, [])
                waiting.append((moment, values))
                del waiting[: -series.POINTS]
            self.controller.queue.add(key)
        elif is_finished(after.conditions or ()) and (key in self._series or key in self._waiting):
            self.controller.queue.add(key)

    async def write(self, key: Key) -> Result:
        """Write a TrainJob's history if it is time."""
        entry = self._train_jobs.entry(key)
        if entry is None or not self._leads() or not (key in self._series or key in self._waiting):
            self._forget(key)
            return DONE
        finished = is_finished(_status_of(entry).conditions or ())
        interval, now = max(INTERVAL, len(self._written) / WRITES_PER_SECOND), self._clock.monotonic()
        left = self._written.get(key, now - interval) + interval - now
        if left > 0 and not finished:
            return RequeueAfter(left)
        if not await self._load(key, entry.uid):
            return RequeueAfter(INTERVAL)
        data = self._series[key].encode()
        try:
            await self._writer.apply(CONFIG_MAPS, _body(key, entry.uid, data))
        except LeadershipLostError:
            self._forget(key)
            return DONE
        kept = self._series.get(key)
        if kept is None:
            return DONE  # it was forgotten meanwhile
        self._written[key] = self._clock.monotonic()
        if finished and kept.encode() == data:  # a last report may have come meanwhile, and is in the queue
            self._forget(key)
        return DONE

    async def _load(self, key: Key, uid: str) -> bool:
        """Read what an earlier leader kept, the first time; False if the name is taken, by anybody's object."""
        if key not in self._series:
            try:
                found = await self._client.get(CONFIG_MAPS, names.history_name(key.name), key.namespace, type_=_Found)
            except (NotFoundError, DecodeError):
                found = _Found()
            by = found.metadata.controller
            if found.metadata.name and (by is None or by.uid != uid):
                return False
            self._series[key] = series.Series(series.read((found.data or {}).get(names.HISTORY_KEY)))
        for moment, values in self._waiting.pop(key, ()):
            self._series[key].add(moment, values)
        return True

    def _forget(self, key: Key) -> None:
        for known in (self._series, self._waiting, self._written):
            known.pop(key, None)


def _body(key: Key, uid: str, data: bytes) -> dict[str, object]:
    owner = owned_by(ObjectMeta(name=key.name, namespace=key.namespace, uid=uid))
    return {
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": CONFIG_MAPS.kind,
        "metadata": {
            "name": names.history_name(key.name),
            "namespace": key.namespace,
            "ownerReferences": [owner],
        },
        "data": {names.HISTORY_KEY: data.decode()},
    }


def _status_of(entry: Entry | None) -> _Status:
    try:
        seen = None if entry is None else entry.decode(_Job).status
    except DecodeError:
        seen = None
    return seen or _Status()


def _values(told: _Progress) -> dict[str, str]:
    values = {metric.name: metric.value for metric in told.metrics or ()}
    if told.progress_percentage is not None:
        values = {PROGRESS: str(told.progress_percentage), **values}
    return values
