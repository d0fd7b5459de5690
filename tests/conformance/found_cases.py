"""Cases that Hypothesis found at the full size, written down so that every size has them."""

from __future__ import annotations

from typing import Any

from tests.conformance.cases import Case, Change, Create, Remove, Tree
from tests.conformance.documents import (
    FAILED,
    RESUME,
    container,
    counts,
    env,
    patch,
    patch_job,
    replicated_job,
    reported,
    runtime,
    torch,
    train_job,
)

_X, _Y, _KUEUE = "x.example.com/manager", "y.example.com/manager", "kueue.x-k8s.io/manager"
_TOUCH = Change({"metadata": {"labels": {"touched": "yes"}}})
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}, "limits": {"storage": 3}}}


def _labelled() -> Tree:
    """Return a runtime whose pods have a label of its own."""
    job = replicated_job()
    job["template"]["spec"]["template"]["metadata"] = {"labels": {"of": "the-runtime"}}
    return runtime(job)


def _divisor(amount: Any) -> Tree:
    return {"resourceFieldRef": {"containerName": "node", "resource": "limits.memory", "divisor": amount}}


def _item(path: str, amount: Any) -> Tree:
    return {"path": path, **_divisor(amount)}


def _patches(*entries: Tree, **spec: Any) -> Change:
    return Change({"spec": {"runtimePatches": list(entries), **spec}})


