"""Faults to put into the hub server, and into how the operator handles what is another cluster's.

As those of one cluster (`planted`): each is a patch of one function or method, from outside, that somebody might have
written, and a history of a fleet must find it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tests.simulation.fleet.planted_pending import PENDING
from tests.simulation.planting import Planted, around, later, returns
from trainplane.hub import placement, workers
from trainplane.hub.apiserver import view
from trainplane.hub.kinds import JobKey
from trainplane.hub.logarchive import collector, hearing, jobs, mirror, owners, testimony
from trainplane.hub.logarchive.claims import Claims
from trainplane.kube.controller import DONE
from trainplane.operator import objects, trainjob


async def _own(self: Any, key: Any, _: Any) -> Any:
    """Take what is MultiKueue's for one's own."""
    return await self._reconcile(key, self.stores.train_job(key))


def _keeps_names(self: Any, kind: str, change: Any) -> None:
    key = JobKey(change.key.namespace, change.key.name, kind)
    if change.new is not None:
        self._by_uid[change.new.uid] = key
    self._notify(key)


def _deaf_to_deletes(original: Any, self: Any, cluster: str, change: Any) -> None:
    if change.new is not None:
        original(self, cluster, change)


async def _first_only(original: Any, self: Any, name: str) -> Any:
    """Take the first client of a worker for the last."""
    known = self._connections.get(name)
    return await original(self, name) if known is None else known.client


async def _in_vain(original: Any, self: Any) -> bool:
    """Find out whether a cluster answers, and forget that it did not."""
    found = await original(self)
    self.silence = None
    return bool(found)


async def _for_good(original: Any, self: Any) -> bool:
    """Take a cluster that was silent once for silent."""
    before = self.silence
    found = await original(self)
    self.silence = before or self.silence
    return bool(found)


def _by_wish(job: Any, placed: Any, ready: int) -> str:
    return "Running" if placed.state == "Dispatched" else view_state(job, placed, ready)


view_state: Final = view.state_of


def _only_by_itself(self: Any, job: Any) -> Any:
    kept = self._archive.job(job["metadata"]["uid"])
    return testimony.read(job) if kept is None else kept.record.told


def _lasting(original: Any, self: Any, former: Any) -> None:
    if former is not None:
        original(self, former)


FLEET: Final = (
    # -- the operator
    Planted("MultiKueue's is taken for one's own", trainjob.TrainJobReconciler, "_tell_dispatched", _own),
    Planted("what is dispatched has no phase", trainjob.TrainJobReconciler, "_tell_dispatched", later(DONE)),
    Planted("nothing is ever elsewhere", objects, "is_elsewhere", returns(False), theme="moved unseen"),
    # -- where a job is
    Planted("a worker is not read from a Workload", placement, "named_in", returns(None)),
    Planted("a job that is sent runs", view, "state_of", _by_wish),
    Planted(
        "news of Workloads is nobody's",
        jobs.Jobs,
        "_workload_changed",
        returns(None),
        theme="late news of the hub",
    ),
    Planted("jobs that are gone are remembered", jobs.Jobs, "_job_changed", _keeps_names),
    # -- who the workers are
    Planted("a cut is not noticed", mirror.Mirror, "probe", around(mirror.Mirror.probe, _in_vain)),
    Planted("a worker that was away is away", mirror.Mirror, "probe", around(mirror.Mirror.probe, _for_good)),
    Planted("nobody asks whether a worker is there", mirror.Mirror, "probe", later(False)),
    Planted(
        "a rotated token is not used",
        workers.Workers,
        "client",
        around(workers.Workers.client, _first_only),
        theme="rotated",
    ),
    Planted(
        "what was seen before a rotation is shown for ever",
        mirror.Mirror,
        "follow_on",
        around(mirror.Mirror.follow_on, _lasting),
        theme="rotated",
    ),
    # -- whose a pod is
    Planted("no pod is anybody's", owners.Owners, "find", later(None)),
    Planted("who could not be judged is not judged again", Claims, "retry", returns(None)),
    Planted(
        "pods that are gone are remembered",
        collector.LogCollector,
        "_pod_changed",
        around(collector.LogCollector._pod_changed, _deaf_to_deletes),
    ),
    Planted("what a worker tells is not heard", hearing.Hearing, "told", _only_by_itself),
    Planted("what a worker tells is not kept", hearing.Hearing, "keep", returns(None)),
    # -- why a job waits
    *PENDING,
)

FOUND: Final = Path(__file__).with_name("found.json")
"""The history that found each when it was looked for last."""
