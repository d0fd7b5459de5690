"""Some thirty jobs in every state, for a takeover from one operator to the other and back.

JobSet's own controller and the Job controller run them. On a simulated node a pod of a Job completes at once; pods that
ask for the `held` node find none, and the test plays their kubelet, so that a job runs until the test ends it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tests.conformance.documents import (
    container,
    initializer_job,
    patch,
    patch_job,
    replicated_job,
    runtime,
    train_job,
)

if TYPE_CHECKING:
    from tests.conformance.cases import Tree

HELD = "held"
FIELD = "takeover.trainplane.dev/node"


@dataclass(frozen=True)
class Member:
    """A job: how it is made, what is done to it under the first operator, how it ends under which.

    `early` happens under the first operator, `late` under the second; each is `suspend`, `resume`, `start` (its pods
    run), `succeed`, `fail`, `delete-jobset`, `delete-runtime` or `edit-runtime`. `ends` is the last condition that must
    be True.
    """

    name: str
    ends: str
    reason: str
    early: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    spec: Tree = field(default_factory=dict, hash=False)
    runtime: str = "held"
    returns: bool = True
    """Whether it also goes from ours back to the reference.

    A Torch job that is suspended by then does not: the reference would take our MASTER_ variables off its JobSet, which
    JobSet refuses. So each of these has a plain twin that does.
    """


def runtimes() -> list[Tree]:
    """Return the runtimes of the jobs: Torch on the held node, plain on simulated ones, and one with an initializer."""
    pod: dict[str, Any] = {"terminationGracePeriodSeconds": 0, "restartPolicy": "Never"}
    held = {**pod, "nodeSelector": {FIELD: HELD}}
    job = {"backoffLimit": 0}
    kwok = {**pod, "nodeSelector": {"type": "kwok"}}
    initializer = initializer_job("dataset", "dataset")
    initializer["template"]["spec"]["template"]["spec"].update(
        {**held, "volumes": [{"name": "initializer", "emptyDir": {}}]}
    )
    step = {**replicated_job(job=job, **held), "dependsOn": [{"name": "dataset-initializer", "status": "Complete"}]}
    found = [
        runtime(replicated_job(job=job, **held), name="held", policy={"torch": {}, "numNodes": 2}),
        runtime(replicated_job(job=job, **held), name="plain", policy={"numNodes": 2}),
        runtime(replicated_job(job=job, **held), name="doomed", policy={"numNodes": 1}),
        runtime(replicated_job(job=job, **held), name="changing", policy={"torch": {}, "numNodes": 2}),
        runtime(replicated_job(job=job, **held), name="plain-changing", policy={"numNodes": 2}),
        runtime(replicated_job(job=job, **kwok), name="quick", policy={"numNodes": 2}),
        runtime(initializer, step, name="steps", policy={"torch": {}}),
        runtime(
            replicated_job(job=job, containers=[container(), container("side")], **held),
            name="sided",
            policy={"torch": {}},
            template={"labels": {"team": "a"}, "annotations": {"note": "b"}},
        ),
    ]
    for document in found:
        # Here JobSet's controller is at work, and not the harness of the other tests.
        del document["spec"]["template"]["spec"]["managedBy"]
    return found


_X, _Y = "x.example.com/manager", "y.example.com/manager"
_SELECTORS = patch(_X, patch_job(nodeSelector={FIELD: HELD}, tolerations=[{"key": "k", "operator": "Exists"}]))
_LABELS = patch(_Y, patch_job(pod_metadata={"labels": {"l": "v"}}), metadata={"labels": {"of": "the-jobset"}})
_SIDE = patch(
    _X,
    patch_job(
        volumes=[{"name": "scratch", "emptyDir": {}}],
        containers=[
            {
                "name": "side",
                "env": [{"name": "A", "value": "b"}],
                "volumeMounts": [{"name": "scratch", "mountPath": "/s"}],
            }
        ],
    ),
)
_TRAINER = {
    "image": "test:trainjob",
    "numNodes": 2,
    "env": [{"name": "A", "value": "1"}],
    "resourcesPerNode": {"requests": {"cpu": "1"}},
}
_DONE = ("Complete", "AllJobsCompleted")
_FAILED = ("Failed", "FailedJobs")

_MEMBERS = (
    Member("suspended", "Suspended", "Suspended", spec={"suspend": True, "trainer": _TRAINER}, returns=False),
    Member(
        "suspended-then-runs",
        *_DONE,
        late=("resume", "start", "succeed"),
        spec={"suspend": True, "trainer": {}},
        returns=False,
    ),
    Member(
        "suspended-with-amounts",
        *_DONE,
        late=("resume", "start", "succeed"),
        spec={"suspend": True, "trainer": {"resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}}}},
        returns=False,
    ),
    Member(
        "suspended-without-trainer",
        *_DONE,
        late=("resume", "start", "succeed"),
        spec={"suspend": True},
        returns=False,
    ),
    Member(
        "suspended-with-patches",
        *_DONE,
        late=("resume", "start", "succeed"),
        spec={"suspend": True, "trainer": {}, "runtimePatches": [_SELECTORS, _LABELS]},
        returns=False,
    ),
    Member(
        "suspended-runtime-edited",
        *_DONE,
        early=("edit-runtime",),
        late=("resume", "start", "succeed"),
        spec={"suspend": True, "trainer": {}},
        runtime="changing",
        returns=False,
    ),
    Member("resumed", *_DONE, early=("resume", "start"), late=("succeed",), spec={"suspend": True, "trainer": {}}),
    Member("pending", *_DONE, late=("start", "succeed"), spec={"trainer": {}}),
    Member("running", *_DONE, early=("start",), late=("succeed",), spec={"trainer": _TRAINER}),
    Member("running-plain", *_DONE, early=("start",), late=("succeed",), runtime="doomed"),
    Member(
        "running-with-patches",
        *_DONE,
        early=("start",),
        late=("succeed",),
        spec={"trainer": {}, "runtimePatches": [_SELECTORS, _LABELS]},
    ),
    Member(
        "running-with-sidecar",
        *_DONE,
        early=("start",),
        late=("succeed",),
        spec={"trainer": {}, "runtimePatches": [_SIDE]},
        runtime="sided",
    ),
    Member("running-fails-later", *_FAILED, early=("start",), late=("fail",), spec={"trainer": {}}),
    Member(
        "running-suspended-later",
        "Suspended",
        "Suspended",
        early=("start",),
        late=("suspend",),
        spec={"trainer": {}},
        returns=False,
    ),
    Member(
        "stopped",
        *_DONE,
        early=("start", "suspend"),
        late=("resume", "start", "succeed"),
        spec={"trainer": {}},
        returns=False,
    ),
    Member(
        "initializing",
        *_DONE,
        early=("start",),
        late=("succeed", "start", "succeed"),
        spec={"trainer": {}, "initializer": {"dataset": {"storageUri": "hf://a/b"}}},
        runtime="steps",
    ),
    Member(
        "runtime-gone",
        *_DONE,
        early=("start", "delete-runtime"),
        late=("succeed",),
        spec={"trainer": {}},
        runtime="doomed",
    ),
    Member("completed", *_DONE, early=("start", "succeed"), spec={"trainer": {}}),
    Member("completed-by-itself", *_DONE, runtime="quick"),
    Member("completed-jobset-gone", *_DONE, early=("start", "succeed", "delete-jobset"), spec={"trainer": {}}),
    Member("failed", *_FAILED, early=("start", "fail"), spec={"trainer": {}}),
    Member(
        "past-deadline",
        "Failed",
        "DeadlineExceeded",
        early=("await-failed",),
        spec={"trainer": {}, "activeDeadlineSeconds": 2},
    ),
    Member(
        "deadline-far", *_DONE, early=("start",), late=("succeed",), spec={"trainer": {}, "activeDeadlineSeconds": 3600}
    ),
    Member("elsewhere", "", "", spec={"managedBy": "kueue.x-k8s.io/multikueue"}),
)


def _plain(member: Member) -> Member:
    """Return a Torch job's twin without Torch."""
    on = {"held": "plain", "changing": "plain-changing"}[member.runtime]
    return replace(member, name=f"{member.name}-plain", runtime=on, returns=True)


MEMBERS = (*_MEMBERS, *(_plain(member) for member in _MEMBERS if not member.returns))


def document(member: Member) -> Tree:
    """Return a member's TrainJob."""
    return train_job(member.name, runtime_name=member.runtime, **member.spec)
