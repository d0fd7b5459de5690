"""Cases of admission and of the schema: the contract's §8.2, by its numbers, and the rules of §4 that it leaves out.

What only one framework decides (61, 62) stands with its cases; the schema's part of it is here.
"""

from __future__ import annotations

from typing import Any

from tests.conformance.cases import Case, Change, Create, Tree
from tests.conformance.documents import (
    ANCESTOR,
    LONG_AGO,
    container,
    counts,
    initializer_job,
    patch,
    patch_job,
    replicated_job,
    reported,
    runtime,
    steps_jobs,
    torch,
    train_job,
)

_MIB = 1048576
_X = "x.example.com/manager"
_Y = "y.example.com/manager"


def _creating(title: str, *setup: Tree, name: str = "job", **spec: Any) -> Case:
    return Case(title, (Create(train_job(name, **spec)),), setup or (runtime(*steps_jobs()),))


def _policy(title: str, **policy: Any) -> Case:
    return Case(title, (Create(runtime(policy=policy)),))


def _without_container(which: str) -> Tree:
    jobs = steps_jobs()
    index = ("dataset", "model").index(which)
    jobs[index]["template"]["spec"]["template"]["spec"]["containers"] = [container("other")]
    # The ancestor's container is required of a runtime, so that this one must have no ancestor.
    del jobs[index]["template"]["metadata"]
    return runtime(*jobs)


def _without_mount(which: str) -> Tree:
    return runtime(initializer_job(which), replicated_job())


_MPI: Tree = {"mpi": {}}
_TORCH: Tree = {"torch": {}}
_JAX: Tree = {"jax": {}}
_FLUX: Tree = {"flux": {}}

RUNTIMES = (
    Case(
        "32 a ClusterTrainingRuntime", (Create(runtime(*steps_jobs(), kind="ClusterTrainingRuntime", name="@ns@.r")),)
    ),
    Case("33, 34 a TrainingRuntime", (Create(runtime(*steps_jobs())),)),
    _policy("35 MPI and Torch", **_MPI, **_TORCH),
    _policy("36 JAX and Torch", **_JAX, **_TORCH),
    _policy("37 Torch and Flux", **_TORCH, **_FLUX),
    _policy("38 MPI and Flux", **_MPI, **_FLUX),
    _policy("39 JAX and Flux", **_JAX, **_FLUX),
    _policy("40 JAX and MPI", **_JAX, **_MPI),
    _policy("41 all four", **_JAX, **_MPI, **_TORCH, **_FLUX),
    _policy("42 an MPI that is not supported", mpi={"mpiImplementation": "MPICH"}),
    _policy("43 MPI with no process", mpi={"numProcPerNode": 0}),
    _policy("44 to 47 defaults of MPI", **_MPI),
    _policy(
        "envInjection into the node container",
        torch={"envInjection": {"targets": [{"jobName": "node", "containerNames": ["node"]}]}},
    ),
    *(
        Case(f"{title}, {kind}", (Create(runtime(job, kind=kind, name="@ns@.r")),))
        for kind in ("TrainingRuntime", "ClusterTrainingRuntime")
        for title, job in (
            ("a trainer job of two replicas", {**replicated_job(), "replicas": 2}),
            ("a trainer job without container node", replicated_job(containers=[container("other")])),
            (
                "a trainer job with node as init container",
                replicated_job(containers=[container("other")], initContainers=[container()]),
            ),
            ("an initializer without its container", replicated_job("i", ancestor="dataset-initializer")),
            ("a job of two replicas without ancestor", {**replicated_job(ancestor=None), "replicas": 2}),
            ("a job of an ancestor nobody knows", replicated_job(ancestor="else", containers=[container("other")])),
        )
    ),
    *(
        Case(
            f"a {kind} that skips validation",
            (
                Create(
                    runtime(
                        {**replicated_job(), "replicas": 2},
                        kind=kind,
                        name="@ns@.r",
                        metadata={"labels": {"trainer.kubeflow.org/webhook-validation": "disabled"}},
                    )
                ),
            ),
        )
        for kind in ("TrainingRuntime", "ClusterTrainingRuntime")
    ),
    *(
        Case(
            f"a {kind} that becomes wrong",
            (
                Create(runtime(kind=kind, name="@ns@.r")),
                Change(
                    {"spec": {"template": {"spec": {"replicatedJobs": [{**replicated_job(), "replicas": 3}]}}}},
                    kind,
                    "@ns@.r",
                ),
            ),
        )
        for kind in ("TrainingRuntime", "ClusterTrainingRuntime")
    ),
    *(
        Case(
            f"a deprecated {kind}, and a job of it",
            (
                Create(
                    runtime(
                        kind=kind, name="@ns@.r", metadata={"labels": {"trainer.kubeflow.org/support": "deprecated"}}
                    )
                ),
                Create(train_job(runtimeRef={"kind": kind, "name": "@ns@.r"})),
            ),
        )
        for kind in ("TrainingRuntime", "ClusterTrainingRuntime")
    ),
)

