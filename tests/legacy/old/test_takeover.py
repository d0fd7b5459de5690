"""A cluster changes from training-operator v1.9.3 to ours and back: no pod notices, and every job ends well."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from lab.engines.build import build_missing
from tests.legacy.old.looks import differences, look, times
from tests.legacy.old.members import MEMBERS
from tests.legacy.old.stage import AUTOSCALERS, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.legacy.old.stage import Tree
    from tests.suite import SuiteReport

pytestmark = pytest.mark.full

THERE, BACK = "there", "back"


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    build_missing(["training-operator"])
    stage = Stage(f"old-takeover-{os.getpid()}")
    yield stage
    stage.close()


def _begin(stage: Stage, namespace: str) -> None:
    """Make the jobs, and bring each into its state under the operator that runs now."""
    stage.populate(namespace, MEMBERS)
    stage.tell(namespace, {member: member.early for member in MEMBERS})
    stage.settle()


def _finish(stage: Stage, namespace: str) -> list[str]:
    """Bring each job to its end under the operator that runs now; return those that are not there."""
    stage.tell(namespace, {member: member.late for member in MEMBERS})
    return [member.name for member in MEMBERS if member.ends and not stage.is_true(namespace, member, member.ends)]


def _traces(stage: Stage, namespace: str) -> dict[str, tuple[object, ...]]:
    """Return of each thing that may not be touched what a write would change; an autoscaler's status is Kubernetes'."""
    return {
        f"{plural}/{item['metadata']['name']}": (
            item["metadata"]["uid"],
            item["spec"] if plural == AUTOSCALERS else item["metadata"]["resourceVersion"],
        )
        for plural, items in stage.kept(namespace).items()
        for item in items
    }


def _touched(before: dict[str, tuple[object, ...]], after: dict[str, tuple[object, ...]]) -> list[str]:
    """Return what was changed, made or deleted."""
    return sorted(key for key in {*before, *after} if before.get(key) != after.get(key))


def _statuses(stage: Stage, namespace: str) -> dict[str, Tree]:
    return {name: times(job) for name, job in stage.jobs(namespace, MEMBERS).items()}


@pytest.fixture(scope="module")
def old_looks(stage: Stage) -> dict[str, Tree]:
    """Return how the jobs look under the old operator before they are taken over."""
    _begin(stage, THERE)
    return look(stage, THERE, MEMBERS)


def test_ours_takes_over(stage: Stage, old_looks: dict[str, Tree], report: SuiteReport) -> None:
    assert set(old_looks) == {member.name for member in MEMBERS}
    traces, statuses = _traces(stage, THERE), _statuses(stage, THERE)
    stage.to_ours()
    touched = _touched(traces, _traces(stage, THERE))
    report.figure("takeover_jobs", len(MEMBERS))
    report.figure("takeover_touched", len(touched))
    assert touched == []
    changed = list(differences(statuses, _statuses(stage, THERE)))
    assert not changed, "\n".join(changed)
    assert _finish(stage, THERE) == []


def test_jobs_look_on_ours_as_they_did(stage: Stage, old_looks: dict[str, Tree], report: SuiteReport) -> None:
    _begin(stage, BACK)
    found = list(differences(old_looks, look(stage, BACK, MEMBERS)))
    report.figure("running_cases", len(old_looks))
    report.figure("running_unexplained", len(found))
    assert not found, "\n".join(found)


def test_the_old_operator_takes_back(stage: Stage, report: SuiteReport) -> None:
    traces, statuses = _traces(stage, BACK), _statuses(stage, BACK)
    stage.to_old()
    touched = _touched(traces, _traces(stage, BACK))
    report.figure("takeback_touched", len(touched))
    assert touched == []
    changed = list(differences(statuses, _statuses(stage, BACK)))
    assert not changed, "\n".join(changed)
    assert _finish(stage, BACK) == []
