"""Differences that we want in MPI. Rows of `Declared`: id, what, reason, predicate.

What of ours the reference does not have is taken away again: the rest must be equal, word for word.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.conformance import context as it
from tests.conformance import refusals, warned
from tests.conformance.compare import ABSENT
from tests.conformance.rendered import without_zeros
from trainplane.api.quantity import Quantity

if TYPE_CHECKING:
    from tests.conformance.cases import Case, Tree
    from tests.conformance.compare import Difference

_THEIR_MODE, _OWNERS, _ALLS = 0o640, 0o400, 0o444
_FOLDER = "/etc/mpi"
_DROP_IN = "/etc/ssh/sshd_config.d/50-trainer.conf"
_SLOTS = "OMPI_MCA_orte_set_default_slots"
_RSH_ARGS, _THEIR_ARGS = "OMPI_MCA_plm_rsh_args", "-o ConnectionAttempts=10"
_OUR_ARGS = f"-F {_FOLDER}/ssh_config {_THEIR_ARGS}"
_OPENMPI_5 = {
    "PRTE_MCA_prte_default_hostfile": f"{_FOLDER}/hostfile",
    "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
    "PRTE_MCA_prte_do_not_resolve": "false",
    "PRTE_MCA_plm_ssh_args": _OUR_ARGS,
}
_AS_ROOT = {f"{one}_ALLOW_RUN_AS_ROOT{confirm}": "1" for one in ("OMPI", "PRTE") for confirm in ("", "_CONFIRM")}
_MOUNTS: list[Tree] = [
    {"name": "mpi-hostfile", "mountPath": _FOLDER},
    {"name": "mpi-hostfile", "mountPath": _DROP_IN, "subPath": "sshd_config", "readOnly": True},
]


# -- the case ---------------------------------------------------------------------------------------------------------


def is_of_mpi(case: Case) -> bool:
    """Return whether a case is about a runtime of MPI."""
    return "mpi" in (it.runtime(case).get("spec", {}).get("mlPolicy") or {})


def _policy(case: Case) -> Tree:
    policy: Tree = it.runtime(case)["spec"]["mlPolicy"]["mpi"]
    return policy


def _trainer(case: Case) -> Tree:
    trainer: Tree = it.job(case).get("spec", {}).get("trainer") or {}
    return trainer


def _node(pod: Tree) -> Tree:
    """Return the container of a pod template that trains."""
    return next((one for one in pod["spec"]["containers"] if one["name"] == "node"), {})


def _user(pod: Tree) -> int | None:
    """Return whom the training container runs as, if the runtime says so."""
    said = (holder.get("securityContext", {}).get("runAsUser") for holder in (_node(pod), pod["spec"]))
    return next((user for user in said if user is not None), None)


def _mode(pod: Tree) -> int:
    """Return the mode of the key: a plain user reads it by the group, or else as everybody does."""
    is_plain = _user(pod) not in (None, 0)
    return _ALLS if is_plain and "fsGroup" not in pod["spec"].get("securityContext", {}) else _OWNERS


def _pod(found: Difference) -> Tree:
    """Return the pod template of the job that a difference lies in."""
    return _pod_of(found.case, it.entry(found, "replicatedJobs"))


def _pod_of(case: Case, name: str) -> Tree:
    """Return the runtime's pod template of a replicated job, run as patches say; an empty one if it has none."""
    pod = it.pods(case).get(name, {"spec": {"containers": []}})
    for job, said in it.patched_pods(it.spec(case).get("runtimePatches") or []):
        pod = _run_as(pod, said.get("spec", {})) if job == name else pod
    return pod


def _run_as(pod: Tree, said: Tree) -> Tree:
    """Return a pod template with what a patch says of whom pod and containers run as."""
    patched = {one["name"]: one for one in said.get("containers", ())}
    containers = [_secured(one, patched.get(one["name"], {})) for one in pod["spec"]["containers"]]
    return {**pod, "spec": {**_secured(pod["spec"], said), "containers": containers}}


def _secured(one: Tree, said: Tree) -> Tree:
    context = {**one.get("securityContext", {}), **said.get("securityContext", {})}
    return {**one, "securityContext": context} if context else one


# -- the key ----------------------------------------------------------------------------------------------------------


def hides_key(found: Difference) -> bool:
    """Match the mode of the private key in a volume."""
    if not (it.within(found, "JobSet") and found.path.endswith(".volumes[mpi-ssh-auth].secret.items[0].mode")):
        return False
    return (found.reference, found.ours) == (_THEIR_MODE, _mode(_pod(found)))


def draws_key(found: Difference) -> bool:
    """Match a Secret that differs only in who owns its fields."""
    is_secret = it.within(found, "Secret") and found.place.endswith("-mpi-ssh-auth")
    return is_secret and found.path == "owned" and found.ours == ABSENT


# -- settings of ssh --------------------------------------------------------------------------------------------------


