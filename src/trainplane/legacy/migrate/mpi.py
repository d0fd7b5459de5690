"""MPIJob of either version: a launcher and nodes that it reaches over SSH, which is what mlPolicy.mpi does.

A v1 job is turned into one of v2beta1 first, as it is when it is served (`legacy.mpi.conversion`). Its launcher came to
its workers by `kubectl exec` and asked nothing of their image; what it becomes needs an sshd there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.legacy import names as old
from trainplane.legacy.migrate.outcome import RefusedError
from trainplane.legacy.migrate.roles import replicated_job, with_variables
from trainplane.render.findings import Finding

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.legacy.migrate.draft import Draft
    from trainplane.legacy.migrate.roles import Role

_SSHD: Final = ["/usr/sbin/sshd", "-De"]
_BACKOFF: Final = 6
"""How often a launcher may fail if nobody says how often: a Job's default, which mpi-operator left as it is."""
_ROLE: Final = "K_MPI_JOB_ROLE"
"""By which mpi-operator tells a pod what it is; programs may read it."""
_NO_GPU: Final = ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")
"""Empty, so that a launcher which only launches takes no GPU."""
_SSH_SETTINGS: Final = (
    names.OPENMPI_RSH_ARGS,
    "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
    "HYDRA_LAUNCHER_EXTRA_ARGS",
    "HYDRA_LAUNCH_EXTRA_ARGS",
)
"""How mpirun calls ssh: ours checks host keys."""
_CONTAINER: Final = ("template", "spec", "template", "spec", "containers", ("name", names.CONTAINER_NODE))


def take_mpi(spec: Tree, roles: list[Role], draft: Draft, *, backoff: int | None) -> None:
    """Make launcher and nodes.

    Raises:
        RefusedError: there is nothing to reach.
    """
    found = {role.type: role for role in roles}
    if old.WORKER not in found:
        problem = "must be there: mlPolicy.mpi runs a launcher and the nodes that it reaches. Keep the MPIJob"
        raise RefusedError([Finding(f"spec.{draft.kind.specs}.{old.WORKER}", problem, "Required")])
    launcher, workers = found[old.LAUNCHER], found[old.WORKER]
    nodes = replicated_job(workers, names.JOB_NODE, draft, trains=False, backoff=backoff, pods=workers.count)
    container = trees.get(nodes, *_CONTAINER)
    if not container.get("command") and not container.get("args"):
        nodes = trees.put(nodes, *_CONTAINER, "command", value=_SSHD)
    limit = _BACKOFF if backoff is None else backoff
    leads = replicated_job(launcher, names.JOB_LAUNCHER, draft, trains=True, backoff=limit)
    draft.trainer = {
        key: trees.copy(launcher.container[key]) for key in ("command", "args") if key in launcher.container
    }
    for key in draft.trainer:
        leads = trees.drop(leads, *_CONTAINER, key)
    idle = () if spec.get("runLauncherAsWorker") else _NO_GPU
    draft.jobs = [
        with_variables(nodes, [{"name": _ROLE, "value": "worker"}]),
        with_variables(leads, [{"name": _ROLE, "value": "launcher"}, *({"name": name, "value": ""} for name in idle)]),
    ]
    draft.order = (names.JOB_LAUNCHER, names.JOB_NODE)
    draft.own = True
    draft.policy = {"numNodes": 1, "mpi": {"mpiImplementation": "OpenMPI"}}
    draft.jobset["network"] = {"publishNotReadyAddresses": True}
    draft.jobset["successPolicy"] = {"operator": "All", "targetReplicatedJobs": [names.JOB_LAUNCHER]}
    draft.trainer["numNodes"] = workers.count
    draft.trainer["numProcPerNode"] = _slots(spec, draft)
    draft.note(
        f"spec.{draft.kind.specs}",
        "changed",
        "launcher and nodes trust each other by keys and a hostfile that are made for the TrainJob",
        alters={"dnsConfig", *(f"env {name}" for name in _SSH_SETTINGS)},
    )
    for field in sorted(spec.keys() & _FIELDS.keys()):
        _FIELDS[field](spec[field], draft)


def take_v1(spec: Tree, draft: Draft) -> None:
    """Say what became of what only v1 has, and what a v1 job's image needs now."""
    text = "the launcher reaches its nodes by ssh and no longer by kubectl exec: the image needs sshd and ssh"
    draft.note("apiVersion", "changed", text)
    if "cleanPodPolicy" in spec:
        draft.put("spec.cleanPodPolicy", "as runPolicy.cleanPodPolicy, unless that says otherwise")
    if "mainContainer" in spec:
        text = "processes begin in the first container of each pod, which serves ssh: put it first"
        draft.note("spec.mainContainer", "changed", text)


def _slots(spec: Tree, draft: Draft) -> int:
    if "slotsPerWorker" in spec:
        draft.put("spec.slotsPerWorker", "as trainer.numProcPerNode")
    return spec.get("slotsPerWorker", 1)  # type: ignore[no-any-return] # by its schema


def _launcher_trains(value: Any, draft: Draft) -> None:
    draft.put("spec.runLauncherAsWorker", "as mlPolicy.mpi.runLauncherAsNode")
    if value:
        draft.policy["mpi"]["runLauncherAsNode"] = True
        draft.trainer["numNodes"] += 1


def _ssh_path(value: Any, draft: Draft) -> None:
    draft.policy["mpi"]["sshAuthMountPath"] = value
    draft.put("spec.sshAuthMountPath", "as mlPolicy.mpi.sshAuthMountPath")


def _creation(value: Any, draft: Draft) -> None:
    if value == old.LAUNCHER_WAITS:
        draft.jobs[1]["dependsOn"] = [{"name": names.JOB_NODE, "status": "Ready"}]
    draft.put("spec.launcherCreationPolicy", "as dependsOn of the launcher")


def _implementation(value: Any, draft: Draft) -> None:
    if value != old.MPI_OPENMPI:
        draft.annotations[names.ANNOTATION_MPI_IMPLEMENTATION] = value
    draft.put("spec.mpiImplementation", "as the runtime's policy, or its annotation")


_FIELDS: Final = {
    "runLauncherAsWorker": _launcher_trains,
    "sshAuthMountPath": _ssh_path,
    "launcherCreationPolicy": _creation,
    "mpiImplementation": _implementation,
}
