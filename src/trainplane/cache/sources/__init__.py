"""What a dataset can be made from: how it is planned, and how one of its fragments is decoded.

A source is refused rather than read in part: whatever cannot be read exactly is said when the manifest is made, and
whatever changed since then when a worker loads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from trainplane.cache.errors import InvalidError
from trainplane.cache.written import open_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainplane.cache.manifest import Fragment, Manifest, Source


class Decoder(Protocol):
    """Decodes fragments of a plan."""

    def decode(self, manifest: Manifest, fragment: Fragment) -> Iterator[Any]:
        """Yield the record batches of a fragment in its own order; an error where the file is another by now."""
        ...


class Reader(Decoder, Protocol):
    """Plans and decodes a source of one kind."""

    def plan(self, source: Source) -> Manifest:
        """Return the plan of a source as it is now."""
        ...


def plan(source: Source, env: Mapping[str, str]) -> Manifest:
    """Return the plan of a source as it is now; of one that is written, that it waits for its commit."""
    return open_manifest(source) if source.kind == "written" else reader(source, env).plan(source)


def reader(source: Source, env: Mapping[str, str]) -> Reader:
    """Return who reads a source, with the credentials of an environment."""
    if source.kind == "written":
        raise InvalidError("what is written to a cache can be read by its own workers alone")
    if source.sql:
        from trainplane.cache.sources.sql import SqlReader  # noqa: PLC0415 slow to load, and few need it

        return SqlReader(reader(msgspec.structs.replace(source, sql=""), env))
    if source.kind == "iceberg":
        from trainplane.cache.sources.iceberg import IcebergReader  # noqa: PLC0415 as above

        return IcebergReader(env)
    from trainplane.cache.sources.folder import FolderReader  # noqa: PLC0415 as above

    return FolderReader(env)