def brings_settings(found: Difference) -> bool:
    """Match the settings of ssh and sshd: their texts, and how they reach pods."""
    if it.within(found, "ConfigMap") and found.place.endswith("-mpi-hostfile"):
        return found.reference == ABSENT and _is_setting(found)
    if not it.within(found, "JobSet"):
        return False
    if it.entry(found, "replicatedJobs") == "launcher":
        is_items = found.path.endswith(".volumes[mpi-hostfile].configMap.items")
        return is_items and bool(found.ours == [*found.reference, _item("ssh_config")])
    return it.entry(found, "replicatedJobs") == "node" and _reaches_node(found)


def _reaches_node(found: Difference) -> bool:
    """Tell if a node has the volume and its mounts beside what the reference gives it."""
    if it.is_owned(found):
        mounts = [f'.f:volumeMounts.k:{{"mountPath":"{path}"}}' for path in (_FOLDER, _DROP_IN)]
        return found.reference == ABSENT and found.path.endswith(('.f:volumes.k:{"name":"mpi-hostfile"}', *mounts))
    if not isinstance(found.ours, list):
        return False
    if found.path.endswith("template.spec.volumes"):
        return bool(without_zeros(_without_volume(found)) == without_zeros(found.reference))
    is_mounts = found.path.endswith("template.spec.containers[node].volumeMounts")
    if not (is_mounts and all(one in found.ours for one in _MOUNTS)):
        return False
    return bool(without_zeros(_without(found.ours, _MOUNTS)) == without_zeros(found.reference))


def _without(entries: list[Tree], others: list[Tree]) -> list[Tree]:
    return [one for one in entries if one not in others]


def _is_setting(found: Difference) -> bool:
    if it.is_owned(found):
        return found.path in ("owned.f:data.f:ssh_config", "owned.f:data.f:sshd_config")
    wanted = _settings(found.case).get(found.path.removeprefix("data."))
    return wanted is not None and [line.strip() for line in found.ours.splitlines()] == wanted


def _settings(case: Case) -> dict[str, list[str]]:
    """Return what ssh and sshd must be told: by which key nodes know each other, on which port, and that they look."""
    folder = _policy(case).get("sshAuthMountPath", "/root/.ssh")
    node = _pod_of(case, "node")
    ports = [port["containerPort"] for port in _node(node).get("ports", ()) if port.get("name") == "ssh"]
    known = f"""/bin/sh -c 'printf "%%s %%s" "%H" "$(cat {folder}/id_rsa.pub)"'"""
    ours = {"StrictHostKeyChecking": "yes", "UserKnownHostsFile": "/dev/null", "KnownHostsCommand": known}
    ssh = {"IgnoreUnknown": "KnownHostsCommand", "IdentityFile": f"{folder}/id_rsa", **ours, "LogLevel": "ERROR"}
    sshd = {"HostKey": f"{folder}/id_rsa", "AuthorizedKeysFile": f"{folder}/authorized_keys", "StrictModes": "no"}
    as_plain_user = {"UsePAM": "no", "PidFile": "none"} if _user(node) else {}
    return {
        "ssh_config": [
            *("Include /etc/ssh/ssh_config", "Host *"),
            *_lines(ssh),
            *(f"Port {port}" for port in ports),
        ],
        "sshd_config": _lines(sshd | {"PasswordAuthentication": "no"} | as_plain_user),
    }


def _lines(settings: dict[str, str]) -> list[str]:
    return [f"{name} {value}" for name, value in settings.items()]


def _item(file: str) -> Tree:
    return {"key": file, "path": file, "mode": _ALLS}


def _without_volume(found: Difference) -> Any:
    """Return our volumes of a node as the reference has them; nothing if ours are not as they should be."""
    name = found.place.partition(" ")[2]
    items = [_item("ssh_config"), _item("sshd_config")]
    added = {"name": "mpi-hostfile", "configMap": {"name": f"{name}-mpi-hostfile", "items": items}}
    others = _without(found.ours, [added])
    return [_with_their_mode(one, _mode(_pod(found))) for one in others] if added in found.ours else None


def _with_their_mode(volume: Tree, mode: int) -> Tree:
    if volume["name"] != "mpi-ssh-auth":
        return volume
    first, *rest = volume["secret"]["items"]
    theirs = {**first, "mode": _THEIR_MODE if first["mode"] == mode else ABSENT}
    return {**volume, "secret": {**volume["secret"], "items": [theirs, *rest]}}


# -- variables of the launcher ----------------------------------------------------------------------------------------


