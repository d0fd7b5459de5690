"""The plan of a dataset: what its rows are, where they lie, and how they are cut into blocks.

A manifest is immutable and addressed by its content, so a head that restarts, a worker that was away and a client that
resumes all mean the same rows or learn at once that they do not. Everything else is arithmetic on it: nobody has to
keep a table of blocks in step with anybody.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
import pyarrow as pa
from msgspec import Meta

from trainplane.cache.errors import InexactError, InvalidError
from trainplane.cache.known import known

LARGEST: Final = 256 << 20
"""Bytes of a manifest; a million fragments are 150 MB."""
BLOCK_BYTES: Final = 4 << 20
"""What a block aims at: large enough that Python is not felt, small enough that shuffling inside stays in cache."""
MOST_BLOCK_ROWS: Final = 1 << 20

Text: TypeAlias = Annotated[str, Meta(max_length=4096)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 53)]
Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">=", "in", "not in"]
Value: TypeAlias = bool | int | float | Text
Predicate: TypeAlias = tuple[Text, Operator, Value | tuple[Value, ...]]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """What a dataset is made from. It names no secret: credentials come from the environment of head and workers."""

    kind: Literal["parquet", "csv", "json", "arrow", "orc", "avro", "iceberg", "written"]
    location: Text
    """A folder or file, `s3://bucket/prefix`, the metadata file of an Iceberg table, or the name of what is written."""
    columns: tuple[Text, ...] = ()
    """Those to serve, in this order; none named are all."""
    where: tuple[Predicate, ...] = ()
    """Only rows for which all of these hold."""
    sql: Text = ""
    """`SELECT … FROM dataset`: what is served is made of these columns and rows, each row by itself."""
    snapshot: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)] | None = None
    """Of an Iceberg table: its current one unless said."""
    block_bytes: Annotated[int, Meta(ge=1 << 10, le=1 << 30)] = BLOCK_BYTES
    """What a block aims at."""

    def __post_init__(self) -> None:
        for column, relation, value in self.where:
            if (relation in {"in", "not in"}) != isinstance(value, tuple):
                raise InvalidError(
                    f"where: {column} {relation} {value!r}"[:200], "`in` takes a list, all others a value"
                )


class Fragment(msgspec.Struct, frozen=True):
    """A file of the source, as far as it belongs to the dataset."""

    name: Text
    """Where the file lies below the source's location, its URI in an Iceberg table, or what its writer calls it."""
    rows: Count
    """Exactly, after the filter."""
    size: Count
    """Bytes of the file."""
    version: Text
    """ETag, time of the last change, or digest: another one is another file."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The plan of a dataset."""

    version: Literal[1] = 1
    source: Source
    schema: bytes
    """Arrow's own encoding of it."""
    block_rows: Annotated[int, Meta(ge=1, le=MOST_BLOCK_ROWS)]
    """Rows of each block but a fragment's last, which may have fewer."""
    fragments: tuple[Fragment, ...]
    read: bytes = b""
    """The schema of what the source's SQL is over; empty where there is none."""

    @cached_property
    def encoded(self) -> bytes:
        """The manifest as bytes: the same for the same content, always."""
        return msgspec.json.encode(self)

    @cached_property
    def name(self) -> str:
        """The manifest's address: a digest of its content."""
        return hashlib.sha256(self.encoded).hexdigest()

    @cached_property
    def rows(self) -> int:
        """Rows of the whole dataset."""
        return sum(fragment.rows for fragment in self.fragments)

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The schema of every batch that is served."""
        return pa.ipc.read_schema(pa.py_buffer(self.schema))


known(Manifest)


def make_manifest(
    source: Source, schema: pa.Schema, fragments: tuple[Fragment, ...], row_bytes: float, read: bytes = b""
) -> Manifest:
    """Return the plan for fragments whose rows, decoded, are about `row_bytes` large."""
    if not sum(fragment.rows for fragment in fragments):
        raise InexactError(f"{source.location} has no rows that the filter lets through", "correct location or filter")
    block_rows = int(min(max(source.block_bytes / max(row_bytes, 1), 1), MOST_BLOCK_ROWS))
    return Manifest(
        source=source,
        schema=schema.serialize().to_pybytes(),
        block_rows=block_rows,
        fragments=tuple(fragments),
        read=read,
    )


def read_manifest(encoded: bytes, name: str) -> Manifest:
    """Return the manifest of that name from bytes that somebody sent: exactly that one, or an error."""
    if len(encoded) > LARGEST or hashlib.sha256(encoded).hexdigest() != name:
        raise InvalidError("a manifest arrived that is not the one that its name says")
    try:
        manifest = msgspec.json.decode(encoded, type=Manifest)
        _ = manifest.arrow_schema
    except (msgspec.MsgspecError, pa.ArrowException, OSError) as error:
        raise InvalidError(f"a manifest of another version or shape: {str(error)[:200]}") from None
    if manifest.encoded != encoded:
        raise InvalidError("a manifest arrived in another encoding than ours")
    return manifest


def plain(schema: pa.Schema) -> pa.Schema:
    """Return a schema as it is served: values instead of dictionaries, which differ by file, and no metadata.

    Views of text become text: not all that reads Arrow knows them yet.
    """
    return pa.schema([pa.field(field.name, _plain_type(field), field.nullable) for field in schema])


def _plain_type(field: Any) -> Any:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_nested(kind) and "dictionary<" in str(kind):
        raise InexactError(f"column {field.name!r} nests dictionaries, which differ by file", "leave it out by columns")
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return pa.string() if pa.types.is_string_view(kind) else pa.binary()
    return kind
