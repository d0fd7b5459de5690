"""Cases of the MPI plugin: OpenMPI, and the runtimes for DeepSpeed and MLX, which are MPI's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lab import reference
from lab.paths import REPOSITORY
from lab.webhooks import documents
from tests.conformance.cases import Case, Change, Create, Remove, Tree
from tests.conformance.documents import (
    COMPLETED,
    FAILED,
    HARNESS,
    RESUME,
    container,
    counts,
    env,
    patch,
    patch_job,
    replicated_job,
    reported,
    resumed_until,
    runtime,
    steps_jobs,
    train_job,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_RESERVED = (
    "OMPI_MCA_orte_default_hostfile",
    "OMPI_MCA_plm_rsh_args",
    "OMPI_MCA_orte_keep_fqdn_hostnames",
    "OMPI_MCA_orte_set_default_slots",
)
_GPUS = {"limits": {"nvidia.com/gpu": 4}}
_SLICES = {"limits": {"nvidia.com/mig-1g.5gb": 2}}
_OWN = env(OMPI_MCA_plm_rsh_args="-v", OMPI_MCA_orte_default_hostfile="/mine", PRTE_MCA_plm_ssh_args="-v", Z="z")
_SUSPEND = Change({"spec": {"suspend": True}})


def workers(*, parallelism: int | None = None, **pod: Any) -> Tree:
    """Return the job of the nodes, which run sshd."""
    return replicated_job("node", ancestor=None, job={"parallelism": parallelism} if parallelism else None, **pod)


def launcher(*, waits: bool = True, **pod: Any) -> Tree:
    """Return the job that runs mpirun, once the nodes are ready."""
    job = replicated_job("launcher", **pod)
    return {**job, "dependsOn": [{"name": "node", "status": "Ready"}]} if waits else job


def mpi(*jobs: Tree, nodes: int | None = 1, fields: Tree | None = None, **policy: Any) -> Tree:
    """Return a runtime with the MPI policy."""
    have: Tree = {"mpi": policy}
    if nodes is not None:
        have["numNodes"] = nodes
    return runtime(*(jobs or (workers(), launcher())), policy=have, **(fields or {}))


def _case(title: str, on: Tree, **trainer: Any) -> Case:
    return Case(f"MPI: {title}", (Create(train_job(trainer=trainer)),), (on,))


def _sized(resources: Tree) -> Tree:
    return workers(containers=[container(resources=resources)])


_USER = {
    "image": "test:trainjob",
    "command": ["mpirun", "trainjob"],
    "args": ["--go"],
    "env": env(TRAIN_JOB="value"),
    "resourcesPerNode": {"requests": {"cpu": "1", "memory": "4Gi"}},
}
_TRAINED = (*steps_jobs(), {**launcher(), "template": replicated_job("launcher", ancestor=None)["template"]})
"""The jobs of the reference's own case: initializers, nodes that train, and a launcher beside them."""

OBJECTS = (
    Case(
        "12 MPI with two nodes, user's image, command, args, env and resources",
        (Create(train_job(trainer={**_USER, "numNodes": 2})),),
        (mpi(*_TRAINED, numProcPerNode=8),),
    ),
    Case(
        "13 MPI suspended, resumed, complete",
        resumed_until(reported(counts(succeeded=1), conditions=(COMPLETED,)), numNodes=2),
        (mpi(*_TRAINED, numProcPerNode=8),),
    ),
    Case(
        "14 MPI suspended, resumed, failed",
        resumed_until(reported(counts(failed=1), conditions=(FAILED,)), numNodes=2),
        (mpi(*_TRAINED, numProcPerNode=8),),
    ),
    _case("two nodes, a launcher that trains nothing", mpi(), **_USER, numNodes=2),
    _case("an empty trainer", mpi()),
    Case("MPI: without a trainer", (Create(train_job()),), (mpi(nodes=None),)),
    _case("nodes of the runtime", mpi(workers(parallelism=3), launcher())),
    _case("nodes of both", mpi(workers(parallelism=3), launcher()), numNodes=2),
    _case("no nodes", mpi(workers(parallelism=3), launcher()), numNodes=0),
    _case("as many launchers as the runtime has nodes", mpi(nodes=3), numNodes=2),
    _case("a launcher first", mpi(launcher(waits=False), workers(), runLauncherAsNode=True), numNodes=3),
    *(
        _case(f"a launcher that trains, {nodes} of them", mpi(runLauncherAsNode=True), **_USER, numNodes=nodes)
        for nodes in (1, 2, 3)
    ),
    _case("a launcher that trains, nodes of the runtime", mpi(runLauncherAsNode=True)),
    _case("in a subdomain", mpi(fields={"network": {"subdomain": "elsewhere"}}), numNodes=2),
    _case("keys elsewhere", mpi(sshAuthMountPath="/home/mpiuser/.ssh"), numNodes=2),
    _case("a launcher alone", mpi(launcher(waits=False), runLauncherAsNode=True), numNodes=1),
    _case("a launcher alone that trains nothing", mpi(launcher(waits=False)), numNodes=2),
    _case("nodes alone", mpi(workers()), numNodes=2),
    _case(
        "a launcher whose container has another name",
        mpi(workers(), replicated_job("launcher", ancestor=None, containers=[container("launcher")])),
        numNodes=2,
    ),
    _case(
        "nodes of several containers",
        mpi(workers(containers=[container("side"), container()], initContainers=[container("init")]), launcher()),
        numNodes=2,
    ),
    Case(
        "MPI: another TrainJob's name",
        (Create(train_job("other", trainer={"numNodes": 2})),),
        (mpi(runLauncherAsNode=True),),
    ),
)

