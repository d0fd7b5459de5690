"""Declared differences of gang scheduling: known by their cause, and by both numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.cases import Change, Remove
from tests.conformance.compare import ABSENT
from tests.conformance.documents import container, patch, replicated_job, runtime, steps_jobs
from tests.conformance.gang_cases import COSCHEDULING, QUEUE, VOLCANO, gang
from tests.conformance.mpi_cases import launcher, mpi, workers
from tests.conformance.planted import JOBSET, difference, explained_by

if TYPE_CHECKING:
    from tests.conformance.cases import Step, Tree

GROUP, VOLCANO_GROUP = f"{COSCHEDULING} job", f"{VOLCANO} job"
RESUME = {"spec": {"suspend": False}}


def trained(*jobs: Tree, nodes: int = 3, **spec: Any) -> Tree:
    return gang(runtime(*jobs, policy={"numNodes": nodes}, **spec))


def asking(name: str = "node", ancestor: str | None = "trainer", **resources: Any) -> Tree:
    return replicated_job(name, ancestor=ancestor, containers=[container(resources=resources)])


CPU = {"cpu": "1"}
PLAIN = trained(asking(requests=CPU))
STEPS = trained(*steps_jobs())
BESIDE = asking("ps", None, requests=CPU)
TWICE = trained(asking(requests=CPU), {**BESIDE, "replicas": 2})
LATER = trained(asking(requests=CPU), {**BESIDE, "dependsOn": [{"name": "node", "status": "Ready"}]})
IN_ORDER = trained(BESIDE, asking(requests={"memory": "1Gi"}), startupPolicy={"startupPolicyOrder": "InOrder"})
LAUNCHED = gang(mpi(workers(), launcher(), runLauncherAsNode=True))
LIMITED = trained(asking(requests=CPU, limits={"cpu": "2", "nvidia.com/gpu": 8}))


# -- whom a group counts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on", "spec", "numbers", "known"),
    [
        (STEPS, {}, (5, 3), True),
        (STEPS, {"trainer": {"numNodes": 4}}, (6, 4), True),
        (TWICE, {}, (4, 5), True),
        (LATER, {}, (4, 3), True),
        (IN_ORDER, {}, (4, 1), True),
        (LAUNCHED, {"trainer": {"numNodes": 3}}, (3, 2), True),
        (STEPS, {}, (5, 4), False),
        (STEPS, {}, (5, 2), False),
        (STEPS, {}, (4, 3), False),
        (STEPS, {}, (3, 5), False),
        (STEPS, {}, (5, ABSENT), False),
        (STEPS, {"trainer": {"numNodes": 4}}, (5, 3), False),
        (TWICE, {}, (4, 3), False),
        (PLAIN, {}, (3, 2), False),
        (PLAIN, {}, (3, 4), False),
    ],
)
def test_members_are_worked_out(on: Tree, spec: Tree, numbers: tuple[Any, Any], known: bool) -> None:
    found = difference(GROUP, "spec.minMember", *numbers, on=on, spec=spec)
    assert explained_by(found) == ("gang-members" if known else None)
    timeout = difference(GROUP, "spec.scheduleTimeoutSeconds", *numbers, on=on, spec=spec)
    assert explained_by(timeout) is None


ASKED = {"trainer": {"numNodes": 3, "resourcesPerNode": {"requests": {"cpu": "1500m"}}}}
RESOURCES = "spec.minResources"
OWNED = "owned.f:spec.f:minResources"


@pytest.mark.parametrize(
    ("path", "on", "spec", "sides", "by"),
    [
        (f"{RESOURCES}.cpu", TWICE, {}, ("4", "5"), "gang-members"),
        (f"{RESOURCES}.cpu", LATER, {}, ("4", "3"), "gang-members"),
        (f"{RESOURCES}.cpu", LAUNCHED, ASKED, ("4500m", "3"), "gang-members"),
        (f"{RESOURCES}.memory", IN_ORDER, {}, ("3Gi", ABSENT), "gang-members"),
        (f"{OWNED}.f:memory", IN_ORDER, {}, ({}, ABSENT), "gang-members"),
        (f"{RESOURCES}.nvidia.com/gpu", LIMITED, {}, (ABSENT, "24"), "gang-limits"),
        (f"{OWNED}.f:nvidia.com/gpu", LIMITED, {}, (ABSENT, {}), "gang-limits"),
        (f"{RESOURCES}.nvidia.com/gpu", LIMITED, {"trainer": {"numNodes": 2}}, (ABSENT, "16"), "gang-limits"),
        (f"{RESOURCES}.cpu", TWICE, {}, ("4", "6"), None),
        (f"{RESOURCES}.cpu", LATER, {}, ("4", ABSENT), None),
        (f"{RESOURCES}.cpu", PLAIN, {}, ("3", "2"), None),
        (f"{RESOURCES}.cpu", LIMITED, {}, ("3", "6"), None),
        (f"{RESOURCES}.cpu", LAUNCHED, {}, ("4500m", "3"), None),
        (f"{RESOURCES}.nvidia.com/gpu", LIMITED, {}, (ABSENT, "8"), None),
        (f"{RESOURCES}.nvidia.com/gpu", LIMITED, {}, ("24", ABSENT), None),
        (f"{RESOURCES}.nvidia.com/gpu", PLAIN, {}, (ABSENT, "24"), None),
        (f"{OWNED}.f:nvidia.com/gpu", PLAIN, {}, (ABSENT, {}), None),
        (f"{OWNED}.f:nvidia.com/gpu", LIMITED, {}, ({}, ABSENT), None),
        (RESOURCES, LIMITED, {}, ({}, ABSENT), None),
    ],
)
def test_resources_are_worked_out(path: str, on: Tree, spec: Tree, sides: tuple[Any, Any], by: str | None) -> None:
    assert explained_by(difference(GROUP, path, *sides, on=on, spec=spec)) == by


def metadata(job: str, tail: str = "") -> str:
    return f"spec.replicatedJobs[{job}].template.spec.template.metadata{tail}"


LABEL, ANNOTATION = "scheduling.x-k8s.io/pod-group", "scheduling.k8s.io/group-name"
VOLCANO_STEPS = gang(runtime(*steps_jobs(), policy={"numNodes": 3}), "volcano")


@pytest.mark.parametrize(
    ("path", "sides", "on", "known"),
    [
        (metadata("dataset-initializer"), ({"labels": {LABEL: "job"}}, ABSENT), STEPS, True),
        (metadata("dataset-initializer", ".labels"), ({LABEL: "job"}, ABSENT), STEPS, True),
        (metadata("dataset-initializer", f".labels.{LABEL}"), ("job", ABSENT), STEPS, True),
        (metadata("dataset-initializer"), ({"annotations": {ANNOTATION: "job"}}, ABSENT), VOLCANO_STEPS, True),
        (metadata("launcher"), ({"labels": {LABEL: "job"}}, ABSENT), LAUNCHED, True),
        (metadata("ps"), ({"labels": {LABEL: "job"}}, ABSENT), LATER, True),
        (metadata("node"), ({"labels": {LABEL: "job"}}, ABSENT), STEPS, False),
        (metadata("node"), ({"labels": {LABEL: "job"}}, ABSENT), LAUNCHED, False),
        (metadata("ps"), ({"labels": {LABEL: "job"}}, ABSENT), TWICE, False),
        (metadata("dataset-initializer"), ({"labels": {LABEL: "job", "l": "v"}}, ABSENT), STEPS, False),
        (metadata("dataset-initializer"), ({"annotations": {ANNOTATION: "job"}}, ABSENT), STEPS, False),
        (metadata("dataset-initializer"), (ABSENT, {"labels": {LABEL: "job"}}), STEPS, False),
        (metadata("dataset-initializer", f".labels.{LABEL}"), ("other", ABSENT), STEPS, False),
        (metadata("dataset-initializer", f".labels.{LABEL}"), ("job", "other"), STEPS, False),
        (metadata("dataset-initializer", ".labels.l"), ("job", ABSENT), STEPS, False),
        (metadata("dataset-initializer"), ({"labels": {LABEL: "job"}}, ABSENT), runtime(*steps_jobs()), False),
    ],
)
def test_pods_that_wait_bear_no_mark(path: str, sides: tuple[Any, Any], on: Tree, known: bool) -> None:
    assert explained_by(difference(JOBSET, path, *sides, on=on)) == ("gang-members" if known else None)


# -- when it is written -----------------------------------------------------------------------------------------------


def in_queue(name: str) -> Tree:
    return patch("x.example.com/m", metadata={"annotations": {QUEUE: name}})


def queued(name: str, **spec: Any) -> Change:
    return Change({"spec": {"runtimePatches": [in_queue(name)], **spec}})


@pytest.mark.parametrize(
    ("then", "path", "sides", "known"),
    [
        (queued("new", suspend=False), "spec.queue", (ABSENT, "new"), True),
        (queued("new", suspend=False), "spec.queue", ("old", "new"), True),
        (queued("new", suspend=False), "owned.f:spec.f:queue", (ABSENT, {}), True),
        (queued("new", suspend=False), "metadata.generation", (1, 2), True),
        (queued("new", suspend=False), "metadata.generation", (2, 1), False),
        (queued("new", suspend=False), "metadata.generation", (ABSENT, 1), False),
        (queued("new", suspend=False), "spec.queue", ("new", "old"), False),
        (queued("new", suspend=False), "spec.queue", ("new", ABSENT), False),
        (queued("new", suspend=False), "spec.minMember", (3, 4), False),
        (queued("new"), "spec.queue", (ABSENT, "new"), False),
        (Change(RESUME), "spec.queue", (ABSENT, "new"), False),
        (Change(RESUME), "metadata.generation", (1, 2), False),
    ],
)
def test_a_group_follows_what_came_with_the_resume(
    then: Change, path: str, sides: tuple[Any, Any], known: bool
) -> None:
    on = gang(runtime(), "volcano")
    found = difference(VOLCANO_GROUP, path, *sides, on=on, spec={"suspend": True}, then=(then,))
    assert explained_by(found) == ("gang-resumed" if known else None)


EDIT = Change({"spec": {"minMember": 77}}, COSCHEDULING)


@pytest.mark.parametrize("suspended", [True, False])
@pytest.mark.parametrize(
    ("then", "path", "sides"),
    [
        (EDIT, "spec.minMember", (3, 77)),
        (EDIT, "owned.f:spec.f:minMember", ({}, ABSENT)),
        (EDIT, "metadata.generation", (3, 2)),
        (Remove(COSCHEDULING), "", ({"kind": "PodGroup"}, ABSENT)),
    ],
)
def test_what_was_edited_or_removed_must_be_put_right_as_the_reference_does(
    then: Step, path: str, sides: tuple[Any, Any], suspended: bool
) -> None:
    found = difference(GROUP, path, *sides, on=PLAIN, spec={"suspend": suspended}, then=(then,))
    assert explained_by(found) is None


# -- verdicts ---------------------------------------------------------------------------------------------------------

THEIRS = [f"spec.annotations[{QUEUE}]"]
EMPTY = {"runtimePatches": [in_queue("")]}


@pytest.mark.parametrize(
    ("spec", "theirs", "ours", "known"),
    [
        (EMPTY, THEIRS, ["spec.runtimePatches"], True),
        ({}, THEIRS, ["spec.runtimeRef"], True),
        (EMPTY, THEIRS, ["spec.runtimeRef"], False),
        ({}, THEIRS, ["spec.runtimePatches"], False),
        ({}, THEIRS, [], False),
        ({}, THEIRS, ["spec.runtimeRef", "spec.trainer"], False),
        ({}, ["spec.annotations[other]"], ["spec.runtimeRef"], False),
    ],
)
def test_an_empty_queue_is_named_where_it_stands(spec: Tree, theirs: list[str], ours: list[str], known: bool) -> None:
    found = difference("verdict", "fields", theirs, ours, on=gang(runtime(), "volcano"), spec=spec)
    assert explained_by(found) == ("queue-field" if known else None)


NO_CLASS = 'spec.templateSpec.priorityClassName: Invalid value: "x": PriorityClass "x" doesn\'t exist: not found'


@pytest.mark.parametrize(
    ("codes", "message", "on", "known"),
    [
        ((403, 201), NO_CLASS, gang(runtime(), "volcano"), True),
        ((403, 201), "spec.trainer.env: reserved", gang(runtime(), "volcano"), False),
        ((201, 403), NO_CLASS, gang(runtime(), "volcano"), False),
        ((403, 422), NO_CLASS, gang(runtime(), "volcano"), False),
        ((403, 201), NO_CLASS, runtime(), False),
    ],
)
def test_a_class_that_is_not_there_is_the_api_servers_affair(
    codes: tuple[int, int], message: str, on: Tree, known: bool
) -> None:
    found = difference("verdict", "code", *codes, on=on, message=message)
    assert explained_by(found) == ("priority-class" if known else None)
