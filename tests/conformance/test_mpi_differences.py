"""Declared differences of MPI: known by their cause, and no wider than what we add."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.cases import Change, Remove
from tests.conformance.compare import ABSENT
from tests.conformance.documents import container, env, patch, patch_job, runtime
from tests.conformance.mpi_cases import launcher, mpi, workers
from tests.conformance.planted import JOBSET, difference, explained_by

if TYPE_CHECKING:
    from tests.conformance.cases import Step, Tree

HOSTFILE, SECRET = "ConfigMap job-mpi-hostfile", "Secret job-mpi-ssh-auth"
ON = mpi()
ONE = {"trainer": {"numNodes": 1}}


def pod(job: str) -> str:
    return f"spec.replicatedJobs[{job}].template.spec.template.spec"


def owned(job: str) -> str:
    return f'owned.f:spec.f:replicatedJobs.k:{{"name":"{job}"}}.f:template.f:spec.f:template.f:spec'


def user(**context: int) -> Tree:
    return mpi(workers(securityContext=context), launcher(securityContext=context))


# -- keys -------------------------------------------------------------------------------------------------------------

MODE = "volumes[mpi-ssh-auth].secret.items[0].mode"


@pytest.mark.parametrize(
    ("path", "modes", "on", "known"),
    [
        (MODE, (0o640, 0o400), ON, True),
        (MODE, (0o640, 0o400), user(runAsUser=0), True),
        (MODE, (0o640, 0o400), user(runAsUser=1000, fsGroup=1000), True),
        (MODE, (0o640, 0o444), user(runAsUser=1000), True),
        (MODE, (0o640, 0o444), ON, False),
        (MODE, (0o640, 0o444), user(runAsUser=1000, fsGroup=1000), False),
        (MODE, (0o640, 0o400), user(runAsUser=1000), False),
        (MODE, (0o644, 0o400), ON, False),
        (MODE, (0o640, ABSENT), ON, False),
        (MODE, (0o640, 0o400), runtime(), False),
        (MODE.replace("[0]", "[1]"), (0o640, 0o400), ON, False),
        (MODE.replace("mpi-ssh-auth", "other"), (0o640, 0o400), ON, False),
        ("volumes[mpi-ssh-auth].secret.defaultMode", (0o640, 0o400), ON, False),
    ],
)
def test_the_key_is_its_users_alone(path: str, modes: tuple[Any, Any], on: Tree, known: bool) -> None:
    found = difference(JOBSET, f"{pod('launcher')}.{path}", *modes, on=on)
    assert explained_by(found) == ("mpi-key-mode" if known else None)


@pytest.mark.parametrize(
    ("place", "path", "sides", "known"),
    [
        (SECRET, "owned", ({"f:data": {}}, ABSENT), True),
        (SECRET, "owned", (ABSENT, {"f:data": {}}), False),
        (SECRET, "owned.f:data", ({}, ABSENT), False),
        (SECRET, "", ({"kind": "Secret"}, ABSENT), False),
        (SECRET, "type", ("kubernetes.io/ssh-auth", "Opaque"), False),
        (SECRET, "immutable", (True, ABSENT), False),
        (SECRET, "data.ssh-privatekey", ("<-----BEGIN EC PRIVATE KEY----- 365 bytes>", "<… 227 bytes>"), False),
        (SECRET, "data.ssh-publickey", ("<its ecdsa-sha2-nistp521, 268 bytes>", "aGVsbG8="), False),
        ("Secret other", "owned", ({"f:data": {}}, ABSENT), False),
        (HOSTFILE, "owned", ({"f:data": {}}, ABSENT), False),
    ],
)
def test_a_drawn_key_differs_in_who_owns_it_alone(place: str, path: str, sides: tuple[Any, Any], known: bool) -> None:
    assert explained_by(difference(place, path, *sides, on=ON)) == ("mpi-drawn-key" if known else None)


# -- settings ---------------------------------------------------------------------------------------------------------

SSH_CONFIG = """\
Include /etc/ssh/ssh_config
Host *
  IgnoreUnknown KnownHostsCommand
  IdentityFile /root/.ssh/id_rsa
  StrictHostKeyChecking yes
  UserKnownHostsFile /dev/null
  KnownHostsCommand /bin/sh -c 'printf "%%s %%s" "%H" "$(cat /root/.ssh/id_rsa.pub)"'
  LogLevel ERROR
