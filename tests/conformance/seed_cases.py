"""Cases that generated ones of other seeds found, written down so that every run has them."""

from __future__ import annotations

from tests.conformance.cases import Case, Change, Create, Remove
from tests.conformance.documents import (
    FAILED,
    RESUME,
    container,
    counts,
    patch,
    patch_job,
    replicated_job,
    reported,
    runtime,
    torch,
    train_job,
)
from tests.conformance.flux_cases import flux
from tests.conformance.mpi_cases import launcher, mpi, workers

_ON_CLUSTER = {"kind": "ClusterTrainingRuntime", "name": "@ns@.old"}
_X = "x.example.com/manager"
_LABEL = Change({"metadata": {"labels": {"touched": "yes"}}})


def _deprecated(kind: str, name: str) -> Case:
    on = runtime(kind=kind, name=name, metadata={"labels": {"trainer.kubeflow.org/support": "deprecated"}})
    create = Create(train_job(suspend=True, runtimeRef={"kind": kind, "name": name}))
    return Case(f"a job of a deprecated {kind} gets a label, and is resumed", (create, _LABEL, RESUME), (on,))


WARNINGS = (_deprecated(**_ON_CLUSTER), _deprecated("TrainingRuntime", "old"))

FLUX = (
    Case(
        "Flux with args of the runtime and of the user",
        (Create(train_job(trainer={"numNodes": 2, "args": ["-v", "2"]})),),
        (flux(replicated_job(containers=[container(command=["lmp"], args=["-in", "x"])])),),
    ),
    Case(
        "Flux in a job of another name",
        (Create(train_job(trainer={"numNodes": 2, "command": ["lmp"]})),),
        (flux(replicated_job("worker", initContainers=[container("init", tty=False)])),),
    ),
    Case("Flux without a number of nodes, suspended", (Create(train_job(suspend=True)),), (flux(nodes=2),)),
    Case("Flux where nothing trains", (Create(train_job()),), (flux(replicated_job(ancestor=None)),)),
)

MPI = tuple(
    Case(
        f"MPI that a patch lets run as {title}",
        (Create(train_job(trainer={"numNodes": 2}, runtimePatches=[patch(_X, patch_job("launcher", **pod))])),),
        (mpi(),),
    )
    for title, pod in (
        ("a plain user", {"securityContext": {"runAsUser": 1}}),
        ("a plain user in a group", {"securityContext": {"runAsUser": 1, "fsGroup": 2}}),
        ("a plain user by its container", {"containers": [{"name": "node", "securityContext": {"runAsUser": 1}}]}),
    )
)

NODES = (
    Case(
        "MPI whose nodes a patch lets run as a plain user",
        (
            Create(
                train_job(
                    trainer={"numNodes": 2},
                    runtimePatches=[patch(_X, patch_job("node", securityContext={"runAsUser": 1}))],
                )
            ),
        ),
        (mpi(),),
    ),
    Case(
        "MPI whose nodes mount something with a zero in it",
        (Create(train_job(trainer={"numNodes": 2})),),
        (
            mpi(
                workers(
                    volumes=[{"name": "data", "fc": {"readOnly": False}}],
                    containers=[
                        container(volumeMounts=[{"name": "data", "mountPath": "/data", "readOnly": False}]),
                    ],
                ),
                launcher(),
            ),
        ),
    ),
)

PORTS = (
    Case(
        "a port of the runtime with a zero in it, without a trainer",
        (Create(train_job()),),
        (torch(replicated_job(containers=[container(ports=[{"containerPort": 3, "hostPort": 0, "name": "x"}])])),),
    ),
)

VOLUMES = (
    Case(
        "a volume of a ConfigMap that nobody names",
        (Create(train_job()),),
        (runtime(replicated_job(volumes=[{"name": "data", "configMap": {}}])),),
    ),
)

AMOUNTS = (
    Case(
        "devices of both sides, on a runtime without a policy",
        (Create(train_job(trainer={"resourcesPerNode": {"limits": {"example.com/nic": 2}}})),),
        (runtime(replicated_job(containers=[container(resources={"limits": {"example.com/nic": "4000m"}})])),),
    ),
)

_RUNS, _HOLDS = reported(counts(active=1, ready=1)), reported(counts(suspended=1))

STORIES = (
    Case(
        "a job that failed is suspended, and loses its JobSet",
        (
            Create(train_job()),
            reported(counts(failed=1), conditions=(FAILED,)),
            Change({"spec": {"suspend": True}}),
            Remove("JobSet"),
        ),
        (runtime(),),
    ),
    Case(
        "a job that runs is resumed once more",
        (Create(train_job(suspend=True)), RESUME, _RUNS, RESUME),
        (runtime(),),
    ),
    Case(
        "a job that is held back loses its JobSet after it counted",
        (Create(train_job(suspend=True)), _RUNS, _HOLDS, Remove("JobSet")),
        (runtime(),),
    ),
)

CASES = (*WARNINGS, *FLUX, *MPI, *NODES, *PORTS, *VOLUMES, *AMOUNTS, *STORIES)
