from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from lab import kueue, kwok
from lab.fleet import CHECK, Fleet
from lab.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from lab.cluster import Cluster


@pytest.fixture(scope="module")
def fleet(measured: Callable[[str], AbstractContextManager[tuple[Cluster, ...]]]) -> Iterator[Fleet]:
    with measured("fleet") as (hub, *workers):
        fleet = Fleet(hub, tuple(workers))
        for worker in fleet.workers:
            kwok.install(worker, nodes=1)
        hub.apply(*kueue.queue("team", "default", cpu="16", memory="32Gi", checks=(CHECK,)))
        fleet.workers[0].apply(*kueue.queue("team", "default", cpu="0", memory="0"))
        fleet.workers[1].apply(*kueue.queue("team", "default", cpu="16", memory="32Gi"))
        yield fleet


def _job(name: str) -> str:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    spec = {
        "parallelism": 2,
        "completions": 2,
        "suspend": True,
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    labels = {"kueue.x-k8s.io/queue-name": "team"}
    return json.dumps(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels}, "spec": spec}
    )


def _conditions(job: dict[str, Any]) -> set[str]:
    return {c["type"] for c in job.get("status", {}).get("conditions", []) if c["status"] == "True"}


def _workload(cluster: Cluster, job: str) -> dict[str, Any]:
    workload: dict[str, Any]
    (workload,) = [
        item for item in cluster.get("workloads")["items"] if item["metadata"]["ownerReferences"][0]["name"] == job
    ]
    return workload


def test_a_job_runs_on_the_worker_with_quota_and_its_result_comes_back(fleet: Fleet) -> None:
    fleet.hub.kubectl("create", "-f", "-", stdin=_job("here"))
    wait_for(
        "the job's result on the hub",
        lambda: "Complete" in _conditions(fleet.hub.get("job", "here")),
        seconds=90,
        log=fleet.hub.log("kueue"),
    )
    assert fleet.hub.get("job", "here")["status"]["succeeded"] == 2
    assert fleet.hub.get("pods")["items"] == []
    checks = _workload(fleet.hub, "here")["status"]["admissionChecks"]
    assert [check["name"] for check in checks] == [CHECK]
    assert "worker2" in checks[0]["message"]


def test_a_worker_that_is_cut_off_is_seen_and_comes_back(fleet: Fleet) -> None:
    worker = fleet.workers[1]

    def active() -> str:
        conditions = fleet.hub.get("multikueuecluster", "worker2")["status"]["conditions"]
        status: str = next(c["status"] for c in conditions if c["type"] == "Active")
        return status

    worker.kill("kube-apiserver")
    wait_for("the hub to notice", lambda: active() == "False", seconds=60, log=fleet.hub.log("kueue"))
    worker.revive("kube-apiserver")
    worker.wait_ready()
    fleet.wait_connected(seconds=120)
    fleet.cut(worker)
    script = f"! timeout 1 bash -c 'echo > /dev/tcp/{worker.address}/{worker.port}' 2>/dev/null"
    fleet.hub.sandbox.run(["bash", "-c", script])
    fleet.mend(worker)
    reached = f"timeout 5 bash -c 'echo > /dev/tcp/{worker.address}/{worker.port}'"
    fleet.hub.sandbox.run(["bash", "-c", reached])
