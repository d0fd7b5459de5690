"""The same disruptions on Kubeflow Trainer 2.3 and its own torch runtime: Trainplane keeps each job that it keeps."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from lab.errors import StartError
from tests.disruptions import actions
from tests.disruptions.test_disruptions import TIMES, run
from tests.size import FULL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.disruptions.job import Job, MakeJob
    from tests.suite import SuiteReport

STUCK_SECONDS = 300.0
"""How long a TrainJob may take to train again before it counts as stuck; the Job controller waits up to minutes before
it replaces a pod."""


def test_same_disruptions_on_kubeflow_trainer_are_counted(make_kubeflow_job: MakeJob, report: SuiteReport) -> None:
    kept = (actions.suspend, actions.delete_last, actions.suspend)
    planned: list[tuple[Job, Sequence[Callable[[Job], None]]]] = [(make_kubeflow_job("suspended"), kept)]
    if FULL:
        planned.append((make_kubeflow_job("talking"), actions.TALKING * TIMES))
        planned.append((make_kubeflow_job("exits-0", on_sigterm="save 0"), actions.SAVING * TIMES))
    with ThreadPoolExecutor(len(planned)) as pool:
        ends = list(pool.map(lambda one: run_or_stick(*one), planned))
    for (job, _), end in zip(planned, ends, strict=True):
        report.row(job=job.name, runtime="Kubeflow Trainer 2.3", pods=job.nodes, cycles=job.cycles, end=end)
    report.figure("reference_cycles", sum(job.cycles for job, _ in planned))
    report.figure("reference_failed", sum("Failed" in end for end in ends))
    report.figure("reference_completed_early", sum("Complete" in end and "cycle" in end for end in ends))
    report.figure("reference_stuck", sum("stuck" in end for end in ends))
    assert ends[0].startswith("Complete: ")


def run_or_stick(job: Job, doings: Sequence[Callable[[Job], None]]) -> str:
    """Do as `run`; return also that the TrainJob no longer trains, if so."""
    job.seconds = STUCK_SECONDS
    try:
        return run(job, doings)
    except StartError:
        return f"{job.name} is stuck in cycle {job.cycles}"