_DATASET = {"dataset": {"storageUri": "hf://trainjob-data/set"}}
_MODEL = {"model": {"storageUri": "hf://trainjob-mo/del"}}

CREATION = (
    _creating("48 a TrainingRuntime"),
    _creating("49 a TrainingRuntime that is not there", runtimeRef={"kind": "TrainingRuntime", "name": "nobody"}),
    _creating("49 a ClusterTrainingRuntime that is not there", runtimeRef={"name": "nobody"}),
    _creating("a runtime of another kind", runtimeRef={"kind": "Deployment", "name": "runtime"}),
    _creating(
        "a runtime of another group", runtimeRef={"apiGroup": "apps", "kind": "TrainingRuntime", "name": "runtime"}
    ),
    _creating("50 negative numNodes", trainer={"numNodes": -1}),
    _creating("51 no numNodes", trainer={"numNodes": 0}),
    _creating("more nodes than a TrainJob may have", trainer={"numNodes": 50_000}),
    _creating("52 negative numProcPerNode", trainer={"numProcPerNode": -1}),
    _creating("53 no numProcPerNode", trainer={"numProcPerNode": 0}),
    _creating("52 negative numProcPerNode, Torch", torch(), trainer={"numProcPerNode": -1}),
    _creating("53 no numProcPerNode, Torch", torch(), trainer={"numProcPerNode": 0}),
    _creating("54 both positive", trainer={"numNodes": 2, "numProcPerNode": 2}),
    Case(
        "55, 58 a ClusterTrainingRuntime, with a dataset",
        (Create(train_job(runtimeRef={"name": "@ns@.r"}, initializer=_DATASET)),),
        (runtime(*steps_jobs(), kind="ClusterTrainingRuntime", name="@ns@.r"),),
    ),
    _creating("56 a model, and no container for it", _without_container("model"), initializer=_MODEL),
    _creating("57 a dataset, and no container for it", _without_container("dataset"), initializer=_DATASET),
    _creating("a model, and no job for it", runtime(), initializer=_MODEL),
    _creating("a dataset, and no job for it", runtime(), initializer=_DATASET),
    _creating("both, and no job for either", runtime(), initializer={**_DATASET, **_MODEL}),
    _creating("a model, and no mount for it", _without_mount("model"), initializer=_MODEL),
    _creating("a dataset, and no mount for it", _without_mount("dataset"), initializer=_DATASET),
    _creating("63 a dataset of no URI", initializer={"dataset": {"storageUri": "invalid-uri"}}),
    _creating("64 a dataset of an empty URI", initializer={"dataset": {"storageUri": ""}}),
    _creating("65 a dataset URI without a path", initializer={"dataset": {"storageUri": "s3://"}}),
    _creating("66 a dataset URI", initializer={"dataset": {"storageUri": "s3://bucket/path"}}),
    _creating("67 a model of no URI", initializer={"model": {"storageUri": "invalid-uri"}}),
    _creating("68 a model URI", initializer={"model": {"storageUri": "gs://bucket/model"}}),
    _creating("69 a command of 1 MiB", trainer={"command": ["a" * _MIB]}),
    _creating("70 a longer command", trainer={"command": ["a" * (_MIB + 1)]}),
    _creating("71 args of 1 MiB", trainer={"args": ["a" * _MIB]}),
    _creating("72 longer args", trainer={"args": ["a" * (_MIB + 1)]}),
    _creating("200 arguments", trainer={"args": [f"--{number}" for number in range(200)]}),
    _creating("73 a name", name="valid-job-name"),
    _creating("74 a name of 63", name="a" * 63),
    _creating("75 a name with capitals", name="Invalid-job-name"),
    _creating("76 a name that begins with a digit", name="1jobname"),
    _creating("77 a name that ends with a hyphen", name="job-"),
    _creating("78 a name of 64", name="a" * 64),
    _creating("a name as long as JobSet's pods allow", runtime(), name="a" * 43),
    _creating("79, 88, 90 managed by us", managedBy="trainer.kubeflow.org/trainjob-controller"),
    _creating("80 managed by MultiKueue", managedBy="kueue.x-k8s.io/multikueue"),
    _creating("81 managed by another", managedBy="else.example.com/controller"),
    _creating(
        "82, 92 two managers on one job",
        runtimePatches=[patch(_X, patch_job(nodeSelector={"x": "x"})), patch(_Y, patch_job(nodeSelector={"y": "y"}))],
    ),
    *(
        _creating(f"83, 84 a manager named {name!r}", runtimePatches=[patch(name)])
        for name in (
            "kueue.k8s.io/manager",
            "kueue.k8s.io/",
            "kueue.k8s.io",
            "/manager",
            "Kueue.k8s.io/manager",
            "kueue/manager/more",
            "kueue.k8s.io/a manager",
            "",
        )
    ),
    _creating("85 a grace period", runtimePatches=[patch(_X, patch_job(terminationGracePeriodSeconds=300))]),
    _creating("86 a negative grace period", runtimePatches=[patch(_X, patch_job(terminationGracePeriodSeconds=-1))]),
    _creating("87 no grace period", runtimePatches=[patch(_X, patch_job(terminationGracePeriodSeconds=0))]),
    _creating("89, 91 defaults", runtime(kind="ClusterTrainingRuntime", name="@ns@.r"), runtimeRef={"name": "@ns@.r"}),
    _creating("92 a manager's own time", runtimePatches=[patch(_X, time=LONG_AGO), patch(_Y)]),
    _creating("a manager twice", runtimePatches=[patch(_X), patch(_X)]),
    *(
        _creating(
            f"env by a patch into {name}",
            runtimePatches=[
                patch(_X, patch_job(job, containers=[{"name": name, "env": [{"name": "A", "value": "b"}]}]))
            ],
        )
        for job, name in (
            ("node", "node"),
            ("dataset-initializer", "dataset-initializer"),
            ("model-initializer", "model-initializer"),
        )
    ),
)

