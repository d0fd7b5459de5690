"""Cases of the two gang schedulers: whom a PodGroup counts, what it asks for, and when it is written."""

from __future__ import annotations

import copy
from typing import Any

from tests.conformance import mpi_cases
from tests.conformance.cases import Case, Change, Create, Remove, Tree
from tests.conformance.documents import (
    COMPLETED,
    RESUME,
    container,
    counts,
    patch,
    patch_job,
    replicated_job,
    reported,
    runtime,
    steps_jobs,
    train_job,
)

COSCHEDULING, VOLCANO = "PodGroup.scheduling.x-k8s.io", "PodGroup.scheduling.volcano.sh"
QUEUE = "scheduling.volcano.sh/queue-name"
_KINDS = {"coscheduling": COSCHEDULING, "volcano": VOLCANO}
_ASKED = {"requests": {"cpu": "1", "memory": "4Gi"}}
_SUSPEND = Change({"spec": {"suspend": True}})
_X = "x.example.com/manager"


def gang(on: Tree, scheduler: str = "coscheduling", **settings: Any) -> Tree:
    """Return a runtime whose pods are scheduled together."""
    return {**on, "spec": {**on["spec"], "podGroupPolicy": {scheduler: settings}}}


def _torch(*jobs: Tree, nodes: int = 3, **fields: Any) -> Tree:
    return runtime(*jobs, policy={"numNodes": nodes, "torch": {}}, **fields)


def _asking(**resources: Any) -> Tree:
    return replicated_job(containers=[container(resources=resources)])


def _case(title: str, on: Tree, *, scheduler: str = "coscheduling", **trainer: Any) -> Case:
    return Case(f"{scheduler}: {title}", (Create(train_job(trainer=trainer)),), (gang(on, scheduler),))


def _after(job: Tree, *others: tuple[str, str]) -> Tree:
    return {**job, "dependsOn": [{"name": name, "status": status} for name, status in others]}


def _initialized() -> list[Tree]:
    """Return jobs of which the last waits until the others are complete, as Torchtune's runtimes have them."""
    *first, node = steps_jobs()
    return [*first, _after(node, *((job["name"], "Complete") for job in first))]


def _all(resources: Tree) -> list[Tree]:
    """Return the reference's three jobs, each of which asks for something."""
    jobs = steps_jobs()
    for job in jobs:
        for one in job["template"]["spec"]["template"]["spec"]["containers"]:
            one["resources"] = resources
    return jobs


def _labelled(job: Tree) -> Tree:
    """Return a job whose pods have a label and an annotation of the runtime's."""
    one: Tree = copy.deepcopy(job)
    one["template"]["spec"]["template"]["metadata"] = {"labels": {"l": "v"}, "annotations": {"a": "v"}}
    return one


_BOTH = gang(_torch(*_initialized()))
_BOTH["spec"]["podGroupPolicy"]["volcano"] = {}

MEMBERS = (
    Case(
        "3 PlainML with coscheduling: 100 nodes beside initializers",
        (
            Create(
                train_job(
                    trainer={"image": "test:trainjob", "resourcesPerNode": _ASKED},
                    runtimePatches=[patch(_X, metadata={"labels": {"l": "v"}, "annotations": {"a": "v"}})],
                )
            ),
        ),
        (gang(runtime(*_all(_ASKED), policy={"numNodes": 100}), scheduleTimeoutSeconds=100),),
        shows=(f"gang-members {COSCHEDULING}",),
    ),
    *(
        case
        for scheduler in ("coscheduling", "volcano")
        for case in (
            _case("nodes of the runtime", _torch(_asking(**_ASKED)), scheduler=scheduler),
            _case("nodes of the TrainJob", _torch(_asking(**_ASKED)), scheduler=scheduler, numNodes=5),
            _case("jobs that wait for initializers", _torch(*_initialized()), scheduler=scheduler),
            _case(
                "a launcher that waits for nodes",
                mpi_cases.mpi(runLauncherAsNode=True),
                scheduler=scheduler,
                numNodes=3,
                resourcesPerNode=_ASKED,
            ),
        )
    ),
    Case("coscheduling: without a policy", (Create(train_job()),), (gang(runtime(_asking(**_ASKED))),)),
    _case("no nodes", _torch(_asking(**_ASKED)), numNodes=0),
    _case(
        "a job beside the one that trains", _torch(_asking(**_ASKED), _beside := replicated_job("ps", ancestor=None))
    ),
    _case("two of a job beside the one that trains", _torch(_asking(**_ASKED), {**_beside, "replicas": 2})),
    _case("a job that waits for nodes", _torch(_asking(**_ASKED), _after(_beside, ("node", "Ready")))),
    _case("one job after another", _torch(_beside, _asking(**_ASKED), startupPolicy={"startupPolicyOrder": "InOrder"})),
    _case("a launcher that waits for nothing", mpi_cases.mpi(mpi_cases.workers(), mpi_cases.launcher(waits=False))),
    Case("both schedulers at once", (Create(train_job()),), (_BOTH,)),
    _case("pods that have labels of their own", _torch(*map(_labelled, _initialized()))),
    _case("pods that have labels of their own", _torch(*map(_labelled, _initialized())), scheduler="volcano"),
)

