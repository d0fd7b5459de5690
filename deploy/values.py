"""docs/values.md: every value of the chart with its type, its default and the words that stand above it.

Names, defaults and words are values.yaml's; types are the schema's, and so are values that have no default there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from deploy import schema
from deploy.chart import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE: Final = Path("docs/values.md")
VALUES: Final = REPOSITORY / "charts/trainplane/values.yaml"
_ABSENT: Final = object()
_HEAD: Final = """\
# Values of the chart

<!-- Written by `make manifests` from charts/trainplane/values.yaml and deploy/schema.py: change those. -->
For who installs by Helm ([install](install.md)). Names are those of the chart kubeflow-trainer where that has them. A
name that is not here is refused before anything is installed, and so is a value of another type.
"""
_WORDS: Final = {
    "manager": "What the fields of `manager.config` mean, and the defaults of those that have none here: "
    "[settings](operations.md#settings)."
}
"""What is said of a part beside its own words."""


@dataclass(frozen=True)
class Value:
    """One value that an admin may set."""

    path: str
    kind: str
    default: str
    words: str

    def row(self) -> str:
        """Return its line in a table."""
        return f"| `{self.path}` | {self.kind} | {self.default} | {self.words} |"


def files() -> dict[Path, str]:
    """Return the page."""
    return {PAGE: page(VALUES.read_text(), schema.values())}


def page(text: str, described: dict[str, Any]) -> str:
    """Return the page of a values file and its schema: a section for each top-level name that has names below it."""
    lines = text.splitlines()
    root: Any = yaml.compose(text)
    plain, parts = [], []
    for key, node in root.value:
        found = described["properties"][key.value]
        values = list(_values(key.value, key, node, found, lines))
        if found.get("properties"):
            said = " ".join(filter(None, (_comment(key, lines), _WORDS.get(key.value))))
            parts.append((key.value, said, values))
        else:
            plain += values
    sections = [_HEAD, _table(plain)]
    for name, said, values in parts:
        sections.append("\n".join(filter(None, (f"## {name}", said and f"{said}\n", _table(values)))))
    return "\n".join(sections)


def _table(values: list[Value]) -> str:
    return "\n".join(("| value | type | default | |", "|---|---|---|---|", *(one.row() for one in values), ""))


def _values(path: str, key: yaml.Node, node: yaml.Node, described: dict[str, Any], lines: list[str]) -> Iterator[Value]:
    """Yield a value, or those below it: the schema says where names end and content begins."""
    below = described.get("properties")
    if not below or not isinstance(node, yaml.MappingNode):
        yield Value(path, _kind(described), _default(_content(node)), _comment(key, lines))
        return
    there = {one.value: (one, child) for one, child in node.value}
    for name, (one, child) in there.items():
        yield from _values(f"{path}.{name}", one, child, below.get(name, {}), lines)
    for name, found in below.items():
        if name not in there:
            yield from _without_default(f"{path}.{name}", found)


def _without_default(path: str, described: dict[str, Any]) -> Iterator[Value]:
    """Yield values that values.yaml does not have."""
    below = described.get("properties")
    if not below:
        yield Value(path, _kind(described), _default(_ABSENT), "")
        return
    for name, found in below.items():
        yield from _without_default(f"{path}.{name}", found)


def _content(node: yaml.Node) -> Any:
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_object(node, deep=True)
    finally:
        loader.dispose()


def _default(content: Any) -> str:
    return "" if content is _ABSENT else f"`{json.dumps(content)}`"


def _kind(described: dict[str, Any]) -> str:
    """Return a type in words."""
    if "enum" in described:
        return ", ".join(f"`{one}`" for one in described["enum"])
    if "anyOf" in described:
        return " or ".join(dict.fromkeys(_kind(one) for one in described["anyOf"]))
    kind = described.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _comment(key: yaml.Node, lines: list[str]) -> str:
    """Return the words above a name: the comment lines right over it, at its own depth."""
    indent = " " * key.start_mark.column + "#"
    if lines[key.start_mark.line][: key.start_mark.column].strip():
        return ""  # written within braces: the words above are the whole's
    found: list[str] = []
    for line in reversed(lines[: key.start_mark.line]):
        if not line.startswith(indent):
            break
        found.append(line.removeprefix(indent).strip())
    return " ".join(reversed(found)).replace("|", "\\|")