def tells_more(found: Difference) -> bool:
    """Match variables of the launcher that the reference does not set, and ssh's arguments."""
    if not (it.within(found, "JobSet") and it.entry(found, "replicatedJobs") == "launcher"):
        return False
    told = _told(found)
    if it.is_owned(found):
        name = re.search(r'k:\{"name":"node"}\.f:env\.k:\{"name":"([^"]+)"}$', found.path)
        return found.reference == ABSENT and name is not None and name[1] in told
    if ABSENT in (found.reference, found.ours) or not found.path.endswith("template.spec.containers[node].env"):
        return False
    theirs, ours = ({one["name"]: one for one in side} for side in (found.reference, found.ours))
    is_told = all(ours.pop(name, {}).get("value") == value for name, value in told.items())
    is_pointed = ours.get(_RSH_ARGS, {}).get("value") == _OUR_ARGS
    return is_told and is_pointed and ours | _as_theirs(found) == theirs


def _told(found: Difference) -> dict[str, str]:
    """Return the variables that we alone set: those of the user and of the runtime stay as they are."""
    told = _OPENMPI_5 | (_AS_ROOT if _user(_pod(found)) in (None, 0) else {})
    said = {one["name"] for holder in (_trainer(found.case), _node(_pod(found))) for one in holder.get("env", ())}
    return {name: value for name, value in told.items() if name not in said}


def _as_theirs(found: Difference) -> dict[str, Tree]:
    """Return the variables in which we differ, as the reference has them."""
    theirs, ours = _slots(found.case)
    has_ours = {"name": _SLOTS, "value": str(ours)} in found.ours
    slots = {_SLOTS: {"name": _SLOTS, "value": str(theirs)}} if has_ours else {}
    return {_RSH_ARGS: {"name": _RSH_ARGS, "value": _THEIR_ARGS}, **slots}


# -- processes --------------------------------------------------------------------------------------------------------


def counts_gpus_of_nodes(found: Difference) -> bool:
    """Match another number of slots where GPUs are not plainly those that the reference looks at."""
    theirs, ours = _slots(found.case)
    if theirs == ours or not (it.within(found, "ConfigMap") and found.path == "data.hostfile"):
        return False
    pair = (f" slots={theirs}\n", f" slots={ours}\n")
    return bool(found.reference.replace(*pair) == found.ours)


def _slots(case: Case) -> tuple[int, int]:
    """Return the processes on a node: what the reference counts, and what we do."""
    policy, trainer = _policy(case), _trainer(case)
    if "numProcPerNode" in trainer or policy.get("numProcPerNode", 1) != 1:
        said = int(trainer.get("numProcPerNode") or policy["numProcPerNode"])
        return said, said
    asked = trainer.get("resourcesPerNode") or {}
    name = next((name for name in it.pods(case) if name in ("node", "launcher")), "")
    have = _node(it.pods(case)[name]).get("resources", {}) if name else {}
    is_reached = name == "launcher" or policy.get("runLauncherAsNode")
    merged = {kind: have.get(kind, {}) | (asked.get(kind, {}) if is_reached else {}) for kind in ("requests", "limits")}
    return _gpus(asked or have, r"gpu"), _gpus(merged, r"/gpu$|/mig-")


def _gpus(resources: Tree, named: str) -> int:
    amounts = [*resources.get("requests", {}).items(), *resources.get("limits", {}).items()]
    return next((Quantity.of(amount).value() for name, amount in amounts if re.search(named, name)), 1)


ROWS = (
    (
        "mpi-key-mode",
        "MPI's private key is readable to its user alone; to all in the pod where a plain user has no `fsGroup`",
        "ssh refuses the reference's mode 0640 to a user who owns the file, as root does (§11.41)",
        hides_key,
    ),
    (
        "mpi-drawn-key",
        "MPI's Secret is created once, and no apply owns it",
        "the reference never applies it twice either; two operators at once would draw two keys",
        draws_key,
    ),
    (
        "mpi-settings",
        "MPI's ConfigMap has settings of ssh and sshd too, and its nodes mount them",
        "host keys are checked, and no image has to switch that off (§11.41)",
        brings_settings,
    ),
    (
        "mpi-variables",
        "the launcher is told by OpenMPI 5's variables too, and may run as root; ssh's arguments name our settings",
        "OpenMPI 5 reads none of the reference's variables, and mpirun refuses root",
        tells_more,
    ),
    (
        "mpi-processes",
        "slots are the GPUs that a node will have: slices too, and a runtime's beside a TrainJob's CPUs",
        "the reference looks at the TrainJob's resources alone, whether or not they reach a node (§11.15)",
        counts_gpus_of_nodes,
    ),
    (
        "mpi-warns",
        "a warning where `numNodes` is not the number of pods that train with MPI, or `resourcesPerNode` reaches none",
        "the reference and Kueue count so, and the counts are kept (§11.6)",
        warned.warns(*warned.MPI),
    ),
    (
        "mpi-implementation",
        "403 for a runtime whose `mpiImplementation` is empty",
        "the schema lets it in, and the reference then fails at every reconcile (§11.22)",
        refusals.refused(refusals.nameless_mpi),
    ),
)
