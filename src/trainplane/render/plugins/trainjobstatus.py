"""Progress: what pods need to report theirs to the operator, under the names that the reference has for it.

Every container of the pods that train is told where to report, and has two files: a token that is good for this
TrainJob's status alone, which the kubelet renews, and the authorities by which the operator is known. Those stand in
one ConfigMap of the namespace, which the operator makes and renews (`operator.progress.authority`); the reference has
one for each TrainJob, whose name nobody but its own pods knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.render.plugin import Plugin

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.render.plan import Plan

TOKEN_SECONDS: Final = 3600
"""How long a token lasts; the kubelet has a new one well before."""


class TrainJobStatus(Plugin):
    """Lets the pods of every TrainJob report progress.

    Args:
        server: the status server's address as pods reach it, such as `https://SERVICE.NAMESPACE.svc:10443`.
    """

    name = "TrainJobStatus"

    def __init__(self, server: str) -> None:
        self._server = server

    def enforce(self, plan: Plan) -> None:
        """Set variables and mounts in each container of the pods that train, and their volume."""
        pods = plan.trainer_set
        if pods is None:
            return
        variables = (
            {"name": names.STATUS_URL, "value": self._server + names.status_path(plan.namespace, plan.name)},
            {"name": names.STATUS_CA_CERT, "value": f"{names.STATUS_MOUNT_PATH}/{names.STATUS_CA_KEY}"},
            {"name": names.STATUS_TOKEN, "value": f"{names.STATUS_MOUNT_PATH}/{names.STATUS_TOKEN_FILE}"},
        )
        mount = {"name": names.STATUS_VOLUME, "mountPath": names.STATUS_MOUNT_PATH, "readOnly": True}
        for entry in pods.containers:
            container = pods.container(entry.name)
            if container is not None:
                trains = entry.name == names.CONTAINER_NODE
                container.set_env(*(plan.env_not_overridden(variables) if trains else variables))
                container.set_mounts(mount)
        pods.set_volumes(_volume(plan))


def _volume(plan: Plan) -> Tree:
    token = {
        "audience": names.status_audience(plan.namespace, plan.name),
        "expirationSeconds": TOKEN_SECONDS,
        "path": names.STATUS_TOKEN_FILE,
    }
    authority = {
        "name": names.STATUS_CA_CONFIG_MAP,
        "items": [{"key": names.STATUS_CA_KEY, "path": names.STATUS_CA_KEY}],
        "optional": True,  # training never waits for its reports
    }
    sources = [{"serviceAccountToken": token}, {"configMap": authority}]
    return {"name": names.STATUS_VOLUME, "projected": {"sources": sources}}
