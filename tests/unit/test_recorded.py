"""Recorded answers: they come back as they were written, and none outlives its question or the pinned engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import recorded
from tests.recorded import Question, Recorded, RecordedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ASKED = (Question("one", {"a": [1, 2]}), Question("two", {"b": "é\u2028"}))
ANSWERS: tuple[Any, ...] = ({"x": None, "y": [True, 1.5, "é\u2028"]}, "")
KEYS = {"engine": "k1"}


def file(folder: Path, **keys: str) -> Recorded:
    return Recorded(folder / "some.jsonl", (), "RECORD=1 make some", keys=keys or KEYS)


@pytest.fixture(autouse=True)
def by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the mode of the run."""
    monkeypatch.setattr(recorded, "RECORD", False)
    monkeypatch.setattr(recorded, "WHOLE", False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a file with both answers."""
    file(tmp_path).write(zip(ASKED, ANSWERS, strict=True))
    return tmp_path / "some.jsonl"


def test_answers_are_read_as_they_were_written(path: Path) -> None:
    read = file(path.parent)
    assert [read.answer(one) for one in ASKED] == list(ANSWERS)
    assert read.problems(ASKED) == []
    assert read.strays(ASKED[:1]) == ["two"]


def test_two_recordings_of_the_same_are_equal_byte_by_byte(path: Path) -> None:
    before = path.read_bytes()
    reordered = {"y": ANSWERS[0]["y"], "x": None}
    file(path.parent).write([(Question("one", {"a": [1, 2]}), reordered), (ASKED[1], "")])
    assert path.read_bytes() == before


def test_a_file_has_a_line_for_the_engines_and_one_for_each_answer(path: Path) -> None:
    lines = path.read_text().removesuffix("\n").split("\n")
    assert json.loads(lines[0]) == {"engines": KEYS}
    assert [json.loads(line)["case"] for line in lines[1:]] == ["one", "two"]


@pytest.mark.parametrize(
    ("question", "problem"),
    [
        (Question("three", 1), "some.jsonl: 'three': no recorded answer: run `RECORD=1 make some`"),
        (Question("one", {"a": [2, 1]}), "some.jsonl: 'one': the case changed after its answer was recorded: run"),
    ],
)
def test_a_question_without_a_valid_answer_is_refused(path: Path, question: Question, problem: str) -> None:
    with pytest.raises(RecordedError) as caught:
        file(path.parent).answer(question)
    assert str(caught.value).startswith(problem)
    assert file(path.parent).problems([*ASKED, question]) == [str(caught.value)]


def test_without_a_file_every_question_is_a_problem(tmp_path: Path) -> None:
    assert len(file(tmp_path).problems(ASKED)) == 2


def test_another_release_of_an_engine_is_refused(path: Path) -> None:
    with pytest.raises(
        RecordedError, match=r"some\.jsonl:1: recorded with engine k1, the checkout pins engine k2: run"
    ):
        file(path.parent, engine="k2").answer(ASKED[0])


def test_an_engine_that_the_file_does_not_name_is_refused(path: Path) -> None:
    with pytest.raises(RecordedError, match=r":1: recorded with other None, the checkout pins other k"):
        file(path.parent, engine="k1", other="k").answer(ASKED[0])


def _without(line: str, field: str) -> str:
    return json.dumps({key: value for key, value in json.loads(line).items() if key != field})


@pytest.mark.parametrize(
    ("number", "damage", "problem"),
    [
        (1, lambda line: line[:-1], "not a line of JSON"),
        (1, lambda _: "[]", "must be an object with the field engines"),
        (1, lambda _: '{"engines": "x"}', "must be an object with the field engines"),
        (2, lambda line: line[:-2], "not a line of JSON"),
        (2, lambda _: "", "not a line of JSON"),
        (2, lambda _: "[" * 100_000, "not a line of JSON"),
        (2, lambda _: "\udcff", "not a line of JSON"),
        (2, lambda _: "7", "must be an object with the fields answer, asked, case, sum"),
        (3, lambda line: _without(line, "sum"), "must be an object with the fields"),
        (3, lambda line: line.replace('"two"', "2"), "must be an object with the fields"),
        (2, lambda line: line.replace("1.5", "2.5"), "'one': the answer doesn't match its checksum"),
        (3, lambda line: line.replace('"two"', '"one"'), "'one': a second answer"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(
    path: Path, number: int, damage: Callable[[str], str], problem: str
) -> None:
    lines = path.read_text().removesuffix("\n").split("\n")
    lines[number - 1] = damage(lines[number - 1])
    path.write_bytes(("\n".join(lines) + "\n").encode(errors="surrogateescape"))
    with pytest.raises(RecordedError) as caught:
        file(path.parent).answer(ASKED[0])
    assert str(caught.value).startswith(f"some.jsonl:{number}: ")
    assert problem in str(caught.value)


# -- modes ------------------------------------------------------------------------------------------------------------


def answering(*answers: Any) -> Callable[[Sequence[Question]], Sequence[Any]]:
    """Return an engine."""

    def engine(questions: Sequence[Question]) -> Sequence[Any]:
        assert list(questions) == list(ASKED)
        return answers

    return engine


def never(questions: Sequence[Question]) -> Sequence[Any]:
    """Fail: no engine may be asked."""
    raise AssertionError(questions)


def test_by_default_no_engine_is_asked(path: Path) -> None:
    assert file(path.parent).ask(ASKED, never) == list(ANSWERS)
    with pytest.raises(RecordedError, match="'three': no recorded answer"):
        file(path.parent).ask([*ASKED, Question("three", 1)], never)


def test_a_recording_replaces_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "RECORD", True)
    assert file(path.parent).ask(ASKED, answering(1, 2)) == [1, 2]
    monkeypatch.setattr(recorded, "RECORD", False)
    assert file(path.parent).ask(ASKED, never) == [1, 2]


def test_the_whole_run_asks_again_and_fails_on_a_difference(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "WHOLE", True)
    read = file(path.parent)
    assert read.ask(ASKED, answering(*ANSWERS)) == list(ANSWERS)
    with pytest.raises(RecordedError) as caught:
        read.ask(ASKED, answering(ANSWERS[0], "new"))
    assert str(caught.value).splitlines() == [
        "some.jsonl: 'two': the engine's answer differs from the recorded one; if it should, run `RECORD=1 make some`",
        '    recorded ""',
        '    engine   "new"',
    ]
    assert read.ask(ASKED, answering(ANSWERS[0], "new"), lambda kept, live: live in (kept, "new")) == list(ANSWERS)


@pytest.mark.parametrize(
    ("variables", "modes"),
    [
        ({}, "False False"),
        ({"RECORD": "1"}, "True False"),
        ({"WHOLE": "1"}, "False True"),
        ({"RECORD": "1", "WHOLE": "1"}, "True False"),
    ],
)
def test_the_environment_chooses_the_mode(variables: dict[str, str], modes: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("RECORD", "WHOLE")} | variables
    code = "from tests.recorded import RECORD, WHOLE; print(RECORD, WHOLE)"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=Path(recorded.__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == modes
