"""The pods of an MPIJob: its workers, and the Job whose pod launches them.

A template passes through as its user wrote it. What is added goes to the first container, behind what stands there: the
keys, the variables that lead this MPI to the hostfile, and whose turn it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import names as common
from trainplane.api import tree as trees
from trainplane.api.legacy import names
from trainplane.legacy.mpi import gang, hosts
from trainplane.legacy.mpi.job import SSH_MOUNT_PATH
from trainplane.legacy.mpi.objects import config_name, secret_name

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.legacy.decision import Settings
    from trainplane.legacy.mpi.job import MPIJob

SSH_VOLUME: Final = "ssh-auth"
CONFIG_VOLUME: Final = "mpi-job-config"
_CONFIG_FOLDER: Final = common.MPI_HOSTFILE_MOUNT_PATH
_HOSTFILE: Final = f"{_CONFIG_FOLDER}/{hosts.HOSTFILE}"
_ROLE: Final = "K_MPI_JOB_ROLE"
_SSHD: Final = ("/usr/sbin/sshd", "-De")
_SSH_ARGS: Final = "-o ConnectionAttempts=10"
_USUAL_DOMAIN: Final = "cluster.local"
_FOR_OWNER: Final = 0o600
_FOR_ALL: Final = 0o444
_FOR_ALL_TO_RUN: Final = 0o555
_NO_GPU: Final = ({"name": "NVIDIA_VISIBLE_DEVICES"}, {"name": "NVIDIA_DRIVER_CAPABILITIES"})
"""Empty, so that a launcher that only launches takes no GPU, whatever its image says."""
_RUN_PARTS: Final = ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit")
"""What the Job of the launcher sees to by itself."""


def worker(job: MPIJob, index: int, settings: Settings) -> Tree:
    """Return the pod of a worker. It serves SSH, unless its template says what to run."""
    host = hosts.worker_name(job.name, index)
    template = _template(job, names.WORKER, host, settings)
    # Kueue wants each pod of a set to have a number of its own, and a launcher that trains has the first.
    template["metadata"]["labels"][names.LABEL_REPLICA_INDEX] = str(index + job.launcher_trains)
    spec = template["spec"]
    container = spec["containers"][0]
    if not container.get("command") and not container.get("args"):
        container["command"] = list(_SSHD)
    _add(container, "env", {"name": _ROLE, "value": names.ROLE_WORKER})
    # Intel MPI and MPICH call the launcher back by its bare host name.
    domain = f"{job.name}.{job.namespace}.svc.{settings.cluster_domain or _USUAL_DOMAIN}"
    dns = trees.fields(spec, "dnsConfig")
    spec["dnsConfig"] = {**dns, "searches": [*(dns.get("searches") or ()), domain]}
    metadata = {
        **template["metadata"],
        "name": host,
        "namespace": job.namespace,
        "ownerReferences": [job.owner],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def launcher(job: MPIJob, settings: Settings) -> Tree:
    """Return the Job that launches. Retries, its deadline and its time to live are Kubernetes' own affair."""
    host = hosts.launcher_name(job.name)
    template = _template(job, names.LAUNCHER, host, settings)
    if job.launcher_trains:
        template["metadata"]["labels"][names.LABEL_REPLICA_INDEX] = "0"
    spec = template["spec"]
    container = spec["containers"][0]
    _add(container, "env", {"name": _ROLE, "value": names.ROLE_LAUNCHER}, *_variables(job))
    if not job.launcher_trains:
        _add(container, "env", *trees.copy(list(_NO_GPU)))
    items = [
        {"key": hosts.HOSTFILE, "path": hosts.HOSTFILE, "mode": _FOR_ALL},
        {"key": hosts.DISCOVER, "path": hosts.DISCOVER, "mode": _FOR_ALL_TO_RUN},
    ]
    _add(spec, "volumes", {"name": CONFIG_VOLUME, "configMap": {"name": config_name(job.name), "items": items}})
    _add(container, "volumeMounts", {"name": CONFIG_VOLUME, "mountPath": _CONFIG_FOLDER})
    run = {part: job.policy[part] for part in _RUN_PARTS if job.policy.get(part) is not None}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": job.metadata(host),
        # A launcher is replaced when it is gone for good: two of them would start the same ranks twice.
        "spec": {**run, "podReplacementPolicy": "Failed", "template": template},
    }


def _template(job: MPIJob, replica_type: str, host: str, settings: Settings) -> Tree:
    """Return what pods of both roles have in common, made of the user's template; nobody else has a part of it."""
    written = trees.copy(trees.fields(job.replica(replica_type), "template"))
    said = trees.fields(written, "metadata")
    metadata: Tree = {"labels": {**trees.fields(said, "labels"), **job.labels(replica_type.lower())}}
    if said.get("annotations"):
        metadata["annotations"] = said["annotations"]
    restart = job.restart(replica_type)
    spec = {
        **trees.fields(written, "spec"),
        "hostname": host,
        "subdomain": job.name,
        "restartPolicy": names.RESTART_NEVER if restart == names.RESTART_EXIT_CODE else restart,
    }
    if spec.get("hostNetwork") is True:
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"
    public = common.MPI_SSH_PUBLIC_KEY
    files = ((common.MPI_SSH_PRIVATE_KEY, "id_rsa"), (public, "id_rsa.pub"), (public, "authorized_keys"))
    secret: Tree = {"secretName": secret_name(job.name), "items": [{"key": key, "path": path} for key, path in files]}
    if job.ssh_folder == SSH_MOUNT_PATH:  # root owns the files there, and ssh refuses a key that others may read
        secret["defaultMode"] = _FOR_OWNER
    _add(spec, "volumes", {"name": SSH_VOLUME, "secret": secret})
    _add(spec["containers"][0], "volumeMounts", {"name": SSH_VOLUME, "mountPath": job.ssh_folder})
    return gang.decorated({"metadata": metadata, "spec": spec}, job, settings)


def _add(tree: Tree, key: str, *entries: Tree) -> None:
    tree[key] = [*(tree.get(key) or ()), *entries]


def _variables(job: MPIJob) -> list[Tree]:
    """Return what leads this job's MPI to the hosts. MPICH reads LAUNCHER_EXTRA_ARGS; mpi-operator sets the other."""
    slots = str(job.slots)
    if job.implementation == names.MPI_INTEL:
        values = {
            "I_MPI_HYDRA_HOST_FILE": _HOSTFILE,
            "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": _SSH_ARGS,
            "I_MPI_PERHOST": slots,
        }
    elif job.implementation == names.MPI_MPICH:
        values = {
            "HYDRA_HOST_FILE": _HOSTFILE,
            "HYDRA_LAUNCH_EXTRA_ARGS": _SSH_ARGS,
            "HYDRA_LAUNCHER_EXTRA_ARGS": _SSH_ARGS,
        }
    else:
        values = {
            common.OPENMPI_KEEP_FQDN: "true",
            common.OPENMPI_HOSTFILE: _HOSTFILE,
            common.OPENMPI_RSH_ARGS: _SSH_ARGS,
            common.OPENMPI_DEFAULT_SLOTS: slots,
        }
    return [{"name": name, "value": value} for name, value in values.items()]
