"""Workloads that lose their place: to a drained queue, to a more important TrainJob, on one worker or another."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.fleet import objects
from tests.fleet.objects import HELD, PRIORITY_LABEL

if TYPE_CHECKING:
    from tests.fleet.team import MakeTeam, Team

PREEMPTION = {"withinClusterQueue": "LowerPriority"}


@pytest.mark.scenario(25, "The status is copied while the hub's TrainJob is suspended")
@pytest.mark.scenario(49, "Evicted on its worker: the hub resets clusterName and dispatches it anew")
@pytest.mark.scenario(54, "Preemption on the same worker: the low one waits and runs again")
@pytest.mark.scenario(54, "Preemption on workers whose quota is taken, while the hub's is not")
@pytest.mark.scenario(54, "A new priority on the hub reaches the copies on the workers")
def test_a_job_that_loses_its_place_finds_another(team: MakeTeam) -> None:
    drained, same, other, waiting = (
        team(),
        team(quotas={"hub": _cpu(2), "worker1": _cpu(2), "worker2": _cpu(0)}, preemption=PREEMPTION),
        team(quotas={"worker1": _cpu(2), "worker2": _cpu(2)}, preemption=PREEMPTION),
        team(quotas={"worker1": _cpu(0), "worker2": _cpu(0)}),
    )
    for worker in ("hub", *drained.workers):
        for us in (same, other, waiting):
            classes = (objects.priority_class(f"{us.namespace}-{name}", value) for name, value in _PRIORITIES.items())
            drained.api(worker).apply(*classes)
    # First those that will be moved.
    drained.submit("moved", runtime=HELD)
    _submit(same, "low")
    _submit(other, "low-a")
    _submit(other, "low-b")
    _submit(waiting, "low")
    first = drained.wait_running("moved")
    for us, name in ((same, "low"), (other, "low-a"), (other, "low-b")):
        us.wait_running(name)
    assert {other.placed("low-a"), other.placed("low-b")} == set(other.workers)
    waiting.wait("copies of low", lambda: all(waiting.workload("low", on=worker) for worker in waiting.workers))

    # Then what moves them.
    drain = objects.cluster_queue(drained.namespace, stopPolicy="HoldAndDrain")
    drained.api(first).apply(drain)
    _submit(same, "high")
    _submit(other, "high")
    label = {"metadata": {"labels": {PRIORITY_LABEL: f"{waiting.namespace}-high"}}}
    waiting.api().patch("trainjobs", waiting.namespace, "low", label)

    (second,) = set(drained.workers) - {first}
    drained.wait("moved to run on the other worker", lambda: drained.placed("moved") == second)
    drained.wait_running("moved", on=second)
    drained.wait_gone("moved", on=first)
    for worker in waiting.workers:
        waiting.wait(f"the new priority on {worker}", partial(_has_priority, waiting, worker, _PRIORITIES["high"]))
    same.wait_running("high", on="worker1")
    place = other.wait_running("high")
    evicted = same.workload("low") or {}
    assert not any(one["type"] == "Admitted" and one["status"] == "True" for one in evicted["status"]["conditions"])
    assert same.pods("low", on="worker1") == []
    low = same.job("low") or {}
    assert low["spec"]["suspend"] is True
    assert [step["active"] for step in low["status"]["jobsStatus"]] == [0], "the stop was seen through the status"

    # And all of them end, those that lost their place too.
    same.end("high", on="worker1")
    other.end("high", on=place)
    drained.end("moved", on=second)
    for us, name in ((drained, "moved"), (same, "high"), (other, "high")):
        us.wait_done(name)
    # Not by what the hub says: Kueue 0.19 may take a copy up again before it has nominated its worker anew, and then
    # stops it once more.
    same.finish("low")
    other.finish("low-a", "low-b")


_PRIORITIES = {"low": 10, "high": 1000}


def _submit(us: Team, name: str) -> None:
    """Submit a TrainJob that fills a worker's quota, with the priority that its name begins with."""
    priority = f"{us.namespace}-{name.partition('-')[0]}"
    us.submit(name, runtime=HELD, cpu="2", labels={PRIORITY_LABEL: priority})


def _cpu(amount: int) -> dict[str, str]:
    return {"cpu": str(amount)}


def _has_priority(us: Team, worker: str, value: int) -> bool:
    return ((us.workload("low", on=worker) or {}).get("spec") or {}).get("priority") == value
