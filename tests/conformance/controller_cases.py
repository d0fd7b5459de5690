"""Cases of the controller: the contract's §8.1 for runtimes, conditions, deadline and snapshot, and its neighbours."""

from __future__ import annotations

from typing import Any

from tests.conformance.cases import Await, Case, Change, Create, Remove, Tree
from tests.conformance.documents import (
    API,
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
    steps_jobs,
    torch,
    train_job,
)

SUSPEND = Change({"spec": {"suspend": True}})


def _edited(**spec: Any) -> Change:
    """Change the runtime after the fact, visibly."""
    jobs = [replicated_job(containers=[container(image="test:edited")])]
    return Change({"spec": {"template": {"spec": {"replicatedJobs": jobs}}, **spec}}, "TrainingRuntime", "runtime")


def _cluster_runtime(**fields: Any) -> Tree:
    return runtime(kind="ClusterTrainingRuntime", name="@ns@.torch", **fields)


_CLUSTER_REF = {"kind": "ClusterTrainingRuntime", "name": "@ns@.torch"}

RUNTIMES = (
    Case(
        "1 ClusterTrainingRuntime deleted while referenced",
        (
            Create(train_job(runtimeRef=_CLUSTER_REF)),
            Remove("ClusterTrainingRuntime", "@ns@.torch"),
            reported(counts(active=1, ready=1)),
            reported(counts(succeeded=1), conditions=(COMPLETED,)),
        ),
        (_cluster_runtime(),),
    ),
    Case(
        "2 TrainingRuntime deleted while referenced",
        (
            Create(train_job()),
            Remove("TrainingRuntime", "runtime"),
            reported(counts(succeeded=1), conditions=(COMPLETED,)),
        ),
        (runtime(),),
    ),
    *(
        Case(
            f"legacy finalizer dropped from a {kind}",
            (Create(runtime(kind=kind, name=name, metadata={"finalizers": [finalizer, "example.com/kept"]})),),
        )
        for finalizer in ("trainer.kubeflow.org/resource-in-use",)
        for kind, name in (("TrainingRuntime", "runtime"), ("ClusterTrainingRuntime", "@ns@.torch"))
    ),
    *(
        Case(
            f"a {kind} with the legacy finalizer can be deleted",
            (Create(runtime(kind=kind, name=name, metadata={"finalizers": [finalizer]})), Remove(kind, name)),
        )
        for finalizer in ("trainer.kubeflow.org/resource-in-use",)
        for kind, name in (("TrainingRuntime", "runtime"), ("ClusterTrainingRuntime", "@ns@.torch"))
    ),
)

CONDITIONS = (
    Case(
        "8 suspended, resumed, complete",
        (
            Create(train_job(suspend=True)),
            reported(counts(suspended=1)),
            RESUME,
            reported(counts(active=1, ready=1)),
            reported(counts(succeeded=1), conditions=(COMPLETED,)),
        ),
        (torch(nodes=100),),
    ),
    Case(
        "9 suspended, resumed, failed",
        (
            Create(train_job(suspend=True)),
            RESUME,
            reported(counts(failed=1), conditions=(FAILED,)),
        ),
        (torch(nodes=100),),
    ),
    *(
        Case(
            f"a JobSet with a TTL, {word}",
            (Create(train_job()), reported(counts(active=1, ready=1)), reported(counts(), conditions=(end,))),
            (runtime(ttlSecondsAfterFinished=60),),
        )
        for word, end in (("completed", COMPLETED), ("failed", FAILED))
    ),
    Case(
        "10 jobsStatus follows replicatedJobsStatus, in its order",
        (
            Create(train_job()),
            reported(
                counts(active=1, ready=1), counts("model-initializer"), counts("dataset-initializer", succeeded=1)
            ),
            reported(counts(failed=1), counts("model-initializer", active=2), counts("dataset-initializer")),
        ),
        (torch(*steps_jobs(), nodes=1),),
    ),
    Case(
        "suspended and resumed while running",
        (
            Create(train_job()),
            reported(counts(active=1, ready=1)),
            SUSPEND,
            reported(counts(suspended=1)),
            RESUME,
            reported(counts(active=1)),
        ),
        (torch(nodes=2),),
    ),
    Case(
        "a completed job is suspended and resumed",
        (
            Create(train_job()),
            reported(counts(succeeded=1), conditions=(COMPLETED,)),
            SUSPEND,
            RESUME,
        ),
        (runtime(),),
        shows=("ended-is-not-suspended TrainJob",),
    ),
    Case(
        "JobSet of a running job deleted: made anew",
        (Create(train_job()), reported(counts(active=1)), Remove("JobSet")),
        (runtime(),),
    ),
    Case(
        "JobSet of a suspended job deleted: made anew",
        (Create(train_job(suspend=True)), Remove("JobSet")),
        (runtime(),),
    ),
    Case(
        "JobSet of a completed job deleted: stays away",
        (Create(train_job()), reported(counts(succeeded=1), conditions=(COMPLETED,)), Remove("JobSet")),
        (runtime(),),
    ),
    Case(
        "JobSet of a failed job deleted",
        (Create(train_job()), reported(counts(failed=1), conditions=(FAILED,)), Remove("JobSet")),
        (runtime(),),
        shows=("failed-is-final JobSet",),
    ),
    Case(
        "a running JobSet edited by hand stays as it is",
        (
            Create(train_job()),
            Change({"metadata": {"labels": {"by": "hand"}}}, "JobSet"),
            Change({"metadata": {"labels": {"touched": "yes"}}}),
        ),
        (runtime(template={"labels": {"by": "runtime"}}),),
    ),
    Case(
        "a suspended JobSet edited by hand is put right",
        (
            Create(train_job(suspend=True)),
            Change({"metadata": {"labels": {"by": "hand"}}}, "JobSet"),
        ),
        (runtime(template={"labels": {"by": "runtime"}}),),
    ),
    Case(
        "a JobSet resumed by hand is suspended again",
        (Create(train_job(suspend=True)), Change({"spec": {"suspend": False}}, "JobSet")),
        (runtime(),),
    ),
    Case(
        "the JobSet's name is taken by another's",
        (Create(train_job()),),
        (
            runtime(),
            {
                "apiVersion": "jobset.x-k8s.io/v1alpha2",
                "kind": "JobSet",
                "metadata": {"name": "job"},
                "spec": runtime()["spec"]["template"]["spec"],
            },
        ),
        shows=("foreign-jobset ConfigMap",),
    ),
)

