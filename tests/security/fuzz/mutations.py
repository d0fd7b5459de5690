"""Inputs made from good ones: JSON trees, texts and bytes, changed here and there by a seed.

Fast, since a million are made: plain `random.Random`, trees changed in place (they are the caller's own copy).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

T = TypeVar("T")

ODD_NUMBERS: Final[tuple[Any, ...]] = (
    *(0, 1, -1, 2, 3, 7, 63, 64, 127, 128, 255, 256, 1000, 65535, 65536, 100_000, 1_000_000),
    *(2**31 - 1, 2**31, -(2**31), 2**32, 2**53, 2**63 - 1, 2**63, -(2**63), 2**64),
    *(0.5, -0.0, 1e-9, 1e9, 1e18, 1e300, -1e300, 5e-324),
)
ODD_TEXTS: Final[tuple[str, ...]] = (
    *("", " ", "\t", "\n", "\0", "a\0b", "a\nb", "\r\n", "-", "--", "_", ".", "..", "../..", "/", "//", "\\", "~", "*"),
    *(
        "²",
        "٣",
        "①",
        "१२",
        "൧",
        "½",
        "Ⅷ",
        "0x10",
        "1_000",
        "+1",
        "-1",
        " 1",
        "1 ",
        "01",
        "1.0",
        "1e3",
        "1e999",
        "1e-999",
    ),
    *("9" * 19, "9" * 25, "9" * 400, "9" * 5000, "-" + "9" * 20, "0" * 300 + "1", "1." + "0" * 300, "NaN", "inf"),
    *("500m", "1Gi", "1.5Gi", "1Ki", "-1Mi", "1k", "1E", "1Ei", "1000E", "9223372036854775807Ei", "1n", ".5", "5."),
    *("null", "true", "false", "None", "{}", "[]", "a" * 63, "a" * 64, "a" * 253, "a" * 254, "a" * 5000),
    *("ünïcödé", "日本語", "\u202e", "\ufeff", "\u0130", "ß", "K", "\ud7ff", "😀" * 20, "e\u0301"),
    *(
        "$(FOO)",
        "$(",
        "${x}",
        "`id`",
        "%s",
        "%n",
        "%00",
        "{0}",
        "{{x}}",
        "<script>",
        "'",
        '"',
        "a,b",
        "a;b",
        "a=b",
        "a:b",
    ),
    *("2026-01-01T00:00:00Z", "2026-13-45T99:99:99Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z"),
    *("2026-01-01T00:00:00+23:59", "2026-01-01", "2026-W01-1", "1969-12-31T23:59:59Z", "20260101T000000"),
    *("example.com/a", "a.b/c/d", "http://x", "https://[::1", "https://x:99999", "file:///etc/passwd"),
)
ODD_VALUES: Final[tuple[Any, ...]] = (None, None, True, False, [], {}, [None], {"": None}, [[]], [{}], {"a": {}})

_TOKENS: Final = (
    *(b"{", b"}", b"[", b"]", b'"', b":", b",", b"\\", b"\\u0000", b"\\ud800", b"null", b"true", b"-", b"0", b"1e999"),
    *(b"\n", b"\r", b"\0", b"\xff", b"\xfe", b"\x80", b"\xc3\x28", b"\xed\xa0\x80", b" ", b"\t", b"&a ", b"*a", b"- "),
    *(b"!!python/object:os.system", b"<<: *a", b"%YAML 9.9", b"---\n", b"...\n", b"#", b"'", b"|", b">", b"? ", b"@"),
)

_LETTERS: Final = "\0\t\n -./_²٣\u2028\uffff"
_NESTED: Final = "\1nested:"
_NESTED_TEXT: Final = re.compile(rb'"\\u0001nested:(\d{1,4})([\[{])"')
"""Stands for a value within a value, so many deep: `encode` writes it, since no library can."""


def encode(tree: Any) -> bytes:
    """Return a tree as JSON."""
    return _NESTED_TEXT.sub(_nest, msgspec.json.encode(tree))


def _nest(found: re.Match[bytes]) -> bytes:
    depth = int(found[1])
    return b"[" * depth + b"]" * depth if found[2] == b"[" else b'{"a":' * depth + b"1" + b"}" * depth


class Mutator:
    """Changes inputs by a seed."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._draw = random.random

    def pick(self, choices: Sequence[T]) -> T:
        """Return one of some."""
        return choices[int(self._draw() * len(choices))]

    def below(self, end: int) -> int:
        """Return a number from 0 on, below `end`."""
        return int(self._draw() * end)

    def chance(self, probability: float) -> bool:
        """Return True so often."""
        return self._draw() < probability

    def few(self, most: int = 4) -> int:
        """Return a small number from 1 on, mostly 1."""
        count = 1
        while count < most and self._draw() < 0.4:
            count += 1
        return count

    # -- values ---------------------------------------------------------------------------------------------------

    def odd(self) -> Any:
        """Return a value that nobody expects."""
        kind = self._draw()
        if kind < 0.45:
            return self.pick(ODD_TEXTS)
        if kind < 0.75:
            return self.pick(ODD_NUMBERS)
        if kind < 0.97:
            return copied(self.pick(ODD_VALUES))
        return f"{_NESTED}{self.pick((3, 30, 90, 300, 1100, 5000))}{self.pick('[{')}"

    def text(self, text: str) -> str:
        """Return a text like another."""
        if not text:
            return self.pick(ODD_TEXTS)
        place = self.below(len(text))
        forms: tuple[Callable[[], str], ...] = (
            lambda: self.pick(ODD_TEXTS),
            lambda: text[:place] + self.pick(ODD_TEXTS) + text[place:],
            lambda: text[:place] + text[place + 1 + self.below(3) :],
            lambda: text[:place] + self.pick(_LETTERS) + text[place + 1 :],
            lambda: text * self.pick((2, 3, 50)),
            lambda: text.upper() if self.chance(0.5) else text[::-1],
            lambda: text[:place],
        )
        return self.pick(forms)()

    def bytes(self, data: bytes, times: int = 0) -> bytes:
        """Return bytes like others."""
        changed = bytearray(data)
        for _ in range(times or self.few(6)):
            place = self.below(len(changed) + 1)
            kind = self.below(6)
            if kind == 0 and changed:
                place %= len(changed)
                changed[place] ^= 1 << self.below(8)
            elif kind == 1:
                changed[place:place] = self.pick(_TOKENS)
            elif kind == 2:
                del changed[place : place + self.pick((1, 1, 2, 8, 64))]
            elif kind == 3:
                end = place + self.pick((1, 4, 16, 200))
                changed[place:place] = changed[place:end] * self.pick((1, 1, 2, 20))
            elif kind == 4:
                del changed[place:]
            else:
                changed[place : place + 1] = bytes([self.below(256)])
        return bytes(changed)

    # -- trees ----------------------------------------------------------------------------------------------------

    def tree(self, tree: Any, times: int = 0) -> Any:
        """Change a tree in place, here and there; return it, or what took the place of all of it."""
        for _ in range(times or self.few()):
            places = places_of(tree)
            if not places:
                return self.odd()
            holder, key = self.pick(places)
            self.pick(_CHANGES)(self, holder, key, places)
        return tree

    def _replace(self, holder: Any, key: Any, _: Any) -> None:
        holder[key] = self.odd()

    def _null(self, holder: Any, key: Any, _: Any) -> None:
        holder[key] = None

    def _delete(self, holder: Any, key: Any, _: Any) -> None:
        del holder[key]

    def _graft(self, holder: Any, key: Any, places: Any) -> None:
        other, place = self.pick(places)
        value = other[place]
        # A tree within itself has no end: only what holds nothing, or a copy, moves.
        holder[key] = copied(value) if isinstance(value, list | dict) else value

    def _wrap(self, holder: Any, key: Any, _: Any) -> None:
        holder[key] = [holder[key]] if self.chance(0.5) else {"a": holder[key]}

    def _tweak(self, holder: Any, key: Any, _: Any) -> None:
        value = holder[key]
        if isinstance(value, str):
            holder[key] = self.text(value)
        elif isinstance(value, bool) or value is None:
            holder[key] = self.odd()
        elif isinstance(value, int | float):
            holder[key] = self.pick((value + 1, value - 1, -value, value * 1000, str(value), self.pick(ODD_NUMBERS)))
        elif isinstance(value, list):
            self._tweak_list(value)
        else:
            self._tweak_object(value)

    def _tweak_list(self, value: list[Any]) -> None:
        kind = self.below(5)
        if kind == 0 or not value:
            value.append(self.odd())
        elif kind == 1:
            value.append(copied(self.pick(value)))
        elif kind == 2:
            value.extend([copied(self.pick(value)) for _ in range(self.pick((2, 20, 130)))])
        elif kind == 3:
            value.reverse()
        else:
            value.clear()

    def _tweak_object(self, value: dict[str, Any]) -> None:
        kind = self.below(3)
        if kind == 0 or not value:
            value[self.pick(ODD_TEXTS)] = self.odd()
        elif kind == 1:
            key = self.pick(list(value))
            value[self.text(key)] = value.pop(key)
        else:
            value.clear()


_CHANGES: Final[tuple[Callable[[Mutator, Any, Any, Any], None], ...]] = (
    *(Mutator._replace, Mutator._replace, Mutator._null, Mutator._delete),
    *(Mutator._graft, Mutator._wrap, Mutator._tweak, Mutator._tweak, Mutator._tweak),
)


def places_of(tree: Any) -> list[tuple[Any, Any]]:
    """Return every place of a tree that holds a value: an object and a key, or a list and an index."""
    found: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting:
        holder = waiting.pop()
        if isinstance(holder, dict):
            for key, value in holder.items():
                found.append((holder, key))
                if isinstance(value, dict | list):
                    waiting.append(value)
        elif isinstance(holder, list):
            for key, value in enumerate(holder):
                found.append((holder, key))
                if isinstance(value, dict | list):
                    waiting.append(value)
    return found


def copied(tree: Any) -> Any:
    """Return a copy that shares nothing; deep trees are no trouble."""
    if not isinstance(tree, dict | list):
        return tree
    root: Any = tree.copy()
    waiting = [root]
    while waiting:
        holder = waiting.pop()
        for key, value in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            if isinstance(value, dict | list):
                holder[key] = value.copy()
                waiting.append(holder[key])
    return root
