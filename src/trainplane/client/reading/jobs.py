"""TrainJobs: the document, its pods and, where it is dispatched, the hub's view, as one thing that people look at.

Status, in this order: Complete and Failed by their conditions; Suspended while something holds it; Running once all
nodes of the training run (of an elastic one, as many as it needs); else Created.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.moments import BEGINNING, read_moment
from trainplane.api.podindex import as_number
from trainplane.client.reading.causes import find_cause
from trainplane.client.reading.outputs import read_outputs
from trainplane.client.reading.runtimes import infer_runtime
from trainplane.client.reading.steps import read_steps
from trainplane.client.types.jobs import COMPLETE, CREATED, FAILED, RUNNING, SUSPENDED, Progress, TrainJob
from trainplane.explain.holding import is_held
from trainplane.explain.places import has_launcher, is_training
from trainplane.explain.pods import STARTED, newest, phase_of, variable, worker
from trainplane.explain.standing import is_dispatched
from trainplane.lifecycle.conditions import conditions_of, finish

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from trainplane.api.tree import Tree
    from trainplane.client.types.runtimes import Runtime
    from trainplane.explain.facts import Line


def read_job(
    job: Tree,
    pods: Sequence[Tree],
    *,
    runtime: Runtime | None,
    view: Tree | None = None,
    events: Sequence[Tree] = (),
    logs: Mapping[str, Sequence[Line]] | None = None,
) -> TrainJob:
    """Return a TrainJob.

    Args:
        job: its document.
        pods: its pods, former ones too.
        runtime: its runtime; None infers what pods and spec tell of it.
        view: the hub API's object of it, if it is dispatched.
        events: its events, if at hand: they may know why it failed where pods are gone.
        logs: the end of each step's log, if at hand.
    """
    metadata = trees.fields(job, "metadata")
    nodes = count_nodes(job, pods, runtime)
    return TrainJob(
        name=str(metadata.get("name") or ""),
        runtime=runtime or infer_runtime(job, pods),
        steps=read_steps(_shown(job, pods, view), job),
        num_nodes=nodes,
        creation_timestamp=read_moment(metadata.get("creationTimestamp")) or BEGINNING,
        status=read_status(job, pods, nodes, view=view),
        namespace=str(metadata.get("namespace") or ""),
        cause=find_cause(job, pods, events, view=view, logs=logs),
        cluster=worker(trees.get(view, "status", "cluster")),
        queue=trees.text(metadata, "labels", names.LABEL_QUEUE),
        progress=_progress(job),
        finished=finished_at(job),
        labels=dict(trees.fields(metadata, "labels")),
        annotations=dict(trees.fields(metadata, "annotations")),
        outputs=read_outputs(job),
    )


def _shown(job: Tree, pods: Sequence[Tree], view: Tree | None) -> Sequence[Tree]:
    """Return the pods that are steps: what a hold ended has not failed."""
    if finish(conditions_of(job)) is not None or not is_held(job, view):
        return pods
    return [pod for pod in pods if phase_of(pod) != "Failed"]


def read_status(job: Tree, pods: Sequence[Tree], nodes: int, *, view: Tree | None = None) -> str:
    """Return the status of a TrainJob that has so many nodes."""
    end = finish(conditions_of(job))
    if end is not None:
        return COMPLETE if end["type"] == names.COMPLETE else FAILED
    if is_held(job, view):
        return SUSPENDED
    return RUNNING if _runs(job, pods, nodes, view) else CREATED


def finished_at(job: Tree) -> datetime | None:
    """Return when a TrainJob was over; None if it is not."""
    end = finish(conditions_of(job))
    return None if end is None else read_moment(end.get("lastTransitionTime")) or BEGINNING


def count_nodes(job: Tree, pods: Sequence[Tree], runtime: Runtime | None) -> int:
    """Return how many nodes train: as the TrainJob says, else its pods, else its runtime."""
    said = trees.number(job, "spec", "trainer", "numNodes")
    if said is not None:
        return said
    told = [bounds[1] for pod in pods if (bounds := _bounds(pod))]
    if told:
        return max(told)
    there = sum(map(is_training, newest(pods)))
    if runtime is not None:
        return max(runtime.trainer.num_nodes, there)
    return max(1, there)


def _bounds(pod: Tree) -> tuple[int, int] | None:
    """Return the least and the most nodes that a pod is told of by its framework's variables."""
    for name in (names.TORCH_NNODES, names.JAX_NUM_PROCESSES, names.XGBOOST_NUM_WORKER, names.PADDLE_NNODES):
        least, _, most = (variable(pod, name) or "").partition(":")
        if least.isdecimal() and (not most or most.isdecimal()):
            return as_number(least), as_number(most or least)
    return None


def _runs(job: Tree, pods: Sequence[Tree], nodes: int, view: Tree | None) -> bool:
    training = {place: pod for place, pod in newest(pods).items() if is_training(place)}
    if not training:
        return not pods and is_dispatched(job) and is_told_ready(job, nodes, view)
    bounds = next((bounds for pod in training.values() if (bounds := _bounds(pod))), None)
    started = sum(phase_of(pod) in STARTED for pod in training.values())
    if bounds and bounds[0] < bounds[1]:
        return started >= bounds[0]
    if has_launcher(training.values(), job):
        launched = any(place.replicated_job == names.JOB_LAUNCHER for place in training)
        return launched and started == len(training) >= nodes
    return started == len(training) >= nodes


def is_told_ready(job: Tree, nodes: int, view: Tree | None) -> bool:
    """Return whether hub or status tell that all nodes are ready: of pods on a worker that cannot be seen from here.

    Of pods that can be seen, their absence counts: a status may be older than it.
    """
    return _is_ready(job) or _amount(view, "status", "readyPods") >= max(1, nodes)


def _is_ready(job: Tree) -> bool:
    """Return whether the status tells that the training's Jobs have all their pods."""
    entries = [
        entry
        for entry in trees.entries(job, "status", "jobsStatus")
        if entry.get("name") in (names.JOB_NODE, names.JOB_LAUNCHER)
    ]
    return bool(entries) and all(_amount(entry, "ready") >= max(1, _amount(entry, "active")) for entry in entries)


def _amount(tree: Tree | None, *path: str) -> int:
    return trees.number(tree, *path) or 0


def _progress(job: Tree) -> Progress | None:
    told = trees.get(job, "status", "trainerStatus")
    if not isinstance(told, dict):
        return None
    metrics = {str(one.get("name")): str(one.get("value")) for one in trees.entries(told, "metrics")}
    return Progress(
        trees.number(told, "progressPercentage"),
        trees.number(told, "estimatedRemainingSeconds"),
        metrics,
        read_moment(told.get("lastUpdatedTime")),
    )
