"""What a type says of its fields beyond their Python type: the facts from which the CRDs are made.

A field is declared once, `Annotated[str, Field("What it is.", max_length=253)]`, and both the decoder and the CRD
emitter read that line. The decoder looks at the Python type alone: limits are the API server's to enforce, so an object
that was stored under older limits can still be read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Final, TypeAlias

import msgspec

UNSET: Final[Any] = object()
"""Stands for "no default": null is a default that a schema could have."""


Moment: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with its zone, as every time of Kubernetes has one: times without cannot be compared with those."""


class Envelope(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """Base of all types of the API: camel case on the wire, defaults left out, never changed once made."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule of a schema and what the API server says when it refuses."""

    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Field:
    """The schema of one field, or of what a list or map holds. None means that the schema is silent."""

    doc: str = ""
    """What the field is, in our words, for `kubectl explain`."""
    ref: str | None = None
    """The definition in `podschema.json` that an untyped tree has."""
    format: str | None = None
    enum: tuple[str, ...] | None = None
    pattern: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    list_type: str | None = None
    """`atomic`, `set` or `map`: how server-side apply merges the list."""
    keys: tuple[str, ...] = ()
    """The fields that key the entries of a `map` list."""
    default: Any = UNSET
    """What the API server fills in; the Python default is what the decoder fills in."""
    required: bool | None = None
    """Whether the field must be there; None: it must if the Python field has no default."""
    rules: tuple[Rule, ...] = ()
    each: Field | None = field(default=None)
    """The schema of a list's entries or a map's values."""


def keyed(doc: str, key: str, **facts: Any) -> Field:
    """Declare a list whose entries are told apart by one of their fields."""
    return Field(doc, list_type="map", keys=(key,), **facts)


def always(value: str) -> Any:
    """Declare a field whose default is written out all the same: an object without its kind is none."""
    return msgspec.field(default_factory=lambda: value)


IMMUTABLE: Final = Rule(
    "self == oldSelf", "cannot be changed once the TrainJob exists: create another TrainJob instead"
)
