"""Recorded answers of a pinned engine: files of the checkout that tests compare with instead of running the engine.

An answer depends on the question and on the pinned code. So a file's first line has the key of each engine, and every
other line has one answer, the digest of its question, and a checksum. An answer to another question, or of another
release of an engine, is refused, and the message names the command that records it.

    (default)   tests take recorded answers
    RECORD=1    the engine is asked, and the files are written
    WHOLE=1     the engine is asked as well, and an answer that differs from the recorded one fails
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lab.engines import chosen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ROOT: Final = Path(__file__).resolve().parents[1]
RECORD: Final = os.environ.get("RECORD") == "1"
WHOLE: Final = os.environ.get("WHOLE") == "1" and not RECORD
_FIELDS: Final = {"case", "asked", "sum", "answer"}


class RecordedError(Exception):
    """A recorded answer is missing, out of date, or damaged."""


@dataclass(frozen=True)
class Question:
    """A question for an engine: a name, which is unique in its file, and all that the answer depends on, as JSON."""

    name: str
    content: Any

    @property
    def digest(self) -> str:
        """Return the digest of name and content."""
        return _digest([self.name, self.content])


class Recorded:
    """A file of recorded answers.

    Args:
        path: the file; it need not exist.
        engines: names of the engines in `lab.engines` that the answers come from.
        command: the command that records the file, for messages.
        keys: the keys of the engines, for tests.
    """

    def __init__(self, path: Path, engines: Sequence[str], command: str, *, keys: dict[str, str] | None = None) -> None:
        self._path = path
        self._command = command
        self._keys = {name: chosen(name).key() for name in engines} if keys is None else keys
        self._answers: dict[str, tuple[str, Any]] | None = None
        self._lock = threading.Lock()

    def answer(self, question: Question) -> Any:
        """Return the answer to a question.

        Raises:
            RecordedError: there is none, it answers another question, or the file is damaged or of another engine.
        """
        asked, answer = self._read().get(question.name, (None, None))
        if asked == question.digest:
            return answer
        problem = "no recorded answer" if asked is None else "the case changed after its answer was recorded"
        raise RecordedError(f"{_shown(self._path)}: {question.name!r}: {problem}: run `{self._command}`")

    def problems(self, questions: Iterable[Question]) -> list[str]:
        """Return why questions have no valid answer, one line for each; a damaged file is one problem."""
        found = []
        for question in questions:
            try:
                self.answer(question)
            except RecordedError as error:
                found.append(str(error))
        return list(dict.fromkeys(found))

    def strays(self, questions: Iterable[Question]) -> list[str]:
        """Return the names of recorded answers that belong to no question."""
        names = {question.name for question in questions}
        return [name for name in self._read() if name not in names]

    def write(self, answers: Iterable[tuple[Question, Any]]) -> None:
        """Write the file again: these answers, in this order."""
        lines = [_text({"engines": self._keys})]
        names = set()
        for question, answer in answers:
            assert question.name not in names, f"two questions are called {question.name!r}"
            names.add(question.name)
            entry = {"case": question.name, "asked": question.digest, "sum": _sum(answer)}
            # The checksum comes before the answer, so that a line shows first which case it is of.
            lines.append(f"{_text(entry, sort_keys=False)[:-1]},{_text({'answer': answer})[1:]}")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        partial = self._path.with_suffix(".partial")
        partial.write_text("\n".join(lines) + "\n", encoding="utf-8")
        partial.replace(self._path)
        self._answers = None

    def ask(
        self,
        questions: Sequence[Question],
        engine: Callable[[Sequence[Question]], Sequence[Any]],
        agrees: Callable[[Any, Any], bool] = lambda recorded, live: bool(recorded == live),
    ) -> list[Any]:
        """Return the answer to each question, as RECORD and WHOLE say.

        Args:
            questions: all questions of the file: with RECORD=1 it has no other answers.
            engine: asks the engine.
            agrees: compares a recorded answer with one that the engine gives now.

        Raises:
            RecordedError: an answer isn't recorded, or with WHOLE=1 the engine gives another answer.
        """
        if RECORD:
            self.write(zip(questions, engine(questions), strict=True))
        if problems := self.problems(questions):
            raise RecordedError("\n".join(problems))
        recorded = [self.answer(question) for question in questions]
        if WHOLE:
            pairs = zip(questions, recorded, engine(questions), strict=True)
            differing = [(question, kept, live) for question, kept, live in pairs if not agrees(kept, live)]
            if differing:
                raise RecordedError("\n".join(self._difference(*one) for one in differing))
        return recorded

    def _difference(self, question: Question, recorded: Any, live: Any) -> str:
        left, right = (_text(one)[:2000] for one in (recorded, live))
        head = f"{_shown(self._path)}: {question.name!r}: the engine's answer differs from the recorded one"
        return f"{head}; if it should, run `{self._command}`\n    recorded {left}\n    engine   {right}"

    def _read(self) -> dict[str, tuple[str, Any]]:
        """Return digest and answer by the name of the question."""
        with self._lock:
            if self._answers is None:
                self._answers = self._load()
            return self._answers

    def _load(self) -> dict[str, tuple[str, Any]]:
        if not self._path.exists():
            return {}
        found: dict[str, tuple[str, Any]] = {}
        # Only "\n" ends a line: an answer can have other characters that `splitlines` splits at.
        for number, line in enumerate(self._path.read_bytes().removesuffix(b"\n").split(b"\n"), 1):
            try:
                read = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise self._refused(number, f"not a line of JSON ({error})") from error
            if number == 1:
                self._check_engines(read)
            elif not isinstance(read, dict) or read.keys() != _FIELDS or not isinstance(read["case"], str):
                raise self._refused(number, f"must be an object with the fields {', '.join(sorted(_FIELDS))}")
            elif read["sum"] != _sum(read["answer"]):
                raise self._refused(number, f"{read['case']!r}: the answer doesn't match its checksum")
            elif read["case"] in found:
                raise self._refused(number, f"{read['case']!r}: a second answer")
            else:
                found[read["case"]] = (read["asked"], read["answer"])
        return found

    def _check_engines(self, head: Any) -> None:
        if not isinstance(head, dict) or head.keys() != {"engines"} or not isinstance(head["engines"], dict):
            raise self._refused(1, "must be an object with the field engines")
        for name, key in self._keys.items():
            if (recorded := head["engines"].get(name)) != key:
                raise self._refused(1, f"recorded with {name} {recorded}, the checkout pins {name} {key}")

    def _refused(self, number: int, problem: str) -> RecordedError:
        return RecordedError(f"{_shown(self._path)}:{number}: {problem}: run `{self._command}`")


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


def _text(value: Any, *, sort_keys: bool = True) -> str:
    return json.dumps(value, sort_keys=sort_keys, ensure_ascii=False, separators=(",", ":"))


def _digest(value: Any) -> str:
    return hashlib.sha256(_text(value).encode()).hexdigest()[:16]


def _sum(answer: Any) -> str:
    return _digest(answer)[:8]
