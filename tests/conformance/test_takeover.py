"""A cluster changes from the reference to ours and back: no JobSet, Job or pod notices, and every job ends well."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.conformance.takeover import MEMBERS, document, runtimes
from tests.conformance.takeover_stage import Stage
from trainplane.operator.status import ADDED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conformance.cases import Tree
    from tests.conformance.takeover import Member
    from tests.suite import SuiteReport

THERE, BACK = "there", "back"


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    stage = Stage(f"takeover-{os.getpid()}")
    yield stage
    stage.close()


def _begin(stage: Stage, namespace: str, members: tuple[Member, ...]) -> None:
    """Make the jobs, and bring each into its state under the operator that runs now."""
    stage.populate(namespace, runtimes(), [document(member) for member in members])
    stage.act_all(namespace, {member: member.early for member in members})
    for member in members:
        if not member.late and member.ends:
            _ended(stage, stage.trainjob(namespace, member.name), member)
    stage.settle()


def _touched(before: dict[str, Tree], after: dict[str, Tree]) -> list[str]:
    """Return what was changed, made or deleted."""
    return sorted(name for name in {*before, *after} if _trace(before.get(name)) != _trace(after.get(name)))


def _trace(item: Tree | None) -> tuple[object, ...]:
    """Return what tells if an object was changed: a JobSet by identity, spec and labels, another by any write."""
    if item is None:
        return ()
    metadata = item["metadata"]
    if item["spec"].get("replicatedJobs") is None:
        return metadata["uid"], metadata["resourceVersion"]
    return metadata["uid"], metadata["generation"], metadata.get("labels"), metadata.get("annotations"), item["spec"]


def _finish(stage: Stage, namespace: str, members: tuple[Member, ...]) -> list[str]:
    """Bring each job to its end under the operator that runs now; return those that ended otherwise."""
    stage.act_all(namespace, {member: member.late for member in members})
    wrong = []
    for member in members:
        path = stage.trainjob(namespace, member.name)
        if not member.ends:
            if not set(stage.get(path).get("status", {})) <= {"phase", "reason"}:
                wrong.append(f"{member.name}: is another controller's and has a status")
            continue
        entry = _ended(stage, path, member)
        if entry["reason"] != member.reason:
            wrong.append(f"{member.name}: {entry['reason']}, not {member.reason}")
    return wrong


def _ended(stage: Stage, path: str, member: Member) -> Tree:
    entry: Tree = stage.until(f"{member.name} is {member.ends}", lambda: stage.condition(path, member.ends, "True"))
    return entry


def test_ours_takes_over(stage: Stage, report: SuiteReport) -> None:
    _begin(stage, THERE, MEMBERS)
    before = stage.rested(THERE)
    statuses = _statuses(stage, THERE)
    stage.to_ours()
    touched = _touched(before, stage.kept(THERE))
    report.figure("takeover_jobs", len(MEMBERS))
    report.figure("takeover_touched", len(touched))
    assert len(before) > len(MEMBERS), "there must be something that could be touched"
    assert touched == []
    assert _statuses(stage, THERE) == statuses
    assert _finish(stage, THERE, MEMBERS) == []
    assert _without_digest(stage, THERE) == {member.name for member in MEMBERS if _is_over(member)}


def test_the_reference_takes_back(stage: Stage, report: SuiteReport) -> None:
    members = tuple(member for member in MEMBERS if member.returns)
    stage.turn_progress_off()
    _begin(stage, BACK, members)
    before = stage.rested(THERE, BACK)
    statuses = _statuses(stage, BACK)
    stage.to_reference()
    touched = _touched(before, stage.kept(THERE, BACK))
    report.figure("takeback_jobs", len(members))
    report.figure("takeback_touched", len(touched))
    assert touched == []
    assert _statuses(stage, BACK) == statuses
    assert _finish(stage, BACK, members) == []


def _counts(status: Tree) -> bool:
    """Tell if any Job of a TrainJob has, or had, pods."""
    counts = ("active", "ready", "succeeded", "failed")
    return any(job[count] for job in status.get("jobsStatus", ()) for count in counts)


def _is_over(member: Member) -> bool:
    """Tell if a job has ended before it is taken over, or is another controller's."""
    return not member.ends or (not member.late and member.ends != "Suspended")


def _without_digest(stage: Stage, namespace: str) -> set[str]:
    """Return the jobs of which nothing says what they began with."""
    items = stage.get(stage.trainjob(namespace, ""))["items"]
    return {item["metadata"]["name"] for item in items if "runtimeDigest" not in item.get("status", {})}


def _statuses(stage: Stage, namespace: str) -> dict[str, object]:
    """Return each TrainJob's status without the words of its messages, and without the fields that are ours alone.

    And without the counts of one that is held back and has no pods, which ours does not write (`held-counts`).
    """
    found = {}
    for item in stage.get(stage.trainjob(namespace, ""))["items"]:
        status = item.get("status", {})
        for field in ADDED:
            status.pop(field, None)
        for entry in status.get("conditions", ()):
            entry.pop("message")
            if (entry["type"], entry["status"]) == ("Suspended", "True") and not _counts(status):
                status.pop("jobsStatus", None)
        found[item["metadata"]["name"]] = status
    return found
