"""What is Kueue's in a TrainJob stays Kueue's: its entry, and when a queued job begins."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.admission.objects import KUEUE, OURS, entry, plain, replicated_job, runtime, trainjob, with_spec
from trainplane.admission.defaulting import default_trainjob, needs_runtime
from trainplane.admission.trainjobs import validate_trainjob
from trainplane.api import names
from trainplane.api import tree as trees

if TYPE_CHECKING:
    from trainplane.admission.defaulting import Defaulted
    from trainplane.api.tree import Tree
    from trainplane.render.findings import Verdict

APPLIED_AGAIN = ("semantics", 1, "a file applied again deleted Kueue's entry, so that the queued job never started")
NOW = datetime(2026, 3, 4, tzinfo=UTC)
THEN = "2025-01-01T00:00:00Z"
ME, YOU = "example.com/me", "example.com/you"
PLACED: dict[str, Any] = {"nodeSelector": {"tier": "cheap"}}


def stored(*entries: Tree, queue: str = "queue", suspend: bool = True) -> Tree:
    job = trainjob(suspend=suspend, runtimePatches=list(entries))
    return trees.put(job, "metadata", "labels", value={names.LABEL_QUEUE: queue} if queue else {})  # type: ignore[no-any-return]


def sent(old: Tree, *entries: Tree, **spec: Any) -> Defaulted:
    """Return what becomes of a TrainJob whose list of patches was replaced."""
    return default_trainjob(with_spec(old, runtimePatches=list(entries) or None, **spec), old, now=NOW)


def judged(new: Tree, old: Tree | None = None) -> Verdict:
    return validate_trainjob(new, old, runtime=runtime(), runtime_source="live", jobset=None, pipeline=plain())


class TestTheEntryComesBack:
    @pytest.mark.finding(*APPLIED_AGAIN)
    @pytest.mark.parametrize("pod", [{}, PLACED], ids=["queued", "admitted"])
    def test_when_a_file_without_it_is_applied(self, pod: Any) -> None:
        old = stored(entry(ME, time=THEN, nodeSelector={"a": "b"}), entry(KUEUE, time=THEN, **pod))
        assert sent(old, entry(ME, nodeSelector={"a": "b"})).tree == old

    @pytest.mark.finding(*APPLIED_AGAIN)
    def test_when_a_file_without_any_patch_replaces_the_job(self) -> None:
        old = stored(entry(KUEUE, time=THEN))
        assert sent(old).tree == old

    @pytest.mark.finding(*APPLIED_AGAIN)
    def test_while_running_an_unchanged_file_is_no_edit(self) -> None:
        old = stored(entry(ME, time=THEN), entry(KUEUE, time=THEN, **PLACED), suspend=False)
        again = sent(old, entry(ME)).tree
        assert again == old
        assert judged(again, old).allowed

    @pytest.mark.parametrize(
        ("before", "new", "after"),
        [
            ([ME, KUEUE], [ME], [ME, KUEUE]),
            ([KUEUE, ME], [ME], [KUEUE, ME]),
            ([ME, KUEUE, YOU], [ME, YOU], [ME, KUEUE, YOU]),
            ([ME, KUEUE], [YOU], [KUEUE, YOU]),
            ([ME, KUEUE], [YOU, ME], [YOU, ME, KUEUE]),
            ([OURS, KUEUE], [], [KUEUE]),
            ([KUEUE], [KUEUE, ME], [KUEUE, ME]),
        ],
    )
    def test_behind_those_that_it_stood_behind(self, before: list[str], new: list[str], after: list[str]) -> None:
        tree = sent(stored(*map(entry, before)), *map(entry, new)).tree
        assert [one["manager"] for one in tree["spec"]["runtimePatches"]] == after

    def test_resources_of_a_job_that_only_its_entry_shows_to_be_counted_are_looked_at(self) -> None:
        """The file has them as its author wrote them; without the runtime that would look like an edit."""
        old = stored(entry(KUEUE), queue="")
        old["spec"]["trainer"] = {"resourcesPerNode": {"requests": {"cpu": "1", "memory": "1Gi"}}}
        new = with_spec(old, runtimePatches=None, trainer={"resourcesPerNode": {"requests": {"cpu": "1"}}})
        assert needs_runtime(new, old)
        pods = replicated_job()
        pods["template"]["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"memory": "1Gi"}}
        assert default_trainjob(new, old, now=NOW, runtime=runtime(pods)).tree == old

    @pytest.mark.parametrize("wrong", ["text", 3, {"a": "b"}])
    def test_not_over_what_is_no_list(self, wrong: Any) -> None:
        old = stored(entry(KUEUE))
        new = with_spec(old, runtimePatches=wrong)
        assert default_trainjob(new, old, now=NOW).tree == new


class TestAForgedEntry:
    def test_in_a_new_job_is_left_out_with_a_word(self) -> None:
        done = default_trainjob(trainjob(runtimePatches=[entry(ME), entry(KUEUE, **PLACED)]), None, now=NOW)
        assert [one["manager"] for one in done.tree["spec"]["runtimePatches"]] == [ME]
        assert any("is left out: Kueue writes this entry itself" in one for one in done.warnings)

    def test_makes_room_for_the_one_that_kueue_brings(self) -> None:
        """A document from a cluster has its entry; Kueue adds another without a look."""
        both = trainjob(runtimePatches=[entry(KUEUE, **PLACED), entry(ME), entry(KUEUE)])
        done = default_trainjob(both, None, now=NOW)
        assert [one["manager"] for one in done.tree["spec"]["runtimePatches"]] == [ME, KUEUE]
        twice = default_trainjob(trainjob(runtimePatches=[entry(KUEUE), entry(KUEUE)]), None, now=NOW)
        assert [one["manager"] for one in twice.tree["spec"]["runtimePatches"]] == [KUEUE]
        assert not twice.warnings

    def test_of_kueues_own_nothing_is_said(self) -> None:
        done = default_trainjob(trainjob(runtimePatches=[entry(ME), entry(KUEUE)]), None, now=NOW)
        assert [one["manager"] for one in done.tree["spec"]["runtimePatches"]] == [ME, KUEUE]
        assert not done.warnings

    def test_is_refused_where_it_was_not_left_out(self) -> None:
        forged = trainjob(suspend=True, runtimePatches=[entry(KUEUE, **PLACED)])
        for old in (None, trainjob(suspend=True)):
            (finding,) = judged(forged, old).errors
            assert finding.path == f"spec.runtimePatches[manager={KUEUE}]"
            assert "Kueue's to write" in finding.problem

    def test_metadata_counts_too(self) -> None:
        forged = entry(KUEUE)
        forged["trainingRuntimeSpec"]["template"]["metadata"] = {"labels": {"a": "b"}}
        assert not judged(trainjob(runtimePatches=[forged])).allowed

    @pytest.mark.parametrize("part", [{}, {"trainingRuntimeSpec": {}}, {"trainingRuntimeSpec": {"template": {}}}])
    def test_without_the_place_that_kueue_writes_into_is_refused(self, part: Tree) -> None:
        """Kueue follows the path without a look, and would break at every try."""
        old = stored(entry(KUEUE))
        assert not judged(with_spec(old, runtimePatches=[{"manager": KUEUE, **part}]), old).allowed

    def test_kueue_writes_as_it_likes(self) -> None:
        old = stored(entry(ME, time=THEN), entry(KUEUE, time=THEN))
        admitted = sent(old, entry(ME, time=THEN), entry(KUEUE, **PLACED)).tree
        assert trees.get(admitted, "spec", "runtimePatches", 1, "trainingRuntimeSpec") == entry(KUEUE, **PLACED).get(
            "trainingRuntimeSpec"
        )
        assert judged(admitted, old).allowed
        begins = with_spec(admitted, suspend=False)
        assert default_trainjob(begins, admitted, now=NOW).tree == begins
        stopped = with_spec(begins, suspend=True)
        assert default_trainjob(stopped, begins, now=NOW).tree == stopped
        cleared = with_spec(stopped, runtimePatches=[entry(ME, time=THEN), entry(KUEUE)])
        assert judged(default_trainjob(cleared, stopped, now=NOW).tree, stopped).allowed


class TestAQueuedJobBegins:
    def test_not_by_the_default_of_a_file_that_does_not_say_it(self) -> None:
        done = sent(stored(entry(KUEUE, time=THEN)), suspend=False)
        assert done.tree["spec"]["suspend"] is True
        assert any("Kueue starts this TrainJob" in one for one in done.warnings)

    @pytest.mark.parametrize(
        "old",
        [
            pytest.param(stored(entry(KUEUE, **PLACED)), id="admitted"),
            pytest.param(stored(entry(KUEUE), queue=""), id="in no queue"),
            pytest.param(stored(entry(ME)), id="not of Kueue's"),
            pytest.param(stored(entry(KUEUE), suspend=False), id="running"),
        ],
    )
    def test_else_as_it_is_told(self, old: Tree) -> None:
        begins = with_spec(old, suspend=False)
        assert default_trainjob(begins, old, now=NOW).tree["spec"]["suspend"] is False

    def test_a_new_one_is_kueues_to_suspend(self) -> None:
        new = stored(entry(KUEUE), suspend=False)
        assert default_trainjob(new, None, now=NOW).tree["spec"]["suspend"] is False
