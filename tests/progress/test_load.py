"""Many TrainJobs that report every five seconds: what that costs the operator and the API server.

The API server's audit log says what it was asked: no TrainJob's progress is written twice within ten seconds, whichever
replica its reports came to, and the last report of each is there in the end.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from lab import jobset, trainplane
from lab.cluster import Cluster
from lab.engines import manifests
from lab.paths import REPOSITORY
from lab.processes import wait_for
from lab.webhooks import documents
from tests.size import sized

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.processes import Process
    from tests.suite import SuiteReport

JOBS = sized(100, full=2000)
SECONDS = sized(21, full=60)
SHORTEST = 9.9
"""Seconds between two writes: ten by the operator's clock, and a little for the way to the API server's log."""
ELECTION = {"leaderElect": True, "leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"}


@pytest.fixture(params=sized([2], full=[1, 2]))
def replicas(request: pytest.FixtureRequest) -> int:
    count: int = request.param
    return count


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster.up(f"progress-load-{os.getpid()}", owned=True, audited=True)
    try:
        jobset.install_crd(cluster)
        yield cluster
    finally:
        cluster.down()


def _second(cluster: Cluster) -> Process:
    """Start another replica beside the one that is installed, on ports of its own."""
    config = cluster.folder / "second.yaml"
    tree = {
        **trainplane.configuration(),
        "leaderElection": ELECTION,
        "webhook": {"host": "127.0.0.1", "port": trainplane.WEBHOOK_PORT + 100},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{trainplane.HEALTH_PORT + 100}"},
        "metrics": {"bindAddress": "0"},
        "statusServer": {"port": trainplane.STATUS_PORT + 1},
    }
    config.write_text(yaml.safe_dump(tree))
    command = [
        *(sys.executable, "-m", "trainplane.operator"),
        f"--config={config}",
        f"--kubeconfig={trainplane.kubeconfig(cluster)}",
        f"--namespace={trainplane.NAMESPACE}",
        f"--webhook-cert-dir={cluster.folder / f'{trainplane.ENGINE}-certs'}",
    ]
    process = cluster.start("second", command, {"PYTHONPATH": str(REPOSITORY / "src")})
    cluster.wait_http("second", trainplane.HEALTH_PORT + 100)
    return process


@pytest.mark.timeout(600)
def test_no_trainjob_is_written_more_often_than_every_ten_seconds(
    cluster: Cluster, replicas: int, report: SuiteReport
) -> None:
    operators = [trainplane.install(cluster, settings={"leaderElection": ELECTION})]
    if replicas == 2:
        operators.append(_second(cluster))
    (runtime,) = documents(manifests("trainer") / "manifests/base/runtimes/torch_distributed.yaml")
    cluster.apply(runtime, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "reporting"}})
    result = cluster.folder / "progress.json"
    urls = [f"https://127.0.0.1:{trainplane.STATUS_PORT + number}" for number in range(replicas)]
    script = str(REPOSITORY / "tests/progress/drive.py")
    command = [sys.executable, script, str(cluster.kubeconfig), str(JOBS), str(SECONDS), str(result), *urls]
    driver = cluster.start("drive", command, {"PYTHONPATH": str(REPOSITORY / "src")})

    def await_file(suffix: str) -> None:
        path = result.with_suffix(suffix)
        wait_for(suffix, lambda: path.exists() or not driver.alive(), seconds=300, log=cluster.log("drive"))
        assert path.exists(), cluster.log("drive").read_text()[-3000:]

    await_file(".ready")
    before = sum(one.cpu_seconds() for one in operators)
    result.with_suffix(".go").touch()
    await_file(".reported")
    cores = (sum(one.cpu_seconds() for one in operators) - before) / SECONDS
    await_file(".json")
    told: dict[str, Any] = json.loads(result.read_text())
    asked = _status_writes(cluster)
    stored = {name: [moment for moment, code in calls if code == 200] for name, calls in asked.items()}
    gaps = [later - earlier for moments in stored.values() for earlier, later in pairwise(sorted(moments))]
    within = sum(told["began"] <= one <= told["ended"] for moments in stored.values() for one in moments)
    spans = [(len(moments) - 1, max(moments) - min(moments)) for moments in stored.values() if len(moments) > 1]
    rate = max(count / span * 10 for count, span in spans)
    in_vain = [int(moment - told["began"]) // 10 for calls in asked.values() for moment, code in calls if code != 200]
    refused = len(in_vain)
    report.row(
        jobs=JOBS, replicas=replicas, reports=told["reports"], writes=within, refused_writes=refused,
        refused_by_ten_seconds=[in_vain.count(turn) for turn in range(max(in_vain, default=-1) + 1)],
        shortest_gap_s=round(min(gaps), 3), cpu_cores=round(cores, 4), p50_ms=round(told["p50_ms"], 2),
        p99_ms=round(told["p99_ms"], 2), fewest_writes=min(map(len, stored.values())), lost=told["lost"],
        codes=str(told["codes"]), rss_mb=round(max(one.rss_mb() for one in operators), 1),
    )  # fmt: skip
    suffix = "" if replicas == 2 else "_one_replica"
    report.figure("jobs", JOBS)
    report.figure(f"status_writes_per_job_per_10s{suffix}", rate)
    report.figure(f"cpu_cores{suffix}", cores)
    report.figure(f"p99_ms{suffix}", told["p99_ms"])
    assert told["codes"] == {"200": told["reports"]}
    assert told["reports"] >= JOBS * (SECONDS / 5 - 1.5)
    assert len(stored) == JOBS
    assert min(gaps) >= SHORTEST
    assert rate <= 10 / SHORTEST
    assert told["lost"] == 0
    turns = (told["ended"] - told["began"]) / 10 + 1
    assert within + refused <= JOBS * turns, "also with those for which the other replica was faster"


def _status_writes(cluster: Cluster) -> dict[str, list[tuple[float, int]]]:
    """Return when each TrainJob's progress was asked to be written, and the answer, by the API server's own log."""
    found: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for event in cluster.audit():
        place = event.get("objectRef") or {}
        if place.get("subresource") == "status" and "fieldManager=trainer-status" in event["requestURI"]:
            moment = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
            found[place["name"]].append((moment, event["responseStatus"]["code"]))
    return found
