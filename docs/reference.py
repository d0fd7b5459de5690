"""`python -m docs.reference [--check]`: write docs/sdk-reference.md from the code, or say that it is stale.

The page has every public name of `trainplane` and `trainplane.options`, with the words that stand in the code: the
docstrings of classes and methods, and the string below a field. A public name that has no place on the page is an
error, so none is forgotten.
"""  # noqa: INP001 a command beside the page it writes, no package

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docs.emitted import emit
from trainplane import client, options
from trainplane.client import errors
from trainplane.client.types import (
    backends,
    descriptions,
    initializers,
    jobs,
    observation,
    outputs,
    overview,
    renderings,
    runtimes,
    secrets,
    templates,
    trainers,
)
from trainplane.explain import explanation

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

PAGE = Path(__file__).parent / "sdk-reference.md"
TYPES = {
    "Trainers": trainers,
    "Initializers": initializers,
    "Outputs": outputs,
    "Secrets": secrets,
    "Runtimes": runtimes,
    "TrainJobs": jobs,
    "Descriptions": descriptions,
    "Observations": observation,
    "Overviews": overview,
    "Explanations": explanation,
    "Renderings": renderings,
    "Templates": templates,
    "Backends": backends,
}
"""Sections of the page, and the module whose public names stand there."""
LINE = 100
"""Characters of a signature on one line."""
_SECTION = re.compile(r"^(Args|Returns|Raises):$", re.MULTILINE)


@dataclass(frozen=True)
class Field:
    """A field of a type, as its source has it."""

    name: str
    kind: str
    default: str | None
    words: str


def write_page() -> str:
    """Return the page.

    Raises:
        ValueError: a public name has no place on it.
    """
    parts = [
        "# The SDK, name by name",
        "<!-- written by docs/reference.py from the code: change the words there, then run `make manifests` -->",
        "All are in `trainplane`; options are in `trainplane.options`. The [tutorial](sdk.md) shows them at work.",
        *_contents(),
        *_client(),
    ]
    for title, module in TYPES.items():
        parts += [f"## {title}", _flat(_doc(module)), *_types(module)]
    parts += [*_options(), *_functions(), *_errors()]
    page = "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"
    missing = [name for name in (*client.__all__, *options.__all__) if f"`{name}`" not in page]
    if missing:
        raise ValueError(f"these public names have no place in docs/sdk-reference.md: {', '.join(missing)}")
    return page


def _contents() -> list[str]:
    titles = ["Client", *TYPES, "Options", "Functions", "Errors"]
    return [" · ".join(f"[{title}](#{title.lower()})" for title in titles)]


# -- the client -------------------------------------------------------------------------------------------------------


def _client() -> list[str]:
    blocking, asynchronous = client.TrainerClient, client.AsyncTrainerClient
    parts = [
        "## Client",
        f"`TrainerClient`: {_flat(_doc(blocking))}",
        f"`AsyncTrainerClient`: {_flat(_doc(asynchronous))}",
        "### Making one",
        _code(_signature("TrainerClient", blocking.__init__, result=False)),
        _words(_doc(blocking.__init__)),
    ]
    for name, method in vars(asynchronous).items():
        if inspect.isfunction(method) and not name.startswith("_"):
            shown, forms = _signature(name, method), _forms(name, method)
            parts += [f"### `{name}`", _code(shown), _words(_doc(getattr(blocking, name))), forms]
    return parts


def _forms(name: str, method: Any) -> str:
    """Return how a method is called in both forms."""
    given = "…" if len(inspect.signature(method).parameters) > 1 else ""
    call = f"client.{name}({given})"
    if inspect.isasyncgenfunction(method):
        item = "job" if name == "watch_job" else "line"
        return f"`for {item} in {call}` · `async for {item} in {call}`"
    return f"`{call}` · `await {call}`"


# -- types ------------------------------------------------------------------------------------------------------------


def _types(module: ModuleType) -> list[str]:
    parts: list[str] = []
    for name in _in_order(module):
        value = getattr(module, name)
        if name not in client.__all__:
            continue
        if isinstance(value, str):
            parts.append(f"`{name}` is `{value}`. {_constant_words(module, name)}")
        elif isinstance(value, type):
            parts += _type(value)
    return parts


def _type(kind: type) -> list[str]:
    parts = [f"### `{kind.__name__}`", _words(_doc(kind))]
    if issubclass(kind, Enum):
        parts.append(_table(("member", "value"), [(f"`{one.name}`", f"`{one.value}`") for one in kind]))
    elif is_dataclass(kind):
        rows = [(f"`{one.name}`", _cell(one.kind), _cell(one.default), one.words) for one in _fields(kind)]
        parts.append(_table(("field", "type", "default", ""), rows) if rows else "")
    return parts


def _fields(kind: type) -> list[Field]:
    """Return the fields of a dataclass that are given when one is made, inherited ones first as Python has them."""
    words: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if is_dataclass(base):
            words |= _field_words(base)
    given: Any = kind
    return [Field(one.name, str(one.type), _default(one), words[one.name]) for one in fields(given) if one.init]


