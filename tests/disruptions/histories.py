"""Histories of TrainJobs that are disrupted: on shipped runtimes of Trainplane, and on Kubeflow Trainer 2.3."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple

from lab import kueue, node
from lab.errors import StartError
from tests.disruptions import actions
from tests.disruptions.actions import run
from tests.disruptions.trainer import MPIRUN, TORCHRUN
from tests.size import FULL, sized

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor, Future

    from lab.cluster import Cluster
    from tests.disruptions.job import Job, MakeJob

    Plan = list[tuple[Job, Sequence[Callable[[Job], None]]]]

OTHERS: Final = ("jax-distributed", "tensorflow-distributed", "xgboost-distributed", "paddle-distributed")
SHIPPED: Final = ("torch-distributed", "torch-elastic", *OTHERS)
MPI: Final = ("deepspeed-distributed", "mlx-distributed")
"""Runtimes whose launcher starts the ranks. Not here: those of Flux, the data cache, and torchtune, whose pods need
programs that the lab has not, or data; their policy is that of the others."""
TIMES: Final = sized(1, full=5)
"""Repetitions of each list of actions."""
STUCK_SECONDS: Final = 300.0
"""Seconds after which a TrainJob of Kubeflow Trainer that does not train again counts as stuck. The Job controller may
wait minutes before it replaces a pod."""


class Histories(NamedTuple):
    """Histories that run at the same time; each result is TrainJobs with their ends."""

    disrupted: list[Future[Job]]
    preempted: Future[Job]
    drained: Future[list[Job]]
    reference: Future[list[Job]]


def begin(cluster: Cluster, make_job: MakeJob, reference: Callable[[], list[Job]], pool: Executor) -> Histories:
    """Begin all histories; `reference` does those on Kubeflow Trainer."""
    return Histories(
        [pool.submit(run, job, done) for job, done in planned(make_job)],
        pool.submit(preempt, cluster, make_job),
        pool.submit(drain, cluster, make_job),
        pool.submit(reference),
    )


def planned(make_job: MakeJob) -> Plan:
    """Return TrainJobs of shipped runtimes, each with the actions on it."""
    few = actions.FEW * TIMES
    plan: Plan = [
        (make_job("talking"), actions.TALKING * TIMES),
        (make_job("exits-0", on_sigterm="save 0"), actions.SAVING * TIMES),
        (make_job("saves", on_sigterm="save 10"), (actions.evict_last, actions.suspend) * TIMES),
        (make_job("eight", nodes=8, on_sigterm="exit 143"), few),
        (make_job("brief"), (actions.suspend_briefly,) * 4 * TIMES),
        # The containers of this one restart in place, and the kubelet waits longer before each restart.
        (make_job("elastic", "torch-elastic"), (actions.suspend, actions.delete_last)),
        (make_job("gloo", image="torch", command=TORCHRUN), sized((actions.abort,), full=few)),
        *((make_job(name, name), sized(actions.FEW[:2], full=few)) for name in OTHERS),
        # A cycle of these takes half a minute: sshd becomes ready, then the launcher starts.
        *(
            (make_job(name, name, image="mpi", command=MPIRUN), sized((actions.suspend, actions.delete_last), full=few))
            for name in sized(MPI[:1], full=MPI)
        ),
    ]
    return [*plan, (make_job("many", nodes=32), few)] if FULL else plan


def preempt(cluster: Cluster, make_job: MakeJob) -> Job:
    """Let TrainJobs of higher priority take the quota of one, one after the other."""
    victim = make_job("victim", cpu="50m", suspend=True)
    name = victim.namespace
    flavor, queue, local = kueue.queue(name, name, cpu="100m", memory="1Gi")
    queue["spec"]["preemption"] = {"withinClusterQueue": "LowerPriority"}
    high = {"apiVersion": queue["apiVersion"], "kind": "WorkloadPriorityClass", "metadata": {"name": name}, "value": 1}
    cluster.apply(flavor, queue, local, high)
    queued = {"kueue.x-k8s.io/queue-name": name}
    victim.tree["metadata"]["labels"] = queued

    def take_quota(job: Job) -> None:
        urgent = make_job(f"urgent-{job.cycles}", cpu="50m", suspend=True)
        urgent.tree["metadata"]["labels"] = queued | {"kueue.x-k8s.io/priority-class": name}
        actions.preempt(job, urgent)

    return run(victim, (take_quota,) * 3 * TIMES)


def drain(cluster: Cluster, make_job: MakeJob) -> list[Job]:
    """Drain each node in turn, with pods that fail and pods that save and exit with 0."""
    jobs = [make_job("fails"), make_job("saves-2", on_sigterm="save 2")]
    only = f"--pod-selector=jobset.sigs.k8s.io/jobset-name in ({','.join(job.name for job in jobs)})"
    for job in jobs:
        job.submit()
    containers = {job.name: job.wait_training() for job in jobs}
    for machine in (node.SECOND, node.NAME) * TIMES:
        here = [job for job in jobs if job.is_on(machine)]
        cluster.kubectl("drain", machine, "--ignore-daemonsets", "--delete-emptydir-data", "--force", only)
        for job in here:
            containers[job.name] = job.wait_training(without=containers[job.name])
            assert not job.is_on(machine)
            job.cycles += 1
        cluster.kubectl("uncordon", machine)
    for job in jobs:
        job.finish()
        job.end = job.wait_end()
    return jobs


def compare(make_job: MakeJob) -> list[Job]:
    """Disrupt TrainJobs of Kubeflow Trainer as those of Trainplane; return them with their ends."""
    kept = (actions.suspend, actions.delete_last, actions.suspend)
    plan: Plan = [(make_job("suspended"), kept)]
    if FULL:
        plan.append((make_job("talking"), actions.TALKING * TIMES))
        plan.append((make_job("exits-0", on_sigterm="save 0"), actions.SAVING * TIMES))
    with ThreadPoolExecutor(len(plan)) as pool:
        return list(pool.map(lambda one: run_or_stick(*one), plan))


def run_or_stick(job: Job, doings: Sequence[Callable[[Job], None]]) -> Job:
    """Do as `run`; a TrainJob that no longer trains gets that for its end."""
    job.seconds = STUCK_SECONDS
    try:
        return run(job, doings)
    except StartError:
        job.end = f"{job.name} is stuck in cycle {job.cycles}"
        return job
