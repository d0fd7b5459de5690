"""Steps: the pods of a TrainJob by the names that people use (`explain.places`), each name's newest pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.podindex import as_number
from trainplane.client.reading.devices import read_devices
from trainplane.client.types.jobs import Step
from trainplane.explain.places import name_places
from trainplane.explain.pods import (
    cluster_of,
    container_of,
    container_status,
    name_of,
    newest,
    phase_of,
    trouble_of,
    variable,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainplane.api.podindex import PodIndex
    from trainplane.api.tree import Tree

_ORDER: Final = {names.JOB_DATASET: 0, names.JOB_MODEL: 1, names.JOB_LAUNCHER: 3, names.JOB_NODE: 4}


def read_steps(pods: Sequence[Tree], job: Tree | None = None) -> list[Step]:
    """Return the steps: initializers, then other jobs, then nodes by number. `job` tells of pods yet to come."""
    called = name_places(pods, job)
    return [_step(called[place], pod) for place, pod in _sorted(newest(pods), called)]


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
