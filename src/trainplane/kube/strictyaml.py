"""YAML that somebody else wrote, read as plain data and nothing more.

Reads the parser's events instead of letting a loader make objects of them, so there is nothing that could be made but
texts, truth values, lists and mappings, and the cost is known before it is paid: size, depth and number of values are
bounded, and aliases, by which a few bytes grow into gigabytes, are refused. So is all by which two readers may read two
things: keys that stand twice, merge keys, tags, a second document.

What is wrong is told by its line and never by its text, which may be a secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

import yaml
from yaml import events

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG: Final = "tag:yaml.org,2002:"
_TRUE: Final = frozenset({"true", "True", "TRUE"})
_FALSE: Final = frozenset({"false", "False", "FALSE"})


class Bare(Enum):
    """What a value without quotes can be beside a text, a truth value and nothing."""

    AMBIGUOUS = "a number, or a word that only some readers of YAML take for a truth value"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is read at most."""

    characters: int = 256 * 1024
    """Of the whole text. The largest kubeconfigs that people have are a tenth of it."""
    depth: int = 16
    """Of values within values; a kubeconfig needs 7, and what tools note in its extensions a few more."""
    values: int = 10_000
    """Keys, texts, lists and mappings together: 500 clusters with their users and contexts."""


class Mapping(dict[str, Any]):
    """A mapping that knows the line of each of its keys."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, int] = {}


class Document(NamedTuple):
    """What a text holds: None, bool, str, `Bare`, list or `Mapping`; not to be used if there are problems."""

    content: Any
    problems: tuple[str, ...] = ()


def read(text: str, bounds: Bounds | None = None) -> Document:
    """Return the one document of a text, with all that is wrong with it. Raises nothing, whatever the text is."""
    bounds = bounds or Bounds()
    if len(text) > bounds.characters:
        return Document(None, (f"it is longer than {bounds.characters} characters",))
    builder = _Builder(bounds)
    try:
        for event in yaml.parse(text, _LOADER):
            builder.take(event)
            if builder.is_full:
                break
    except yaml.MarkedYAMLError as error:  # its text quotes the line
        mark = error.problem_mark or error.context_mark
        builder.problems.append("it is not YAML" if mark is None else f"line {mark.line + 1}: this is not YAML")
    except (yaml.YAMLError, UnicodeError):
        builder.problems.append("it has characters that YAML does not allow")
    return Document(builder.content, tuple(builder.problems))


class _Builder:
    """Puts the events of a parser together; what it refuses, it notes and passes over."""

    def __init__(self, bounds: Bounds) -> None:
        self.content: Any = None
        self.problems: list[str] = []
        self.is_full = False
        """Whether there is more than may be read: nothing further is looked at."""
        self._bounds = bounds
        self._open: list[list[Any] | Mapping] = []
        self._keys: list[str | None] = []
        """For each open mapping the key whose value comes next; None while a key comes next, and for lists."""
        self._values = 0
        self._documents = 0

    def take(self, event: events.Event) -> None:
        """Take the next event of the parser."""
        if isinstance(event, events.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                self._refuse(event, "a second document begins: keep one", full=True)
            if event.tags:
                self._refuse(event, "a %TAG directive: remove it")
        elif isinstance(event, events.NodeEvent):
            self._value(event)
        elif isinstance(event, events.SequenceEndEvent | events.MappingEndEvent):
            self._open.pop()
            self._keys.pop()

    def _value(self, event: events.NodeEvent) -> None:
        self._values += 1
        if self._values > self._bounds.values:
            self._refuse(event, f"here it has more than {self._bounds.values} values", full=True)
        if isinstance(event, events.AliasEvent):
            self._refuse(event, "an alias: write the value out")
            self._put(event, None)
            return
        if event.anchor is not None:
            self._refuse(event, "an anchor: remove it")
        if isinstance(event, events.ScalarEvent | events.CollectionStartEvent) and event.tag is not None:
            self._refuse(event, "a tag: remove it")
        if isinstance(event, events.ScalarEvent):
            self._put(event, _resolve(event.value) if event.implicit[0] else event.value, event.value)
            return
        opened: list[Any] | Mapping = Mapping() if isinstance(event, events.MappingStartEvent) else []
        self._put(event, opened)
        self._open.append(opened)
        self._keys.append(None)
        if len(self._open) > self._bounds.depth:
            self._refuse(event, f"more than {self._bounds.depth} levels of values within values", full=True)

    def _put(self, event: events.Event, value: Any, text: str | None = None) -> None:
        """Put a value where it belongs: into the list, or to the key of the mapping, or as the next key."""
        into = self._open[-1] if self._open else None
        if into is None:
            self.content = value
        elif isinstance(into, list):
            into.append(value)
        elif self._keys[-1] is not None:
            into[self._keys[-1]] = value
            self._keys[-1] = None
        else:
            self._keys[-1] = self._key(event, into, text)

    def _key(self, event: events.Event, into: Mapping, text: str | None) -> str:
        if text is None:
            self._refuse(event, "a key that is no text")
            return ""
        if text == "<<":
            self._refuse(event, "a merge key: write the values out")
        if text in into.lines:
            self._refuse(event, f"a key that stands on line {into.lines[text]} already: keep one")
        into.lines.setdefault(text, _line(event))
        return text

    def _refuse(self, event: events.Event, problem: str, *, full: bool = False) -> None:
        self.problems.append(f"line {_line(event)}: {problem}")
        self.is_full = self.is_full or full


def _line(event: events.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark is not None else 0


def _resolve(text: str) -> str | bool | Bare | None:
    """Return what a value without quotes stands for. Times are the texts that they are, as for Kubernetes."""
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    for tag, pattern in _LOADER.yaml_implicit_resolvers.get(text[:1], ()):
        if pattern.match(text):
            if tag == f"{_TAG}null":
                return None
            return Bare.AMBIGUOUS if tag in {f"{_TAG}bool", f"{_TAG}int", f"{_TAG}float"} else text
    return text
