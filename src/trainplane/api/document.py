"""Documents: the tree that the API server wrote, and beside it a typed view of what we know.

A struct forgets every field that it does not list, so a struct must never be written back in place of what was read.
Hence the one rule of this room: **views are for reading, trees are for writing.** A `Document` keeps both together and
is immutable: `put` and `drop` make a new document from a changed tree, and its view is read from that tree. There is no
way from a view back to a tree that was read, so a field newer than our types survives whatever we do, at every level.

    job = decode(body, TrainJob)
    job.view.spec.trainer.num_nodes          # typed
    job.put("spec", "suspend", value=True)   # a new document; unknown fields still there

Objects that we make from nothing are structs, and `encode` and `to_tree` write those.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import msgspec

from trainplane.api import tree as trees
from trainplane.api.bounds import check_size, too_deep
from trainplane.api.errors import DecodeError

if TYPE_CHECKING:
    from trainplane.api.tree import Step, Tree

View = TypeVar("View", bound=msgspec.Struct)

_LOCATION = re.compile(r" - at `\$?\.?(?P<path>[^`]*)`$")


@dataclass(frozen=True, slots=True)
class Document(Generic[View]):
    """One object of the API: `tree` is the truth, `view` what we understand of it."""

    tree: Tree
    view: View

    def put(self, *path: Step, value: Any) -> Document[View]:
        """Return the document with `value` at a path (see `tree.put`)."""
        return read(cast("Tree", trees.put(self.tree, *path, value=value)), type(self.view))

    def drop(self, *path: Step) -> Document[View]:
        """Return the document without what stands at a path."""
        return read(cast("Tree", trees.drop(self.tree, *path)), type(self.view))

    def encode(self) -> bytes:
        """Return the document as JSON, with every field that was read."""
        return msgspec.json.encode(self.tree)


def decode(data: bytes | str, kind: type[View]) -> Document[View]:
    """Read a document of a kind from JSON.

    Raises:
        DecodeError: as `decode_tree`, or a field that we know has another type; the message names the field.
    """
    return read(decode_tree(data.encode() if isinstance(data, str) else data), kind)


def decode_tree(data: bytes) -> Any:
    """Read a tree from the JSON of an object.

    Raises:
        DecodeError: it is no JSON, has more values than are read (`bounds`), or is nested too deep.
    """
    check_size(data)
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DecodeError("", f"not JSON: {error}") from error
    except RecursionError as error:
        raise DecodeError("", too_deep()) from error


def read(tree: Any, kind: type[View]) -> Document[View]:
    """Read a document of a kind from a tree. The tree is kept, not copied: do not change it afterwards."""
    return Document(tree, view(tree, kind))


def view(tree: Any, kind: type[View]) -> View:
    """Return the typed view of a tree, which may be any part of a document.

    A null counts as a field that is not there, as it does for the API server; the tree keeps it.
    """
    try:
        return msgspec.convert(tree, kind)
    except msgspec.ValidationError:
        try:
            return msgspec.convert(trees.without_nulls(tree), kind)
        except msgspec.ValidationError as error:
            raise _named(error) from error
        except RecursionError as error:
            raise DecodeError("", too_deep()) from error


def to_tree(value: msgspec.Struct) -> Tree:
    """Return a struct that we made as a tree, fields at their defaults left out."""
    return cast("Tree", msgspec.to_builtins(value))


def encode(value: msgspec.Struct) -> bytes:
    """Return a struct that we made as JSON, fields at their defaults left out."""
    return msgspec.json.encode(value)


def _named(error: msgspec.ValidationError) -> DecodeError:
    """Turn msgspec's sentence into one that begins with the field, as Kubernetes' messages do."""
    text = str(error)
    location = _LOCATION.search(text)
    path = location["path"] if location else ""
    problem = _LOCATION.sub("", text).replace("`", "")
    return DecodeError(path, problem[:1].lower() + problem[1:])
