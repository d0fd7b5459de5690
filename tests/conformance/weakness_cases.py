"""Cases of the contract's §11: where the reference is known to be weak, and ours is meant to be better."""

from __future__ import annotations

from typing import Any

from tests.conformance.cases import Case, Change, Create, Remove, Tree
from tests.conformance.controller_cases import SUSPEND
from tests.conformance.documents import (
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

_X = "x.example.com/manager"
_KUEUE = "kueue.x-k8s.io/manager"


def _patched(title: str, *jobs: Tree, on: Tree | None = None) -> Case:
    return Case(title, (Create(train_job(runtimePatches=[patch(_X, *jobs)])),), (on or runtime(),))


def _added(title: str, change: Tree, *steps: Any, **spec: Any) -> Case:
    return Case(title, (Create(train_job(**spec)), Change({"spec": change}), *steps), (runtime(policy={}),))


_FIELD = {"fieldRef": {"fieldPath": "metadata.name"}}
_INIT = runtime(replicated_job(initContainers=[container("init")]))

CASES = (
    # 1: targets of patches that do not exist
    _patched("§11.1 a patch of a job that is not there", patch_job("ghost", nodeSelector={"a": "b"})),
    _patched("§11.1 a patch of a container that is not there", patch_job(containers=[{"name": "ghost"}])),
    _patched("§11.1 a patch of an init container that is not there", patch_job(initContainers=[{"name": "ghost"}])),
    _patched(
        "§11.12 a containers patch that names an init container", patch_job(containers=[{"name": "init"}]), on=_INIT
    ),
    # 5: updates of a job whose runtime is gone
    *(
        Case(
            f"§11.5 {title}, its runtime gone",
            (
                Create(train_job(suspend=True, runtimePatches=[patch(_X, patch_job(nodeSelector={"a": "b"}))])),
                Remove("TrainingRuntime", "runtime"),
                *steps,
            ),
            (runtime(),),
        )
        for title, steps in (
            ("resumed", (RESUME,)),
            ("labelled", (Change({"metadata": {"labels": {"a": "b"}}}),)),
            ("patched", (Change({"spec": {"runtimePatches": [patch(_X, patch_job(nodeSelector={"a": "c"}))]}}),)),
        )
    ),
    Case(
        "§11.5 resumed, its runtime become another",
        (
            Create(train_job(suspend=True, initializer={"dataset": {"storageUri": "hf://a/b"}})),
            Change(
                {"spec": {"template": {"spec": {"replicatedJobs": [replicated_job()]}}}}, "TrainingRuntime", "runtime"
            ),
            RESUME,
        ),
        (
            runtime(
                replicated_job(
                    "dataset-initializer",
                    ancestor="dataset-initializer",
                    containers=[
                        container("dataset-initializer", volumeMounts=[{"name": "initializer", "mountPath": "/w"}])
                    ],
                    volumes=[{"name": "initializer", "emptyDir": {}}],
                ),
                replicated_job(),
            ),
        ),
    ),
    # 10: immutable fields that are added or removed
    _added("§11.10 a trainer added", {"trainer": {"image": "new"}}, suspend=True),
    _added("§11.10 a trainer removed", {"trainer": None}, suspend=True, trainer={"image": "old"}),
    _added("§11.10 a deadline added", {"activeDeadlineSeconds": 3600}),
    _added("§11.10 a deadline removed", {"activeDeadlineSeconds": None}, activeDeadlineSeconds=3600),
    Case(
        "§11.10 an initializer added",
        (Create(train_job(suspend=True)), Change({"spec": {"initializer": {"dataset": {"storageUri": "hf://a/b"}}}})),
        (
            runtime(
                replicated_job(
                    "dataset-initializer",
                    ancestor="dataset-initializer",
                    containers=[
                        container("dataset-initializer", volumeMounts=[{"name": "initializer", "mountPath": "/w"}])
                    ],
                    volumes=[{"name": "initializer", "emptyDir": {}}],
                ),
                replicated_job(),
            ),
        ),
    ),
    # 11: edits of a suspended job that JobSet refuses
    *(
        _added(
            f"§11.11 {title} added to a suspended job's patch",
            {"runtimePatches": [patch(_X, patch_job(**change))]},
            suspend=True,
        )
        for title, change in (
            ("affinity", {"affinity": {"podAffinity": {}}}),
            ("a volume", {"volumes": [{"name": "a", "emptyDir": {}}]}),
            ("Job labels", {"metadata": {"labels": {"a": "b"}}}),
            ("a service account", {"serviceAccountName": "a"}),
        )
    ),
    # 12: traps of the merge
    _patched(
        "§11.12 a patch of a name and finalizers",
        patch_job(pod_metadata={"name": "mine", "finalizers": ["a.example.com/b"]}),
    ),
    _patched(
        "§11.12 two volumes at one path",
        patch_job(
            containers=[
                {
                    "name": "node",
                    "volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "w", "mountPath": "/a"}],
                }
            ]
        ),
    ),
    Case(
        "§11.12 tolerations by Kueue",
        (
            Create(train_job(suspend=True, runtimePatches=[patch(_KUEUE)])),
            Change({"spec": {"runtimePatches": [patch(_KUEUE, patch_job(tolerations=[{"key": "flavor"}]))]}}),
        ),
        (runtime(replicated_job(tolerations=[{"key": "runtime"}])),),
    ),
    _patched(
        "§11.12 a variable that gets a source",
        patch_job(containers=[{"name": "side", "env": [{"name": "A", "valueFrom": _FIELD}]}]),
        on=runtime(replicated_job(containers=[container(), container("side", env=[{"name": "A", "value": "b"}])])),
    ),
    _patched("a projected volume without sources", patch_job(volumes=[{"name": "p", "projected": {"defaultMode": 1}}])),
    Case(
        "§11.13 two unnamed ports",
        (Create(train_job(trainer={})),),
        (torch(replicated_job(containers=[container(ports=[{"containerPort": 1}, {"containerPort": 2}])])),),
    ),
    Case(
        "amounts without quotes, applied again",
        (
            Create(train_job(suspend=True, trainer={"resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}}})),
            Change({"metadata": {"labels": {"touched": "yes"}}}),
            RESUME,
        ),
        (torch(replicated_job(containers=[container(resources={"requests": {"cpu": 2}})], overhead={"cpu": 1})),),
    ),
    # 15: resources that contradict the runtime's
    Case(
        "§11.15 a request over the runtime's limit",
        (Create(train_job(trainer={"resourcesPerNode": {"requests": {"cpu": "4"}}})),),
        (torch(replicated_job(containers=[container(resources={"limits": {"cpu": "2"}})])),),
    ),
    # 21: a field of a variable that the reference drops
    Case(
        "§11.21 a variable from a file",
        (
            Create(
                train_job(
                    trainer={
                        "env": [
                            {"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}}}
                        ]
                    }
                )
            ),
        ),
        (torch(nodes=1),),
    ),
    # 18: names too long for the pods they become
    *(
        Case(
            f"§11.18 a name of {length} characters, {nodes} nodes",
            (Create(train_job("n" * length, trainer={"numNodes": nodes})),),
            (torch(nodes=1),),
        )
        for length, nodes in ((48, 1), (50, 1), (52, 1), (54, 1), (50, 1000), (56, 1), (60, 1))
    ),
    # 12 of the older schema: a failed job and its TTL
    Case(
        "§12 a failed job is suspended and resumed",
        (
            Create(train_job()),
            reported(
                counts(failed=1),
                conditions=(
                    {
                        "type": "Failed",
                        "status": "True",
                        "reason": "ReachedMaxRestarts",
                        "message": "jobset failed due to reaching max number of restarts",
                        "lastTransitionTime": "2001-01-01T00:00:00Z",
                    },
                ),
            ),
            SUSPEND,
            RESUME,
        ),
        (runtime(),),
    ),
)
