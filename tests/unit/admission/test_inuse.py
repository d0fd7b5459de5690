"""Runtimes that Kueue counts by neither change nor go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.admission.objects import replicated_job, runtime_tree
from trainplane.admission.inuse import judge_edit, judge_removal
from trainplane.api import names
from trainplane.api import tree as trees

if TYPE_CHECKING:
    from trainplane.api.tree import Tree

USERS = ["team/a", "team/b"]
JOB = ("spec", "template", "spec", "replicatedJobs", ("name", "node"))
POD = (*JOB, "template", "spec", "template", "spec")


def changed(*path: Any, value: Any) -> Tree:
    tree: Tree = trees.put(runtime_tree(), *path, value=value)
    return tree


COUNTED = [
    (("spec", "mlPolicy", "numNodes"), 2, "spec.mlPolicy"),
    (("spec", "podGroupPolicy"), {"volcano": {}}, "spec.podGroupPolicy"),
    ((*JOB, "replicas"), 2, "replicas of job node"),
    ((*JOB, "template", "spec", "parallelism"), 2, "parallelism of job node"),
    ((*JOB, "template", "spec", "completions"), 2, "completions of job node"),
    ((*JOB, "template", "metadata", "labels", names.LABEL_ANCESTOR), "x", f"{names.LABEL_ANCESTOR} of job node"),
    ((*POD, "containers"), [{"name": "node", "image": "other"}], "containers of job node"),
    ((*POD, "initContainers"), [{"name": "first"}], "initContainers of job node"),
    ((*POD, "tolerations"), [{"operator": "Exists"}], "tolerations of job node"),
    (("spec", "template", "spec", "replicatedJobs"), [replicated_job("other")], "which replicatedJobs there are"),
]


@pytest.mark.parametrize(("path", "value", "named"), COUNTED, ids=[case[2] for case in COUNTED])
def test_what_kueue_makes_pods_of_may_not_change(path: Any, value: Any, named: str) -> None:
    (finding,) = judge_edit(changed(*path, value=value), runtime_tree(), USERS).errors
    assert finding.path == "spec"
    assert finding.cause == "Forbidden"
    assert f"cannot change {named} while Kueue counts by it: TrainJobs team/a, team/b would" in finding.problem
    assert "webhook-validation=disabled" in finding.problem


@pytest.mark.parametrize(("path", "value", "_named"), COUNTED, ids=[case[2] for case in COUNTED])
def test_nobody_uses_it_then_it_may(path: Any, value: Any, _named: str) -> None:
    assert judge_edit(changed(*path, value=value), runtime_tree(), []).allowed


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("metadata", "labels"), {"a": "b"}),
        (("spec", "template", "metadata"), {"labels": {"a": "b"}}),
        (("spec", "template", "spec", "ttlSecondsAfterFinished"), 60),
        ((*JOB, "template", "spec", "backoffLimit"), 3),
        ((*POD, "nodeSelector"), {"zone": "a"}),
        ((*POD, "volumes"), [{"name": "v", "emptyDir": {}}]),
        ((*POD, "tolerations"), []),
    ],
)
def test_the_rest_may_change(path: Any, value: Any) -> None:
    assert judge_edit(changed(*path, value=value), runtime_tree(), USERS).allowed


def test_other_letters_are_no_change() -> None:
    old = changed(*POD, "containers", value=[{"name": "node"}])
    new = changed(*POD, "containers", value=[{"name": "node", "args": []}])
    assert judge_edit(new, old, USERS).allowed


def test_each_part_that_changes_is_named() -> None:
    new = trees.put(changed("spec", "mlPolicy", "numNodes", value=2), *JOB, "replicas", value=2)
    new = trees.put(new, *POD, "containers", value=[])
    (finding,) = judge_edit(new, runtime_tree(), USERS).errors
    assert "cannot change spec.mlPolicy, replicas and containers of job node while" in finding.problem


def test_a_runtime_in_use_may_not_go() -> None:
    (finding,) = judge_removal(USERS).errors
    assert finding.path == "metadata.name"
    assert "cannot be deleted while Kueue counts by it: TrainJobs team/a, team/b could neither start" in finding.problem
    assert judge_removal([]).allowed


@pytest.mark.parametrize(
    ("users", "named"),
    [
        (["team/a"], "TrainJob team/a could"),
        ([f"t/{n}" for n in range(3)], "TrainJobs t/0, t/1, t/2 could"),
        ([f"t/{n}" for n in range(12)], "TrainJobs t/0, t/1, t/2 and 9 more could"),
    ],
)
def test_some_users_are_named_and_the_rest_counted(users: list[str], named: str) -> None:
    (finding,) = judge_removal(users).errors
    assert named in finding.problem
