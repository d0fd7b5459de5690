"""What a store keeps of an object, and what it learns from it in passing.

An object arrives as JSON text and is stored as JSON text. In between it is cut to a `Projection` without being built
as Python objects: `msgspec.Raw` values point into the text, so a field we have never heard of survives unchanged, and
100,000 objects cost their bytes and little more.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

import msgspec

from trainplane.kube.codec import MALFORMED, decode, decoder
from trainplane.kube.errors import StreamError
from trainplane.kube.resource import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trainplane.kube.resource import Resource

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Projection:
    """Which fields of an object are kept; `apiVersion`, `kind`, and a name to find it by, always are."""

    fields: frozenset[str] | None = None
    """Top-level fields kept beside `metadata`; None keeps all of them."""

    metadata: frozenset[str] | None = None
    """Fields of `metadata` kept; None keeps all. `managedFields` never is: nobody here reads it and it is large."""

    transform: Callable[[ObjectHeader], Any] | None = None
    """Returns what is stored in place of an object, where it has to be cut deeper than fields are; the two above do
    not count then. Must not raise."""

    keeps: Callable[[ObjectHeader], bool] | None = None
    """Tells whether an object is kept at all; one that is not is absent to the store, and costs it nothing. Where no
    selector of the API server singles out what is wanted. Must not raise."""


WHOLE = Projection()
METADATA = Projection(fields=frozenset())
METADATA_AND_STATUS = Projection(fields=frozenset({"status"}))

_IDENTITY = frozenset({"name", "namespace", "uid", "resourceVersion"})


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One stored object: its text and the few values asked of every object.

    Holds atoms and tuples of atoms only, which is what makes `gc=False` sound: the garbage collector never walks the
    store's entries.
    """

    data: bytes
    resource_version: int
    uid: str
    indexed: tuple[tuple[str, ...], ...] = ()

    def decode(self, type_: type[T]) -> T:
        """Return the object as `type_`, built anew at each call."""
        return decode(self.data, type_)


class Index(Generic[T]):
    """Finds objects by values computed from them.

    Decodes the object as it arrived, so it can see fields that the projection drops; give it a Struct of just those
    fields. An object whose fields do not fit `type_` is indexed under nothing rather than lost.
    """

    def __init__(self, type_: type[T], values: Callable[[T], Iterable[str]]) -> None:
        self.type = type_
        self._decode: Callable[[msgspec.Raw], T] = decoder(cast("Any", type_)).decode
        self._values = values

    def view(self, raw: msgspec.Raw) -> T | None:
        """Return what the index reads of an object; indexes of one type share it. None if it does not fit."""
        try:
            return self._decode(raw)
        except MALFORMED:
            return None

    def values(self, view: T | None) -> tuple[str, ...]:
        """Return the values to find an object by, each once."""
        return () if view is None else tuple(dict.fromkeys(map(sys.intern, self._values(view))))


class _Identity(msgspec.Struct, rename="camel", gc=False):
    resource_version: str
    name: str
    namespace: str = ""
    uid: str = ""


class ObjectHeader(NamedTuple):
    """An object as it came in: who it is, and its text not yet cut to what is kept."""

    key: Key
    resource_version: int
    uid: str
    raw: msgspec.Raw
    fields: dict[str, msgspec.Raw]


class Projector:
    """Turns the text of one resource's objects into keys and entries."""

    def __init__(self, resource: Resource, projection: Projection, indexes: Iterable[Index[Any]]) -> None:
        self._defaults = {
            "apiVersion": msgspec.Raw(msgspec.json.encode(resource.api_version)),
            "kind": msgspec.Raw(msgspec.json.encode(resource.kind)),
        }
        self._fields = projection.fields
        self._metadata = None if projection.metadata is None else projection.metadata | _IDENTITY
        self._transform = projection.transform
        self._keeps = projection.keeps
        self._indexes = tuple(indexes)
        self._readers = {index.type: index for index in self._indexes}
        self._raw_fields: Callable[[msgspec.Raw], dict[str, msgspec.Raw]] = decoder(dict[str, msgspec.Raw]).decode
        self._identity: Callable[[msgspec.Raw], _Identity] = decoder(_Identity).decode
        self._encode_into = msgspec.json.Encoder().encode_into
        self._buffer = bytearray()

    def read(self, raw: msgspec.Raw) -> ObjectHeader:
        """Return who an object is, and its fields unread; raises StreamError for what is no Kubernetes object."""
        try:
            fields = self._raw_fields(raw)
            identity = self._identity(fields["metadata"])
            key = Key(sys.intern(identity.namespace), identity.name)
            return ObjectHeader(key, int(identity.resource_version), identity.uid, raw, fields)
        except (*MALFORMED, ValueError, KeyError) as error:
            raise _no_object(raw, error) from error

    def keeps(self, header: ObjectHeader) -> bool:
        """Return whether the store keeps an object."""
        return self._keeps is None or self._keeps(header)

    def project(self, header: ObjectHeader) -> Entry:
        """Return what the store keeps of an object; raises StreamError as `read` does."""
        kept = self._cut(header) if self._transform is None else self._transform(header)
        views = {type_: index.view(header.raw) for type_, index in self._readers.items()}
        indexed = tuple(index.values(views[index.type]) for index in self._indexes)
        self._encode_into(kept, self._buffer)
        data = bytes(self._buffer)  # of just the right size; `encode` shrinks a larger block and leaves a hole
        return Entry(data, header.resource_version, header.uid, indexed)

    def _cut(self, header: ObjectHeader) -> dict[str, Any]:
        try:
            metadata = self._raw_fields(header.fields["metadata"])
        except MALFORMED as error:
            raise _no_object(header.raw, error) from error
        metadata.pop("managedFields", None)
        if self._metadata is not None:
            metadata = {field: value for field, value in metadata.items() if field in self._metadata}
        # Lists of built-in kinds leave these two out of their items, watches do not: stored text has them always.
        kept: dict[str, Any] = {**self._defaults, "metadata": metadata}
        for field, value in header.fields.items():
            if field not in kept and (self._fields is None or field in self._fields):
                kept[field] = value
        return kept


def _no_object(raw: msgspec.Raw, error: Exception) -> StreamError:
    text = bytes(raw)[:120]
    return StreamError(f"expected an object with a name and a numeric resourceVersion, got {text!r}: {error}")
