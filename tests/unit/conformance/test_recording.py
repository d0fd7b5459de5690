"""A recording says again what was said, step by step, also out of a file."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.cases import Case, Create, Remove
from tests.conformance.documents import runtime, train_job
from tests.conformance.drive import Run
from tests.conformance.mutation.recording import Recorder, Recording, Replayed
from tests.conformance.side import OBSERVED, Answer

if TYPE_CHECKING:
    from pathlib import Path

CASE = Case("one", (Create(train_job()), Remove("TrainJob")), (runtime(),))
OTHER = Case("two", (Create(train_job()),), (runtime(),))


class Canned(Recorder):
    """A recorder whose API server lists one object for each write so far, the same in all namespaces."""

    def __init__(self) -> None:
        self.prefix = "rc"
        self._told = {}
        self._lock = threading.Lock()
        self.writes = 0

    def send(self, method: str, path: str, body: Any = None, content_type: str = "") -> Answer:
        del body, content_type
        if method != "GET":
            self.writes += 1
            return Answer(200 + self.writes, {"path": path}, ("careful",))
        namespace = path.partition("/namespaces/")[2].partition("/")[0]
        named = [{"metadata": {"name": f"n-{number}", "namespace": namespace}} for number in range(self.writes)]
        return Answer(200, {"items": named})


def recorded() -> tuple[Recording, list[Answer], list[dict[str, Any]]]:
    """Return a recording of a case's life, and what was said at the time."""
    side, answers, seen = Canned(), [], []
    where = side.namespace(7)
    for step in (Create(CASE.setup[0]), *CASE.steps):
        answers.append(side.perform(step, where))
        side.observe([where])
        seen.append(side.observe([where, side.namespace(8)]))
    return side.recording([Run(CASE, 7)]), answers, seen


@pytest.mark.parametrize("of_file", [False, True])
def test_what_was_said_is_said_again(tmp_path: Path, of_file: bool) -> None:
    recording, answers, seen = recorded()
    if of_file:
        recording.save(tmp_path / "kept/recording.json.gz")
        recording = Recording.load(tmp_path / "kept/recording.json.gz")
    side = Replayed(recording)
    for first in (0, 1):  # a case can be told again, under its next number
        side.expect([CASE])
        where = side.namespace(first)
        for step, answer, objects in zip((Create(CASE.setup[0]), *CASE.steps), answers, seen, strict=True):
            told = side.perform(step, where)
            assert (told.code, told.warnings) == (answer.code, answer.warnings)
            assert told.body == {"path": answer.body["path"].replace("rc-00007-ns", where)}
            mine = {
                kind: [item["metadata"]["name"] for item in items if item["metadata"]["namespace"] == "rc-00007-ns"]
                for kind, items in objects.items()
            }
            again = {kind: side.observe([where])[kind] for kind in OBSERVED}
            assert {kind: [item["metadata"]["name"] for item in items] for kind, items in again.items()} == mine
            assert {item["metadata"]["namespace"] for items in again.values() for item in items} <= {where}


def test_cases_of_two_sessions_do_not_share_a_namespace(tmp_path: Path) -> None:
    kept, _, _ = recorded()
    kept.save(tmp_path / "recording.json.gz")
    namespaces = {one.of(CASE).namespace for one in (kept, Recording.load(tmp_path / "recording.json.gz"))}
    assert len(namespaces) == 2
    assert {len(name) for name in namespaces} == {len("rc-00007-ns")}


def test_a_case_that_says_something_else_is_not_known() -> None:
    recording, _, _ = recorded()
    assert CASE in recording
    assert Case("one", CASE.steps[:1], CASE.setup) not in recording
    with pytest.raises(KeyError):
        Replayed(recording).expect([OTHER])
