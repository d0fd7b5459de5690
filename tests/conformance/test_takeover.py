"""A cluster changes from the reference to ours and back: no JobSet, Job or pod notices, and every job ends well."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conformance import takeover_kinds as kinds
from tests.conformance.compare import tree_differences
from tests.conformance.context import plain
from tests.conformance.takeover import MEMBERS, document, runtimes
from tests.conformance.takeover_kinds import KINDS
from tests.conformance.takeover_stage import Stage
from tests.day import seed
from tests.size import FULL
from trainplane.operator.status import ADDED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conformance.cases import Tree
    from tests.conformance.takeover import Member
    from tests.suite import SuiteReport

DOCUMENT = Path(__file__).parents[2] / "docs/conformance.md"
THERE, BACK, FROZEN = "there", "back", "frozen"
TRIED = tuple(kind for number, kind in enumerate(KINDS) if FULL or kind.is_always_tried or number % 3 == seed() % 3)
"""Without FULL=1, a third of the kinds that are not always tried, by the seed."""
_WITH_PROGRESS = TRIED[0]
_STOPPED = tuple(kind for kind in TRIED if kind.name in ("torch", "mpi", "flux"))
ALL = (
    *MEMBERS,
    *(kind.suspended() for kind in TRIED if kind.is_possible),
    *(kind.running() for kind in TRIED if kind.framework),
)
"""Those of all states, then those of all kinds: suspended, and of each framework one that runs."""


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    stage = Stage(f"takeover-{os.getpid()}")
    yield stage
    stage.close()


def _begin(stage: Stage, namespace: str, members: tuple[Member, ...]) -> None:
    """Make the jobs, and bring each into its state under the operator that runs now."""
    stage.populate(namespace, _runtimes(), [document(member) for member in members])
    stage.act_all(namespace, {member: member.early for member in members})
    for member in members:
        if not member.late and member.ends:
            _ended(stage, stage.trainjob(namespace, member.name), member)
    stage.settle()


def _runtimes() -> list[Tree]:
    return [*runtimes(), *(kind.runtime for kind in TRIED)]


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


@pytest.mark.reference
def test_ours_takes_over(stage: Stage, report: SuiteReport) -> None:
    _begin(stage, THERE, ALL)
    before = stage.rested(THERE)
    statuses = _statuses(stage, THERE)
    stage.to_ours()
    touched = _touched(before, stage.rested(THERE))
    report.figure("takeover_jobs", len(ALL))
    report.figure("takeover_touched", len(touched))
    assert len(before) > len(ALL), "there must be something that could be touched"
    assert touched == []
    assert _statuses(stage, THERE) == statuses
    assert _finish(stage, THERE, ALL) == []
    assert _without_digest(stage, THERE) == {member.name for member in ALL if _is_over(member)}


@pytest.mark.reference
def test_the_reference_takes_back(stage: Stage, report: SuiteReport) -> None:
    members = tuple(member for member in ALL if member.returns)
    stage.populate(FROZEN, _runtimes(), [kinds.document(_WITH_PROGRESS, "with-progress", suspend=True)])
    stage.settle()
    stage.turn_progress_off()
    _begin(stage, BACK, members)
    _begin_frozen(stage)
    before = stage.rested(THERE, BACK, FROZEN)
    statuses = _statuses(stage, BACK)
    stage.to_reference()
    # What it finds when it starts comes after what is new: that it has come tells the one thing that it does change.
    stage.until("its TTL is there", lambda: "ttlSecondsAfterFinished" in stage.jobset(BACK, "ttl-held")["spec"])
    touched = _touched(before, stage.rested(THERE, BACK, FROZEN))
    report.figure("takeback_jobs", len(members))
    report.figure("takeback_touched", len(touched))
    # Ours leaves the TTL out until the job's end is told, and the reference does not.
    assert touched == [f"JobSet {BACK}/ttl-held"]
    assert _statuses(stage, BACK) == statuses
    assert _finish(stage, BACK, members) == []


def _begin_frozen(stage: Stage) -> None:
    """Make, under ours, the jobs that the reference cannot take back: suspended ones, and some that run."""
    for kind in TRIED:
        if kind.frozen:
            stage.populate(FROZEN, [], [kinds.document(kind, f"{kind.name}-held", suspend=True)])
    stage.populate(FROZEN, [], [kinds.document(kind, kind.name) for kind in _STOPPED])
    stage.act_all(FROZEN, {kind.running(): ("start",) for kind in _STOPPED})
    stage.settle()


@pytest.mark.reference
def test_what_jobset_freezes(stage: Stage, report: SuiteReport) -> None:
    """Of jobs of ours that the reference cannot resume, the fields in which it makes the JobSet otherwise."""
    held = {f"{kind.name}-held": kind.frozen for kind in TRIED if kind.frozen}
    held["with-progress"] = kinds.OF_PROGRESS
    found = dict(zip(held, stage.each(lambda name: _thawed(stage, name), held), strict=True))
    report.figure("takeback_frozen", sum(map(bool, found.values())))
    assert found == held


@pytest.mark.reference
def test_a_job_that_cannot_be_suspended_runs_on(stage: Stage) -> None:
    names = [kind.name for kind in _STOPPED]
    assert stage.each(lambda name: stage.ask(FROZEN, name, stop=True), names) == [False] * len(names)
    for name in names:
        assert stage.ask(FROZEN, name, stop=False)
    stage.act_all(FROZEN, {kind.running(): ("succeed",) for kind in _STOPPED})
    for kind in _STOPPED:
        assert _ended(stage, stage.trainjob(FROZEN, kind.name), kind.running())["reason"] == "AllJobsCompleted"


def test_kinds_of_jobs_are_documented() -> None:
    text = DOCUMENT.read_text()
    assert [kind.name for kind in KINDS if kinds.row(kind) not in text] == []


def _thawed(stage: Stage, name: str) -> tuple[str, ...]:
    """Resume a job under the reference, which JobSet refuses; return what another JobSet, made anew, has otherwise."""
    if stage.ask(FROZEN, name, stop=False):
        return ()
    ours, theirs = stage.jobset(FROZEN, name), stage.make_anew(FROZEN, name)
    assert not theirs["spec"].get("suspend"), f"{name} does not run"
    found = tree_differences(ours["spec"]["replicatedJobs"], theirs["spec"]["replicatedJobs"])
    places = [re.search(r".*template\.spec\.(?:(?:initC|c)ontainers\.)?(\w+)", plain(path)) for path, _, _ in found]
    return tuple(sorted({place[1] if place else "?" for place in places}))


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
