"""Many TrainJobs through the hub while a worker is killed: each runs exactly once.

The worker is killed when the hub has decided about all jobs that it has sent, and while all of those run. Of a job that
several workers admit Kueue keeps the copy that was admitted first. If that one's worker dies before the hub has seen
it, the job runs on another; and when the worker is back, Kueue 0.19 finds that it was the first, and runs the job there
once more.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import pytest

from lab.processes import wait_for
from tests.fleet import objects
from tests.fleet.api import Api
from tests.fleet.load.evidence import Evidence, counted, let_go
from tests.fleet.outage import control_plane_away
from tests.fleet.team import make_team, remove_team, true_condition
from tests.size import sized

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster
    from lab.fleet import Fleet
    from tests.fleet.team import Team
    from tests.suite import SuiteReport

JOBS = sized(30, full=500)
AT_A_TIME = 20
"""Jobs for which the hub has quota; each worker has it for half of them."""
NODES = 2
_SENDERS = 8
_RUNTIME = "load"
_LASTS = "1s"
_HELD = "load-held"
"""A runtime whose pods run until the test ends them."""
_PATIENCE = 3600.0 if JOBS > 100 else 600.0
"""Seconds that all jobs together may take on a busy machine; idle cores need a tenth of it."""
_RETURN_SECONDS = 300.0
"""Seconds that a killed API server may take to be back; the hub waits 15 minutes before it gives a worker up."""


@pytest.fixture
def steady(fleet: Fleet) -> Iterator[Fleet]:
    """Return the fleet with two settings of the hub as Kueue ships them, where the lab's are smaller.

    An outage of seconds must not look like a loss, and Workloads are reconciled ten at a time.
    """
    multikueue = {"gcInterval": "5s", "origin": "hub", "workerLostTimeout": "15m"}
    controller = {"groupKindConcurrency": {"Workload.kueue.x-k8s.io": 10}}
    before = fleet.reconfigure(fleet.hub, multiKueue=multikueue, controller=controller)
    yield fleet
    fleet.reconfigure(fleet.hub, **before)


@pytest.fixture
def us(steady: Fleet) -> Iterator[Team]:
    for cluster in steady.clusters:
        for name, lasts in ((_RUNTIME, _LASTS), (_HELD, "24h")):
            Api(cluster).apply(counted(objects.runtime(name, lasts=lasts)))

    def quota(jobs: int) -> dict[str, str]:
        return {"cpu": str(jobs * NODES), "memory": f"{jobs * NODES}Gi"}

    share = quota(AT_A_TIME // len(steady.workers))
    team = make_team(steady, "load", quotas={"hub": quota(AT_A_TIME), "worker1": share, "worker2": share})
    yield team
    for cluster in steady.workers:
        let_go(cluster, team.namespace)
    remove_team(team)
    for cluster in steady.workers:
        wait_for("the namespace to go", partial(_gone, cluster, team.namespace), seconds=180)
    for cluster in steady.clusters:
        for name in (_RUNTIME, _HELD):
            Api(cluster).delete("clustertrainingruntimes", "", name)


def _gone(cluster: Cluster, namespace: str) -> bool:
    """Return whether a namespace is gone; pods that were made meanwhile are let go as well."""
    let_go(cluster, namespace)
    time.sleep(0.5)
    return Api(cluster).get("namespaces", "", namespace) is None


def _send(us: Team, names: list[str], *, runtime: str = _RUNTIME) -> None:
    """Create all TrainJobs on the hub, as fast as it takes them."""
    path = f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{us.namespace}/trainjobs"

    def send(share: list[str]) -> None:
        with us.cluster("hub").connection() as connection:
            for name in share:
                job = objects.train_job(name, us.namespace, runtime=runtime, nodes=NODES)
                connection.send("POST", path, json.dumps(job))

    us.wait("Kueue to know the runtime", lambda: _knows(us, runtime))
    with ThreadPoolExecutor(_SENDERS) as pool:
        list(pool.map(send, [names[start::_SENDERS] for start in range(_SENDERS)]))


def _knows(us: Team, runtime: str) -> bool:
    job = objects.train_job("probe", us.namespace, runtime=runtime, queue=None)
    arguments = ("create", "--dry-run=server", "--filename=-")
    return us.cluster("hub").kubectl(*arguments, stdin=json.dumps(job), check=False).code == 0


def _wait_complete(us: Team, number: int) -> None:
    """Wait until so many jobs are complete on the hub; none of these looks may find more than quota allows."""

    def complete() -> bool:
        queue = us.api().get("clusterqueues", "", us.namespace) or {}
        assert queue["status"]["reservingWorkloads"] <= AT_A_TIME
        jobs = us.api().list("trainjobs", us.namespace)
        assert not [job for job in jobs if true_condition(job, "Failed")]
        return sum(true_condition(job, "Complete") is not None for job in jobs) >= number

    def complete_now() -> bool:
        if complete():
            return True
        time.sleep(0.5)
        return False

    wait_for(f"{number} jobs to be complete", complete_now, seconds=_PATIENCE, log=us.cluster("hub").log("kueue"))


def _is_tidy(us: Team, worker: str) -> bool:
    """Return whether nothing of the jobs is left on a worker but their pods, which wait to be counted."""
    return not any(
        us.api(worker).list(plural, us.namespace) for plural in ("trainjobs", "workloads", "jobsets", "jobs")
    )


def _are_running(us: Team, names: list[str]) -> bool:
    """Return whether the hub has decided where jobs run, and they do: other workers have no copies of them any more."""
    workloads, jobs = (us.api().list(plural, us.namespace) for plural in ("workloads", "trainjobs"))
    decided = {
        workload["metadata"]["ownerReferences"][0]["name"]
        for workload in workloads
        if (workload.get("status") or {}).get("clusterName")
    }
    running = {
        job["metadata"]["name"]
        for job in jobs
        if any(step["active"] for step in (job.get("status") or {}).get("jobsStatus", []))
    }
    pods = Counter(
        pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"]
        for worker in us.workers
        for pod in us.api(worker).list("pods", us.namespace)
        if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
    )
    return set(names) <= decided & running and all(pods[name] == NODES for name in names)


@pytest.mark.timeout(2 * (_PATIENCE + _RETURN_SECONDS))
def test_each_job_runs_exactly_once_though_a_worker_is_killed(us: Team, report: SuiteReport) -> None:
    names = [f"job-{number:03}" for number in range(JOBS)]
    third = JOBS // 3
    early, held, late = names[:third], names[third : third + AT_A_TIME], names[third + AT_A_TIME :]
    start = time.monotonic()
    _send(us, early)
    _wait_complete(us, len(early))
    _send(us, held, runtime=_HELD)
    us.wait("all workers to be full", partial(_are_running, us, held), seconds=_PATIENCE)
    gone = time.monotonic()
    with control_plane_away(us.cluster("worker1"), store=True, seconds=_RETURN_SECONDS):
        for name in held:
            us.end(name, on="worker2")
        _send(us, late)
    away = time.monotonic() - gone
    for name in held:
        us.end(name, on="worker1")
    _wait_complete(us, JOBS)
    seconds = time.monotonic() - start
    us.fleet.wait_connected(_RETURN_SECONDS)
    for worker in us.workers:
        us.wait(f"{worker} to be tidy", partial(_is_tidy, us, worker))

    evidence = Evidence.gather({worker: us.api(worker).list("pods", us.namespace) for worker in us.workers})
    lost, twice = evidence.lost(names, nodes=NODES), evidence.twice(names)
    report.figure("load_jobs", JOBS)
    report.figure("load_seconds", seconds)
    report.figure("load_jobs_per_second", JOBS / seconds)
    report.figure("load_worker_away_seconds", away)
    report.figure("load_pods", evidence.pods)
    report.figure("jobs_lost", len(lost))
    report.figure("jobs_run_twice", len(twice))
    assert lost == []
    assert twice == [], {job: evidence.runs[job] for job in twice}
    assert evidence.runs.keys() == set(names)
    shares = evidence.workers()
    assert min(shares[worker] for worker in us.workers) > 0, f"one worker did it all: {shares}"
    assert us.api().list("pods", us.namespace) == []
