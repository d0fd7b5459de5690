"""What differs between hub and workers: runtimes, namespaces, names that are taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fleet import objects
from tests.fleet.objects import HELD
from tests.fleet.team import true_condition

if TYPE_CHECKING:
    from tests.fleet.team import MakeTeam, Team

OTHER = "registry.invalid/train:2"


@pytest.mark.scenario(
    44,
    "A runtime that differs on a worker: OutOfSync there, Retry on the hub, and it does not count as finished",
)
@pytest.mark.scenario("I", "A runtime that a worker lacks: the job waits there, and runs once it is installed")
@pytest.mark.scenario("I", "A namespace that a worker lacks: the job runs on the other")
@pytest.mark.scenario(51, "A worker's own TrainJob of the same name is neither touched nor deleted")
def test_what_differs_on_a_worker_stops_a_job_there_and_harms_nothing(team: MakeTeam) -> None:
    us = team(quotas={"worker2": {"cpu": "0"}})  # all must go to worker1
    others = team(absent=("worker1",))
    _install(us, "missing", "hub", "worker2")
    _install(us, "different", "hub", "worker2")
    us.api("worker1").apply(objects.namespaced(objects.runtime("different", image=OTHER), us.namespace))
    twin = us.submit("twin", on="worker1", queue=None, runtime=HELD)
    us.wait("worker1's own twin", lambda: us.is_running("twin", on="worker1"))

    others.submit("elsewhere")
    us.submit("twin")
    for name in ("missing", "different"):
        us.submit_seen(name, runtime=name, kind="TrainingRuntime")

    others.wait_done("elsewhere")
    assert others.placed("elsewhere") == "worker2"
    us.wait("different to be out of sync", lambda: _is_out_of_sync(us, "different"))
    us.wait("missing to be admitted on worker1", lambda: _is_admitted(us, "missing"))
    assert us.job("missing", on="worker1") is None
    assert not us.is_done("different")
    us.wait("twin to be admitted on worker1", lambda: _is_admitted(us, "twin"))
    assert us.check("twin").get("state") != "Ready"

    _install(us, "missing", "worker1")
    # Kueue 0.19 may leave the copy that ended OutOfSync where it is, and then waits for ever, whatever is mended.
    us.delete("different")
    us.delete("twin")
    us.wait("twin's Workload to be gone from worker1", lambda: us.workload("twin", on="worker1") is None)
    still = us.job("twin", on="worker1")
    assert still is not None
    assert still["metadata"]["uid"] == twin["metadata"]["uid"]
    assert us.is_running("twin", on="worker1")
    us.wait_done("missing")
    us.wait_gone("missing", on="worker1")


def _install(us: Team, name: str, *clusters: str) -> None:
    for cluster in clusters:
        us.api(cluster).apply(objects.namespaced(objects.runtime(name), us.namespace))


def _is_admitted(us: Team, name: str) -> bool:
    conditions = ((us.workload(name, on="worker1") or {}).get("status") or {}).get("conditions", [])
    return any(one["type"] == "Admitted" and one["status"] == "True" for one in conditions)


def _is_out_of_sync(us: Team, name: str) -> bool:
    """Return whether worker1 has found that a TrainJob's pods are not those of the hub.

    The hub's Kueue tells it by an event and sends the job again; unless a write of its own collided just before, then
    (0.19) it says nothing and leaves the copy that ended so where it is.
    """
    if (workload := us.workload(name)) is None:
        return False
    copy = true_condition(us.workload(name, on="worker1"), "Finished") or {}
    events = us.events("Workload", workload["metadata"]["name"])
    return copy.get("reason") == "OutOfSync" or any("out of sync" in event["message"] for event in events)
