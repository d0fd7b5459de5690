"""Datasets that clients write: parts, what a worker says of each, and the plan that a commit makes of them.

A dataset that is written has a name, and a cache holds one. It is open until it is committed and sealed from then on.
Open, it is a plan without fragments; each part that a worker has whole is told to the writer in a receipt, which the
worker signs. A commit names the receipts of all parts and how many rows they have together: what it says is what is
served, and nothing is served before.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import msgspec
import pyarrow as pa
from msgspec import Meta

from trainplane.cache.errors import ContradictionError, InvalidError
from trainplane.cache.known import known
from trainplane.cache.manifest import Count, Fragment, Manifest, Source, make_manifest, plain
from trainplane.cache.wire import Digest, Name, decoded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.cache.tickets import Signer

SCHEME: Final = "write://"
MOST_PARTS: Final = 100_000
_NO_SCHEMA: Final = pa.schema([]).serialize().to_pybytes()

Dataset: TypeAlias = Annotated[str, Meta(pattern=r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$")]
Part: TypeAlias = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]


class Address(msgspec.Struct, frozen=True):
    """What is written to, as a descriptor's path says: `[DATASET, PART]`."""

    dataset: Dataset
    part: Part


class Receipt(msgspec.Struct, frozen=True):
    """That a worker has a part, whole."""

    dataset: Dataset
    part: Part
    worker: Name
    rows: Count
    size: Count
    digest: Digest
    """Of its bytes: the same wherever the same batches were written."""
    schema: Digest


class Stored(msgspec.Struct, frozen=True):
    """What a worker answers when it has a part."""

    rows: Count
    receipt: bytes
    """Signed; for the commit, as it is."""


class Commit(msgspec.Struct, frozen=True):
    """What a writer seals a dataset with."""

    dataset: Dataset
    schema: Annotated[bytes, Meta(max_length=4 << 20)]
    rows: Count
    """Of all parts together."""
    receipts: Annotated[tuple[bytes, ...], Meta(max_length=16 * MOST_PARTS)]
    """Signed, as workers gave them."""


class Committed(msgspec.Struct, frozen=True):
    """That a dataset is sealed, and every part on a disk."""

    manifest: Digest
    rows: Count


known(Address, Receipt, Stored, Commit, Committed)


def address(path: Iterable[bytes]) -> Address:
    """Return what a descriptor's path names; an error where it is no dataset and part."""
    words = [part.decode(errors="replace") for part in path]
    try:
        return msgspec.convert(dict(zip(("dataset", "part"), words, strict=True)), Address)
    except (msgspec.ValidationError, ValueError):
        remedy = "give a path [DATASET, PART]: a label of lower-case letters; letters, digits and any of ._-"
        raise InvalidError("the descriptor names no dataset and part", remedy) from None


def open_manifest(source: Source) -> Manifest:
    """Return the plan of a dataset that is not committed yet."""
    return Manifest(source=source, schema=_NO_SCHEMA, block_rows=1, fragments=())


def is_open(manifest: Manifest) -> bool:
    """Whether a dataset waits for its commit."""
    return manifest.source.kind == "written" and not manifest.fragments


def writable(schema: pa.Schema) -> pa.Schema:
    """Return a schema as it is kept; an error where batches of it cannot be kept as they are."""
    kept = plain(schema)
    if not len(kept):
        raise InvalidError("a schema without columns")
    if len(set(kept.names)) != len(kept.names):
        raise InvalidError("a schema with two columns of one name")
    if changed := [field.name for field in kept if not field.type.equals(schema.field(field.name).type)]:
        raise InvalidError(f"column {changed[0]!r} is a dictionary"[:200], "write its values: cast it first")
    return kept


def schema_digest(schema: pa.Schema) -> str:
    """Return what tells schemas apart."""
    return hashlib.sha256(schema.serialize().to_pybytes()).hexdigest()


def sealed(source: Source, signer: Signer, commit: Commit) -> Manifest:
    """Return the plan that a commit makes: the same for the same parts, in the order of their names."""
    if commit.dataset != source.location:
        raise InvalidError(f"this cache holds {source.location!r}, not {commit.dataset!r}")
    try:
        schema = writable(pa.ipc.read_schema(pa.py_buffer(commit.schema)))
    except (pa.ArrowException, OSError) as error:
        raise InvalidError(f"the commit's schema cannot be read: {str(error)[:200]}") from None
    expected = schema_digest(schema)
    parts: dict[str, Receipt] = {}
    for signed in commit.receipts:
        receipt = decoded(signer.check("receipt", signed), Receipt)
        if receipt.dataset != commit.dataset:
            raise InvalidError(f"a receipt for the dataset {receipt.dataset!r}", f"write to {commit.dataset!r}")
        if receipt.schema != expected:
            raise InvalidError(f"part {receipt.part!r} has another schema than the commit's", "write it anew")
        known = parts.setdefault(receipt.part, receipt)
        if known.digest != receipt.digest:
            raise ContradictionError(
                f"part {receipt.part!r} is not the same on {known.worker} and {receipt.worker}",
                "write it anew, the same batches to each",
            )
    if len(parts) > MOST_PARTS:
        raise InvalidError(f"{len(parts)} parts", f"write {MOST_PARTS} at most")
    rows = sum(one.rows for one in parts.values())
    if rows != commit.rows:
        raise InvalidError(
            f"the parts have {rows} rows and not the {commit.rows} of the commit", "write what is missing, then commit"
        )
    fragments = tuple(Fragment(name, one.rows, one.size, one.digest) for name, one in sorted(parts.items()))
    return make_manifest(source, schema, fragments, sum(one.size for one in fragments) / max(rows, 1))