def _field_words(kind: type) -> dict[str, str]:
    """Return what stands below each field in the source."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    body = node.body if isinstance(node, ast.ClassDef) else []
    return {
        statement.target.id: _flat(_string(after))
        for statement, after in zip(body, [*body[1:], None], strict=True)
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    }


def _default(field: Any) -> str | None:
    """Return a default; `…` for one that the environment decides."""
    if field.default is not MISSING:
        return repr(field.default)
    if field.default_factory is MISSING:
        return None
    return "…" if field.default_factory.__name__.startswith("_") else repr(field.default_factory())


# -- options, functions, errors ---------------------------------------------------------------------------------------


def _options() -> list[str]:
    listed = [getattr(options, name) for name in options.__all__]
    own = [kind for kind in listed if issubclass(kind, options.Option) and kind is not options.Option]
    patches = [kind for kind in listed if not issubclass(kind, options.Option)]
    call = '`client.train(..., options=[Name("my-run"), Queue("team-a")])`'
    about = f"{call}: options of the same kind add up. Yours are subclasses of `Option`: {_flat(_doc(options.Option))}"
    parts = ["## Options", about]
    for kind in own:
        where = "on every backend" if len(kind.backends) > 1 else f"on {', '.join(kind.backends)} only"
        parts += [*_type(kind), f"Works {where}."]
    parts.append("What `RuntimePatch` is made of, from outside to inside:")
    for kind in sorted(patches, key=_depth, reverse=True):
        parts += _type(kind)
    return parts


def _depth(kind: type) -> int:
    """Return how many patches are within a patch."""
    named = re.findall(r"\w+Patch", " ".join(one.kind for one in _fields(kind)))
    return 1 + max((_depth(getattr(options, name)) for name in named), default=0)


def _functions() -> list[str]:
    parts = ["## Functions"]
    for name in client.__all__:
        value = getattr(client, name)
        if inspect.isfunction(value):
            parts += [f"### `{name}`", _code(_signature(name, value)), _words(_doc(value))]
    return parts


def _errors() -> list[str]:
    kinds = [getattr(errors, name) for name in _in_order(errors) if name in client.__all__]
    rows = [_error_row(kind) for kind in kinds]
    words = _flat(_doc(errors).rpartition("```")[2])
    return ["## Errors", words, _table(("error", "", "is a", "whose", "retryable"), rows)]


def _error_row(kind: type[client.TrainplaneError]) -> tuple[str, ...]:
    bases = ", ".join(f"`{base.__name__}`" for base in kind.__bases__)
    return f"`{kind.__name__}`", _flat(_doc(kind)), bases, kind.whose, "yes" if kind.retryable else ""


# -- source -----------------------------------------------------------------------------------------------------------


def _doc(thing: Any) -> str:
    return inspect.getdoc(thing) or ""


def _in_order(module: ModuleType) -> list[str]:
    """Return the names that a module defines, in its order."""
    names = []
    for statement in ast.parse(inspect.getsource(module)).body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef):
            names.append(statement.name)
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            names.append(statement.target.id)
    return names


def _constant_words(module: ModuleType, name: str) -> str:
    body = ast.parse(inspect.getsource(module)).body
    for statement, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and ast.unparse(statement.target) == name:
            return _flat(_string(after))
    return ""


def _signature(name: str, function: Any, *, result: bool = True) -> str:
    """Return how a function is defined, an argument to a line if it is long; `result` says whether it has one."""
    signature = inspect.signature(function)
    arguments: list[str] = []
    bare = False
    for one in signature.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not bare:
            arguments, bare = [*arguments, "*"], True
        if one.name != "self":
            default = "" if one.default is one.empty else f" = {one.default!r}"
            arguments.append(f"{one.name}: {one.annotation}{default}")
    gives = re.sub(r"AsyncGenerator\[(.*), None\]", r"Iterator[\1]", str(signature.return_annotation))
    end = f") -> {gives}" if result else ")"
    line = f"{name}({', '.join(arguments)}{end}"
    return line if len(line) <= LINE else "\n".join([f"{name}(", *(f"    {one}," for one in arguments), end])


def _string(statement: ast.stmt | None) -> str:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return str(statement.value.value)
    return ""


# -- Markdown ---------------------------------------------------------------------------------------------------------


def _flat(text: str) -> str:
    """Return a text as one line for each paragraph."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))


def _words(text: str) -> str:
    """Return a docstring as Markdown: its sections become lists."""
    head, *sections = _SECTION.split(text)
    parts = [_flat(head)]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        parts.append(f"{title}:\n{_items(textwrap.dedent(body.strip(chr(10))))}")
    return "\n\n".join(parts)


def _items(body: str) -> str:
    entries = [" ".join(entry.split()) for entry in re.split(r"\n(?=\S)", body.strip())]
    named = re.compile(r"(\w+): (.*)")
    return "\n".join(f"- `{found[1]}`: {found[2]}" if (found := named.match(one)) else f"- {one}" for one in entries)


def _code(text: str) -> str:
    return f"```python\n{text}\n```"


def _cell(code: str | None) -> str:
    return "" if code is None else f"`{code}`".replace("|", "\\|")


def _table(headers: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [headers, ("---",) * len(headers), *rows]
    return "\n".join("| " + " | ".join(cell.replace("\n\n", " ") for cell in line) + " |" for line in lines)


def main(arguments: list[str] | None = None) -> int:
    """Write or check; 1 if the page is stale or a public name has no place on it."""
    try:
        return emit(PAGE, write_page, "the code", arguments)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