_VOLUMES = (
    {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1024Mi"}},
    {"name": "scratch", "emptyDir": {"sizeLimit": 1000}},
    {"name": "about", "downwardAPI": {"items": [_item("a", "1024Ki"), _item("b", 1)]}},
    {"name": "all", "projected": {"sources": [{"downwardAPI": {"items": [_item("c", "1000m")]}}]}},
    {"name": "disk", "ephemeral": {"volumeClaimTemplate": {"spec": _CLAIM}}},
)
"""A volume for every quantity that a volume can have, none written as Go writes it."""

AMOUNTS = (
    Case(
        "amounts of a runtime's pods, applied again",
        (Create(train_job(suspend=True)), _TOUCH, RESUME),
        (
            runtime(
                replicated_job(
                    containers=[
                        container(env=[{"name": "A", "valueFrom": _divisor("1024Ki")}]),
                        container("side", resources={"requests": {"cpu": "1000m"}, "limits": {"memory": "1024Mi"}}),
                    ],
                    initContainers=[container("init", env=[{"name": "A", "valueFrom": _divisor(1)}])],
                    overhead={"cpu": "0.5", "memory": 3},
                    resources={"requests": {"cpu": "1000m"}, "limits": {"cpu": 2}},
                    volumes=list(_VOLUMES),
                ),
                volumeClaimPolicies=[{"templates": [{"metadata": {"name": "claim"}, "spec": _CLAIM}]}],
                policy={"numNodes": 1},
            ),
        ),
    ),
    Case(
        "amounts of patches, applied again",
        (
            Create(
                train_job(
                    suspend=True,
                    trainer={"env": [{"name": "A", "valueFrom": _divisor("1000m")}]},
                    runtimePatches=[
                        patch(
                            _X,
                            patch_job(
                                volumes=list(_VOLUMES),
                                containers=[{"name": "side", "env": [{"name": "B", "valueFrom": _divisor(1)}]}],
                            ),
                        )
                    ],
                )
            ),
            _TOUCH,
            RESUME,
        ),
        (runtime(replicated_job(containers=[container(), container("side")]), policy={"numNodes": 1}),),
    ),
    *(
        Case(
            f"somebody patches a TrainJob whose amount is {amount!r}",
            (
                Create(train_job(suspend=True, trainer={"resourcesPerNode": {"requests": {"cpu": amount}}})),
                _patches(patch(_X, patch_job(nodeSelector={"pool": "a"})), suspend=False),
            ),
            (runtime(policy={"numNodes": 1}),),
        )
        for amount in (3, "1000m", "2")
    ),
)

MERGES = (
    Case(
        "a volume that gets another source, another beside it",
        (Create(train_job(runtimePatches=[patch(_X, patch_job(volumes=[{"name": "a", "emptyDir": {}}]))])),),
        (
            runtime(
                replicated_job(
                    volumes=[{"name": "b", "hostPath": {"path": "/b"}}, {"name": "a", "hostPath": {"path": "/a"}}]
                )
            ),
        ),
    ),
    Case(
        "a volume that two managers give other sources",
        (
            Create(
                train_job(
                    runtimePatches=[
                        patch(_X, patch_job(volumes=[{"name": "a", "configMap": {"name": "c"}}])),
                        patch(_Y, patch_job(volumes=[{"name": "a", "secret": {"secretName": "s"}}])),
                    ]
                )
            ),
        ),
        (runtime(),),
    ),
    Case(
        "variables that lose their source, or get another",
        (
            Create(
                train_job(
                    runtimePatches=[
                        patch(
                            _X,
                            patch_job(
                                containers=[
                                    {
                                        "name": "side",
                                        "env": [
                                            {"name": "A", "value": "plain"},
                                            {"name": "B", "valueFrom": _divisor("1")},
                                        ],
                                    }
                                ]
                            ),
                        )
                    ]
                )
            ),
        ),
        (
            runtime(
                replicated_job(
                    containers=[
                        container(),
                        container(
                            "side",
                            env=[
                                {"name": name, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
                                for name in ("A", "B")
                            ],
                        ),
                    ]
                )
            ),
        ),
    ),
)

_QUEUED = {"labels": {"kueue.x-k8s.io/queue-name": "queue"}}
_GPUS = container(resources={"limits": {"nvidia.com/gpu": "2"}})

KUEUE = (
    Case(
        "Kueue counts a TrainJob's CPUs and its runtime's GPUs",
        (
            Create(
                train_job(
                    suspend=True,
                    runtimePatches=[patch(_KUEUE)],
                    trainer={"resourcesPerNode": {"requests": {"cpu": "4"}}},
                )
            ),
            RESUME,
        ),
        (torch(replicated_job(containers=[_GPUS])),),
    ),
    Case(
        "Kueue counts what a TrainJob says on a runtime without a policy",
        (Create(train_job(runtimePatches=[patch(_KUEUE)], trainer={"resourcesPerNode": {"requests": {"cpu": "4"}}})),),
        (runtime(replicated_job(containers=[_GPUS])),),
    ),
    *(
        Case(f"{title} that Kueue counts by", (Create(train_job(metadata=_QUEUED, suspend=True)), step), (runtime(),))
        for title, step in (
            ("an edit of a runtime", Change({"spec": {"mlPolicy": {"numNodes": 7}}}, "TrainingRuntime", "runtime")),
            ("the deletion of a runtime", Remove("TrainingRuntime", "runtime")),
            ("a label on a runtime", Change({"metadata": {"labels": {"a": "b"}}}, "TrainingRuntime", "runtime")),
        )
    ),
)

_PREMIUM = patch(_X, patch_job(pod_metadata={"labels": {"q": "x"}}, nodeSelector={"tier": "premium"}))
_CHEAP = patch(_KUEUE, patch_job(pod_metadata={"labels": {"q": "k"}}, nodeSelector={"tier": "cheap"}))
_LOST = {"targetReplicatedJobs": ["ghost"], "operator": "All"}

REAL = (
    Case(
        "an entry behind Kueue's says otherwise",
        (
            Create(train_job(suspend=True, runtimePatches=[patch(_KUEUE)])),
            Change({"spec": {"runtimePatches": [_CHEAP, _PREMIUM]}}),
        ),
        (runtime(),),
    ),
    Case(
        "a list without Kueue's entry",
        (
            Create(train_job(suspend=True, runtimePatches=[_PREMIUM, patch(_KUEUE)])),
            Change({"spec": {"runtimePatches": [_PREMIUM]}}),
        ),
        (runtime(),),
    ),
    Case("Kueue's entry in a new TrainJob", (Create(train_job(runtimePatches=[_CHEAP])),), (runtime(),)),
    Case(
        "more devices than the runtime's, said of one side",
        (Create(train_job(trainer={"resourcesPerNode": {"limits": {"nvidia.com/gpu": "4"}}})),),
        (
            torch(
                replicated_job(
                    containers=[
                        container(resources={"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "2"}})
                    ]
                )
            ),
        ),
    ),
    Case(
        "a mount of a volume that is not there",
        (
            Create(
                train_job(
                    runtimePatches=[
                        patch(
                            _X,
                            patch_job(
                                containers=[{"name": "node", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]
                            ),
                        )
                    ]
                )
            ),
        ),
        (runtime(),),
    ),
    Case(
        "a trainer that nobody hears",
        (Create(train_job(trainer={"image": "test:trainjob"})),),
        (runtime(replicated_job(ancestor=None)),),
    ),
    Case(
        "a runtime whose policy names no job",
        (Create(runtime(successPolicy=_LOST)),),
    ),
    Case(
        "training containers that differ, in a queue",
        (
            Create(
                train_job(metadata=_QUEUED, suspend=True, trainer={"resourcesPerNode": {"requests": {"memory": "1Gi"}}})
            ),
        ),
        (torch(replicated_job("actor", containers=[_GPUS]), replicated_job("learner")),),
    ),
)

ENDS = (
    Case("a resumed job whose JobSet goes", (Create(train_job(suspend=True)), RESUME, Remove("JobSet")), (runtime(),)),
    Case(
        "a job that runs once it is resumed, and whose JobSet goes",
        (Create(train_job(suspend=True)), RESUME, reported(counts(ready=1)), Remove("JobSet")),
        (runtime(),),
    ),
    Case(
        "a job that failed while it was suspended, and is resumed",
        (
            Create(train_job(suspend=True)),
            reported(counts(failed=1), conditions=(FAILED,)),
            RESUME,
            Remove("JobSet"),
            Change({"spec": {"suspend": True}}),
        ),
        (runtime(),),
    ),
    Case(
        "a port of another protocol beside Torch's",
        (Create(train_job(trainer={"image": "test:trainjob"})),),
        (torch(replicated_job(containers=[container(ports=[{"containerPort": 29500, "protocol": "UDP"}])])),),
    ),
    Case(
        "variables that refer to others",
        (Create(train_job(trainer={"env": env(Z="z", A="$(Z)", B="$(C)", C="c")})),),
        (torch(replicated_job(containers=[container(env=env(C="$(Y)", Y="y"))])),),
    ),
    Case(
        "a failed job is patched and resumed",
        (
            Create(train_job(suspend=True, runtimePatches=[patch(_X, patch_job(nodeSelector={"pool": "a"}))])),
            reported(counts(failed=1), conditions=(FAILED,)),
            _patches(
                patch(
                    _X,
                    patch_job(nodeSelector={"pool": "b"}, pod_metadata={"labels": {"a": "b"}}),
                    metadata={"annotations": {"c": "d"}},
                )
            ),
            RESUME,
        ),
        (runtime(),),
    ),
    Case(
        "pods that keep the runtime's labels when a patch takes back its own",
        (
            Create(train_job(suspend=True, runtimePatches=[patch(_X, patch_job(pod_metadata={"labels": {"a": "b"}}))])),
            _patches(patch(_X, patch_job(nodeSelector={"pool": "a"}))),
            RESUME,
        ),
        (_labelled(),),
    ),
    Case(
        "a claim from another without its apiGroup",
        (
            Create(
                train_job(
                    runtimePatches=[
                        patch(
                            _X,
                            patch_job(
                                volumes=[
                                    {
                                        "name": "disk",
                                        "ephemeral": {
                                            "volumeClaimTemplate": {
                                                "spec": {
                                                    **_CLAIM,
                                                    "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "a"},
                                                }
                                            }
                                        },
                                    }
                                ]
                            ),
                        )
                    ]
                )
            ),
        ),
        (runtime(),),
    ),
    Case(
        "references without a name, and switches that are off",
        (Create(train_job()),),
        (
            runtime(
                replicated_job(
                    containers=[container(envFrom=[{"configMapRef": {}}, {"secretRef": {}}], stdin=False, tty=False)],
                    hostNetwork=False,
                    hostIPC=False,
                )
            ),
        ),
    ),
)

CASES = (*REAL, *AMOUNTS, *MERGES, *KUEUE, *ENDS)
