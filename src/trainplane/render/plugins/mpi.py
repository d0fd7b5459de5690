"""MPI: `mpirun` in a launcher starts processes on every node over SSH, with keys and a hostfile that are made for it.

Kueue counts and sizes the pods of an MPI job by its replicated jobs' names `launcher` and `node`, as the reference
does, and so do we, even where that surprises: `validate` says what will really run.

What makes it work in an image that knows nothing of us:
- **The key is readable to its user alone.** ssh refuses one that others may read if its user owns it, as root does at
  /root/.ssh. A plain user reads it by `fsGroup`; without that, by everybody's permission, which ssh allows who does not
  own the file.
- **Host keys are checked, and nobody has to switch that off.** The nodes' sshd shows the job's own key as its host key
  (a drop-in file of /etc/ssh/sshd_config.d), and ssh compares it with the public key that lies beside it. An image that
  brings a configuration of its own keeps it: ours is read after the image's, and first come counts.
- **A launcher that trains is its own host.** The hostfile has its full name, by which OpenMPI 5 knows it only if it
  resolves names, and by default it does not: it would look for an sshd in the launcher.
- **OpenMPI 4 and 5 are told under the names that each of them reads**, unless the runtime or the TrainJob says
  otherwise; the names that the reference reserves are ours alone. Intel MPI and MPICH are named by the runtime's
  annotation `trainer.kubeflow.org/mpi-implementation`, because Kueue's code knows no other policy than OpenMPI;
  admission makes that of a runtime which names them in its policy.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.runtime import INTEL, MPI_SPELLINGS, MPICH, OPENMPI
from trainplane.render import resources
from trainplane.render.findings import Finding
from trainplane.render.plan import CreateOnce
from trainplane.render.plugin import Plugin, RefusalError
from trainplane.render.provenance import trainjob
from trainplane.render.reserved import judge_reserved_at_once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.document import Document
    from trainplane.api.runtime import MPIPolicy
    from trainplane.api.trainjob import TrainJob
    from trainplane.api.tree import Tree
    from trainplane.render.plan import Plan, PodSet

IMPLEMENTATIONS: Final = (OPENMPI, INTEL, MPICH)

_HOSTFILE: Final = f"{names.MPI_HOSTFILE_MOUNT_PATH}/{names.MPI_HOSTFILE}"
_SSH_CONFIG: Final = "ssh_config"
_SSHD_CONFIG: Final = "sshd_config"
_SSHD_DROP_IN: Final = "/etc/ssh/sshd_config.d/50-trainer.conf"
_SSH_ARGS: Final = f"-F {names.MPI_HOSTFILE_MOUNT_PATH}/{_SSH_CONFIG} -o ConnectionAttempts=10"
_HYDRA_INTERFACE: Final = {INTEL: "I_MPI_HYDRA_IFACE", MPICH: "HYDRA_IFACE"}
"""What lets Hydra tell nodes the launcher's address, and not its bare host name, which they cannot resolve."""
_POD_INTERFACE: Final = "eth0"
"""What container runtimes call a pod's own network."""
_LONGEST: Final = 1 << 20
"""Bytes that a ConfigMap holds."""
_FOR_OWNER: Final = 0o400
_FOR_ALL: Final = 0o444
_FOR_ALL_AND_OWNER: Final = 0o644


