"""`python -m docs.fields [--check]`: write docs/references/api.md from the types of the API, or say that it is stale.

Every field that the CRDs have, with the words that `kubectl explain` shows and the bounds that the API server holds. A
field of another's type (Kubernetes', JobSet's) names that type: its fields are documented where it comes from.
"""  # noqa: INP001 a command beside the page it writes, no package

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from docs.emitted import cell, emit, table
from trainplane.api.crds.emit import KINDS
from trainplane.api.declaration import IMMUTABLE, UNSET, Field

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parent / "references" / "api.md"
_HEAD = """\
# Fields of the API

<!-- written by docs/fields.py from the types in src/trainplane/api: change the words there, then run \
`make manifests` -->

All are of `trainer.kubeflow.org/v1alpha1`. `kubectl explain trainjob.spec.trainer` shows the same words. *Fixed* fields
cannot be changed once the object exists. `[]` marks entries of a list, `{}` values of a map; a type that stands in
several places is told in the first."""
_PLAIN = {str: "string", int: "integer", bool: "boolean"}
_BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "max_length": "at most {} characters",
    "min_items": "at least {} entries",
    "max_items": "at most {} entries",
    "min_properties": "at least {} entries",
}
"""A fact of a field and how it is said."""


def write_page() -> str:
    """Return the page."""
    parts = [_HEAD]
    told: dict[type[msgspec.Struct], str] = {}
    for kind in KINDS:
        scope = "In a namespace" if kind.scope == "Namespaced" else "Of the whole cluster"
        parts += [f"## {kind.name}", f"{scope}: `kubectl get {kind.plural}`."]
        parts += _object(kind.versions[0].type, "", kind.name, told)
    return "\n\n".join(part for part in parts if part) + "\n"


def _object(struct: type[msgspec.Struct], path: str, kind: str, told: dict[type[msgspec.Struct], str]) -> Iterator[str]:
    """Yield the table of an object's fields, and the sections of the objects inside; each type is told once."""
    rows, inside = [], []
    for name, annotation, field, needed in _fields(struct):
        shape, inner, mark = _shape(annotation, field)
        here = f"{path}.{name}{mark}".lstrip(".")
        if inner is not None and inner not in told:
            told[inner] = f"{kind} {here}"
            inside.append((inner, here))
        target = shape if inner is None else f"[{shape}](#{_anchor(told[inner])})"
        rows.append((f"`{name}`", target, cell(_words(field, needed=needed))))
    if path:
        yield f"### {kind} `{path}`"
    yield table(("field", "type", ""), rows) if rows else "It has no fields: that it is there is all it says."
    for inner, here in inside:
        yield from _object(inner, here, kind, told)


def _fields(struct: type[msgspec.Struct]) -> Iterator[tuple[str, Any, Field, bool]]:
    """Yield each field's name, type, facts, and whether it must be there."""
    hints = get_type_hints(struct, include_extras=True)
    for info in msgspec.structs.fields(struct):
        if get_origin(hints[info.name]) is Annotated:
            annotation, *_, field = get_args(hints[info.name])
            yield info.encode_name, annotation, field, info.required if field.required is None else field.required


def _anchor(heading: str) -> str:
    """Return the name by which Markdown links to a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _shape(annotation: Any, field: Field) -> tuple[str, type[msgspec.Struct] | None, str]:
    """Return a type's name, the struct whose fields are told below it, and the mark between the two."""
    (base,) = [one for one in _members(annotation) if one is not type(None)][:1]
    each = field.each or Field()
    origin, arguments = get_origin(base), get_args(base)
    if field.ref is not None:
        return _foreign(field.ref), None, ""
    if origin is list:
        kind, inner, _ = _shape(arguments[0], each)
        return f"list of {kind}s" if inner else f"list of {kind}", inner, "[]"
    if origin is dict:
        kind, inner, _ = _shape(arguments[1], each)
        return f"map of {kind}", inner, "{}"
    if isinstance(base, type) and issubclass(base, msgspec.Struct):
        return "object", base, ""
    if {int, str} <= set(_members(annotation)):
        return "integer or string", None, ""
    return _PLAIN.get(base, "time"), None, ""


def _members(annotation: Any) -> tuple[Any, ...]:
    """Return what a union is of; a type alone is a union of one."""
    arguments = get_args(annotation)
    return arguments if get_origin(annotation) not in {list, dict, Annotated} and arguments else (annotation,)


def _foreign(ref: str) -> str:
    """Return whose type it is."""
    owner, _, name = ref.rpartition(".")
    return f"{'JobSet' if 'jobset' in owner else 'Kubernetes'}: {name}"


def _words(field: Field, *, needed: bool) -> str:
    facts = ["not empty"] if field.min_length else []
    facts += [text.format(value) for name, text in _BOUNDS.items() if (value := getattr(field, name)) is not None]
    if field.enum is not None:
        facts.insert(0, "one of " + ", ".join(f"`{one}`" for one in field.enum))
    if field.default is not UNSET:
        facts.insert(0, f"default `{json.dumps(field.default)}`")
    if needed:
        facts.insert(0, "required")
    if IMMUTABLE in field.rules:
        facts.append("fixed")
    facts += [rule.message for rule in field.rules if rule is not IMMUTABLE and rule.message != IMMUTABLE.message]
    told = "; ".join(facts)
    return " ".join(part for part in (field.doc, f"*{told[0].upper()}{told[1:]}.*" if told else "") if part)


def main(arguments: list[str] | None = None) -> int:
    """Write or check; 1 if the page is stale."""
    return emit(PAGE, write_page, "the types of the API", arguments)


if __name__ == "__main__":
    sys.exit(main())