PROCESSES = (
    _case("processes of the runtime", mpi(numProcPerNode=4), numNodes=2),
    _case("processes of the TrainJob", mpi(numProcPerNode=4), numNodes=2, numProcPerNode=8),
    _case("one process of the TrainJob, GPUs", mpi(_sized(_GPUS), launcher()), numProcPerNode=1),
    _case("GPUs of the runtime", mpi(_sized(_GPUS), launcher())),
    _case("GPUs and processes of the runtime", mpi(_sized(_GPUS), launcher(), numProcPerNode=2)),
    _case("GPUs of the TrainJob", mpi(runLauncherAsNode=True), resourcesPerNode=_GPUS),
    _case(
        "GPUs of both",
        mpi(_sized(_GPUS), launcher(), runLauncherAsNode=True),
        resourcesPerNode={"limits": {"nvidia.com/gpu": 2}},
    ),
    _case("GPUs of a TrainJob that reach no node", mpi(), resourcesPerNode=_GPUS),
    _case(
        "GPUs of the runtime, CPUs of the TrainJob",
        mpi(_sized(_GPUS), launcher(), runLauncherAsNode=True),
        resourcesPerNode={"requests": {"cpu": "2"}},
    ),
    _case("GPUs of the launcher alone", mpi(workers(), launcher(containers=[container(resources=_GPUS)]))),
    _case("slices of a GPU", mpi(_sized(_SLICES), launcher())),
)

PODS = (
    _case("the runtime's own variables give way", mpi(workers(), launcher(containers=[container(env=_OWN)]))),
    _case("the user's other variables", mpi(runLauncherAsNode=True), env=env(OMPI_MCA_btl="tcp", A="1"), numNodes=2),
    _case("the user's variables for OpenMPI 5", mpi(), env=env(PRTE_MCA_plm_ssh_args="-v"), numNodes=2),
    _case(
        "beside volumes and mounts of the runtime",
        mpi(
            workers(
                containers=[container(volumeMounts=[{"name": "data", "mountPath": "/data"}])],
                volumes=[{"name": "data", "emptyDir": {}}],
            ),
            launcher(
                containers=[container(volumeMounts=[{"name": "data", "mountPath": "/data"}])],
                volumes=[{"name": "data", "emptyDir": {}}],
            ),
        ),
    ),
    *(
        _case(
            title,
            mpi(workers(securityContext=context), launcher(securityContext=context), sshAuthMountPath="/home/u/.ssh"),
            numNodes=2,
        )
        for title, context in (
            ("as root", {"runAsUser": 0}),
            ("as a plain user of a group", {"runAsUser": 1000, "fsGroup": 1000}),
            ("as a plain user", {"runAsUser": 1000}),
            ("in a group, as whom the image says", {"fsGroup": 1000}),
        )
    ),
    _case(
        "as a container's user",
        mpi(
            workers(containers=[container(securityContext={"runAsUser": 1000})], securityContext={"runAsUser": 0}),
            launcher(containers=[container(securityContext={"runAsUser": 0})], securityContext={"runAsUser": 1000}),
        ),
    ),
    _case(
        "an sshd on another port",
        mpi(workers(containers=[container(ports=[{"name": "ssh", "containerPort": 2222}])]), launcher()),
        numNodes=2,
    ),
)