DEADLINES = (
    # These run by themselves: beside hundreds of others a step takes longer than a deadline. What the reference made of
    # them is recorded, so a deadline leaves ours several times what the steps before it take.
    Case(
        "15 deadline exceeded",
        (Create(train_job(activeDeadlineSeconds=12)), Await("Failed")),
        (runtime(),),
    ),
    Case(
        "16 deadline not exceeded",
        (Create(train_job(activeDeadlineSeconds=3600)), reported(counts(active=1))),
        (runtime(),),
    ),
    Case(
        "17, 18 deadline begins at resume",
        (
            # No counts are reported: what becomes of them when the reference deletes the JobSet is a matter of luck.
            Create(train_job(activeDeadlineSeconds=12, suspend=True)),
            RESUME,
            Await("Failed"),
        ),
        (runtime(),),
    ),
    Case(
        "a job that completed has no deadline",
        (
            Create(train_job(activeDeadlineSeconds=12)),
            reported(counts(succeeded=1), conditions=(COMPLETED,)),
            Await("Failed", seconds=14),
        ),
        (runtime(),),
    ),
    Case(
        "a job past its deadline is suspended and resumed",
        # Long enough that a busy machine reaches the job before: what is late from the first gets no snapshot of ours.
        (Create(train_job(activeDeadlineSeconds=12)), Await("Failed"), SUSPEND, RESUME),
        (runtime(),),
    ),
    Case(
        "the deadline cannot be changed",
        (
            Create(train_job(activeDeadlineSeconds=3600)),
            Change({"spec": {"activeDeadlineSeconds": 7200}}),
        ),
        (runtime(),),
    ),
    Case("a deadline of nothing", (Create(train_job(activeDeadlineSeconds=0)),), (runtime(),)),
)

SNAPSHOTS = (
    Case("28 snapshot of a TrainingRuntime", (Create(train_job()),), (torch(nodes=2),)),
    Case(
        "29 snapshot of a ClusterTrainingRuntime",
        (Create(train_job(runtimeRef=_CLUSTER_REF)),),
        (_cluster_runtime(policy={"numNodes": 2}, metadata={"labels": {"a": "b"}, "annotations": {"c": "d"}}),),
    ),
    Case(
        "30 the snapshot counts, not the runtime",
        (
            Create(train_job(suspend=True)),
            _edited(mlPolicy={"numNodes": 9}),
            Change({"spec": {"runtimePatches": [patch("a.example.com/x", patch_job(nodeSelector={"a": "b"}))]}}),
            RESUME,
        ),
        (torch(nodes=2),),
    ),
    Case(
        "31 a job without a snapshot gets one of the present runtime",
        (
            Create(train_job(suspend=True)),
            _edited(),
            Remove("ConfigMap", "job-runtime-snapshot"),
            Change({"metadata": {"labels": {"touched": "yes"}}}),
        ),
        (torch(nodes=2),),
    ),
    Case(
        "a snapshot whose text is broken",
        (
            Create(train_job(suspend=True)),
            Change({"data": {"runtime": "{"}}, "ConfigMap", "job-runtime-snapshot"),
            RESUME,
        ),
        (runtime(),),
    ),
    Case(
        "a snapshot of another runtime",
        (
            Create(train_job(suspend=True)),
            Change(
                {"data": {"runtime": f"apiVersion: {API}\nkind: TrainingRuntime\nmetadata: {{name: x}}\n"}},
                "ConfigMap",
                "job-runtime-snapshot",
            ),
            RESUME,
        ),
        (runtime(),),
    ),
    Case(
        "a snapshot without its key",
        (
            Create(train_job(suspend=True)),
            Change({"data": None}, "ConfigMap", "job-runtime-snapshot"),
            RESUME,
        ),
        (runtime(),),
    ),
    Case(
        "a ConfigMap of the snapshot's name that is not the job's",
        (Create(train_job()),),
        (
            runtime(),
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "job-runtime-snapshot"},
                "data": {"runtime": "mine"},
            },
        ),
    ),
)

CASES = (*RUNTIMES, *CONDITIONS, *SNAPSHOTS)
