"""What is never printed: values of credentials, and what URLs carry of them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HIDDEN: Final = "[hidden]"
_NAMES: Final = re.compile(r"TOKEN|SECRET|PASSW|KEY|CREDENTIAL|SAS|SIGNATURE|CONNECTION_STRING|AUTHORIZATION")
_PLACES: Final = ("_FILE", "_PATH", "_URI", "_URL", "_ENDPOINT")
"""Ends of names whose value says where a secret lies."""
_SHORTEST: Final = 4
"""Shorter values are words that occur anywhere; no credential is so short."""
_QUERY: Final = re.compile(r"([a-z][a-z0-9+.-]*://[^\s?#'\"]*)[?][^\s'\"#]*", re.IGNORECASE)
_USER: Final = re.compile(r"([a-z][a-z0-9+.-]*://)[^\s/@'\"]+@", re.IGNORECASE)


def shown(uri: str) -> str:
    """Return a URI without the parts in which credentials travel: user names and queries."""
    return _QUERY.sub(rf"\1?{HIDDEN}", _USER.sub(rf"\1{HIDDEN}@", uri))


class Secrets:
    """The secrets of an environment, to be cut out of any text."""

    def __init__(self, env: Mapping[str, str]) -> None:
        found: set[str] = set()
        for name, value in env.items():
            if _NAMES.search(name.upper()) and not name.upper().endswith(_PLACES):
                found.update(_forms(value))
        self._values = sorted(found, key=len, reverse=True)

    def learn(self, value: str) -> None:
        """Take in a secret that the environment does not have."""
        self._values = sorted({*self._values, *_forms(value)}, key=len, reverse=True)

    def hide(self, text: str) -> str:
        """Return a text without any secret, and without control characters that a terminal would obey."""
        for value in self._values:
            text = text.replace(value, HIDDEN)
        return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in shown(text))


def _forms(value: str) -> Iterator[str]:
    """Yield a secret as it may turn up: as it is, line by line, in URLs, escaped, and what a key in JSON is made of."""
    for form in (value, *value.splitlines(), *_leaves(value)):
        if len(form.strip()) >= _SHORTEST:
            yield form.strip()
            yield quote(form.strip(), safe="")
            yield repr(form.strip())[1:-1]


def _leaves(value: str) -> Iterator[str]:
    try:
        tree: Any = json.loads(value)
    except ValueError:
        return
    if isinstance(tree, dict):
        for name, leaf in tree.items():
            if isinstance(leaf, str) and _NAMES.search(name.upper()):
                yield leaf
                yield from leaf.splitlines()
