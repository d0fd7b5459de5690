"""What the official SDK costs: its import, and its list of many jobs. Our own is measured beside it, in the same run.

report_import(report)
with many_jobs(100) as crowd:
    report_list(report, crowd)
    ...  # ours, with crowd.kubeconfig and crowd.namespace
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab import profiles, trainplane
from tests.sdk.official import documents
from tests.sdk.official.sdk import PYTHON, Sdk
from tests.sdk.official.side import kubeconfig
from tests.size import sized

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Cluster
    from tests.suite import SuiteReport

CROWD = sized(500, full=1000)
"""TrainJobs of the namespace that is listed."""
ROUNDS = 3
"""Imports that are timed."""
_IMPORT = """
import sys, time
start = time.perf_counter()
exec(sys.argv[1])
seconds = time.perf_counter() - start
(peak,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(seconds, int(peak.split()[1]) / 1024)
"""
"""Seconds of an import, and the memory of an interpreter that has done it and nothing else. Not by `getrusage`: that
remembers what the process was before it became this interpreter."""
LIST_SECONDS = 1800.0
"""How long a list of jobs may take: the SDK asks three times for each."""


@dataclass(frozen=True)
class Cost:
    """What an import costs."""

    seconds: float
    rss_mb: float


@dataclass(frozen=True)
class Crowd:
    """A namespace with many TrainJobs, on a control plane without nodes."""

    cluster: Cluster
    kubeconfig: Path
    """Of a user who has the SDK's rights."""
    namespace: str
    jobs: int


def import_cost(statement: str, python: Path | str = sys.executable) -> Cost:
    """Return what a statement costs in a fresh interpreter: the least of some, for others share this machine."""
    runs = []
    for _ in range(ROUNDS):
        done = subprocess.run([str(python), "-c", _IMPORT, statement], capture_output=True, text=True, check=True)
        runs.append([float(word) for word in done.stdout.split()])
    return Cost(min(seconds for seconds, _ in runs), min(rss for _, rss in runs))


def report_import(report: SuiteReport) -> Cost:
    """Record the official SDK's import."""
    cost = import_cost("from kubeflow.trainer import CustomTrainer, TrainerClient", PYTHON)
    report.figure("official_import_s", cost.seconds)
    report.figure("official_import_rss_mb", cost.rss_mb)
    return cost


@contextmanager
def many_jobs(count: int) -> Iterator[Crowd]:
    """Bring up a control plane with our operator and this many TrainJobs, which another cluster is said to run."""
    (cluster,) = profiles.up("control", f"sdk-crowd-{os.getpid()}", owned=True)
    try:
        trainplane.install(cluster)
        cluster.apply(*documents.rights(), *documents.published())
        cluster.apply(documents.plain())
        path = f"/apis/{documents.API}/namespaces/{documents.USER}/trainjobs"
        with cluster.connection() as connection:
            for number in range(count):
                job = documents.unmanaged(f"job-{number:04}", documents.USER)
                connection.send("POST", path, json.dumps(job))
        yield Crowd(cluster, kubeconfig(cluster), documents.USER, count)
    finally:
        cluster.down()


def report_list(report: SuiteReport, crowd: Crowd) -> float:
    """Record how long the official SDK's `list_jobs()` takes for the crowd; the name of the figure says how many."""
    cell = (
        "import time\nstart = time.perf_counter()\njobs = client.list_jobs()\n[len(jobs), time.perf_counter() - start]"
    )
    with Sdk(crowd.kubeconfig, crowd.namespace) as sdk:
        sdk.run("client.list_runtimes()")
        outcome = sdk.begin(cell).result(LIST_SECONDS)
    assert outcome.error is None, outcome.error
    listed, seconds = outcome.value
    assert listed == crowd.jobs
    report.figure(f"official_list_{crowd.jobs}_jobs_s", seconds)
    return float(seconds)
