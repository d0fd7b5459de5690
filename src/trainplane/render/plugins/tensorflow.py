"""TensorFlow: tasks that find each other by TF_CONFIG, which lists them all and says which one this is.

The runtime is labelled `trainer.kubeflow.org/framework: tensorflow` and needs no more: the nodes that train are the
workers of a `MultiWorkerMirroredStrategy`. Other jobs of the runtime that are named after a task of TensorFlow
(`chief`, `ps`, `evaluator`) are those tasks, as many as their `parallelism` says, for the strategies that know them.

mlPolicy has no field for TensorFlow, so Kueue counts the job as PlainML's, which has the same pods.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.render.plugin import Plugin, RefusalError
from trainplane.render.rendezvous import append_env, open_port, rank, rendezvous_of
from trainplane.render.reserved import judge_reserved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.document import Document
    from trainplane.api.trainjob import TrainJob
    from trainplane.render.findings import Finding
    from trainplane.render.plan import Container, Plan, PodSet

_WORKER: Final = "worker"
_EVALUATOR: Final = "evaluator"
_TASKS: Final = frozenset({"chief", "ps", _WORKER, _EVALUATOR})
_LONGEST: Final = 128 * 1024
"""Bytes that Linux passes to a process in one variable."""


class TensorFlow(Plugin):
    """Serves runtimes that are labelled as TensorFlow's."""

    name = "TensorFlow"

    def enforce(self, plan: Plan) -> None:
        """Give every task its TF_CONFIG and its port."""
        meeting = rendezvous_of(plan) if _is_meant(plan) else None
        if meeting is None:
            return
        tasks = _tasks(plan)
        listed = {task: pods for task, pods in tasks.items() if task != _EVALUATOR}  # which looks on from outside
        _judge_length(listed, meeting.port)
        cluster = {task: [f"{endpoint}:{meeting.port}" for endpoint in pods.endpoints] for task, pods in listed.items()}
        for task, pods in tasks.items():
            container = _container(pods)
            if container:
                index = rank(names.TENSORFLOW_TASK_INDEX)
                append_env(container, index, {"name": names.TENSORFLOW_CONFIG, "value": _config(cluster, task)})
                open_port(container, meeting.port)

    def validate(self, plan: Plan, old: Document[TrainJob] | None) -> Iterator[Finding]:
        """Refuse variables that are TensorFlow's own."""
        del old
        if _is_meant(plan):
            yield from judge_reserved(plan, names.TENSORFLOW_RESERVED, self.name)


def _is_meant(plan: Plan) -> bool:
    return plan.framework == names.FRAMEWORK_TENSORFLOW


def _tasks(plan: Plan) -> dict[str, PodSet]:
    """Return the pods of each task; those that train are workers, unless their job is named after another task."""
    tasks: dict[str, PodSet] = {}
    for pods in plan.pod_sets:
        trains = pods is plan.trainer_set
        if not trains and (pods.ancestor is not None or pods.name not in _TASKS):
            continue
        task = pods.name if pods.name in _TASKS else _WORKER
        if task in tasks:
            problem = f"the runtime's jobs {tasks[task].name} and {pods.name} are both TensorFlow's task {task}"
            raise RefusalError("spec.runtimeRef", f"{problem}: rename one")
        if not trains and pods.replicas != 1:
            problem = f"the runtime's job {pods.name} has {pods.replicas} replicas: write 1, and parallelism for more"
            raise RefusalError("spec.runtimeRef", f"{problem} tasks")
        tasks[task] = pods
    return tasks


def _container(pods: PodSet) -> Container | None:
    """Return the container that runs TensorFlow: `node`, or else the one that is named after the job."""
    return pods.container(names.CONTAINER_NODE) or pods.container(pods.name)


def _judge_length(tasks: dict[str, PodSet], port: int) -> None:
    """Refuse a TF_CONFIG that no process could be given, before it is made."""
    length = len(_config({task: [] for task in tasks}, _WORKER))
    for pods in tasks.values():
        nodes = max(pods.replicas, 0) * max(pods.count, 0)
        length += pods.endpoints_length + nodes * len(f'":{port}", ')
    if length > _LONGEST:
        problem = f"TF_CONFIG lists every node and would have {length} bytes, of which Linux takes {_LONGEST}"
        raise RefusalError("spec.trainer.numNodes", f"{problem}: use fewer nodes, or shorter names")


def _config(cluster: dict[str, list[str]], task: str) -> str:
    """Return TF_CONFIG. One template makes all pods of a task, so the index is a variable that each pod has."""
    index = f"$({names.TENSORFLOW_TASK_INDEX})"
    return f'{{"cluster": {json.dumps(cluster)}, "task": {{"type": "{task}", "index": {index}}}}}'