_SUSPENDED = Create(
    train_job(suspend=True, runtimePatches=[patch(_X, patch_job(nodeSelector={"a": "b"}), time=LONG_AGO)])
)
_RUNNING = Create(train_job(runtimePatches=[patch(_X, patch_job(nodeSelector={"a": "b"}), time=LONG_AGO)]))


def _patches(*entries: Tree) -> Change:
    return Change({"spec": {"runtimePatches": list(entries)}})


def _changing(title: str, change: Tree, **spec: Any) -> Case:
    return Case(title, (Create(train_job(**spec)), Change({"spec": change})), (runtime(*steps_jobs()),))


_CHANGED = patch(_X, patch_job(nodeSelector={"a": "changed"}), time=LONG_AGO)
_SAME = patch(_X, patch_job(nodeSelector={"a": "b"}))

_EDITS: tuple[tuple[str, Any, Any], ...] = (
    ("terminationGracePeriodSeconds", 300, 600),
    ("serviceAccountName", "a", "b"),
    ("volumes", [{"name": "a", "emptyDir": {}}], [{"name": "b", "emptyDir": {}}]),
    ("imagePullSecrets", [{"name": "a"}], [{"name": "b"}]),
    ("securityContext", {"fsGroup": 1}, {"fsGroup": 2}),
    ("tolerations", [{"key": "a"}], [{"key": "b"}]),
    ("nodeSelector", {"a": "b"}, {"c": "d"}),
    ("schedulingGates", [{"name": "a.com/b"}], []),
)

