"""`python -m docs.settings [--check]`: write docs/references/settings.md from the code, or say that it is stale.

Every field of the operator's Configuration with its type and default, and every flag of operator and hub, in the words
of the code. What to set when, docs/operations.md and docs/hub.md say.
"""  # noqa: INP001 a command beside the page it writes, no package

from __future__ import annotations

import argparse
import inspect
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import msgspec

from docs.emitted import cell, emit, table
from docs.source import flat, words_below
from trainplane.api.configuration import FEATURE_GATES, Configuration, Section
from trainplane.hub import settings as hub
from trainplane.operator import settings as operator

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parent / "references" / "settings.md"
_HEAD = """\
# Settings

<!-- written by docs/settings.py from src/trainplane: change the words there, then run `make manifests` -->

What an admin may say to operator and hub. [Operations](../operations.md#settings) says what each field is for in
practice, [the hub's page](../hub.md#flags) what its flags cost; [values](../values.md) are the chart's."""
_FILE = """\
## The operator's file

`--config FILE`, of kind `Configuration`; with the chart it is `manager.config`. A field that it does not know is
refused by name. It is read at the start."""


def write_page() -> str:
    """Return the page."""
    gates = [(f"`{name}`", json.dumps(on)) for name, on in FEATURE_GATES.items()]
    parts = [
        _HEAD,
        _FILE,
        *_section(Configuration, ""),
        "### Feature gates",
        table(("gate", "default"), gates),
        "## The operator's flags",
        _flags(operator._parser()),  # noqa: SLF001 nobody else has a use for it
        "## The hub's flags",
        _flags(hub._parser()),  # noqa: SLF001 the same
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(section: type[Section], path: str) -> Iterator[str]:
    """Yield a section's own fields, then the sections inside it."""
    words, hints = words_below(section), get_type_hints(section)
    rows, inside = [], []
    for field in msgspec.structs.fields(section):
        name, kind = f"{path}{field.encode_name}", hints[field.name]
        inner = [one for one in (kind, *get_args(kind)) if isinstance(one, type) and issubclass(one, Section)]
        if inner:
            inside.append((inner[0], f"{name}."))
        elif field.encode_name not in {"apiVersion", "kind"}:
            rows.append((f"`{name}`", _kind(kind), f"`{json.dumps(_default(field))}`", cell(words[field.name])))
    if path:
        yield f"### `{path.removesuffix('.')}`"
        yield flat(inspect.getdoc(section) or "")
    if rows:
        yield table(("field", "type", "default", ""), rows)
    for inner_section, inner_path in inside:
        yield from _section(inner_section, inner_path)


def _kind(kind: Any) -> str:
    """Return a type in YAML's words."""
    told = kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)
    return {
        "str": "text",
        "int": "number",
        "float": "number",
        "bool": "`true` or `false`",
        "list[str]": "list of texts",
        "list[str] | None": "list of texts, or `null`",
        "dict[str, int]": "map of numbers",
        "dict[str, bool]": "map of `true` or `false`",
    }[told]


def _default(field: Any) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def _flags(parser: argparse.ArgumentParser) -> str:
    rows = [
        (f"`{action.option_strings[0]}`", _plain(action.default), cell(action.help or _choices(action)))
        for action in parser._actions  # noqa: SLF001 argparse has no other way to ask
        if action.help != argparse.SUPPRESS and action.dest != "help"
    ]
    return table(("flag", "default", ""), rows)


def _plain(default: Any) -> str:
    """Return a default that is written as it stands there; of sizes and times the flag's own words tell."""
    return f"`{default}`" if isinstance(default, str) and default else ""


def _choices(action: argparse.Action) -> str:
    return ", ".join(map(str, action.choices or ()))


def main(arguments: list[str] | None = None) -> int:
    """Write or check; 1 if the page is stale."""
    return emit(PAGE, write_page, "the code", arguments)


if __name__ == "__main__":
    sys.exit(main())
