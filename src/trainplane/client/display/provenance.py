"""A rendered object as YAML, with where each value comes from behind it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainplane.render.provenance import Path, Rendered

LONGEST: Final = 160
"""Letters of a value that are shown: code that is shipped has a hundred thousand."""
_WIDEST: Final = 1 << 16


class OriginLine(NamedTuple):
    """A line of YAML."""

    text: str
    origin: str
    """Where its value comes from, as `Origin` says it; empty for a line without one."""


def origin_lines(rendered: Rendered) -> list[OriginLine]:
    """Return an object line by line. It is for reading: long values are cut, and say so."""
    origins = {path: str(origin) for path, _, origin in rendered.leaves()}
    return list(_lines(rendered.tree, (), "", origins))


def shorten(value: Any) -> str:
    """Return a value in one line, as YAML reads it; a long one cut, with its length."""
    if isinstance(value, str) and ("\n" in value or not value.isprintable()):
        text = json.dumps(value)
    elif isinstance(value, dict | list):
        text = json.dumps(value, ensure_ascii=False)
    else:
        text = yaml.safe_dump(value, width=_WIDEST, allow_unicode=True).removesuffix("...\n").rstrip("\n")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} letters)"


def _lines(tree: Any, path: Path, indent: str, origins: Mapping[Path, str]) -> Iterator[OriginLine]:
    """Yield the lines of what has something below it."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _entry(value, (*path, key), indent, f"{shorten(key)}:", origins)
    else:
        for index, value in enumerate(tree):
            first, *rest = _entry(value, (*path, index), indent, "-", origins)
            if first.text != f"{indent}-":
                yield from (first, *rest)
                continue
            second, *rest = rest
            yield OriginLine(f"{indent}- {second.text.lstrip()}", second.origin)
            yield from rest


def _entry(value: Any, path: Path, indent: str, head: str, origins: Mapping[Path, str]) -> Iterator[OriginLine]:
    if isinstance(value, dict | list) and value:
        yield OriginLine(f"{indent}{head}", "")
        yield from _lines(value, path, f"{indent}  ", origins)
    else:
        yield OriginLine(f"{indent}{head} {shorten(value)}", origins.get(path, ""))
