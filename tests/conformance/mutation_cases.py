"""Cases that planted faults asked for: without them, a fault in our operator would have gone unnoticed."""

from __future__ import annotations

from tests.conformance.cases import Await, Case, Change, Create
from tests.conformance.documents import (
    COMPLETED,
    FAILED,
    RESUME,
    container,
    counts,
    patch,
    patch_job,
    replicated_job,
    reported,
    runtime,
    train_job,
)

_MOUNT = {"name": "data", "mountPath": "/data"}

CASES = (
    Case(
        "command and args that are empty",
        (Create(train_job(trainer={"command": [], "args": []})),),
        (runtime(replicated_job(containers=[container(command=["run"], args=["it"])]), policy={"numNodes": 1}),),
    ),
    Case(
        "a patch of one field of a mount",
        (
            Create(
                train_job(
                    runtimePatches=[
                        patch(
                            "example.com/team",
                            patch_job(containers=[{"name": "node", "volumeMounts": [{**_MOUNT, "readOnly": True}]}]),
                        )
                    ]
                )
            ),
        ),
        (
            runtime(
                replicated_job(
                    containers=[container(volumeMounts=[{**_MOUNT, "subPath": "part"}])],
                    volumes=[{"name": "data", "emptyDir": {}}],
                )
            ),
        ),
    ),
    Case(
        "an initializer's Secret beside a ConfigMap of the runtime",
        (Create(train_job(initializer={"model": {"storageUri": "hf://m", "secretRef": {"name": "token"}}})),),
        (
            runtime(
                replicated_job(
                    "model-initializer",
                    ancestor="model-initializer",
                    containers=[
                        container(
                            "model-initializer",
                            envFrom=[{"configMapRef": {"name": "settings"}}],
                            volumeMounts=[{"name": "initializer", "mountPath": "/workspace/model"}],
                        )
                    ],
                    volumes=[{"name": "initializer", "emptyDir": {}}],
                ),
                replicated_job(),
            ),
        ),
    ),
    Case(
        "a JobSet that says it is not complete, nor failed",
        (
            Create(train_job()),
            reported(counts(active=1), conditions=tuple({**one, "status": "False"} for one in (COMPLETED, FAILED))),
        ),
        (runtime(),),
    ),
    Case(
        "a runtime that skips validation and trains twice",
        (Create(train_job(trainer={"numNodes": 2})),),
        (
            runtime(
                {**replicated_job(), "replicas": 2},
                policy={"numNodes": 1},
                metadata={"labels": {"trainer.kubeflow.org/webhook-validation": "disabled"}},
            ),
        ),
    ),
    Case(
        "a runtime that is placed elsewhere while its job waits",
        (
            Create(train_job(suspend=True)),
            Change(
                {"spec": {"template": {"spec": {"replicatedJobs": [replicated_job(nodeSelector={"pool": "new"})]}}}},
                "TrainingRuntime",
                "runtime",
            ),
            RESUME,
        ),
        (runtime(replicated_job(nodeSelector={"pool": "old"})),),
    ),
    Case(
        "the resume that a deadline counts from, told also when pods run",
        (
            Create(train_job(activeDeadlineSeconds=3600, suspend=True)),
            RESUME,
            reported(counts(active=1, ready=1)),
        ),
        (runtime(),),
    ),
    Case(
        "a job with a command, on a deprecated runtime",
        (Create(train_job(runtimeRef={"name": "@ns@.r"}, trainer={"command": ["train"]})),),
        (
            runtime(
                kind="ClusterTrainingRuntime",
                name="@ns@.r",
                metadata={"labels": {"trainer.kubeflow.org/support": "deprecated"}},
            ),
        ),
    ),
)

DEADLINES = (
    Case(
        "the time of a suspended job stands still, and begins when it is resumed",
        (
            Create(train_job(activeDeadlineSeconds=12, suspend=True)),
            Await("Failed", seconds=14),
            RESUME,
            Await("Failed"),
        ),
        (runtime(),),
    ),
)
