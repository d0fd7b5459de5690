"""MultiKueue with every kind: from the hub to a worker and back, seen from the hub all the way."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.fleet.api import RefusedError
from tests.fleet.check import command
from tests.legacy.fleet.jobs import Jobs, simulated
from trainplane.api.legacy.kinds import JAX, KINDS, PYTORCH

if TYPE_CHECKING:
    from lab.fleet import Fleet
    from tests.fleet.team import MakeTeam
    from tests.suite import SuiteReport
    from trainplane.api.legacy.kinds import Kind

SENT = tuple(kind for kind in KINDS.values() if kind is not JAX)
MULTIKUEUE = "kueue.x-k8s.io/multikueue"


def test_every_kind_goes_to_a_worker_and_comes_back(team: MakeTeam, report: SuiteReport) -> None:
    ours = team()

    def story(kind: Kind) -> None:
        jobs = Jobs(ours, kind)
        made = jobs.submit("sent")
        assert made["spec"]["runPolicy"]["managedBy"] == MULTIKUEUE, "Kueue says that it is a worker's"
        jobs.wait_condition("sent", "Running")
        copy = jobs.get("sent", on="worker1")
        assert copy is not None
        assert "managedBy" not in copy["spec"]["runPolicy"]
        assert not jobs.pods("sent", on="hub"), "the hub's operator leaves it alone"
        jobs.wait("its place in the view", lambda: _place(jobs)[:2] == ("worker1", "Dispatched"))
        names = {pod["metadata"]["name"] for pod in jobs.pods("sent", on="worker1")}
        jobs.wait("pods in the view", lambda: names == {one["metadata"]["name"] for one in _pods(jobs)})

        jobs.end("sent", on="worker1")
        jobs.wait_condition("sent", "Succeeded")
        jobs.wait_gone("sent", on="worker1")
        jobs.wait("its end in the view", lambda: _place(jobs) == ("worker1", "Finished", "Succeeded"))
        assert {one["metadata"]["name"] for one in _pods(jobs)} == names, "what is gone is shown as last seen"
        counts = jobs.shown("sent")["status"]["replicaStatuses"]
        assert counts[kind.types[0]]["succeeded"] == 1, "its last word came back with the job"

    with ThreadPoolExecutor(len(SENT)) as pool:
        list(pool.map(story, SENT))
    report.figure("kinds_dispatched", len(SENT))


def _place(jobs: Jobs) -> tuple[str, ...]:
    status = jobs.shown("sent").get("status", {})
    return tuple(status.get(word, "") for word in ("cluster", "placement", "state"))


def _causes(jobs: Jobs, name: str) -> dict[str, bool]:
    """Return why a job waits: the codes of causes, and whether each stands in its way."""
    return {cause["code"]: cause["blocks"] for cause in jobs.shown(name, "queue").get("causes", ())}


def _blocking(jobs: Jobs, name: str) -> list[str]:
    return [code for code, blocks in _causes(jobs, name).items() if blocks]


def _pods(jobs: Jobs) -> list[dict[str, dict[str, str]]]:
    found: list[dict[str, dict[str, str]]] = jobs.shown("sent", "pods").get("items", [])
    return found


def test_the_worker_refuses_a_jax_job_and_the_hub_says_so(fleet: Fleet, team: MakeTeam) -> None:
    jobs = Jobs(team(), JAX)
    copy = simulated(JAX, "copy", jobs.team.namespace)
    copy["metadata"]["labels"]["kueue.x-k8s.io/prebuilt-workload-name"] = "any"
    with pytest.raises(RefusedError, match="prebuilt"):
        jobs.team.api("worker1").create(copy)
    jobs.submit("stays")
    jobs.wait("its cause in the view", lambda: "NotMirrored" in _causes(jobs, "stays"))
    said = command.check(fleet)
    ((level, problem),) = said.problems("hub", "kinds")
    assert (level, problem.partition(":")[0]) == ("warns", "no JAXJob can be sent to a worker")


def test_why_a_job_waits_is_answered_and_the_fleet_is_clean(fleet: Fleet, team: MakeTeam) -> None:
    jobs = Jobs(team(), PYTORCH)
    jobs.submit("wide", cpu="5")
    jobs.wait("its cause in the view", lambda: _blocking(jobs, "wide") == ["ExceedsQuota"])
    listed = [one["metadata"]["name"] for one in jobs.shown()["items"]]
    assert listed == ["wide"]

    fitting = json.dumps(simulated(PYTORCH, "fits", jobs.team.namespace))
    said = command.check(fleet, "--job", "-", stdin=fitting)
    assert said.code == 0, said.tree
    assert said.level("worker1") is None, said.tree
    wide = command.check(fleet, "--job", f"pytorchjob/{jobs.team.namespace}/wide")
    assert any("can never give more than 8 cpu" in text for _, text in wide.problems("worker1", "trainjob"))
