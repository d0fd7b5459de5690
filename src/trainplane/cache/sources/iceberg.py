"""Iceberg tables, by the metadata file of one of their states.

pyiceberg plans and decodes: it knows field ids, evolved schemas, partition values and positional deletes. What it
cannot apply exactly is refused before a row is served. A table's files never change by Iceberg's own rules; their size
and the number of rows are checked all the same.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
from pyiceberg import expressions as ice
from pyiceberg.exceptions import NoSuchTableError, ValidationError
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.table import StaticTable

from trainplane.cache.errors import (
    CacheError,
    ChangedError,
    InexactError,
    InvalidError,
    NotFoundError,
    UnreachableError,
)
from trainplane.cache.manifest import Fragment, Manifest, Source, make_manifest, plain
from trainplane.cache.sources.folder import conformed, projected

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PROPERTIES: Final = {
    "s3.endpoint": "ENDPOINT",
    "s3.access-key-id": "ACCESS_KEY_ID",
    "s3.secret-access-key": "SECRET_ACCESS_KEY",
    "s3.session-token": "SESSION_TOKEN",
    "s3.region": "REGION",
}
_RELATIONS: Final[Mapping[str, Any]] = {
    "=": ice.EqualTo,
    "!=": ice.NotEqualTo,
    "<": ice.LessThan,
    "<=": ice.LessThanOrEqual,
    ">": ice.GreaterThan,
    ">=": ice.GreaterThanOrEqual,
    "in": ice.In,
    "not in": ice.NotIn,
}
_SAMPLE_ROWS: Final = 4096


class IcebergReader:
    """Plans and decodes Iceberg tables."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._properties = {name: env[variable] for name, variable in _PROPERTIES.items() if env.get(variable)}

    def plan(self, source: Source) -> Manifest:
        """Return the plan of a snapshot: its data files, with the rows that deletes and filters leave."""
        table = _Table(source, self._properties)
        if table.snapshot is None:
            raise InexactError(f"{source.location} has no snapshot: the table is empty", "write rows first")
        # The snapshot is written down: the plan means this state for ever.
        source = msgspec.structs.replace(source, snapshot=table.snapshot)
        fragments = []
        for name, task in sorted(table.tasks.items()):
            rows = table.counted(task)
            fragments.append(Fragment(name, rows, task.file.file_size_in_bytes, "iceberg"))
        sample = next((batch for task in table.tasks.values() for batch in table.batches(task) if batch.num_rows), None)
        row_bytes = 64.0
        if sample is not None:
            head = sample.slice(0, _SAMPLE_ROWS)
            row_bytes = head.nbytes / head.num_rows
        return make_manifest(source, table.schema, tuple(fragments), row_bytes)

    def decode(self, manifest: Manifest, fragment: Fragment) -> Iterator[Any]:
        """Yield the record batches of a data file, as the manifest's schema says."""
        table = _planned(manifest.source, tuple(sorted(self._properties.items())))
        task = table.tasks.get(fragment.name)
        if task is None or task.file.file_size_in_bytes != fragment.size:
            raise ChangedError(f"{fragment.name} is not in snapshot {manifest.source.snapshot} any more")
        for batch in table.batches(task):
            yield conformed(batch, manifest.arrow_schema)


class _Table:
    """One snapshot of a table, planned."""

    def __init__(self, source: Source, properties: Mapping[str, str]) -> None:
        self._source = source
        with _told(source):
            self._table = StaticTable.from_metadata(source.location, dict(properties))
            current = self._table.current_snapshot()
            self.snapshot = source.snapshot or (current.snapshot_id if current else None)
            if self.snapshot is not None and self._table.snapshot_by_id(self.snapshot) is None:
                raise NotFoundError(f"{source.location} has no snapshot {self.snapshot}")

    @cached_property
    def _scan(self) -> Any:
        with _told(self._source):
            return self._table.scan(
                row_filter=_condition(self._source),
                selected_fields=self._source.columns or ("*",),
                snapshot_id=self.snapshot,
            )

    @cached_property
    def schema(self) -> Any:
        """As it is served."""
        whole = pa.schema(list(self._table.scan(snapshot_id=self.snapshot).projection().as_arrow()))
        return projected(plain(whole), self._source)

    @cached_property
    def tasks(self) -> dict[str, Any]:
        """The data files by name."""
        _ = self.schema
        with _told(self._source):
            tasks = {task.file.file_path: task for task in self._scan.plan_files()}
        for name, task in tasks.items():
            for delete in task.delete_files:
                if delete.content == DataFileContent.EQUALITY_DELETES:
                    raise InexactError(f"{name} has equality deletes", "rewrite the table's files first (compaction)")
            if task.file.file_format != FileFormat.PARQUET:
                raise InexactError(
                    f"{name} is {task.file.file_format}, and Parquet is read", "rewrite the table's files"
                )
        return tasks

    def counted(self, task: Any) -> int:
        """Return how many rows a data file has, exactly: only where nothing is left out does its own count say so."""
        if not task.delete_files and not self._source.where:
            return int(task.file.record_count)
        return sum(batch.num_rows for batch in self.batches(task))

    def batches(self, task: Any) -> Iterator[Any]:
        """Yield what a data file has."""
        with _told(self._source):
            scan = ArrowScan(
                self._table.metadata,
                self._table.io,
                self._scan.projection(),
                self._scan.row_filter,
                case_sensitive=True,
            )
            yield from scan.to_record_batches([task])


@lru_cache(maxsize=4)
def _planned(source: Source, properties: tuple[tuple[str, str], ...]) -> _Table:
    """Return a snapshot that was planned before: each fragment needs its table."""
    return _Table(source, dict(properties))


class _told:  # noqa: N801 a context manager, read as a word
    """Says what pyiceberg and Arrow say in words of ours."""

    def __init__(self, source: Source) -> None:
        self._location = source.location

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Translate."""
        if error is None or isinstance(error, CacheError | GeneratorExit) or not isinstance(error, Exception):
            return
        words = f"{self._location}: {type(error).__name__}: {str(error)[:300]}"
        if isinstance(error, FileNotFoundError | NoSuchTableError):
            raise NotFoundError(words) from None
        if isinstance(error, ValidationError):
            raise InvalidError(words) from None
        if isinstance(error, NotImplementedError | ValueError):
            raise InexactError(words) from None
        raise UnreachableError(words) from None


def _condition(source: Source) -> Any:
    condition: Any = ice.AlwaysTrue()
    for column, relation, value in source.where:
        condition = ice.And(condition, _RELATIONS[relation](column, list(value) if isinstance(value, tuple) else value))
    return condition
