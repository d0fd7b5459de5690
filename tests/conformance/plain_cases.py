"""Cases of PlainML: what becomes of a runtime and a TrainJob without a framework."""

from __future__ import annotations

from tests.conformance.cases import Case, Change, Create
from tests.conformance.documents import (
    RESUME,
    container,
    initializer_job,
    patch,
    patch_job,
    replicated_job,
    runtime,
    steps_jobs,
    train_job,
)

CPU = {"requests": {"cpu": "1", "memory": "4Gi"}}
URIS = {
    "dataset": {"storageUri": "hf://trainjob-dataset", "env": [{"name": "SPLIT", "value": "train"}]},
    "model": {"storageUri": "hf://trainjob-model", "secretRef": {"name": "token"}},
}

CASES = (
    Case(
        "3 PlainML: 100 nodes, patched labels, initializers",
        (
            Create(
                train_job(
                    trainer={
                        "image": "test:trainjob",
                        "command": ["trainjob"],
                        "args": ["--go"],
                        "env": [{"name": "A", "value": "1"}],
                        "resourcesPerNode": CPU,
                    },
                    initializer=URIS,
                    runtimePatches=[
                        patch("test.example.com/manager", metadata={"labels": {"l": "v"}, "annotations": {"a": "v"}})
                    ],
                )
            ),
        ),
        (
            runtime(
                *steps_jobs(),
                policy={"numNodes": 100},
                metadata={"labels": {"of": "the-runtime"}},
                template={"labels": {"conflict": "runtime", "l": "runtime"}, "annotations": {"b": "runtime"}},
            ),
        ),
    ),
    Case(
        "4 managed by another controller",
        (Create(train_job(managedBy="kueue.x-k8s.io/multikueue", suspend=True)), RESUME),
        (runtime(),),
    ),
    Case(
        "5 a suspended job's patch reaches the JobSet; its image stays fixed",
        (
            Create(train_job(suspend=True, trainer={"image": "test:trainjob"})),
            Change(
                {
                    "spec": {
                        "runtimePatches": [
                            patch("test.example.com/manager", patch_job(nodeSelector={"node": "gpu", "zone": "a"}))
                        ]
                    }
                }
            ),
            Change({"spec": {"trainer": {"image": "test:other"}}}),
            RESUME,
            Change({"spec": {"trainer": {"image": "test:other"}}}),
        ),
        (runtime(policy={}),),
    ),
    Case(
        "6 terminationGracePeriodSeconds by a patch",
        (
            Create(
                train_job(
                    runtimePatches=[patch("test.example.com/manager", patch_job(terminationGracePeriodSeconds=300))]
                )
            ),
        ),
        (runtime(),),
    ),
    Case("no mlPolicy, no trainer", (Create(train_job()),), (runtime(),)),
    Case(
        "no mlPolicy: numNodes and resources of the TrainJob",
        (Create(train_job(trainer={"numNodes": 3, "resourcesPerNode": CPU})),),
        (runtime(replicated_job(job={"parallelism": 2, "completions": 7})),),
    ),
    Case(
        "PlainML: a job of no ancestor keeps its parallelism",
        (Create(train_job(trainer={"numNodes": 3, "env": [{"name": "A", "value": "1"}]})),),
        (
            runtime(
                replicated_job("side", ancestor=None, job={"parallelism": 4}, containers=[container("side")]),
                replicated_job(),
                policy={"numNodes": 2},
            ),
        ),
    ),
    Case(
        "TrainJob env overrides the runtime's in place",
        (
            Create(
                train_job(
                    trainer={
                        "env": [
                            {"name": "B", "value": "job"},
                            {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}},
                            {"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                            {"name": "E", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                            {"name": "F", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
                        ]
                    }
                )
            ),
        ),
        (
            runtime(
                replicated_job(
                    containers=[
                        container(env=[{"name": "A", "value": "runtime"}, {"name": "B", "value": "runtime"}]),
                        container("sidecar", env=[{"name": "B", "value": "kept"}]),
                    ]
                ),
                policy={"numNodes": 1},
            ),
        ),
    ),
    Case(
        "TrainJob metadata does not reach the JobSet",
        (Create(train_job(metadata={"labels": {"a": "b"}, "annotations": {"c": "d"}})),),
        (runtime(),),
    ),
    Case(
        "every field of the runtime's JobSet template passes through",
        (Create(train_job()),),
        (
            runtime(
                initializer_job("dataset", "dataset"),
                {
                    **replicated_job(),
                    "dependsOn": [{"name": "dataset-initializer", "status": "Complete"}],
                    "groupName": "trainers",
                },
                policy={"numNodes": 2},
                network={"enableDNSHostnames": True, "subdomain": "sub", "publishNotReadyAddresses": True},
                successPolicy={"operator": "All", "targetReplicatedJobs": ["node"]},
                failurePolicy={"maxRestarts": 3},
                ttlSecondsAfterFinished=60,
                coordinator={"replicatedJob": "node", "jobIndex": 0, "podIndex": 0},
                suspend=True,
            ),
        ),
    ),
    Case(
        "volumeClaimPolicies pass through",
        (Create(train_job()),),
        (
            runtime(
                volumeClaimPolicies=[
                    {
                        "templates": [
                            {
                                "metadata": {"name": "initializer"},
                                "spec": {
                                    "accessModes": ["ReadWriteOnce"],
                                    "resources": {"requests": {"storage": "20Gi"}},
                                },
                            }
                        ],
                        "retentionPolicy": {"whenDeleted": "Delete"},
                    }
                ]
            ),
        ),
    ),
    Case(
        "resources merge per key, the TrainJob's win",
        (
            Create(
                train_job(
                    trainer={
                        "resourcesPerNode": {
                            "requests": {"cpu": 4},
                            "limits": {"nvidia.com/gpu": "2", "memory": "8Gi"},
                            "claims": [{"name": "claim"}],
                        }
                    }
                )
            ),
        ),
        (
            runtime(
                replicated_job(
                    containers=[
                        container(
                            resources={"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"example.com/nic": "1"}}
                        )
                    ],
                    resourceClaims=[{"name": "claim", "resourceClaimName": "devices"}],
                ),
                policy={"numNodes": 1},
            ),
        ),
    ),
    Case(
        "initializers of the runtime untouched without a TrainJob's",
        (Create(train_job()),),
        (runtime(*steps_jobs(), policy={"numNodes": 1}),),
    ),
    Case(
        "a dataset on a claim",
        (Create(train_job(initializer={"dataset": {"storageUri": "pvc://team.data/sets"}})),),
        (runtime(*steps_jobs()),),
    ),
    Case(
        "a dataset on what can be no claim",
        (Create(train_job(initializer={"dataset": {"storageUri": "pvc://Team_Data/sets"}})),),
        (runtime(*steps_jobs()),),
    ),
    Case(
        "an empty storageUri is set, a missing one is not",
        (Create(train_job(initializer={"dataset": {"storageUri": ""}, "model": {"env": [{"name": "A"}]}})),),
        (runtime(*steps_jobs()),),
    ),
)
