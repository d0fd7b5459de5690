"""TrainJobs of shipped runtimes, with pods that talk, survive suspensions, deletions, evictions, drains, and faults."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from lab import kueue, node
from tests.disruptions import actions
from tests.disruptions.job import EndedError
from tests.disruptions.runtimes import OTHERS
from tests.size import FULL, sized

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lab.cluster import Cluster
    from tests.disruptions.job import Job, MakeJob
    from tests.suite import SuiteReport

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
TIMES = sized(1, full=5)
"""How often each list of actions is done."""


def planned(make_job: MakeJob) -> list[tuple[Job, Sequence[Callable[[Job], None]]]]:
    """Return the TrainJobs of a run, and what is done to each."""
    few = actions.FEW * TIMES
    drawn: list[tuple[Job, Sequence[Callable[[Job], None]]]] = [
        (make_job("talking"), actions.TALKING * TIMES),
        (make_job("exits-0", on_sigterm="save 0"), actions.SAVING * TIMES),
        (make_job("saves", on_sigterm="save 10"), (actions.evict_last, actions.suspend) * TIMES),
        (make_job("eight", nodes=8, on_sigterm="exit 143"), few),
        (make_job("brief"), (actions.suspend_briefly,) * 4 * TIMES),
        # The containers of this one restart in place, and the kubelet waits longer before each restart.
        (make_job("elastic", "torch-elastic"), (actions.suspend, actions.delete_last)),
        *((make_job(name, name), few) for name in OTHERS),
    ]
    return [*drawn, (make_job("many", nodes=32), few)] if FULL else drawn


def submitted(make_job: MakeJob, name: str, **others: Any) -> Job:
    """Return a TrainJob that trains."""
    job = make_job(name, **others)
    job.submit()
    job.wait_training()
    return job


def count(report: SuiteReport, cycles: int) -> None:
    """Add to the cycles that the tests before counted."""
    report.figure("cycles", report.figures.get("cycles", 0) + cycles)


def test_train_jobs_disrupted_repeatedly_continue_and_complete(make_job: MakeJob, report: SuiteReport) -> None:
    drawn = planned(make_job)
    with ThreadPoolExecutor(len(drawn)) as pool:
        ends = list(pool.map(lambda one: run(*one), drawn))
    for (job, _), end in zip(drawn, ends, strict=True):
        report.row(
            job=job.name, runtime=job.tree["spec"]["runtimeRef"]["name"], pods=job.nodes, cycles=job.cycles, end=end
        )
    count(report, sum(job.cycles for job, _ in drawn))
    report.figure("failed", sum("Failed" in end for end in ends))
    report.figure("completed_early", sum("Complete" in end and "cycle" in end for end in ends))
    assert [end for end in ends if not end.startswith("Complete: ")] == []


def run(job: Job, doings: Sequence[Callable[[Job], None]]) -> str:
    """Submit a TrainJob, disrupt it, let it finish; return how it ended."""
    job.submit()
    try:
        actions.disrupt(job, doings)
    except EndedError as error:
        return str(error)
    job.finish()
    return job.wait_end()


def test_train_job_preempted_by_kueue_continues_when_admitted_again(
    cluster: Cluster, make_job: MakeJob, report: SuiteReport
) -> None:
    """A TrainJob of higher priority takes the quota, several times."""
    victim = make_job("victim", cpu="50m", suspend=True)
    name = victim.namespace
    flavor, queue, local = kueue.queue(name, name, cpu="100m", memory="1Gi")
    queue["spec"]["preemption"] = {"withinClusterQueue": "LowerPriority"}
    high = {"apiVersion": queue["apiVersion"], "kind": "WorkloadPriorityClass", "metadata": {"name": name}, "value": 1}
    cluster.apply(flavor, queue, local, high)
    queued = {"kueue.x-k8s.io/queue-name": name}
    victim.tree["metadata"]["labels"] = queued
    victim.submit()
    containers = victim.wait_training()
    for number in range(3 * TIMES):
        urgent = make_job(f"urgent-{number}", cpu="50m", suspend=True)
        urgent.tree["metadata"]["labels"] = queued | {"kueue.x-k8s.io/priority-class": name}
        urgent.submit()
        urgent.wait_training()
        assert not victim.containers()
        urgent.finish()
        assert urgent.wait_end().startswith("Complete")
        containers = victim.wait_training(without=containers)
        victim.cycles += 1
    victim.finish()
    assert victim.wait_end().startswith("Complete")
    count(report, victim.cycles)


def test_node_drained_train_jobs_continue_on_the_other(
    cluster: Cluster, make_job: MakeJob, report: SuiteReport
) -> None:
    """`kubectl drain`, with pods that fail and pods that save and exit with 0; each node in turn."""
    jobs = [submitted(make_job, "fails"), submitted(make_job, "saves", on_sigterm="save 2")]
    for name in (node.SECOND, node.NAME) * TIMES:
        here = {job.name: job.containers_on(name) for job in jobs}
        only = f"--pod-selector=jobset.sigs.k8s.io/jobset-name in ({','.join(here)})"
        cluster.kubectl("drain", name, "--ignore-daemonsets", "--delete-emptydir-data", "--force", only)
        for job in jobs:
            job.wait_training(without=here[job.name])
            assert not job.containers_on(name)
            job.cycles += 1
        cluster.kubectl("uncordon", name)
    for job in jobs:
        job.finish()
        assert job.wait_end().startswith("Complete")
        count(report, job.cycles)


def moment(text: str) -> float:
    """Return a time of the API server in seconds."""
    return datetime.fromisoformat(text).timestamp()


def since(status: dict[str, Any], kind: str) -> str:
    """Return since when a condition is what it is."""
    found: str = next(one["lastTransitionTime"] for one in status["conditions"] if one["type"] == kind)
    return found


def test_user_error_fails_at_once_with_its_logs(make_job: MakeJob, report: SuiteReport) -> None:
    """A typo is not restarted: its pods stay, and the condition names the line."""
    job = make_job("typo")
    job.tree["spec"]["trainer"]["command"] = ["python3", "-c", "model = 1\nmodle + 1"]
    job.submit()
    end = job.wait_end()
    assert end.startswith("Failed: ")
    assert "NameError: name 'modle' is not defined" in end
    tree = job.get()
    assert tree["status"].get("restarts", 0) == 0
    words = ("logs", f"--namespace={job.namespace}", "--selector=jobset.sigs.k8s.io/jobset-name=typo")
    assert "NameError" in job.cluster.kubectl(*words).stdout
    since = next(one["lastTransitionTime"] for one in tree["status"]["conditions"] if one["type"] == "Failed")
    report.figure("user_error_s", moment(since) - moment(tree["metadata"]["creationTimestamp"]))


def test_fault_repeated_without_progress_fails_at_the_second_time(make_job: MakeJob) -> None:
    """An error of the shapes of tensors could be any error of a library: it is restarted once."""
    job = make_job("shapes")
    line = "raise RuntimeError('mat1 and mat2 shapes cannot be multiplied (64x9 and 8x1)')"
    job.tree["spec"]["trainer"]["command"] = ["python3", "-c", line]
    job.submit()
    assert job.wait_end().startswith("Failed: ")
    assert job.get()["status"]["restarts"] == 1


@pytest.mark.full
def test_node_without_kubelet_train_job_continues_on_the_other(cluster: Cluster, make_job: MakeJob) -> None:
    """A node whose kubelet is gone is tainted out of service, as an admin does."""
    job = submitted(make_job, "loses-a-node")
    here = job.containers_on(node.SECOND)
    cluster.kill("kubelet-2")
    try:
        cluster.kubectl("taint", "node", node.SECOND, OUT_OF_SERVICE)
        job.wait_training(without=here)
    finally:
        cluster.kubectl("taint", "node", node.SECOND, f"{OUT_OF_SERVICE.partition('=')[0]}-")
        cluster.revive("kubelet-2")
        node.wait_ready(cluster, node.SECOND)
    job.finish()
    assert job.wait_end().startswith("Complete")
