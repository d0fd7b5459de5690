"""`make bench`: bare writes, the reference and ours, over the same TrainJobs, each on a fresh API server of one run.

JobSet's CRD is there but not its controller: what is measured is the way from a TrainJob to its JobSet, and from a
JobSet that completes to its TrainJob.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.disturbance import Others
from lab import jobset, reference, trainplane
from lab.cluster import Cluster
from lab.engines import manifests
from lab.paths import REPOSITORY
from lab.processes import wait_for
from lab.webhooks import documents
from tests.size import FULL, sized

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.suite import SuiteReport

SIZES = sized((1000,), full=(1000, 5000), small=(500,))
_HERE = Path(__file__).parent
_PATH = {"PYTHONPATH": f"{REPOSITORY}/src:{REPOSITORY}", "PYTHONDONTWRITEBYTECODE": "1"}
LIFTED_QPS = 5000
DISTURBED = 0.1
"""Share of the machine above which others took so much of it that speeds of two runs cannot be compared."""


def _bare(cluster: Cluster) -> str | None:
    reference.install_crds(cluster)
    return None


def _reference(cluster: Cluster) -> str:
    reference.install(cluster)
    return "reference"


def _reference_lifted(cluster: Cluster) -> str:
    reference.install(cluster, qps=LIFTED_QPS)
    return "reference"


def _ours(cluster: Cluster) -> str:
    trainplane.install(cluster, with_progress=False)
    return trainplane.ENGINE


CONTENDERS: dict[str, Callable[[Cluster], str | None]] = {"bare": _bare, "reference": _reference_lifted, "ours": _ours}
if FULL:
    CONTENDERS["reference_shipped"] = _reference


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("contender", CONTENDERS)
def test_from_trainjobs_to_jobsets_and_back(contender: str, size: int, report: SuiteReport) -> None:
    cluster = Cluster.up(f"bench-{os.getpid()}", owned=True)
    try:
        measured = _measure(cluster, contender, size)
    finally:
        cluster.down()
    report.row(contender=contender, jobs=size, **measured)
    report.figure(f"{contender}_jobs_per_s_{size}", measured["create_jobs_per_s"])
    report.figure(f"{contender}_servers_cpu_ms_per_job_{size}", measured["create_servers_cpu_ms_per_job"])
    if contender == "bare":
        return
    report.figure(f"{contender}_completions_per_s_{size}", measured["complete_jobs_per_s"])
    if size == max(SIZES) or not FULL:
        report.figure(f"{contender}_p50_s", measured["create_p50_s"])
        report.figure(f"{contender}_p99_s", measured["create_p99_s"])
        report.figure(f"{contender}_complete_p99_s", measured["complete_p99_s"])
        report.figure(f"{contender}_cpu_ms_per_job", measured["create_cpu_ms_per_job"])
        report.figure(f"{contender}_complete_cpu_ms_per_job", measured["complete_cpu_ms_per_job"])
    report.figure(f"{contender}_rss_mb_{size}", measured["rss_mb"])
    report.figure(f"{contender}_others_share_{size}", measured["others_share"])


def _measure(cluster: Cluster, contender: str, size: int) -> dict[str, float]:
    jobset.install_crd(cluster)
    engine = CONTENDERS[contender](cluster)
    (runtime,) = documents(manifests("trainer") / "manifests/base/runtimes/torch_distributed.yaml")
    cluster.apply(runtime, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}})
    process = cluster.engines()[engine].process if engine else None
    time.sleep(2)  # let start-up work of the engines settle: it is no part of a job
    before = process.cpu_seconds() if process else 0.0
    servers_before = _servers_cpu(cluster)
    others = Others(cluster)

    result = cluster.folder / "bench.json"
    mode = "controller" if engine else "bare"
    command = [sys.executable, str(_HERE / "drive.py"), mode, str(cluster.kubeconfig), str(size), str(result)]
    driver = cluster.start("drive", command, _PATH)
    created = result.with_suffix(".created")

    def there(path: Path) -> bool:
        return path.exists() or not driver.alive()

    wait_for("drive", lambda: there(created), seconds=600, log=cluster.log("drive"))
    between = process.cpu_seconds() if process else 0.0
    servers = (_servers_cpu(cluster) - servers_before) / size * 1000
    taken = others.share()
    result.with_suffix(".go").touch()
    wait_for("drive", lambda: there(result), seconds=600, log=cluster.log("drive"))
    assert result.exists(), cluster.log("drive").read_text()[-3000:]
    figures: dict[str, Any] = json.loads(result.read_text())
    measured = {f"{phase}_{name}": value for phase, values in figures.items() for name, value in values.items()}
    measured["create_servers_cpu_ms_per_job"] = servers
    if process:
        measured["others_share"] = taken
        measured["create_cpu_ms_per_job"] = (between - before) / size * 1000
        measured["complete_cpu_ms_per_job"] = (process.cpu_seconds() - between) / size * 1000
        measured["rss_mb"] = process.rss_mb()
    return {name: round(value, 4) for name, value in measured.items()}


def _servers_cpu(cluster: Cluster) -> float:
    """Return the CPU time of API server and etcd: what a job costs the cluster, however busy the machine is."""
    engines = cluster.engines()
    return sum(engines[name].process.cpu_seconds() for name in ("kube-apiserver", "etcd"))


def test_ours_against_the_goals(report: SuiteReport) -> None:
    """Compare within this run: the reference with its limits lifted, and the bare client."""
    figures = report.figures
    for size in SIZES:
        ours = figures[f"ours_jobs_per_s_{size}"]
        report.figure(f"ours_to_reference_{size}", ours / figures[f"reference_jobs_per_s_{size}"])
        report.figure(f"ours_to_bare_{size}", ours / figures[f"bare_jobs_per_s_{size}"])
    largest = max(SIZES)
    costs = {
        name: figures[f"{name}_servers_cpu_ms_per_job_{largest}"] + figures[f"{name}_cpu_ms_per_job"]
        for name in ("ours", "reference")
    }
    report.figure("ours_to_reference_cpu", costs["ours"] / costs["reference"])
    report.figure("ours_to_reference_rss", figures[f"ours_rss_mb_{largest}"] / figures[f"reference_rss_mb_{largest}"])
    # They run one after the other: where somebody else used the machine, one was held up; its jobs still cost the same.
    if max(figures[f"{name}_others_share_{largest}"] for name in costs) > DISTURBED:
        assert costs["ours"] < costs["reference"]
        return
    assert figures[f"ours_to_reference_{largest}"] > 1
    assert figures["ours_p99_s"] < figures["reference_p99_s"]