RESOURCES = (
    _case("nothing asked for", _torch()),
    _case("nothing asked for", _torch(), scheduler="volcano"),
    _case("limits alone", _torch(_asking(limits={"cpu": "2", "nvidia.com/gpu": 8}))),
    _case("limits alone", _torch(_asking(limits={"cpu": "2", "nvidia.com/gpu": 8})), scheduler="volcano"),
    _case("limits beside requests", _torch(_asking(requests={"cpu": "500m"}, limits={"cpu": "2", "memory": "1Gi"}))),
    _case("requests of the TrainJob", _torch(_asking(**_ASKED)), resourcesPerNode={"requests": {"cpu": "1500m"}}),
    _case("limits of the TrainJob", _torch(_asking(**_ASKED)), resourcesPerNode={"limits": {"nvidia.com/gpu": 2}}),
    _case(
        "several containers, sidecars and init containers",
        _torch(
            replicated_job(
                containers=[
                    container(resources={"requests": {"cpu": "1"}}),
                    container("side", resources={"requests": {"cpu": "250m", "memory": "100Mi"}}),
                ],
                initContainers=[
                    container("first", resources={"requests": {"cpu": "4"}}),
                    container("logs", restartPolicy="Always", resources={"requests": {"cpu": "100m"}}),
                    container("last", resources={"requests": {"memory": "1Gi"}}),
                ],
            )
        ),
    ),
    _case(
        "overhead and resources of the pod",
        _torch(
            replicated_job(
                containers=[container(resources={"requests": {"cpu": "1", "memory": "1Gi"}})],
                resources={"requests": {"cpu": "3"}},
                overhead={"cpu": "100m"},
            )
        ),
    ),
    _case(
        "amounts that are not written as Go writes them", _torch(_asking(requests={"cpu": "0.5", "memory": "1024Mi"}))
    ),
)


def _queue(name: str) -> Tree:
    return patch(_X, metadata={"annotations": {QUEUE: name}})


def _queued(title: str, *entries: Tree, **template: Any) -> Case:
    on = gang(_torch(_asking(**_ASKED), template=template or None), "volcano")
    return Case(f"volcano: {title}", (Create(train_job(runtimePatches=list(entries))),), (on,))


def _prior(title: str, *classes: str | None) -> Case:
    """Return a case of jobs of some priorities, of which `@ns@` is there."""
    jobs = [replicated_job("node"), replicated_job("other", ancestor=None)][: len(classes)]
    for job, name in zip(jobs, classes, strict=True):
        if name:
            job["template"]["spec"]["template"]["spec"]["priorityClassName"] = name
    there = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "@ns@"}, "value": 7}
    setup = (gang(_torch(*jobs), "volcano"), *((there,) if "@ns@" in classes else ()))
    return Case(f"volcano: {title}", (Create(train_job()),), setup)


VOLCANO_ONLY = (
    _queued("no queue"),
    _queued("a queue of the runtime", annotations={QUEUE: "runtime"}),
    _queued("a queue of a patch", _queue("mine")),
    _queued("queues of both", _queue("mine"), annotations={QUEUE: "runtime"}),
    _queued("an empty queue of the runtime", annotations={QUEUE: ""}),
    _queued("an empty queue of a patch", _queue(""), annotations={QUEUE: "runtime"}),
    _queued("a patch for an empty queue", _queue("mine"), annotations={QUEUE: ""}),
    _prior("a class that is there", "@ns@"),
    _prior("a class that is not there", "none-of-this-name"),
    _prior("classes of two jobs", "@ns@", "system-node-critical"),
    _prior("a class of the first job alone", "@ns@", None),
    _prior("the highest class", "system-cluster-critical"),
    _prior("the highest class hides one that is not there", "system-node-critical", "none-of-this-name"),
    *(
        Case(f"volcano: topology {title}", (Create(train_job()),), (gang(_torch(), "volcano", networkTopology=one),))
        for title, one in (
            ("as it is by default", {}),
            ("soft", {"mode": "soft"}),
            ("hard, of tier 3", {"mode": "hard", "highestTierAllowed": 3}),
        )
    ),
)


def _moved(title: str, *steps: Any, scheduler: str, suspended: bool = True) -> Case:
    on = gang(_torch(_asking(**_ASKED)), scheduler)
    return Case(f"{scheduler}: {title}", (Create(train_job(suspend=suspended)), *steps), (on,))


def _selecting(pool: str, **spec: Any) -> Change:
    return Change({"spec": {"runtimePatches": [patch(_X, patch_job(nodeSelector={"pool": pool}))], **spec}})


CONTROLLER = (
    *(
        case
        for scheduler, kind in _KINDS.items()
        for case in (
            _moved(
                "suspended, resumed, complete",
                RESUME,
                _SUSPEND,
                RESUME,
                reported(counts(succeeded=3), conditions=(COMPLETED,)),
                scheduler=scheduler,
            ),
            _moved("patched while suspended", _selecting("a"), RESUME, scheduler=scheduler),
            _moved(
                "a group that somebody edits while its job is suspended, and then resumed",
                Change({"spec": {"minMember": 77}}, kind),
                _selecting("a"),
                RESUME,
                scheduler=scheduler,
            ),
            _moved(
                "a group that somebody edits while its job runs",
                Change({"spec": {"minMember": 77}}, kind),
                scheduler=scheduler,
                suspended=False,
            ),
            _moved(
                "a group that somebody removes while its job runs, and then suspended",
                Remove(kind),
                _SUSPEND,
                scheduler=scheduler,
                suspended=False,
            ),
            _moved(
                "a group that somebody removes while its job is suspended, and then resumed",
                Remove(kind),
                RESUME,
                scheduler=scheduler,
            ),
        )
    ),
    _moved(
        "a queue that changes while suspended",
        Change({"spec": {"runtimePatches": [_queue("new")]}}),
        RESUME,
        scheduler="volcano",
    ),
    _moved(
        "a queue that changes as it resumes",
        Change({"spec": {"suspend": False, "runtimePatches": [_queue("new")]}}),
        scheduler="volcano",
    ),
    _moved("a job that is removed", Remove("TrainJob"), scheduler="coscheduling"),
)

CASES = (*MEMBERS, *RESOURCES, *VOLCANO_ONLY, *CONTROLLER)
