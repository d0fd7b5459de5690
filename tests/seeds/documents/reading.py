"""What the documents say, piece by piece: YAML, commands, Python, rows of tables, entries of lists.

The documents are not ours to copy: they lie beside the repository, and a clone without them has nothing to read. Three
were taken from rendered pages and have lost their fences, two of these their indentation as well. What is what is told
by rules about lines, which know nothing of any one document:

- code begins with a lower-case letter or a sign, headings and sentences with a capital;
- YAML begins with a key that stands alone or with `apiVersion:`, Python with an import, a command with its program;
- a list whose entries were run together has a dash in each of them.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from lab.paths import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FOLDER: Final = REPOSITORY.parent / "shared" / "seeds"
Kind = Literal["yaml", "command", "python", "row", "item", "sentence"]

_YAML: Final = re.compile(r"apiVersion: \S+$|[a-z]\w*:$")
_COMMAND: Final = re.compile(r"(kubectl|helm|export) ")
_PYTHON: Final = re.compile(r"(from|import) \S+")
_ITEM: Final = re.compile(r"(- |• )")
_CODE_WORD: Final = re.compile(r"[a-z/.)]|[A-Z]+_|[A-Z][a-z]+[A-Z]")
"""How a word begins that is code, as a line does which goes on with what was set in another face."""
_SENTENCE_WORDS: Final = 6
"""What has fewer words is a heading, or a link of the page around the text; what begins with code, no heading."""
_FENCE: Final = "```"
_RULE: Final = re.compile(r"\|[-| ]+\|$")


@dataclass(frozen=True)
class Statement:
    """A piece of a document."""

    document: str
    kind: Kind
    number: int
    text: str

    @property
    def id(self) -> str:
        return f"{self.document}-{self.kind}-{self.number}"

    @property
    def digest(self) -> str:
        """A few digits that change when the document's words do; its white space does not count."""
        return hashlib.sha256("".join(self.text.split()).encode()).hexdigest()[:8]


def documents() -> list[Path]:
    """Return the documents, none in a clone that has them not beside it."""
    return sorted(FOLDER.glob("[0-9]*.txt"))


def statements() -> list[Statement]:
    """Return every statement of every document, in order."""
    found = []
    for path in documents():
        numbers: Counter[Kind] = Counter()
        for kind, text in pieces(path.read_text()):
            numbers[kind] += 1
            found.append(Statement(path.name.partition("_")[0], kind, numbers[kind], text))
    return found


def pieces(text: str) -> Iterator[tuple[Kind, str]]:
    """Yield the pieces of a document that say something, with their kind."""
    lines = _Lines(_without_front_matter(text.splitlines()))
    while lines:
        line = lines.next.strip()
        if line.startswith(_FENCE):
            yield from _fenced(lines)
        elif line.count("— ") > 1:
            lines.take()
            yield from _run_together(line)
        elif _YAML.match(line):
            yield "yaml", lines.take_while(lambda line: not line[:1].isupper())
        elif _PYTHON.match(line):
            yield "python", _python(lines)
        elif _COMMAND.match(line):
            yield "command", _command(lines)
        elif line.startswith("|") or re.fullmatch(r"Name Type( \w+)* Description", line):
            yield from _table(lines, piped=line.startswith("|"))
        elif _ITEM.match(line):
            yield from _list(lines)
        else:
            lines.take()
            if len(line.split()) >= _SENTENCE_WORDS - bool(_CODE_WORD.match(line)):
                yield "sentence", line


class _Lines:
    """The lines that were not read yet."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._lines)

    @property
    def next(self) -> str:
        return self._lines[self._at]

    def take(self) -> str:
        self._at += 1
        return self._lines[self._at - 1]

    def take_while(self, belongs: Callable[[str], bool]) -> str:
        """Take the next line and those after it that belong to it; blank ones at the end do not count."""
        taken = [self.take()]
        while self and belongs(self.next):
            taken.append(self.take())
        return "\n".join(taken).rstrip() + "\n"


def _without_front_matter(lines: list[str]) -> list[str]:
    if lines[:1] != ["---"]:
        return lines
    return lines[lines.index("---", 1) + 1 :]


def _fenced(lines: _Lines) -> Iterator[tuple[Kind, str]]:
    language = lines.take().strip().removeprefix(_FENCE)
    block = lines.take_while(lambda line: not line.startswith(_FENCE))
    lines.take()
    if language == "yaml":
        yield "yaml", block
    else:
        yield from pieces(block)


def _python(lines: _Lines) -> str:
    open_brackets = 0

    def belongs(line: str) -> bool:
        nonlocal open_brackets
        open_brackets += sum(line.count(sign) for sign in "([{") - sum(line.count(sign) for sign in ")]}")
        return open_brackets > 0 or not line[:1].isupper()

    belongs(lines.next)
    return lines.take_while(belongs)


def _command(lines: _Lines) -> str:
    goes_on = lines.next.endswith("\\")

    def belongs(line: str) -> bool:
        nonlocal goes_on
        before, goes_on = goes_on, line.endswith("\\")
        return before

    return lines.take_while(belongs)


def _table(lines: _Lines, *, piped: bool) -> Iterator[tuple[Kind, str]]:
    """Yield the rows below a table's head: to the last with bars, or to a blank line where there are none."""
    lines.take()
    while lines and (" | " in lines.next or _RULE.match(lines.next) if piped else lines.next.strip()):
        row = lines.take()
        if not _RULE.match(row):
            yield "row", row


def _list(lines: _Lines) -> Iterator[tuple[Kind, str]]:
    """Yield the entries of a list; words in another face begin lines of their own, and entries follow them."""
    text = lines.take_while(lambda line: bool(_ITEM.match(line.strip()) or _CODE_WORD.match(line)))
    for entry in re.split(r"(?:^|\n| )\s*[-•] (?=[A-Z*a-z])", text):
        if entry.strip():
            yield "item", " ".join(entry.split())


def _run_together(line: str) -> Iterator[tuple[Kind, str]]:
    """Yield an entry for each dash, from the one before it to the one after: where one ends cannot be seen."""
    parts = line.split("— ")
    for before, after in itertools.pairwise(parts):
        yield "item", f"{before}— {after}"
