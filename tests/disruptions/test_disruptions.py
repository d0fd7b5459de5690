"""TrainJobs of shipped runtimes, with pods that talk, survive suspensions, deletions, evictions, drains, and faults."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from lab import node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.cluster import Cluster
    from tests.disruptions.histories import Histories
    from tests.disruptions.job import Job, MakeJob
    from tests.suite import SuiteReport

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"

pytestmark = pytest.mark.timeout(3600)


def check_completed(report: SuiteReport, jobs: Sequence[Job]) -> None:
    """Count the cycles and ends of TrainJobs, of which each must have completed when it was let finish."""
    for job in jobs:
        runtime = job.tree["spec"]["runtimeRef"]["name"]
        report.row(job=job.name, runtime=runtime, pods=job.nodes, cycles=job.cycles, end=job.end)
    ends = [job.end for job in jobs]
    count(report, "cycles", sum(job.cycles for job in jobs))
    count(report, "failed", sum("Failed" in end for end in ends))
    count(report, "completed_early", sum("Complete" in end and "cycle" in end for end in ends))
    assert [end for end in ends if not end.startswith("Complete: ")] == []


def count(report: SuiteReport, name: str, more: int) -> None:
    """Add to a figure."""
    report.figure(name, report.figures.get(name, 0) + more)


def test_train_jobs_disrupted_repeatedly_continue_and_complete(histories: Histories, report: SuiteReport) -> None:
    check_completed(report, [future.result() for future in histories.disrupted])


def test_train_job_preempted_by_kueue_continues_when_admitted_again(histories: Histories, report: SuiteReport) -> None:
    check_completed(report, [histories.preempted.result()])


def test_node_drained_train_jobs_continue_on_the_other(histories: Histories, report: SuiteReport) -> None:
    check_completed(report, histories.drained.result())


def moment(text: str) -> float:
    """Return a time of the API server in seconds."""
    return datetime.fromisoformat(text).timestamp()


def since(status: dict[str, Any], kind: str) -> str:
    """Return the time of the last transition of a condition."""
    found: str = next(one["lastTransitionTime"] for one in status["conditions"] if one["type"] == kind)
    return found


def test_same_disruptions_on_kubeflow_trainer_are_counted(histories: Histories, report: SuiteReport) -> None:
    """Trainplane keeps each TrainJob that Kubeflow Trainer keeps; which it loses is a figure."""
    jobs = histories.reference.result()
    for job in jobs:
        report.row(job=job.name, runtime="Kubeflow Trainer 2.3", pods=job.nodes, cycles=job.cycles, end=job.end)
    report.figure("reference_cycles", sum(job.cycles for job in jobs))
    report.figure("reference_failed", sum("Failed" in job.end for job in jobs))
    report.figure("reference_completed_early", sum("Complete" in job.end and "cycle" in job.end for job in jobs))
    report.figure("reference_stuck", sum("stuck" in job.end for job in jobs))
    assert jobs[0].end.startswith("Complete: ")


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
    report.figure(
        "user_error_s", moment(since(tree["status"], "Failed")) - moment(tree["metadata"]["creationTimestamp"])
    )


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
    job = make_job("loses-a-node")
    job.submit()
    container = job.wait_training()
    assert job.is_on(node.SECOND)
    cluster.kill("kubelet-2")
    try:
        cluster.kubectl("taint", "node", node.SECOND, OUT_OF_SERVICE)
        job.wait_training(without=container)
        assert not job.is_on(node.SECOND)
    finally:
        cluster.kubectl("taint", "node", node.SECOND, f"{OUT_OF_SERVICE.partition('=')[0]}-")
        cluster.revive("kubelet-2")
        node.wait_ready(cluster, node.SECOND)
    job.finish()
    assert job.wait_end().startswith("Complete")
