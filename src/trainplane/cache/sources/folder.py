"""Folders of files of one kind.

All files of a folder have one schema: that of the first, projected. A file whose columns are missing or of another
type is refused by name when the manifest is made, or when a value does not fit where files do not say what types they
have (CSV, JSON).
"""

from __future__ import annotations

import operator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.dataset as pds

from trainplane.cache.errors import CacheError, InexactError, InvalidError
from trainplane.cache.manifest import Fragment, Manifest, Source, make_manifest, plain
from trainplane.cache.sources.formats import BATCH_ROWS, ENDINGS, TEXT, opened
from trainplane.cache.sources.places import Found, Place, place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_RELATIONS: Final[dict[str, Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SAMPLE_ROWS: Final = 4096
_AT_ONCE: Final = 8
"""Files whose rows are counted at the same time: it is waiting for the store, mostly."""


class FolderReader:
    """Plans and decodes folders."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env

    def plan(self, source: Source) -> Manifest:
        """Return the plan of a folder: all files of its kind, with their rows counted."""
        where = place(source.location, self._env)
        files = [file for file in where.files() if file.name.endswith(ENDINGS[source.kind])]
        if not files:
            endings = " or ".join(ENDINGS[source.kind])
            raise InvalidError(f"{source.location} has no file that ends in {endings}", "correct kind or location")
        with _opened(source, where, files[0], None) as first:
            schema = projected(plain(first.physical_schema), source)
        # A stream is opened anew for each question: it can be read once.
        with _opened(source, where, files[0], schema) as first:
            sample = _scanner(first, source, schema).head(_SAMPLE_ROWS)
            row_bytes = sample.nbytes / sample.num_rows if sample.num_rows else 64.0

        def counted(file: Found) -> Fragment:
            with _opened(source, where, file, schema) as fragment:
                if source.kind not in TEXT:
                    _same(file, plain(fragment.physical_schema), schema)
                return Fragment(file.name, _scanner(fragment, source, schema).count_rows(), file.size, file.version)

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            fragments = tuple(pool.map(counted, files))
        return make_manifest(source, schema, fragments, row_bytes)

    def decode(self, manifest: Manifest, fragment: Fragment) -> Iterator[Any]:
        """Yield the record batches of a file, as the manifest's schema says."""
        source, schema = manifest.source, manifest.arrow_schema
        where = place(source.location, self._env)
        found = Found(fragment.name, fragment.size, fragment.version)
        with _opened(source, where, found, schema) as opened_file:
            for batch in _scanner(opened_file, source, schema).to_batches():
                yield conformed(batch, schema)


def projected(schema: Any, source: Source) -> Any:
    """Return a schema's fields that are served, in the order that was asked for."""
    wanted = source.columns or tuple(schema.names)
    asked = {*wanted, *(column for column, _, _ in source.where)}
    if missing := sorted(asked - set(schema.names)):
        raise InvalidError(f"there is no column {missing[0]!r}", f"there are {', '.join(schema.names)[:500]}")
    if source.kind in TEXT and (unserved := sorted(asked - set(wanted))):
        raise InvalidError(
            f"the filter asks for {unserved[0]!r}, which is not served", f"of {source.kind}, name it in columns too"
        )
    if len(set(schema.names)) != len(schema.names) or len(set(wanted)) != len(wanted):
        raise InexactError("two columns have one name", "rename one, or name each column once")
    return pa.schema([schema.field(name) for name in wanted])


def conformed(batch: Any, schema: Any) -> Any:
    """Return a batch as its schema says; dictionaries become values."""
    columns = [batch.column(name) for name in schema.names]
    columns = [
        column if column.type.equals(field.type) else column.cast(field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@contextmanager
def _opened(source: Source, where: Place, file: Found, schema: Any) -> Iterator[Any]:
    """Open a file for scanning; it is of that version from beginning to end, or an error says so."""
    handle = where.open(file)
    with handle:
        try:
            with opened(source.kind, handle, schema, others=bool(source.columns)) as scanned:
                yield scanned
        except CacheError:
            raise
        except (pa.ArrowException, OSError) as error:
            if isinstance(error.__cause__, CacheError):
                raise error.__cause__ from None
            handle.check()
            raise InexactError(f"{file.name} is no {source.kind} that can be read: {str(error)[:300]}") from None
        handle.check()


def _same(file: Found, has: Any, schema: Any) -> None:
    for field in schema:
        index = has.get_field_index(field.name)
        if index < 0 or not has.field(index).type.equals(field.type):
            other = "no such column" if index < 0 else f"it as {has.field(index).type}"
            raise InexactError(
                f"column {field.name!r} is {field.type} in the first file, and {file.name} has {other}",
                "write all files of a folder with one schema, or use an Iceberg table",
            )


def _scanner(fragment: Any, source: Source, serves: Any) -> Any:
    """Return what reads the rows that are asked for of a file that has some columns and serves others."""
    # A file says itself what it has; a text has what the plan says.
    has = serves if source.kind in TEXT else fragment.physical_schema
    condition = None
    for column, relation, value in source.where:
        field = pds.field(column)
        if isinstance(value, tuple):
            one = field.isin(list(value)) if relation == "in" else ~field.isin(list(value))
        else:
            one = _RELATIONS[relation](field, value)
        condition = one if condition is None else condition & one
    return fragment.scanner(schema=has, columns=serves.names, filter=condition, batch_size=BATCH_ROWS)