CONTROLLER = (
    Case(
        "MPI: patched while suspended, resumed, suspended again",
        (
            Create(train_job(suspend=True, trainer={"numNodes": 2})),
            Change(
                {"spec": {"runtimePatches": [patch("x.example.com/m", patch_job("node", nodeSelector={"a": "b"}))]}}
            ),
            RESUME,
            _SUSPEND,
            RESUME,
        ),
        (mpi(),),
    ),
    Case(
        "MPI: keys and hostfile are removed while suspended, and made anew when resumed",
        (
            Create(train_job(suspend=True, trainer={"numNodes": 2})),
            Remove("Secret", "job-mpi-ssh-auth"),
            Remove("ConfigMap", "job-mpi-hostfile"),
            RESUME,
        ),
        (mpi(),),
    ),
    Case(
        "MPI: the hostfile is removed while it runs",
        (Create(train_job(trainer={"numNodes": 2})), Remove("ConfigMap", "job-mpi-hostfile")),
        (mpi(),),
    ),
    Case(
        "MPI: the hostfile is edited while it runs",
        (
            Create(train_job(trainer={"numNodes": 2})),
            Change({"data": {"hostfile": "elsewhere slots=1\n"}}, "ConfigMap", "job-mpi-hostfile"),
        ),
        (mpi(),),
    ),
    Case(
        "MPI: keys are removed while it runs, and made anew when suspended and resumed",
        (Create(train_job(trainer={"numNodes": 2})), Remove("Secret", "job-mpi-ssh-auth"), _SUSPEND, RESUME),
        (mpi(),),
    ),
    Case(
        "MPI: keys of the user's own",
        (Create(train_job(trainer={"numNodes": 2})),),
        (
            mpi(),
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "job-mpi-ssh-auth"},
                "type": "kubernetes.io/ssh-auth",
                "stringData": {"ssh-privatekey": "mine", "ssh-publickey": "mine"},
            },
        ),
        shows=("foreign-keys JobSet",),
    ),
)

ADMISSION = (
    *(_case(f"the reserved variable {name}", mpi(), env=env(**{name: "1", "A": "1"})) for name in _RESERVED),
    _case("all reserved variables", mpi(), env=env(**dict.fromkeys(_RESERVED, "1"))),
    Case(
        "MPI's variables in another framework",
        (Create(train_job(trainer={"env": env(**dict.fromkeys(_RESERVED, "1"))})),),
        (runtime(),),
    ),
    _case("two nodes, no launcher that could train", mpi(workers(), runLauncherAsNode=True), numNodes=2),
    _case("two nodes, a launcher alone that trains", mpi(launcher(waits=False), runLauncherAsNode=True), numNodes=2),
    _case("one node, no launcher that could train", mpi(workers(), runLauncherAsNode=True), numNodes=1),
    _case("an implementation without a name", mpi(mpiImplementation="")),
    _case("a negative number of nodes", mpi(), numNodes=-1),
    _case("no processes", mpi(), numProcPerNode=0),
    _case("a negative number of processes", mpi(), numProcPerNode=-1),
    _case("no processes in the runtime", mpi(numProcPerNode=0)),
)


def _shipped() -> Iterator[Case]:
    """Yield a TrainJob on each runtime for MPI that the reference ships, and on ours of the same name."""
    for name in ("deepspeed-distributed", "mlx-distributed"):
        (ours,) = documents(REPOSITORY / f"runtimes/{name}.yaml")
        for whose, document in (("the reference's", reference.runtime(name, "test:runtime")), ("our", ours)):
            document["metadata"]["name"] = "@ns@.shipped"
            document["spec"]["template"]["spec"]["managedBy"] = HARNESS
            for nodes in (1, 4):
                job = train_job(
                    runtimeRef={"name": "@ns@.shipped"},
                    trainer={**_USER, "numNodes": nodes, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}}},
                )
                yield Case(f"{whose} {name} on {nodes}", (Create(job),), (document,))


CASES = (*OBJECTS, *PROCESSES, *PODS, *CONTROLLER, *ADMISSION, *_shipped())
