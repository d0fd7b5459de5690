"""YAML that Go and Python read alike.

Snapshots are read by whichever operator runs: ours, or the reference's after a swap back. The two libraries disagree on
which bare words are booleans or numbers (`y`, `1e3`), so only words that nobody can mistake are left bare.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

import yaml

from trainplane.admission.message import shortened
from trainplane.api.bounds import MOST_VALUES, too_deep, too_many

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._/-]*[A-Za-z0-9]")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "nan", "inf"})

_MOST_LETTERS: Final = 1 << 20
"""Characters of a text: all that a ConfigMap holds."""
_DEEPEST: Final = 64
"""Objects and lists in each other: four times what a pod's template has."""
_LONGEST_NUMBER: Final = 80
"""Characters of a number: 64 bits in base 2, with a sign and some underscores."""
_DIRECTIVE: Final = re.compile("(?:\\A\ufeff?|[\n\r\x85\u2028\u2029])%")
_PARSER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one where there is one
_RESOLVERS: Final = {
    first: tuple((tag.rpartition(":")[2], pattern) for tag, pattern in resolvers)
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
"""What a bare word may be by its first letter, in the order in which YAML 1.1 asks."""


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc] # the C one where there is one
    """Quotes whatever could be taken for something else than a string."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 the name is the library's
        """Write shared parts in full: `&id001` is no word of a manifest."""
        return True


def _represent(dumper: Any, text: str) -> Any:
    if "\n" in text:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|")
    bare = _PLAIN.fullmatch(text) is not None and text.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if bare else '"')


_Dumper.add_representer(str, _represent)


def dump(tree: Any) -> str:
    """Return a tree as YAML, keys in order."""
    text: str = yaml.dump(tree, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, width=1 << 16)
    return text


def load(text: str) -> Any:
    """Return the tree of a YAML text that somebody else may have written.

    The text of a snapshot lies where tenants can write. What the library makes of a text can be any number of times its
    size (aliases), may take hours (numbers of base 60) and may end the process (nesting), so it is asked for events
    only, which come one by one, and the tree is made of them here: texts, numbers, lists and objects, each counted.

    Raises:
        yaml.YAMLError: it is no YAML, or has what the YAML of an object never has; the message says what.
    """
    if len(text) > _MOST_LETTERS:
        raise yaml.YAMLError(f"has {len(text)} characters, and no ConfigMap holds more than {_MOST_LETTERS}")
    directive = _DIRECTIVE.search(text)
    if directive is not None:
        raise yaml.YAMLError(f"line {_line(text, directive.start())}: a directive (%) has no meaning here")
    return _Builder().build(yaml.parse(text, Loader=_PARSER))


class _Builder:
    """Makes a tree of YAML's events, without going deeper into the stack as the text does."""

    def __init__(self) -> None:
        self._tree: Any = None
        self._documents = 0
        self._values = 0
        self._around: list[dict[str, Any] | list[Any]] = []
        self._keys: list[str | None] = []
        """For each thing around, the key that waits for its value."""

    def build(self, events: Iterable[Any]) -> Any:
        """Return the tree of all events."""
        takes = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._begin,
            yaml.SequenceStartEvent: self._begin,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._document,
        }
        for event in events:
            take = takes.get(type(event))
            if take is not None:
                take(event)
        return self._tree

    def _scalar(self, event: Any) -> None:
        if self._wants_key():
            _judge(event)
            self._name(event)
        else:
            self._put(event.value if event.style else _scalar(event), event)

    def _begin(self, event: Any) -> None:
        if self._wants_key():
            raise _refused(event, "the name of a field must be a text")
        new: dict[str, Any] | list[Any] = {} if type(event) is yaml.MappingStartEvent else []
        self._put(new, event)
        self._around.append(new)
        self._keys.append(None)
        if len(self._around) > _DEEPEST:
            raise _refused(event, too_deep())

    def _end(self, event: Any) -> None:
        del event
        self._around.pop()
        self._keys.pop()

    def _alias(self, event: Any) -> None:
        raise _refused(event, "an alias (*) has no meaning here: write in full what it stands for")

    def _document(self, event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            raise _refused(event, "a second document has no meaning here")

    def _wants_key(self) -> bool:
        return bool(self._keys) and self._keys[-1] is None and isinstance(self._around[-1], dict)

    def _name(self, event: Any) -> None:
        name = event.value
        if name in self._around[-1]:
            raise _refused(event, f"{shortened(name)!r} is there twice in one object: keep one")
        if name == "<<" and not event.style:
            raise _refused(event, "a merge (<<) has no meaning here: write in full what it brings")
        self._keys[-1] = name

    def _put(self, value: Any, event: Any) -> None:
        _judge(event)
        self._values += 1
        if self._values > MOST_VALUES:
            raise _refused(event, too_many())
        if not self._around:
            self._tree = value
            return
        holder, key = self._around[-1], self._keys[-1]
        if isinstance(holder, list):
            holder.append(value)
        elif key is not None:
            holder[key] = value
            self._keys[-1] = None


def _judge(event: Any) -> None:
    if event.anchor is not None:
        raise _refused(event, "an anchor (&) has no meaning here: leave it out")
    if event.tag is not None:
        raise _refused(event, "a tag (!) has no meaning here: leave it out")


def _scalar(event: Any) -> Any:
    """Return what a bare word means: YAML's nothing, truth and numbers; anything else is a text."""
    word = event.value
    kinds = _RESOLVERS.get(word[:1], ())
    kind = next((kind for kind, pattern in kinds if pattern.match(word)), "str")
    if kind == "null":
        return None
    if kind == "bool":
        return yaml.SafeLoader.bool_values[word.lower()]
    if kind not in {"int", "float"} or ":" in word:  # base 60 is a text to everybody but YAML 1.1
        return word
    try:
        number = _whole(word) if kind == "int" else float(word.replace("_", ""))
    except ValueError:
        number = math.inf
    if not (math.isfinite(number) and (kind == "float" or -(2**63) <= number < 2**64)):
        raise _refused(event, f"{shortened(word)!r} is no number that an object can have")
    return number


def _whole(word: str) -> int:
    """Return a whole number, in any of YAML's ways to write it."""
    if len(word) > _LONGEST_NUMBER:
        raise ValueError
    digits = word.replace("_", "")
    sign = -1 if digits[0] == "-" else 1
    digits = digits.lstrip("+-")
    if digits[:2] in {"0b", "0x"}:
        return sign * int(digits[2:], 2 if digits[1] == "b" else 16)
    return sign * int(digits, 8 if digits[0] == "0" and digits != "0" else 10)


def _refused(event: Any, problem: str) -> yaml.YAMLError:
    return yaml.YAMLError(f"line {event.start_mark.line + 1}: {problem}")


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place + 1) + 1
