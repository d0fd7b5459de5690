"""Dask on Trainplane: a scheduler on the first node, a worker on every node.

Every node gets `/etc/dask/dask.yaml`, which Dask reads by itself, with the scheduler's address in it, and a variable
with its rank. A runtime asks for this with the label `trainer.kubeflow.org/framework: dask`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.render.findings import Finding
from trainplane.render.plugin import Plugin, RefusalError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.document import Document
    from trainplane.api.trainjob import TrainJob
    from trainplane.api.tree import Tree
    from trainplane.render.plan import Plan

FRAMEWORK = "dask"
RANK = "DASK_NODE_RANK"
SCHEDULER_PORT = 8786
CONFIG_VOLUME = "dask-config"
CONFIG_PATH = "/etc/dask"


class Dask(Plugin):
    """Serves runtimes whose framework is dask."""

    name = "Dask"

    def enforce(self, plan: Plan) -> None:
        """Give every training pod its rank and Dask's configuration."""
        if plan.framework != FRAMEWORK:
            return
        pods, container = plan.trainer_set, plan.trainer_container
        if pods is None or container is None:
            label = f"{names.LABEL_ANCESTOR}={names.ANCESTOR_TRAINER}"
            raise RefusalError("spec.runtimeRef", f"a Dask runtime needs a job labelled {label} with a container node")
        rank = {"fieldRef": {"fieldPath": names.FIELD_PATH_COMPLETION_INDEX}}
        container.set_env({"name": RANK, "valueFrom": rank})
        container.set_ports({"name": "scheduler", "containerPort": SCHEDULER_PORT})
        container.set_mounts({"name": CONFIG_VOLUME, "mountPath": CONFIG_PATH, "readOnly": True})
        pods.set_volumes({"name": CONFIG_VOLUME, "configMap": {"name": _config_name(plan)}})

    def build(self, plan: Plan) -> Iterator[Tree]:
        """Return the ConfigMap with Dask's configuration; JSON is YAML."""
        if plan.framework != FRAMEWORK or plan.trainer_set is None:
            return
        address = f"tcp://{plan.trainer_set.endpoint(0)}:{SCHEDULER_PORT}"
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": _config_name(plan)},
            "data": {"dask.yaml": json.dumps({"scheduler-address": address})},
        }

    def validate(self, plan: Plan, old: Document[TrainJob] | None) -> Iterator[Finding | str]:
        """Keep the rank ours, and warn of a cluster of one."""
        del old
        if plan.framework != FRAMEWORK or plan.trainer is None:
            return
        if any(variable.get("name") == RANK for variable in plan.trainer.env):
            yield Finding("spec.trainer.env", f"{RANK}: set by the Dask plugin, leave out")
        if plan.trainer.num_nodes == 1:
            yield "spec.trainer.numNodes: with one node, Dask has one worker and nothing to share work with"


def _config_name(plan: Plan) -> str:
    return f"{plan.name}-dask-config"