class MPI(Plugin):
    """Serves runtimes with `mlPolicy.mpi`."""

    name = "MPI"

    def enforce(self, plan: Plan) -> None:
        """Set the number of nodes, and let launcher and nodes find and trust each other."""
        policy = _policy(plan)
        if policy is None:
            return
        node, trainer = plan.pod_set(names.JOB_NODE), plan.trainer
        if node and trainer and trainer.num_nodes is not None:
            count = trainer.num_nodes
            if policy.run_launcher_as_node:
                count = max(count - 1, 1)
            node.set_pods(count, origin=trainjob("spec.trainer.numNodes"))
        implementation = _implementation(plan, policy)
        for pods in (pods for pods in plan.pod_sets if pods.name in {names.JOB_NODE, names.JOB_LAUNCHER}):
            _trust(pods, policy)
        launcher = plan.pod_set(names.JOB_LAUNCHER)
        container = launcher.container(names.CONTAINER_NODE) if launcher else None
        if launcher and container:
            variables = _variables(implementation, _slots(plan, policy), root=_user(launcher) in {None, 0})
            if implementation in _HYDRA_INTERFACE and not launcher.pod_spec.get("hostNetwork"):
                variables.append({"name": _HYDRA_INTERFACE[implementation], "value": _POD_INTERFACE})
            said = {entry.get("name") for entry in container.tree.get("env") or ()} - names.MPI_RESERVED
            container.set_env(*(entry for entry in plan.env_not_overridden(variables) if entry["name"] not in said))

    def build(self, plan: Plan) -> Iterator[Tree | CreateOnce]:
        """Return the SSH keys, drawn once, and the hostfile with the settings of ssh and sshd."""
        policy = _policy(plan)
        if policy is None:
            return
        keys = (names.MPI_SSH_PRIVATE_KEY, names.MPI_SSH_PUBLIC_KEY)
        yield CreateOnce("v1", "Secret", names.mpi_secret_name(plan.name), make_keys, keys)
        node = plan.pod_set(names.JOB_NODE)
        settings = {
            _SSH_CONFIG: _ssh_config(policy.ssh_auth_mount_path, _ssh_port(node) if node else None),
            _SSHD_CONFIG: _sshd_config(policy.ssh_auth_mount_path, user=_user(node) if node else None),
        }
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": names.mpi_hostfile_name(plan.name)},
            "data": {
                names.MPI_HOSTFILE: _hostfile(plan, policy, room=_LONGEST - sum(map(len, settings.values()))),
                **settings,
            },
        }

    def validate(self, plan: Plan, old: Document[TrainJob] | None) -> Iterator[Finding | str]:
        """Check variables that are ours, the jobs that the policy needs, and say what will really run."""
        del old
        policy = _policy(plan)
        if policy is None:
            return
        trainer = plan.trainer
        nodes = trainer.num_nodes if trainer else None
        if policy.run_launcher_as_node and (nodes or 1) > 1 and not (_has(plan, names.JOB_LAUNCHER, names.JOB_NODE)):
            yield Finding(
                "spec.trainer.numNodes",
                f"must be 1: the runtime lets its launcher train (mpi.runLauncherAsNode) and has no two jobs "
                f"{names.JOB_LAUNCHER} and {names.JOB_NODE}",
            )
        yield from judge_reserved_at_once(plan, names.MPI_RESERVED, "MPI")
        yield from _surprises(plan, policy, nodes)


def make_keys() -> Tree:
    """Return the content of the Secret with a new pair of keys. Draws; everything else here is a function.

    The form is the reference's: a Secret that either operator made serves the other.
    """
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 the operator's alone, not the SDK's
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 the same

    key = ec.generate_private_key(ec.SECP521R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH) + b"\n"
    data = {names.MPI_SSH_PRIVATE_KEY: private, names.MPI_SSH_PUBLIC_KEY: public}
    return {
        "type": "kubernetes.io/ssh-auth",
        "immutable": True,
        "data": {name: base64.b64encode(content).decode() for name, content in data.items()},
    }


def _policy(plan: Plan) -> MPIPolicy | None:
    return plan.policy.mpi if plan.policy else None


def _has(plan: Plan, *jobs: str) -> bool:
    return all(plan.pod_set(job) for job in jobs)


def _implementation(plan: Plan, policy: MPIPolicy) -> str:
    annotation = plan.runtime.view.metadata.annotations.get(names.ANNOTATION_MPI_IMPLEMENTATION)
    written = policy.mpi_implementation
    said = MPI_SPELLINGS.get(written) or annotation or written  # the first, where admission was not asked
    if said not in IMPLEMENTATIONS:
        raise RefusalError(
            "spec.runtimeRef",
            f"the runtime's MPI implementation is {said!r}: write {OPENMPI} in mlPolicy.mpi.mpiImplementation, or one "
            f"of {', '.join(IMPLEMENTATIONS)} in its annotation {names.ANNOTATION_MPI_IMPLEMENTATION}",
        )
    return said


def _nodes(plan: Plan, policy: MPIPolicy) -> Iterator[PodSet]:
    """Yield the pods that train, in the order of the runtime's jobs."""
    wanted = {names.JOB_NODE, names.JOB_LAUNCHER} if policy.run_launcher_as_node else {names.JOB_NODE}
    return (pods for pods in plan.pod_sets if pods.name in wanted)