"""
SSHD_CONFIG = """\
HostKey /root/.ssh/id_rsa
AuthorizedKeysFile /root/.ssh/authorized_keys
StrictModes no
PasswordAuthentication no
"""


@pytest.mark.parametrize(
    ("path", "sides", "known"),
    [
        ("data.ssh_config", (ABSENT, SSH_CONFIG), True),
        ("data.sshd_config", (ABSENT, SSHD_CONFIG), True),
        ("owned.f:data.f:ssh_config", (ABSENT, {}), True),
        ("data.ssh_config", (ABSENT, SSH_CONFIG.replace("/root/.ssh/id_rsa\n", "/elsewhere/id_rsa\n")), False),
        ("data.ssh_config", (ABSENT, SSH_CONFIG.replace("Checking yes", "Checking no")), False),
        ("data.ssh_config", (ABSENT, f"{SSH_CONFIG}  Port 2222\n"), False),
        ("data.ssh_config", (ABSENT, ""), False),
        ("data.sshd_config", (ABSENT, SSHD_CONFIG.replace("Authentication no", "Authentication yes")), False),
        ("data.sshd_config", (ABSENT, SSH_CONFIG), False),
        ("data.ssh_config", ("theirs", SSH_CONFIG), False),
        ("data.other", (ABSENT, SSHD_CONFIG), False),
        ("owned.f:data.f:other", (ABSENT, {}), False),
        ("owned.f:data.f:hostfile", ({}, ABSENT), False),
        ("data.hostfile", ("job-node-0-0.job slots=1\n", "job-node-0-0.job slots=2\n"), False),
    ],
)
def test_settings_are_those_of_ssh_alone(path: str, sides: tuple[Any, Any], known: bool) -> None:
    assert explained_by(difference(HOSTFILE, path, *sides, on=ON)) == ("mpi-settings" if known else None)


@pytest.mark.parametrize(("job", "known"), [("node", True), ("launcher", False)])
def test_nodes_that_a_patch_lets_run_as_a_plain_user_are_told_so(job: str, known: bool) -> None:
    spec = {"runtimePatches": [patch("x.example.com/m", patch_job(job, securityContext={"runAsUser": 1}))]}
    told = f"{SSHD_CONFIG}UsePAM no\nPidFile none\n"
    found = difference(HOSTFILE, "data.sshd_config", ABSENT, told, on=ON, spec=spec)
    assert explained_by(found) == ("mpi-settings" if known else None)


def item(file: str, mode: int = 0o444) -> Tree:
    return {"key": file, "path": file, "mode": mode}


def keys(mode: int) -> Tree:
    files = [{"key": "ssh-privatekey", "path": "id_rsa", "mode": mode}, item("ssh-publickey", 0o644)]
    return {"name": "mpi-ssh-auth", "secret": {"secretName": "job-mpi-ssh-auth", "items": files}}


def settings(*files: str, name: str = "job-mpi-hostfile") -> Tree:
    return {"name": "mpi-hostfile", "configMap": {"name": name, "items": [item(file) for file in files]}}


DATA = {"name": "data", "emptyDir": {}}
THEIRS, OURS, BOTH = [DATA, keys(0o640)], [DATA, keys(0o400)], settings("ssh_config", "sshd_config")


@pytest.mark.parametrize(
    ("ours", "known"),
    [
        ([*OURS, BOTH], True),
        ([DATA | {"emptyDir": {"medium": ""}}, keys(0o400), BOTH], True),
        ([DATA | {"emptyDir": {"medium": "Memory"}}, keys(0o400), BOTH], False),
        (OURS, False),
        (ABSENT, False),
        ([*THEIRS, BOTH], False),
        ([DATA, keys(0o444), BOTH], False),
        ([keys(0o400), BOTH], False),
        ([*OURS, BOTH, {"name": "more", "emptyDir": {}}], False),
        ([*OURS, settings("ssh_config")], False),
        ([*OURS, settings("ssh_config", "sshd_config", name="other")], False),
    ],
)
def test_nodes_have_one_volume_more(ours: Any, known: bool) -> None:
    found = difference(JOBSET, f"{pod('node')}.volumes", THEIRS, ours, on=ON)
    assert explained_by(found) == ("mpi-settings" if known else None)
    assert explained_by(difference(JOBSET, f"{pod('other')}.volumes", THEIRS, ours, on=ON)) is None


SSH = {"name": "mpi-ssh-auth", "mountPath": "/root/.ssh"}
FOLDER = {"name": "mpi-hostfile", "mountPath": "/etc/mpi"}
DROP_IN = {
    "name": "mpi-hostfile",
    "mountPath": "/etc/ssh/sshd_config.d/50-trainer.conf",
    "subPath": "sshd_config",
    "readOnly": True,
}


@pytest.mark.parametrize(
    ("ours", "known"),
    [
        ([SSH, FOLDER, DROP_IN], True),
        ([{**SSH, "readOnly": False}, FOLDER, DROP_IN], True),
        ([{**SSH, "readOnly": True}, FOLDER, DROP_IN], False),
        ([SSH, FOLDER], False),
        ([SSH], False),
        (ABSENT, False),
        ([FOLDER, DROP_IN], False),
        ([SSH, FOLDER, {**DROP_IN, "readOnly": False}], False),
        ([SSH, FOLDER, DROP_IN, {"name": "more", "mountPath": "/more"}], False),
    ],
)
def test_nodes_mount_it_twice(ours: Any, known: bool) -> None:
    found = difference(JOBSET, f"{pod('node')}.containers[node].volumeMounts", [SSH], ours, on=ON)
    assert explained_by(found) == ("mpi-settings" if known else None)


@pytest.mark.parametrize(
    ("path", "sides", "known"),
    [
        (f'{owned("node")}.f:volumes.k:{{"name":"mpi-hostfile"}}', (ABSENT, {}), True),
        (
            f'{owned("node")}.f:containers.k:{{"name":"node"}}.f:volumeMounts.k:{{"mountPath":"/etc/mpi"}}',
            (ABSENT, {}),
            True,
        ),
        (
            f'{owned("node")}.f:containers.k:{{"name":"node"}}.f:volumeMounts.k:{{"mountPath":"/more"}}',
            (ABSENT, {}),
            False,
        ),
        (f'{owned("node")}.f:volumes.k:{{"name":"mpi-hostfile"}}', ({}, ABSENT), False),
        (f'{owned("node")}.f:volumes.k:{{"name":"mpi-ssh-auth"}}', (ABSENT, {}), False),
        (f'{owned("launcher")}.f:volumes.k:{{"name":"mpi-hostfile"}}', (ABSENT, {}), False),
        (
            f"{pod('launcher')}.volumes[mpi-hostfile].configMap.items",
            ([item("hostfile")], [item("hostfile"), item("ssh_config")]),
            True,
        ),
        (f"{pod('launcher')}.volumes[mpi-hostfile].configMap.items", ([item("hostfile")], [item("ssh_config")]), False),
        (f"{pod('launcher')}.volumes[mpi-hostfile].configMap.items", ([item("hostfile")], ABSENT), False),
        (f"{pod('launcher')}.volumes[mpi-hostfile].configMap.name", ("job-mpi-hostfile", "other"), False),
    ],
)
def test_settings_reach_pods_in_one_way(path: str, sides: tuple[Any, Any], known: bool) -> None:
    assert explained_by(difference(JOBSET, path, *sides, on=ON)) == ("mpi-settings" if known else None)


# -- variables --------------------------------------------------------------------------------------------------------

ARGS = "-F /etc/mpi/ssh_config -o ConnectionAttempts=10"
TOLD = {
    "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
    "OMPI_MCA_orte_set_default_slots": "1",
    "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
}
NEWER = {
    "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile",
    "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
    "PRTE_MCA_prte_do_not_resolve": "false",
    "PRTE_MCA_plm_ssh_args": ARGS,
}
ROOT = dict.fromkeys(
    (
        "OMPI_ALLOW_RUN_AS_ROOT",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
        "PRTE_ALLOW_RUN_AS_ROOT",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM",
    ),
    "1",
)
PLAIN = {**TOLD, "OMPI_MCA_plm_rsh_args": ARGS, **NEWER}
WHOLE = {**PLAIN, **ROOT}
SAID = mpi(workers(), launcher(containers=[container(env=env(PRTE_MCA_plm_ssh_args="-v"))]))
GPUS = {"resourcesPerNode": {"limits": {"nvidia.com/gpu": 4}}}


@pytest.mark.parametrize(
    ("ours", "on", "known"),
    [
        (WHOLE, ON, True),
        (PLAIN, user(runAsUser=1000), True),
        (WHOLE, user(runAsUser=1000), False),
        (PLAIN, ON, False),
        (TOLD, ON, False),
        ({**WHOLE, "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10"}, ON, False),
        ({**WHOLE, "OMPI_MCA_orte_default_hostfile": "/elsewhere"}, ON, False),
        ({**WHOLE, "OMPI_MCA_orte_set_default_slots": "2"}, ON, False),
        ({**WHOLE, "PRTE_MCA_plm_ssh_args": "-v"}, ON, False),
        ({**WHOLE, "MORE": "1"}, ON, False),
        ({name: value for name, value in WHOLE.items() if name != "OMPI_MCA_orte_set_default_slots"}, ON, False),
        (WHOLE, runtime(workers(), launcher()), False),
    ],
)
def test_the_launcher_is_told_so_much_more(ours: dict[str, str], on: Tree, known: bool) -> None:
    path = f"{pod('launcher')}.containers[node].env"
    found = difference(JOBSET, path, env(**TOLD), env(**ours), on=on)
    assert explained_by(found) == ("mpi-variables" if known else None)
    elsewhere = difference(JOBSET, f"{pod('node')}.containers[node].env", env(**TOLD), env(**ours), on=on)
    assert explained_by(elsewhere) is None


@pytest.mark.parametrize("missing", [(ABSENT, env(**WHOLE)), (env(**TOLD), ABSENT)])
def test_a_launcher_without_variables_is_not_told(missing: tuple[Any, Any]) -> None:
    assert explained_by(difference(JOBSET, f"{pod('launcher')}.containers[node].env", *missing, on=ON)) is None


def test_what_the_runtime_or_the_user_says_stays() -> None:
    path = f"{pod('launcher')}.containers[node].env"
    said = {"PRTE_MCA_plm_ssh_args": "-v"}
    theirs, kept, lost = env(**TOLD, **said), env(**{**WHOLE, **said}), env(**WHOLE)
    for on, spec in ((SAID, {}), (ON, {"trainer": {"env": env(**said)}})):
        assert explained_by(difference(JOBSET, path, theirs, kept, on=on, spec=spec)) == "mpi-variables"
        assert explained_by(difference(JOBSET, path, theirs, lost, on=on, spec=spec)) is None


@pytest.mark.parametrize(("name", "known"), [("PRTE_MCA_plm_ssh_args", True), ("OMPI_MCA_btl", False)])
def test_only_our_variables_are_owned_by_us_alone(name: str, known: bool) -> None:
    path = f'{owned("launcher")}.f:containers.k:{{"name":"node"}}.f:env.k:{{"name":"{name}"}}'
    assert explained_by(difference(JOBSET, path, ABSENT, {}, on=ON)) == ("mpi-variables" if known else None)
    assert explained_by(difference(JOBSET, path, {}, ABSENT, on=ON)) is None


# -- processes --------------------------------------------------------------------------------------------------------

RICH = workers(containers=[container(resources={"limits": {"nvidia.com/gpu": 4}})])


@pytest.mark.parametrize(
    ("slots", "on", "trainer", "known"),
    [
        ((4, 1), ON, GPUS, True),
        ((1, 4), mpi(RICH, launcher(), runLauncherAsNode=True), {"resourcesPerNode": {"requests": {"cpu": "2"}}}, True),
        ((1, 4), mpi(RICH, launcher()), {}, False),
        ((4, 2), ON, GPUS, False),
        ((1, 4), ON, GPUS, False),
        ((4, 1), mpi(runLauncherAsNode=True), GPUS, False),
        ((4, 1), ON, {**GPUS, "numProcPerNode": 4}, False),
        ((4, 1), mpi(numProcPerNode=4), GPUS, False),
        ((4, 1), ON, {}, False),
    ],
)
def test_slots_are_gpus_that_the_node_has(slots: tuple[int, int], on: Tree, trainer: Tree, known: bool) -> None:
    files = [f"job-node-0-0.job slots={number}\n" for number in slots]
    found = difference(HOSTFILE, "data.hostfile", *files, on=on, spec={"trainer": trainer})
    assert explained_by(found) == ("mpi-processes" if known else None)


def test_hosts_are_the_same_whatever_the_slots() -> None:
    files = ("job-node-0-0.job slots=4\n", "job-other-0-0.job slots=1\n")
    assert explained_by(difference(HOSTFILE, "data.hostfile", *files, on=ON, spec={"trainer": GPUS})) is None


# -- verdicts ---------------------------------------------------------------------------------------------------------


ON_TWO = '299 - "spec.trainer.numNodes: 1 runs on two pods, the launcher and one node"'
LAUNCHERS = '299 - "spec.runtimeRef: the runtime\'s mlPolicy.numNodes 3 makes that many launchers, not nodes"'


@pytest.mark.parametrize(
    ("on", "spec", "message", "known"),
    [
        (mpi(runLauncherAsNode=True), ONE, ON_TWO, True),
        (mpi(nodes=3), {}, LAUNCHERS, True),
        (mpi(runLauncherAsNode=True), ONE, LAUNCHERS, False),
        (mpi(nodes=3), {}, ON_TWO, False),
        (mpi(runLauncherAsNode=True), {"trainer": {"numNodes": 2}}, ON_TWO, False),
        (mpi(launcher(waits=False), runLauncherAsNode=True), ONE, ON_TWO, False),
        (ON, ONE, ON_TWO, False),
        (runtime(policy={"numNodes": 3}), {}, LAUNCHERS, False),
    ],
)
def test_warnings_are_for_numbers_that_surprise(on: Tree, spec: Tree, message: str, known: bool) -> None:
    found = difference("verdict", "warned", 0, 1, on=on, spec=spec, message=message)
    assert explained_by(found) == ("mpi-warns" if known else None)


@pytest.mark.parametrize(
    ("on", "codes", "known"),
    [
        (mpi(mpiImplementation=""), (201, 403), True),
        (ON, (201, 403), False),
        (mpi(mpiImplementation=""), (403, 201), False),
    ],
)
def test_a_refusal_is_for_the_implementation(on: Tree, codes: tuple[int, int], known: bool) -> None:
    message = "spec.runtimeRef: the runtime's MPI implementation is ''"
    assert explained_by(difference("verdict", "code", *codes, on=on, message=message)) == (
        "mpi-implementation" if known else None
    )


@pytest.mark.parametrize(
    ("codes", "message", "known"),
    [
        ((422, 201), 'spec.mlPolicy.mpi.mpiImplementation: Unsupported value: "MPICH"', True),
        ((422, 201), 'spec.mlPolicy.torch: Unsupported value: "MPICH"', False),
        ((201, 422), 'spec.mlPolicy.mpi.mpiImplementation: Unsupported value: "MPICH"', False),
    ],
)
def test_a_spelling_is_accepted_that_the_schema_does_not_know(
    codes: tuple[int, int], message: str, known: bool
) -> None:
    found = difference("verdict", "code", *codes, on=ON, message=message)
    assert explained_by(found) == ("mpi-spellings" if known else None)


# -- what nobody watches ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "then", "known"),
    [
        (SECRET, Remove("Secret", "job-mpi-ssh-auth"), True),
        (HOSTFILE, Remove("ConfigMap", "job-mpi-hostfile"), False),
        (SECRET, Remove("ConfigMap", "job-mpi-hostfile"), False),
        (SECRET, Change({"spec": {"suspend": False}}), False),
        (JOBSET, Remove("JobSet"), False),
    ],
)
def test_what_was_just_removed_is_gone(place: str, then: Step, known: bool) -> None:
    found = difference(place, "", {"kind": "made anew"}, ABSENT, on=ON, then=(then,))
    assert explained_by(found) == ("keys-unwatched" if known else None)
    back = difference(place, "", ABSENT, {"kind": "made anew"}, on=ON, then=(then,))
    assert explained_by(back) is None


PLAIN_USER = {"securityContext": {"runAsUser": 1}}


@pytest.mark.parametrize(
    ("said", "mode", "known"),
    [
        (PLAIN_USER, 0o444, True),
        (PLAIN_USER, 0o400, False),
        ({"securityContext": {"runAsUser": 1, "fsGroup": 2}}, 0o400, True),
        ({"containers": [{"name": "node", **PLAIN_USER}]}, 0o444, True),
        ({"containers": [{"name": "other", **PLAIN_USER}]}, 0o444, False),
        ({}, 0o444, False),
    ],
)
def test_a_patch_says_whom_a_node_runs_as(said: Tree, mode: int, known: bool) -> None:
    spec = {"trainer": {"numNodes": 2}, "runtimePatches": [patch("x.example.com/x", patch_job("launcher", **said))]}
    path = f"{pod('launcher')}.volumes[mpi-ssh-auth].secret.items[0].mode"
    found = difference(JOBSET, path, 0o640, mode, on=ON, spec=spec)
    assert explained_by(found) == ("mpi-key-mode" if known else None)
    assert (
        explained_by(difference(JOBSET, path.replace("launcher", "node"), 0o640, 0o400, on=ON, spec=spec)) is not None
    )
