"""Places: what people call each pod of a TrainJob.

Training pods are `node-0`, `node-1`, ... through all Jobs of their replicated job. With MPI the launcher is `node-0`
and the nodes come after it, as in the `kubeflow` SDK. An initializer is called by its replicated job's name, and so is
a job that an admin added, with a number where it has several pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.podindex import number_pods
from trainplane.explain.pods import index_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from trainplane.api.podindex import PodIndex
    from trainplane.api.tree import Tree

NODE: Final = names.JOB_NODE
TRAINING: Final = frozenset({names.JOB_NODE, names.JOB_LAUNCHER})


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
