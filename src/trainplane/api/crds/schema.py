"""Types into structural schemas: what the API server needs to know of a TrainJob, read off the types themselves.

A struct's field enters the schema if it is `Annotated` with a `Field`. The others (apiVersion, kind, metadata) are the
API server's own.
"""

from __future__ import annotations

import functools
import json
import operator
import types
from datetime import datetime
from importlib import resources
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from trainplane.api.declaration import UNSET, Field, Moment

Schema = dict[str, Any]

INT_OR_STRING: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}

_PLAIN = {str: "string", int: "integer", bool: "boolean", Moment: "string", datetime: "string"}

_FACTS = {
    "format": "format",
    "pattern": "pattern",
    "min_length": "minLength",
    "max_length": "maxLength",
    "minimum": "minimum",
    "maximum": "maximum",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_properties": "minProperties",
    "list_type": "x-kubernetes-list-type",
}
"""A fact of `Field` and its key in a schema, where the value stays as it is."""

_TYPE_META = {
    "apiVersion": {"type": "string", "description": "The version of the API that this object is written for."},
    "kind": {"type": "string", "description": "The kind of the object."},
    "metadata": {"type": "object"},
}
"""What the API server validates itself and wants bare in a CRD."""


def schema_of(kind: type[msgspec.Struct]) -> Schema:
    """Return the schema of a whole kind, as a CRD carries it."""
    schema = _struct(kind)
    schema["properties"].update(resolve(_TYPE_META))
    return schema


@functools.cache
def definitions() -> dict[str, Schema]:
    """Return the generated definitions of Kubernetes' and JobSet's types."""
    text = resources.files(__package__).joinpath("podschema.json").read_text()
    loaded: dict[str, Schema] = json.loads(text)
    return loaded


def resolve(schema: Any) -> Any:
    """Return a schema with every reference replaced by what it refers to, sharing nothing."""
    if isinstance(schema, list):
        return [resolve(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return resolve(definitions()[schema["$ref"]])
    return {key: resolve(value) for key, value in schema.items()}


def _schema(annotation: Any, field: Field) -> Schema:
    """Return the schema of a field from its Python type and its facts."""
    base = _base(_without_none(annotation), field)
    rules = base.get("x-kubernetes-validations", [])
    schema = base | _facts(field)
    if rules and field.rules:
        schema["x-kubernetes-validations"] = rules + schema["x-kubernetes-validations"]
    return schema


def _facts(field: Field) -> Schema:
    """Return what a schema says beyond its type."""
    facts: Schema = {key: getattr(field, fact) for fact, key in _FACTS.items() if getattr(field, fact) is not None}
    if field.enum is not None:
        facts["enum"] = list(field.enum)
    if field.keys:
        facts["x-kubernetes-list-map-keys"] = list(field.keys)
    if field.default is not UNSET:
        facts["default"] = field.default
    if field.rules:
        facts["x-kubernetes-validations"] = [{"rule": rule.rule, "message": rule.message} for rule in field.rules]
    if field.doc:
        facts["description"] = field.doc
    return facts


def _base(base: Any, field: Field) -> Schema:
    if field.ref is not None:
        return cast("Schema", resolve({"$ref": field.ref}))
    if base in _PLAIN:
        return {"type": _PLAIN[base]}
    if isinstance(base, type) and issubclass(base, msgspec.Struct):
        return _struct(base)
    each = field.each or Field()
    origin, arguments = get_origin(base), get_args(base)
    if origin is list:
        return {"type": "array", "items": _schema(arguments[0], each)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(arguments[1], each)}
    if set(arguments) == {int, str}:
        return cast("Schema", resolve(INT_OR_STRING))
    raise TypeError(f"{base!r} has no schema: give its Field a ref, or teach `_base` the type")


def _struct(kind: type[msgspec.Struct]) -> Schema:
    hints = get_type_hints(kind, include_extras=True)
    schema: Schema = {"type": "object"}
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for info in msgspec.structs.fields(kind):
        if get_origin(hints[info.name]) is not Annotated:
            continue
        annotation, *_, field = get_args(hints[info.name])  # a Moment is annotated itself, and the two are one then
        properties[info.encode_name] = _schema(annotation, field)
        if info.required if field.required is None else field.required:
            required.append(info.encode_name)
    if properties:
        schema["properties"] = properties
    if required:
        schema["required"] = sorted(required)
    return schema | _facts(getattr(kind, "__schema__", Field()))


def _without_none(annotation: Any) -> Any:
    """Return the type of an optional field: a CRD knows absent fields, not null ones."""
    if get_origin(annotation) not in {types.UnionType, Union}:
        return annotation
    members = [member for member in get_args(annotation) if member is not type(None)]
    return functools.reduce(operator.or_, members)
