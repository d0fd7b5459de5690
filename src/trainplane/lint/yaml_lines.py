"""YAML, with the line of each part: what a person needs who is told that something is wrong with a file.

Values are read as `kubectl` reads them: a date is a text, `yes` is true. The file may be anybody's: its length, the
values that aliases and merges come to and the length of a number are bounded before they are paid for.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from trainplane.api.bounds import MOST_VALUES, too_deep, too_many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.admission.schema_validation import Path

MOST_LETTERS: Final = 1 << 20
"""Characters of a file: a hundred times our largest runtime, and some seconds for the parser."""
_LONGEST_NUMBER: Final = 80
"""Characters of a number: 64 bits in base 2, with a sign and some underscores."""
_NUMBERS: Final = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})
_MERGE: Final = "tag:yaml.org,2002:merge"
_READ_AS_TEXT: Final = frozenset({"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:binary", "tag:yaml.org,2002:value"})


class UnreadableError(Exception):
    """The text is no YAML, or none that an object can be made of; `line` says where."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.problem = problem


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One document of a file."""

    tree: Any
    lines: dict[Path, int]
    """The line of every field and entry; that of the document itself is at `()`."""
    repeated: tuple[tuple[Path, int], ...]
    """Fields that an object has twice, with the line of the second. The second counts."""

    def line_of(self, path: Path) -> int:
        """Return the line of a part, or of the part around it if it is not there."""
        while path not in self.lines:
            path = path[:-1]
        return self.lines[path]


def read(text: str) -> Iterator[YamlDocument]:
    """Yield the documents of a file; empty ones are left out.

    Raises:
        UnreadableError: at the document that cannot be read.
    """
    if len(text) > MOST_LETTERS:
        raise UnreadableError(1, f"the file has more than {MOST_LETTERS} characters and is not read: split it")
    try:
        loader = yaml.SafeLoader(text)
        while loader.check_node():
            node = loader.get_node()
            if node is not None and not (node.tag == "tag:yaml.org,2002:null" and not node.value):
                yield _Reader(loader).document(node)
    except RecursionError as error:
        raise UnreadableError(1, f"the document {too_deep()}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise UnreadableError(mark.line + 1 if mark else 1, f"no YAML: {error.problem or error.context}") from error
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1 if isinstance(error.position, int) else 1
        raise UnreadableError(line, f"no YAML: {error.reason}") from error


class _Reader:
    """Makes a tree of one document, and notes lines on the way."""

    def __init__(self, loader: yaml.SafeLoader) -> None:
        self._loader = loader
        self._lines: dict[Path, int] = {}
        self._repeated: list[tuple[Path, int]] = []
        self._around: list[yaml.Node] = []
        self._values = 0

    def document(self, node: yaml.Node) -> YamlDocument:
        self._lines[()] = _line(node)
        return YamlDocument(self._value(node, ()), self._lines, tuple(self._repeated))

    def _value(self, node: yaml.Node, path: Path) -> Any:
        self._count()
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        with self._inside(node):
            return self._mapping(node, path) if isinstance(node, yaml.MappingNode) else self._list(node, path)

    def _count(self) -> None:
        self._values += 1
        if self._values > MOST_VALUES:  # a few anchors can come to any number
            raise UnreadableError(self._lines[()], f"the document {too_many()}")

    @contextlib.contextmanager
    def _inside(self, node: yaml.Node) -> Iterator[None]:
        if any(node is one for one in self._around):
            raise UnreadableError(_line(node), "an anchor is used inside what it names")
        self._around.append(node)
        try:
            yield
        finally:
            self._around.pop()

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        if node.tag in _READ_AS_TEXT:
            return node.value
        if node.tag in _NUMBERS and len(node.value) > _LONGEST_NUMBER:
            raise UnreadableError(_line(node), f"a number of {len(node.value)} characters: no field holds such a one")
        try:
            return self._loader.construct_object(node)
        except ValueError as error:
            raise UnreadableError(_line(node), f"{node.value!r} cannot be read: {error}") from error

    def _list(self, node: yaml.Node, path: Path) -> list[Any]:
        values = []
        for index, below in enumerate(node.value):
            self._lines[(*path, index)] = _line(below)
            values.append(self._value(below, (*path, index)))
        return values

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        said: set[str] = set()
        for key, below in (*self._merged(node), *_own(node)):
            if not isinstance(key, yaml.ScalarNode):
                raise UnreadableError(_line(key), "the name of a field must be a text")
            name = key.value
            self._lines[(*path, name)] = _line(key)
            values[name] = self._value(below, (*path, name))
        for key, _ in _own(node):
            if key.value in said:
                self._repeated.append(((*path, key.value), _line(key)))
            said.add(key.value)
        return values

    def _merged(self, node: yaml.MappingNode) -> Iterator[tuple[yaml.Node, yaml.Node]]:
        """Yield the fields that `<<` brings, the weakest first: what a mapping says itself wins over them."""
        for key, brought in node.value:
            if key.tag != _MERGE:
                continue
            for one in reversed(brought.value) if isinstance(brought, yaml.SequenceNode) else (brought,):
                if not isinstance(one, yaml.MappingNode):
                    raise UnreadableError(_line(key), "`<<` can bring objects only")
                with self._inside(one):
                    for field in (*self._merged(one), *_own(one)):
                        self._count()
                        yield field


def _own(node: yaml.MappingNode) -> list[tuple[yaml.Node, yaml.Node]]:
    return [(key, below) for key, below in node.value if key.tag != _MERGE]


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
