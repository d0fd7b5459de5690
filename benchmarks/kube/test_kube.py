"""`make bench-kube`: our controller runtime, kopf and the reference over the same objects on one real API server.

One run, one machine; ours and the reference take turns, kopf has one, for its is long. Each pays for its start: the CPU
time of its process from its first moment until every object was looked at. What counts is what ours has to the others'
(`benchmarks.judge`), so a slow machine makes no goal easier, and a slowdown of ours by 1.3 is found. A turn of ours
takes a second of CPU time, so the least of each side is compared.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.disturbance import Others
from benchmarks.judge import Goal, Run, faults, spread
from lab import jobset, reference
from lab.cluster import Cluster
from lab.paths import REPOSITORY
from lab.processes import Process, wait_for
from tests.size import sized

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.suite import SuiteReport

JOBS = int(os.environ.get("BENCH_KUBE_JOBS", sized(4_000, full=100_000)))
TURNS = 5
"""A machine that others use has slow moments, in which CPU time is up to half as much again: not in all of these."""
KOPF_JOBS = min(8_000, JOBS)
"""kopf sees eight namespaces at most: 200,000 objects would take it ten minutes."""
UPDATES = 2_000
GOALS = (
    Goal("ours_to_kopf_cpu", "cpu_us", "kopf", usual=sized(0.09, full=0.065), by_least=True),
    Goal("ours_to_reference_cpu", "cpu_us", "reference", usual=sized(0.41, full=0.5), by_least=True),
    Goal("ours_to_reference_rss", "rss_mb", "reference", usual=sized(0.4, full=0.4)),
)
"""What ours has to the others'. `usual` is of five runs with 4,000 TrainJobs; with 8,000, where starts weigh less, it
is 0.06, 0.3 and 0.3. At full size it is not measured yet by this bench, in which all pay for their start. Go's heap is
as large as its collector leaves it, by a tenth more or less: of memory the median counts."""
GOAL_OBJECT_KB = 5.0
"""Memory for an object, beyond what the process has before the first: a TrainJob of the bench is 4 KB of text."""
GOAL_STALL_MS = 100
QUIET_MS = 150
"""CPU time that `_work` takes at most where the goals were set; for a slower machine they are wider by as much."""
_HERE = Path(__file__).parent
_PATH = {"PYTHONPATH": f"{REPOSITORY}/src:{REPOSITORY}:{_HERE}", "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    """Return what this module measured so far."""
    return []


@pytest.fixture(scope="module")
def loaded(report: SuiteReport) -> Iterator[Cluster]:
    """Return a control plane with the objects in it; no controller touches them."""
    cluster = Cluster.up(f"bench-{os.getpid()}", owned=True)
    try:
        jobset.install_crd(cluster)
        reference.install_crds(cluster)
        report.figure("noise_before_ms", _noise())
        start = time.monotonic()
        _run(cluster, "load", [sys.executable, f"{_HERE}/load.py", str(cluster.kubeconfig), str(JOBS)], seconds=1800)
        report.figure("load_objects_per_s", 2 * JOBS / (time.monotonic() - start))
        # The API server's own cache takes in the bulk of objects first: no work of those who are measured.
        _settled(cluster.engines()["kube-apiserver"].process, share=0.2)
        yield cluster
        report.figure("noise_after_ms", _noise())
    finally:
        cluster.down()


def _noise() -> float:
    """Return the milliseconds that a fixed piece of work takes: equal before and after on a quiet machine."""
    start = time.monotonic()
    _work()
    return (time.monotonic() - start) * 1000


def _slowness() -> float:
    """Return how many times as much CPU time the same work takes here and now as where the goals were set."""
    start = time.thread_time()
    _work()
    return max(1.0, (time.thread_time() - start) * 1000 / QUIET_MS)


def _work() -> None:
    total = 0
    for number in range(2_000_000):
        total += number & 7
    assert total == 7_000_000


def _run(cluster: Cluster, name: str, command: list[str], *, seconds: float) -> None:
    process = cluster.start(name, command, _PATH)
    wait_for(name, lambda: not process.alive(), seconds=seconds, log=cluster.log(name))
    assert "loaded" in cluster.log(name).read_text().splitlines()[-1], cluster.log(name).read_text()[-2000:]


def _settled(process: Process, *, quiet: float = 3.0, seconds: float = 900.0, share: float = 0.02) -> float:
    """Return the CPU seconds of a process once it has used less than a share of a core for a while."""
    deadline = time.monotonic() + seconds
    last, since = process.cpu_seconds(), time.monotonic()
    while time.monotonic() < deadline:
        time.sleep(0.25)
        now = process.cpu_seconds()
        if now - last > share * (time.monotonic() - since) + 0.03:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > quiet:
            return now
        assert process.alive(), "the measured process ended"
    pytest.fail("the measured process never came to rest")


def _begin(cluster: Cluster, turn: int, runs: list[Run]) -> tuple[Process, Path]:
    """Start ours, wait until it has looked at every object, and note what that took."""
    others = Others(cluster)
    result = cluster.folder / f"ours-{turn}.json"
    command = [sys.executable, f"{_HERE}/ours.py", str(cluster.kubeconfig), str(result), str(JOBS)]
    process = cluster.start(f"ours-{turn}", command, _PATH)
    wait_for("ours", result.exists, seconds=600, log=cluster.log(f"ours-{turn}"))
    cold = json.loads(result.read_text())
    assert (cold["trainjobs"], cold["jobsets"]) == (JOBS, JOBS)
    start, cpu = _costs(cold)
    taken = {"others_share": others.share()}
    each = {"cpu_us": (start + cpu) / (2 * JOBS) * 1e6, "rss_mb": cold["worked"]["rss_mb"]}
    runs.append(Run("ours", turn, each | taken))
    # Where kopf has fewer objects, its start weighs more on each: so does ours beside it.
    runs.append(Run("ours_beside_kopf", turn, {"cpu_us": (start / KOPF_JOBS + cpu / JOBS) / 2 * 1e6} | taken))
    return process, result


def _costs(cold: dict[str, Any]) -> tuple[float, float]:
    """Return the CPU seconds of a start, and of the objects after it."""
    start: float = cold["begin"]["cpu_s"]
    return start, cold["worked"]["cpu_s"] - start


def _end(process: Process) -> None:
    process.signal(15)
    assert process.wait_gone(30)


@pytest.mark.timeout(2400)
def test_ours(loaded: Cluster, report: SuiteReport, runs: list[Run]) -> None:
    slowness = _slowness()
    process, result = _begin(loaded, 0, runs)
    cold = json.loads(result.read_text())
    objects = 2 * JOBS
    start, cpu = _costs(cold)
    kilobytes = (cold["worked"]["rss_mb"] - cold["begin"]["rss_mb"]) * 1024 / objects
    sync_cpu = cold["synced"]["cpu_s"] - cold["begin"]["cpu_s"]
    work_seconds = cold["worked"]["monotonic"] - cold["synced"]["monotonic"]
    suffix = f"{JOBS // 1000}k"
    report.figure(f"rss_mb_{suffix}", process.rss_mb())
    report.figure(f"peak_rss_mb_{suffix}", cold["worked"]["peak_rss_mb"])
    report.figure("rss_kb_per_object", kilobytes)
    report.figure("cpu_us_per_object", cpu / objects * 1e6)
    report.figure("start_cpu_s", start)
    report.figure("sync_cpu_s", sync_cpu)
    report.figure("sync_s", cold["synced"]["monotonic"] - cold["begin"]["monotonic"])
    report.figure("loop_stall_ms", cold["worked"]["stall_ms"])
    report.figure("loop_stall_cpu_ms", cold["worked"]["stall_cpu_ms"])
    report.figure("noop_reconciles_per_s", JOBS / work_seconds)

    _settled(process)
    before = process.cpu_seconds()
    _update(loaded, UPDATES)
    after = _settled(process)
    _end(process)
    end = json.loads(result.read_text())["end"]
    report.figure("cpu_us_per_update", (after - before) / UPDATES * 1e6)
    report.figure("steady_stall_ms", end["stall_ms"])
    assert end["reconciled"] >= JOBS + UPDATES
    assert kilobytes <= GOAL_OBJECT_KB
    slowness = max(slowness, _slowness())
    report.figure("slowness", slowness)
    # By CPU time: the wall clock also counts what the API server on the same two cores took from us.
    assert cold["worked"]["stall_cpu_ms"] <= GOAL_STALL_MS * slowness


def _update(cluster: Cluster, count: int) -> None:
    """Change one label of `count` TrainJobs."""
    with cluster.connection() as connection:
        for number in range(count):
            body = json.dumps({"metadata": {"labels": {"touched": str(time.monotonic_ns())}}})
            path = f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/team-{number // 1000}/trainjobs/job-{number}"
            connection.send("PATCH", path, body, "application/merge-patch+json")


@pytest.mark.timeout(1200)
def test_kopf_beside(loaded: Cluster, report: SuiteReport, runs: list[Run]) -> None:
    spaces = [word for number in range(KOPF_JOBS // 1000) for word in ("--namespace", f"team-{number}")]
    command = [sys.executable, "-m", "kopf", "run", "--quiet", *spaces, f"{_HERE}/kopf_noop.py"]
    others = Others(loaded)
    process = loaded.start("kopf", command, {**_PATH, "KUBECONFIG": str(loaded.kubeconfig)})
    each = _settled(process, quiet=5.0) / (2 * KOPF_JOBS) * 1e6
    once = {"cpu_us": each, "others_share": others.share()}
    runs += [Run("kopf", turn, once) for turn in range(TURNS)]
    report.figure("kopf_cpu_us_per_object", each)
    report.figure(f"kopf_rss_mb_{KOPF_JOBS // 1000}k", process.rss_mb())
    process.signal(9)


@pytest.mark.timeout(1200)
def test_the_references_restart_beside(loaded: Cluster, report: SuiteReport, runs: list[Run]) -> None:
    reference.install(loaded, qps=5000, with_crds=False)
    _look(loaded, loaded.engines()["reference"].process, 0, runs)
    for turn in range(1, TURNS):
        _end(_begin(loaded, turn, runs)[0])
        _look(loaded, loaded.revive("reference"), turn, runs)
    report.figure("reference_rss_mb", spread(runs, "reference", "rss_mb").median)
    report.figure("reference_cpu_us_per_object", spread(runs, "reference", "cpu_us").median)


def _look(cluster: Cluster, process: Process, turn: int, runs: list[Run]) -> None:
    """Note what the reference takes until it has looked at every object, and end it."""
    others = Others(cluster)
    each = {"cpu_us": _settled(process) / (2 * JOBS) * 1e6, "rss_mb": process.rss_mb()}
    runs.append(Run("reference", turn, each | {"others_share": others.share()}))
    cluster.kill("reference")


def test_ours_reaches_its_goals_against_both(report: SuiteReport, runs: list[Run]) -> None:
    against_kopf, *against_reference = GOALS
    for goal, ours in [(against_kopf, "ours_beside_kopf"), *((goal, "ours") for goal in against_reference)]:
        ratio, judged = goal.ratio(runs, ours), goal.judged(runs, ours)
        if ratio is None or judged is None:
            continue  # others had the machine in every turn
        report.figure(goal.name, judged)
        report.row(goal=goal.name, **{name: round(value, 3) for name, value in asdict(ratio).items()})
    for run in runs:
        figures = {name: round(value, 3) for name, value in run.figures.items()}
        report.row(contender=run.contender, turn=run.repeat, **figures)
    assert not faults([against_kopf], runs, "ours_beside_kopf") + faults(against_reference, runs)