UPDATE = (
    _changing("93 managedBy", {"managedBy": "kueue.x-k8s.io/multikueue"}),
    _changing("94 runtimeRef", {"runtimeRef": {"name": "another"}}),
    _changing("95 initializer", {"initializer": {"dataset": {"storageUri": "hf://other/one"}}}, initializer=_DATASET),
    _changing("96 trainer", {"trainer": {"image": "other"}}, trainer={"image": "test:trainjob"}),
    _changing("96 trainer's numNodes", {"trainer": {"numNodes": 3}}, trainer={"numNodes": 2}),
    _changing(
        "96 trainer's env",
        {"trainer": {"env": [{"name": "A", "value": "2"}]}},
        trainer={"env": [{"name": "A", "value": "1"}]},
    ),
    _changing("96 trainer gets an image", {"trainer": {"image": "new"}}, trainer={"numNodes": 2}),
    Case("97 patches while suspended", (_SUSPENDED, _patches(_CHANGED)), (runtime(),)),
    Case(
        "97 patches changed and resumed at once",
        (_SUSPENDED, Change({"spec": {"suspend": False, "runtimePatches": [_CHANGED]}})),
        (runtime(),),
    ),
    Case(
        "patches changed and suspended at once",
        (_RUNNING, Change({"spec": {"suspend": True, "runtimePatches": [_CHANGED]}})),
        (runtime(),),
    ),
    Case("patches while running", (_RUNNING, _patches(_CHANGED)), (runtime(),)),
    Case("patches as they were, while running", (_RUNNING, _patches(_SAME)), (runtime(),)),
    Case(
        "patches while suspended, pods still active",
        (_SUSPENDED, reported(counts(active=1), counts("else", active=2)), _patches(_CHANGED)),
        (runtime(),),
    ),
    Case(
        "a manager added while suspended",
        (_SUSPENDED, _patches(_SAME, patch(_Y, patch_job(nodeSelector={"y": "y"})))),
        (runtime(),),
    ),
    Case("a manager removed while suspended", (_SUSPENDED, _patches()), (runtime(),)),
    Case("a manager removed while running", (_RUNNING, _patches()), (runtime(),)),
    Case("a patch's time restored", (_SUSPENDED, _patches({**_SAME, "time": "2002-01-01T00:00:00Z"})), (runtime(),)),
    Case("a patch's time renewed", (_SUSPENDED, _patches({**_CHANGED, "time": "2002-01-01T00:00:00Z"})), (runtime(),)),
    Case(
        "a new patch's time kept", (_SUSPENDED, _patches(_SAME, patch(_Y, time="2002-01-01T00:00:00Z"))), (runtime(),)
    ),
    *(
        Case(
            f"98 {field} of a patch changed",
            (
                Create(train_job(suspend=True, runtimePatches=[patch(_X, patch_job(**{field: old}))])),
                _patches(patch(_X, patch_job(**{field: new}))),
            ),
            (runtime(),),
        )
        for field, old, new in _EDITS
    ),
    Case(
        "pod labels and annotations of a patch changed",
        (
            Create(train_job(suspend=True, runtimePatches=[patch(_X, patch_job(pod_metadata={"labels": {"a": "b"}}))])),
            _patches(patch(_X, patch_job(pod_metadata={"labels": {"a": "c"}, "annotations": {"d": "e"}}))),
        ),
        (runtime(),),
    ),
    Case(
        "JobSet labels of a patch changed",
        (
            Create(train_job(suspend=True, runtimePatches=[patch(_X, metadata={"labels": {"a": "b"}})])),
            _patches(patch(_X, metadata={"labels": {"a": "c"}, "annotations": {"d": "e"}})),
        ),
        (runtime(),),
    ),
    Case(
        "labels of the TrainJob", (Create(train_job()), Change({"metadata": {"labels": {ANCESTOR: "x"}}})), (runtime(),)
    ),
    Case(
        "Kueue's way: gates, then selectors, then resumed, then stopped",
        (
            Create(train_job(suspend=True, runtimePatches=[patch("kueue.x-k8s.io/manager")])),
            Change(
                {
                    "spec": {
                        "suspend": False,
                        "runtimePatches": [
                            patch(
                                "kueue.x-k8s.io/manager",
                                patch_job(
                                    pod_metadata={"labels": {"q": "1"}, "annotations": {"w": "1"}},
                                    nodeSelector={"pool": "a"},
                                    tolerations=[{"key": "pool", "operator": "Exists"}],
                                    schedulingGates=[{"name": "kueue.x-k8s.io/topology"}],
                                ),
                            )
                        ],
                    }
                }
            ),
            reported(counts(active=1, ready=1)),
            Change({"spec": {"suspend": True}}),
            reported(counts(suspended=1)),
            _patches(patch("kueue.x-k8s.io/manager", patch_job())),
        ),
        (torch(nodes=2),),
    ),
)

CASES = (*RUNTIMES, *CREATION, *UPDATE)
