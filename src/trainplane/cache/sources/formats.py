"""Files of each kind, opened for scanning.

Parquet, CSV and ORC are scanned by Arrow's datasets. JSON lines and Arrow files are read by Arrow as streams, Avro by
DataFusion from a copy on disk; they are scanned as their batches come. Each opened file says what columns it has
(`physical_schema`) and gives a `scanner` over some of them, so that callers do not tell kinds apart.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.dataset as pds
import pyarrow.json as pj

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainplane.cache.sources.places import OpenFile

ENDINGS: Final = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv",),
    "json": (".json", ".jsonl", ".ndjson"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "orc": (".orc",),
    "avro": (".avro",),
}
TEXT: Final = frozenset({"csv", "json"})
"""Kinds whose files do not say what types their columns have: the plan does."""
_LONGEST_LINE: Final = 8 << 20
"""Bytes of a JSON object: what is parsed at once."""
BATCH_ROWS: Final = 1 << 16


class Stream:
    """A file whose batches come one after the other; scanned once."""

    def __init__(self, schema: Any, batches: Iterable[Any]) -> None:
        self.physical_schema = schema
        self._batches = batches

    def scanner(self, *, columns: list[str], filter: Any, **_: Any) -> Any:  # noqa: A002 as Arrow's datasets name it
        """Return what scans some columns of the rows that a filter lets through."""
        reader = pa.RecordBatchReader.from_batches(self.physical_schema, self._batches)
        return pds.Scanner.from_batches(reader, columns=columns, filter=filter)


@contextmanager
def opened(kind: str, handle: OpenFile, schema: Any, *, others: bool) -> Iterator[Any]:
    """Open a file for scanning: `physical_schema`, and `scanner` once.

    Of a text, `schema` says the types of columns (none: they are inferred from its beginning), and `others` whether
    there may be further ones; those of a JSON file that nobody knows of are an error otherwise, not left out.
    """
    if kind in {"parquet", "csv", "orc"}:
        yield _format(kind, schema).make_fragment(pa.PythonFile(handle, mode="r"))
    elif kind == "json":
        yield _json(handle, schema, others=others)
    elif kind == "arrow":
        yield _arrow(handle)
    else:
        with _avro(handle) as stream:
            yield stream


def _format(kind: str, schema: Any) -> Any:
    if kind == "parquet":
        return pds.ParquetFileFormat(default_fragment_scan_options=pds.ParquetFragmentScanOptions(pre_buffer=True))
    if kind == "orc":
        return pds.OrcFileFormat()
    convert = pc.ConvertOptions(column_types=schema) if schema is not None else pc.ConvertOptions()
    return pds.CsvFileFormat(default_fragment_scan_options=pds.CsvFragmentScanOptions(convert_options=convert))


def _json(handle: OpenFile, schema: Any, *, others: bool) -> Stream:
    if not handle.size() and schema is not None:
        return Stream(schema, ())
    parse = pj.ParseOptions()
    if schema is not None:
        parse = pj.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="ignore" if others else "error", newlines_in_values=False
        )
    reader = pj.open_json(pa.PythonFile(handle, mode="r"), pj.ReadOptions(block_size=_LONGEST_LINE), parse)
    return Stream(reader.schema, reader)


def _arrow(handle: OpenFile) -> Stream:
    """Return an Arrow file. It is memory as somebody wrote it: each batch is looked through before it is used."""
    reader = pa.ipc.open_file(pa.PythonFile(handle, mode="r"))

    def batches() -> Iterator[Any]:
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            batch.validate(full=True)
            yield batch

    return Stream(reader.schema, batches())


@contextmanager
def _avro(handle: OpenFile) -> Iterator[Stream]:
    """Open an Avro file, copied to the local disk: DataFusion reads paths, and this version alone is meant."""
    import datafusion as df  # noqa: PLC0415 slow to load, and few need it

    with tempfile.TemporaryDirectory(prefix="trainplane-avro-") as folder:
        path = Path(folder, "copy.avro")
        with path.open("wb") as copy:
            while piece := handle.read(8 << 20):
                copy.write(piece)
        context = df.SessionContext(df.SessionConfig().with_target_partitions(1).with_batch_size(BATCH_ROWS))
        try:
            frame = context.read_avro(path)
        except Exception as error:  # noqa: BLE001 DataFusion raises no class of its own
            raise pa.ArrowInvalid(str(error)[:300]) from None
        yield Stream(frame.schema(), frames(frame))


def frames(frame: Any) -> Iterator[Any]:
    """Yield what a frame of DataFusion has, as Arrow's batches; its errors as Arrow's."""
    try:
        for batch in frame.execute_stream():
            yield batch.to_pyarrow()
    except Exception as error:  # noqa: BLE001 as above
        raise pa.ArrowInvalid(str(error)[:300]) from None
