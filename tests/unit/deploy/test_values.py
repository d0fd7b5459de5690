"""docs/values.md has every value, with what stands above it and no more."""

from __future__ import annotations

import re
from typing import Any

import yaml

from deploy import schema, values

TEXT = """\
# Above the file.

# Of one.
one: 1
part:
  # First line | and
  # second.
  two: {three: x, four: {any: thing}}
  # Of a list.
  five: [1, 2]
"""
DESCRIBED: dict[str, Any] = {
    "properties": {
        "one": {"type": "integer"},
        "part": {
            "properties": {
                "two": {"properties": {"three": {"enum": ["x", "y"]}, "four": {"type": "object"}}},
                "five": {"type": "array"},
                "six": {"properties": {"seven": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
            }
        },
    }
}


def test_a_value_has_its_words_type_and_default() -> None:
    rows = [line for line in values.page(TEXT, DESCRIBED).splitlines() if line.startswith("| `")]
    assert rows == [
        "| `one` | integer | `1` | Of one. |",
        '| `part.two.three` | `x`, `y` | `"x"` |  |',
        '| `part.two.four` | object | `{"any": "thing"}` |  |',
        "| `part.five` | array | `[1, 2]` | Of a list. |",
        "| `part.six.seven` | string or null |  |  |",
    ]


def test_every_name_of_the_schema_stands_there() -> None:
    (text,) = values.files().values()
    listed = re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == set(leaves("", schema.values())) - {"global"}


def test_every_default_is_one_that_the_schema_knows() -> None:
    """A name in values.yaml that the schema lacks would be refused at every install."""
    known = set(leaves("", schema.values()))
    for path in paths("", yaml.safe_load(values.VALUES.read_text())):
        assert any(path == one or path.startswith(f"{one}.") or one.startswith(f"{path}.") for one in known), path


def leaves(path: str, tree: dict[str, Any]) -> list[str]:
    if not tree.get("properties"):
        return [path]
    return [leaf for name, one in tree["properties"].items() for leaf in leaves(f"{path}.{name}".lstrip("."), one)]


def paths(path: str, tree: Any) -> list[str]:
    if not isinstance(tree, dict) or not tree:
        return [path]
    return [one for name, part in tree.items() for one in paths(f"{path}.{name}".lstrip("."), part)]