def _slots(plan: Plan, policy: MPIPolicy) -> int:
    """Return processes per node: the TrainJob's word; a runtime that says 1 means one for each GPU."""
    said = plan.trainer.num_proc_per_node if plan.trainer else None
    if isinstance(said, int):
        return said
    if policy.num_proc_per_node != 1:
        return policy.num_proc_per_node
    meant = (pods for pods in plan.pod_sets if pods.name == names.JOB_NODE or pods.ancestor == names.ANCESTOR_TRAINER)
    containers = (pods.container(names.CONTAINER_NODE) for pods in meant)
    container = next((container for container in containers if container), None)
    return max(1, resources.accelerators(container)) if container else 1


def _hostfile(plan: Plan, policy: MPIPolicy, *, room: int) -> str:
    """Return the list of the nodes, with the processes of each.

    Raises:
        RefusalError: it would have more than `room` bytes. Nothing was made of it then.
    """
    slots = str(_slots(plan, policy))
    ending = f" slots={slots}\n" if _implementation(plan, policy) == OPENMPI else f":{slots}\n"
    nodes = list(_nodes(plan, policy))
    hosts = sum(max(pods.replicas, 0) * max(pods.count, 0) for pods in nodes)
    length = sum(pods.endpoints_length for pods in nodes) + hosts * len(ending)
    if length > room:
        problem = f"the hostfile lists every node and would have {length} bytes, of which a ConfigMap takes {room}"
        raise RefusalError("spec.trainer.numNodes", f"{problem}: use fewer nodes, or shorter names")
    return "".join(f"{endpoint}{ending}" for pods in nodes for endpoint in pods.endpoints)


def _trust(pods: PodSet, policy: MPIPolicy) -> None:
    """Give pods the keys, the launcher the hostfile, and both what ssh and sshd need to know."""
    train_job = pods.plan.name
    keys = [
        {"key": names.MPI_SSH_PRIVATE_KEY, "path": "id_rsa", "mode": _key_mode(pods)},
        {"key": names.MPI_SSH_PUBLIC_KEY, "path": "id_rsa.pub", "mode": _FOR_ALL_AND_OWNER},
        {"key": names.MPI_SSH_PUBLIC_KEY, "path": "authorized_keys", "mode": _FOR_ALL_AND_OWNER},
    ]
    secret = {"secretName": names.mpi_secret_name(train_job), "defaultMode": _FOR_OWNER, "items": keys}
    launches = pods.name == names.JOB_LAUNCHER
    files = (names.MPI_HOSTFILE, _SSH_CONFIG) if launches else (_SSH_CONFIG, _SSHD_CONFIG)
    items = [{"key": file, "path": file, "mode": _FOR_ALL} for file in files]
    config = {"name": names.mpi_hostfile_name(train_job), "items": items}
    pods.set_volumes(
        {"name": names.MPI_SSH_VOLUME, "secret": secret}, {"name": names.MPI_HOSTFILE_VOLUME, "configMap": config}
    )
    container = pods.container(names.CONTAINER_NODE)
    if container is None:
        return
    container.set_mounts(
        {"name": names.MPI_SSH_VOLUME, "mountPath": policy.ssh_auth_mount_path},
        {"name": names.MPI_HOSTFILE_VOLUME, "mountPath": names.MPI_HOSTFILE_MOUNT_PATH},
    )
    if not launches:
        container.set_mounts(
            {
                "name": names.MPI_HOSTFILE_VOLUME,
                "mountPath": _SSHD_DROP_IN,
                "subPath": _SSHD_CONFIG,
                "readOnly": True,
            }
        )


def _user(pods: PodSet) -> int | None:
    """Return the user that the training container runs as; None if that is the image's affair."""
    container = pods.container(names.CONTAINER_NODE)
    own = trees.get(container.tree, "securityContext", "runAsUser") if container else None
    said = trees.get(pods.pod_spec, "securityContext", "runAsUser") if own is None else own
    return said if isinstance(said, int) else None


def _key_mode(pods: PodSet) -> int:
    """Return who may read the private key: its owner; everybody if a plain user could not read it otherwise."""
    in_group = trees.get(pods.pod_spec, "securityContext", "fsGroup") is not None
    return _FOR_ALL if _user(pods) and not in_group else _FOR_OWNER


