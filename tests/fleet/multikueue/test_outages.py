"""Hub and workers that stop, come back, or stay away too long."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from lab import trainplane
from lab.fleet import MULTIKUEUE
from tests.fleet import objects
from tests.fleet.objects import HELD
from tests.fleet.outage import control_plane_away
from tests.fleet.team import PATIENCE, true_condition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.fleet import Fleet
    from tests.fleet.team import MakeTeam, Team

ON_WORKER1 = {"worker2": {"cpu": "0"}}
TIMEOUT = timedelta(seconds=8)
"""How long a worker may be away before it is lost, where a test wants to lose it."""


@pytest.mark.scenario("I", "Kueue and our operator on the hub are killed while a job runs and ends: nothing is lost")
def test_the_hub_restarts_while_jobs_run(fleet: Fleet, team: MakeTeam) -> None:
    us = team()
    for name in ("ends", "lasts"):
        us.submit(name, runtime=HELD)
    places = {name: us.wait_running(name) for name in ("ends", "lasts")}
    (pod,) = us.pods("lasts", on=places["lasts"])
    for engine in ("kueue", "trainplane"):
        fleet.hub.kill(engine)
    try:
        us.end("ends", on=places["ends"])
        us.wait("ends to end on its worker", lambda: us.is_done("ends", on=places["ends"]))
    finally:
        fleet.hub.revive("trainplane")
        trainplane.wait_ready(fleet.hub)
        fleet.restart(fleet.hub)
    us.wait_done("ends")
    us.wait_gone("ends", on=places["ends"])
    assert us.placed("lasts") == places["lasts"]
    assert [one["metadata"]["uid"] for one in us.pods("lasts", on=places["lasts"])] == [pod["metadata"]["uid"]]
    assert true_condition(us.workload("lasts"), "Evicted") is None
    us.end("lasts", on=places["lasts"])
    us.wait_done("lasts")


@pytest.mark.scenario(48, "A worker's API server is killed and comes back: no eviction, the same pods run on")
@pytest.mark.scenario(57, "MultiKueueCluster says that the worker is gone, and that it is back")
@pytest.mark.scenario(46, "Deleted on the hub while the worker is away: its copy goes when the worker is back")
@pytest.mark.scenario(47, "Ended on a worker before the hub reaches it again: the end arrives, the copy goes")
def test_a_worker_goes_and_comes_back(fleet: Fleet, team: MakeTeam) -> None:
    us = team(quotas=ON_WORKER1)
    for name in ("kept", "ended", "deleted"):
        us.submit(name, runtime=HELD)
    for name in ("kept", "ended", "deleted"):
        us.wait_running(name, on="worker1")
    (pod,) = us.pods("kept", on="worker1")
    with _away(fleet, us):
        us.delete("deleted")
        us.wait("deleted to be gone from the hub", lambda: us.job("deleted") is None)
    us.end("ended", on="worker1")
    fleet.hurry()
    fleet.wait_connected()
    us.wait_done("ended")
    for name in ("ended", "deleted"):
        us.wait_gone(name, on="worker1")
    assert us.placed("kept") == "worker1"
    assert true_condition(us.workload("kept"), "Evicted") is None
    assert [one["metadata"]["uid"] for one in us.pods("kept", on="worker1")] == [pod["metadata"]["uid"]]
    us.end("kept", on="worker1")
    us.wait_done("kept")


@pytest.mark.scenario(48, "A worker is lost past its timeout, its pods active: the job is dispatched to the other")
@pytest.mark.scenario(48, "The hub's Kueue restarts while the worker is away: no eviction before the timeout")
@pytest.mark.scenario("I", "No other worker can take it: it waits with its quota, and runs when the worker is back")
@pytest.mark.scenario("I", "A worker that comes back with the old run: one of the two is left, and ends once")
def test_a_worker_is_lost_past_its_timeout(fleet: Fleet, team: MakeTeam) -> None:
    us, alone = team(quotas=ON_WORKER1), team(quotas=ON_WORKER1)
    us.submit("lost", runtime=HELD)
    alone.submit("alone", runtime=HELD)
    us.wait_running("lost", on="worker1")
    alone.wait_running("alone", on="worker1")
    us.api("worker2").apply(objects.cluster_queue(us.namespace))
    impatient = MULTIKUEUE | {"workerLostTimeout": f"{TIMEOUT.seconds}s"}
    with ExitStack() as back, _away(fleet, us):
        begin = datetime.now(UTC)
        patient = fleet.reconfigure(fleet.hub, connected=False, multiKueue=impatient)
        back.callback(fleet.reconfigure, fleet.hub, **patient)
        alone.wait("alone to be evicted", lambda: true_condition(alone.workload("alone"), "Evicted"))
        us.wait("lost to go to worker2", lambda: us.placed("lost") == "worker2")
        us.wait("lost to run on worker2", lambda: us.is_running("lost", on="worker2"))
        assert true_condition(alone.workload("alone"), "QuotaReserved"), "nobody says that its pods are gone"
        assert _evicted_at(us, "lost") - begin > TIMEOUT - timedelta(seconds=1)  # an event's time is in whole seconds
    alone.wait_running("alone", on="worker1")
    us.wait("one run to be left", lambda: len(_places(us, "lost")) == 1)
    alone.finish("alone")
    us.finish("lost")
    for worker in us.workers:
        us.wait_gone("lost", on=worker)


@contextmanager
def _away(fleet: Fleet, us: Team) -> Iterator[None]:
    """Take worker1's control plane away until the end; the hub knows that it is gone, not that it is back."""
    with control_plane_away(fleet.workers[0], seconds=2 * PATIENCE):
        us.wait("the hub to miss worker1", lambda: _missed(us))
        yield


def _missed(us: Team) -> bool:
    cluster = us.api().get("multikueueclusters", "", "worker1") or {}
    conditions = cluster["status"]["conditions"]
    return any(one["type"] == "Active" and one["status"] == "False" for one in conditions)


def _places(us: Team, name: str) -> list[str]:
    """Return the workers that have a copy of a TrainJob."""
    return [worker for worker in us.workers if us.job(name, on=worker)]


def _evicted_at(us: Team, name: str) -> datetime:
    """Return when a Workload was first evicted because of a check, as the hub's event says."""
    workload = us.workload(name) or {}
    events = us.wait_event("Workload", workload["metadata"]["name"], "Evicted")
    return datetime.fromisoformat(min(event["metadata"]["creationTimestamp"] for event in events))
