"""Steps: the pods of a TrainJob by the names that people use, each name's newest pod.

Training pods are `node-0`, `node-1`, ... through all Jobs of their replicated job. With MPI the launcher is `node-0`
and the nodes come after it, as in the `kubeflow` SDK. An initializer is called by its replicated job's name, and so is
a job that an admin added, with a number where it has several pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.podindex import as_number, number_pods
from trainplane.client.reading.devices import read_devices
from trainplane.client.types.jobs import Step
from trainplane.explain.pods import (
    cluster_of,
    container_of,
    container_status,
    index_of,
    name_of,
    newest,
    phase_of,
    trouble_of,
    variable,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from trainplane.api.podindex import PodIndex
    from trainplane.api.tree import Tree

NODE: Final = names.JOB_NODE
TRAINING: Final = frozenset({names.JOB_NODE, names.JOB_LAUNCHER})
_ORDER: Final = {names.JOB_DATASET: 0, names.JOB_MODEL: 1, names.JOB_LAUNCHER: 3, names.JOB_NODE: 4}


def read_steps(pods: Sequence[Tree], job: Tree | None = None) -> list[Step]:
    """Return the steps: initializers, then other jobs, then nodes by number. `job` tells of pods yet to come."""
    called = name_places(pods, job)
    return [_step(called[place], pod) for place, pod in _sorted(newest(pods), called)]


def name_places(pods: Iterable[Tree], job: Tree | None = None) -> dict[PodIndex, str]:
    """Return what each place is called."""
    pods = list(pods)
    numbers = number_places(pods)
    several = {place.replicated_job for place, number in numbers.items() if number}
    first = 1 if has_launcher(pods, job) else 0
    return {place: _name(place.replicated_job, number, first, several) for place, number in numbers.items()}


def number_places(pods: Iterable[Tree]) -> dict[PodIndex, int]:
    """Return the number of each place within its replicated job, through all Jobs of that."""
    return number_pods(place for pod in pods if (place := index_of(pod)))


def has_launcher(pods: Iterable[Tree], job: Tree | None) -> bool:
    """Return whether a launcher trains with the nodes: it is there, the status names it, or the nodes are set up so."""
    pods = list(pods)
    roles = {place.replicated_job for pod in pods if (place := index_of(pod))}
    known = {name for entry in trees.entries(job, "status", "jobsStatus") if (name := trees.text(entry, "name"))}
    if roles | known:
        if names.JOB_LAUNCHER in roles | known:
            return True
        if known:
            return False
    return any(trees.get(pod, "spec", "volumes", ("name", names.MPI_SSH_VOLUME)) for pod in pods)


def is_training(place: PodIndex) -> bool:
    """Return whether the pod at a place trains."""
    return place.replicated_job in TRAINING


def _name(role: str, number: int, first: int, several: Collection[str]) -> str:
    if role == names.JOB_LAUNCHER:
        return f"{NODE}-{number}"
    if role == names.JOB_NODE:
        return f"{NODE}-{number + first}"
    return f"{role}-{number}" if role in several else role


def _sorted(pods: Mapping[PodIndex, Tree], called: Mapping[PodIndex, str]) -> list[tuple[PodIndex, Tree]]:
    def order(entry: tuple[PodIndex, Tree]) -> tuple[int, str, int]:
        place = entry[0]
        name = called[place]
        number = name.rpartition("-")[2]
        return _ORDER.get(place.replicated_job, 2), place.replicated_job, as_number(number)

    return sorted(pods.items(), key=order)


def _step(name: str, pod: Tree) -> Step:
    container = container_of(pod)
    device, count = read_devices(container)
    processes = variable(pod, names.TORCH_NPROC_PER_NODE)
    status = container_status(pod)
    trouble = trouble_of(pod)
    return Step(
        name=name,
        status=phase_of(pod),
        pod_name=name_of(pod),
        device=device,
        device_count=processes if processes and processes.isdecimal() else count,
        cluster=cluster_of(pod),
        node=trees.text(pod, "spec", "nodeName"),
        reason=trouble.reason if trouble else None,
        message=trouble.message if trouble else None,
        exit_code=trees.number(status, "state", "terminated", "exitCode"),
        restarts=trees.number(status, "restartCount") or 0,
    )
