"""Declared SQL over a source: `SELECT … FROM dataset`, by DataFusion.

A statement must make each row by itself, from that row alone: projections, derived columns, filters, `unnest`. Then a
file's rows are the same wherever, whenever and in whatever pieces it is decoded, in the source's own order, and may be
counted file by file. Everything else is refused when the manifest is made: what looks at several rows (aggregates,
joins, sorting, limits, windows, subqueries), what differs by call (`random`, `now`), what writes, and what reads
anything but the dataset.

It is somebody's text: its length is bounded by the manifest, its depth by DataFusion's parser, and functions that make
much out of nothing are not there. What it still costs is paid by the cache's own pods, under their limits.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import datafusion as df
import msgspec
import pyarrow as pa

from trainplane.cache.errors import InexactError, InvalidError
from trainplane.cache.manifest import Fragment, Manifest, Source, make_manifest, plain
from trainplane.cache.sources.folder import conformed
from trainplane.cache.sources.formats import BATCH_ROWS, frames

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.cache.sources import Reader

TABLE: Final = "dataset"
_ROWWISE: Final = frozenset({"Projection", "Filter", "SubqueryAlias", "Unnest", "TableScan"})
"""Steps of a plan that make each row by itself."""
_KEEPING: Final = _ROWWISE - {"Filter", "Unnest"}
"""Those that make one row of each."""
_GREEDY: Final = (
    *("repeat", "lpad", "rpad", "space", "range", "generate_series"),
    *("array_repeat", "list_repeat", "array_resize", "list_resize"),
)
"""Functions by which a few letters fill any memory."""
_LARGEST_BATCH: Final = 1 << 30
_MEMORY: Final = 256 << 20
_AT_ONCE: Final = 4
_REMEDY: Final = "write SELECT columns FROM dataset WHERE …, each row by itself; prepare the rest before"


class SqlReader:
    """Plans and decodes what a statement makes of another reader's rows."""

    def __init__(self, inner: Reader) -> None:
        self._inner = inner

    def plan(self, source: Source) -> Manifest:
        """Return the plan: the source's files with the rows that the statement makes of each."""
        whole = self._inner.plan(msgspec.structs.replace(source, sql=""))
        statement = Statement(source.sql, whole.arrow_schema)
        needed = {*statement.columns, *(column for column, _, _ in source.where)}
        read = pa.schema([field for field in whole.arrow_schema if field.name in needed])
        # Files are the inner plan's; what is read of them is only what the statement needs.
        planned = msgspec.structs.replace(
            whole,
            source=msgspec.structs.replace(whole.source, sql=source.sql),
            schema=statement.schema.serialize().to_pybytes(),
            read=read.serialize().to_pybytes(),
        )

        def counted(fragment: Fragment) -> Fragment:
            if statement.keeps or not fragment.rows:
                return fragment
            rows = sum(batch.num_rows for batch in self.decode(planned, fragment))
            return msgspec.structs.replace(fragment, rows=rows)

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            fragments = tuple(pool.map(counted, whole.fragments))
        return make_manifest(planned.source, statement.schema, fragments, self._row_bytes(planned), planned.read)

    def decode(self, manifest: Manifest, fragment: Fragment) -> Iterator[Any]:
        """Yield what the statement makes of a file's record batches."""
        read = pa.ipc.read_schema(pa.py_buffer(manifest.read))
        statement = Statement(manifest.source.sql, read)
        source = msgspec.structs.replace(manifest.source, sql="", columns=tuple(read.names))
        inner = msgspec.structs.replace(manifest, source=source, schema=manifest.read, read=b"")
        for batch in self._inner.decode(inner, fragment):
            try:
                for made in statement.made(batch):
                    yield conformed(made, manifest.arrow_schema)
            except pa.ArrowException as error:
                raise InexactError(f"{fragment.name}: SQL: {str(error)[:300]}", "correct SQL, or the rows") from None

    def _row_bytes(self, manifest: Manifest) -> float:
        """Return about how large a row is, by the first that are made."""
        for fragment in manifest.fragments:
            for batch in self.decode(manifest, fragment):
                if batch.num_rows:
                    return float(batch.nbytes / batch.num_rows)
        return 64.0


class Statement:
    """A statement that was judged, over rows of one schema."""

    def __init__(self, text: str, schema: Any) -> None:
        if re.search(r"\btablesample\b", text, re.IGNORECASE):
            raise InvalidError("SQL: TABLESAMPLE, which DataFusion leaves out without a word", _REMEDY)
        self._text, self._context = text, _context()
        nothing = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
        frame = self._framed(nothing)
        plan = frame.logical_plan()
        steps = _steps(plan)
        if odd := sorted(set(steps) - _ROWWISE):
            raise InvalidError(f"SQL: {odd[0]} does not make each row by itself", _REMEDY)
        if "Subquery:" in plan.display_indent():
            raise InvalidError("SQL: a subquery does not make each row by itself", _REMEDY)
        self.schema = plain(frame.schema())
        """What comes out."""
        if len(set(self.schema.names)) != len(self.schema.names):
            raise InvalidError("SQL: two columns have one name", "name each by AS")
        self.keeps = set(steps) <= _KEEPING
        """Whether one row comes out for each."""
        self.columns = _columns(frame.optimized_logical_plan()) or tuple(schema.names)
        """What it reads."""

    def made(self, batch: Any) -> Iterator[Any]:
        """Yield what comes out of a batch, in its order."""
        for made in frames(self._framed(batch)):
            if made.nbytes > _LARGEST_BATCH:
                raise InvalidError(f"SQL: {batch.num_rows} rows became {made.nbytes} bytes", "make smaller ones")
            yield made

    def _framed(self, batch: Any) -> Any:
        """Return the statement over a batch, not yet run."""
        self._context.deregister_table(TABLE)
        self._context.register_record_batches(TABLE, [[batch]])
        options = df.SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
        try:
            return self._context.sql_with_options(self._text, options)
        except Exception as error:  # noqa: BLE001 DataFusion raises no class of its own
            raise InvalidError(f"SQL: {' '.join(str(error).split())[:300]}", _REMEDY) from None


def _steps(plan: Any) -> list[str]:
    return [type(plan.to_variant()).__name__, *(step for one in plan.inputs() for step in _steps(one))]


def _columns(plan: Any) -> tuple[str, ...]:
    """Return the columns that the one scan at the bottom of a plan takes."""
    while plan.inputs():
        plan = plan.inputs()[0]
    scan = plan.to_variant()
    return tuple(name for _, name in scan.projection()) if type(scan).__name__ == "TableScan" else ()


def _context() -> Any:
    """Return a session without files, disk or functions that must not be there; one thread, so that order is kept."""
    runtime = df.RuntimeEnvBuilder().with_disk_manager_disabled().with_greedy_memory_pool(_MEMORY)
    context = df.SessionContext(df.SessionConfig().with_target_partitions(1).with_batch_size(BATCH_ROWS), runtime)
    for name in (*_changing(), *_GREEDY):
        context.deregister_udf(name)
        context.deregister_udtf(name)
    return context


@lru_cache(maxsize=1)
def _changing() -> tuple[str, ...]:
    """Return the functions that DataFusion does not itself call the same for the same arguments."""
    context = df.SessionContext(df.SessionConfig({"datafusion.catalog.information_schema": "true"}))
    asked = "SELECT DISTINCT routine_name FROM information_schema.routines WHERE is_deterministic IS NOT TRUE"
    return tuple(sorted(context.sql(asked).to_arrow_table()["routine_name"].to_pylist()))