def _ssh_port(node: PodSet) -> int | None:
    """Return the port of the nodes' sshd, if the runtime names one `ssh`."""
    container = node.container(names.CONTAINER_NODE)
    ports = (container.tree.get("ports") or ()) if container else ()
    return next((port.get("containerPort") for port in ports if port.get("name") == "ssh"), None)


def _ssh_config(folder: str, port: int | None) -> str:
    """Return ssh's settings. The first word on each subject counts, so the image's come first."""
    known = f"""/bin/sh -c 'printf "%%s %%s" "%H" "$(cat {folder}/id_rsa.pub)"'"""
    lines = [
        "Include /etc/ssh/ssh_config",
        "Host *",
        "  IgnoreUnknown KnownHostsCommand",
        f"  IdentityFile {folder}/id_rsa",
        "  StrictHostKeyChecking yes",
        "  UserKnownHostsFile /dev/null",
        f"  KnownHostsCommand {known}",
        "  LogLevel ERROR",
    ]
    if port is not None:
        lines.append(f"  Port {port}")
    return "".join(f"{line}\n" for line in lines)


def _sshd_config(folder: str, *, user: int | None) -> str:
    """Return the drop-in for the nodes' sshd. Mounted folders are open to all by nature: StrictModes would refuse."""
    lines = [
        f"HostKey {folder}/id_rsa",
        f"AuthorizedKeysFile {folder}/authorized_keys",
        "StrictModes no",
        "PasswordAuthentication no",
    ]
    if user:
        lines += ["UsePAM no", "PidFile none"]
    return "".join(f"{line}\n" for line in lines)


def _variables(implementation: str, slots: int, *, root: bool) -> list[Tree]:
    if implementation == INTEL:
        values = {
            "I_MPI_HYDRA_HOST_FILE": _HOSTFILE,
            "I_MPI_PERHOST": str(slots),
            "I_MPI_HYDRA_BOOTSTRAP": "ssh",
            "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": _SSH_ARGS,
        }
    elif implementation == MPICH:
        values = {
            "HYDRA_HOST_FILE": _HOSTFILE,
            "HYDRA_LAUNCHER": "ssh",
            "HYDRA_LAUNCHER_EXTRA_ARGS": _SSH_ARGS,
        }
    else:
        values = {
            names.OPENMPI_HOSTFILE: _HOSTFILE,
            names.OPENMPI_KEEP_FQDN: "true",
            names.OPENMPI_DEFAULT_SLOTS: str(slots),
            names.OPENMPI_RSH_ARGS: _SSH_ARGS,
            names.PRRTE_HOSTFILE: _HOSTFILE,
            names.PRRTE_KEEP_FQDN: "true",
            names.PRRTE_DO_NOT_RESOLVE: "false",
            names.PRRTE_SSH_ARGS: _SSH_ARGS,
        }
        if root:
            values |= dict.fromkeys(names.OPENMPI_ALLOW_ROOT, "1")
    return [{"name": name, "value": value} for name, value in values.items()]


def _surprises(plan: Plan, policy: MPIPolicy, nodes: int | None) -> Iterator[str]:
    """Yield what will really run where that is not what the numbers seem to say."""
    if policy.run_launcher_as_node and nodes == 1 and _has(plan, names.JOB_LAUNCHER, names.JOB_NODE):
        yield (
            "spec.trainer.numNodes: 1 runs on two pods, the launcher and one node, because this runtime's launcher "
            "trains too (mpi.runLauncherAsNode) and needs a node beside it"
        )
    runtime_nodes = plan.policy.num_nodes if plan.policy else None
    trains = plan.trainer_set
    if trains is not None and trains.name == names.JOB_LAUNCHER and (runtime_nodes or 1) > 1:
        yield (
            f"spec.runtimeRef: the runtime's mlPolicy.numNodes {runtime_nodes} makes that many launchers, not nodes: "
            "its author should write 1 there, and the nodes as parallelism of the job node"
        )
    resources_said = plan.trainer.resources_per_node if plan.trainer else None
    if resources_said and trains is not None and trains.name == names.JOB_LAUNCHER and not policy.run_launcher_as_node:
        yield (
            "spec.trainer.resourcesPerNode: goes to the launcher and to no node, for this runtime labels its launcher "
            "as the trainer and does not let it train (mpi.runLauncherAsNode): its author should say what nodes have"
        )
