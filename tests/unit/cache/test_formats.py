"""Folders of JSON lines, Arrow, ORC and Avro files: exactly what is there, or a refusal that names the file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.feather as pf
import pyarrow.orc as po
import pytest
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType

from tests.unit.cache.data import table
from tests.unit.cache.test_sources import decoded, planned
from trainplane.cache.errors import InexactError, InvalidError

if TYPE_CHECKING:
    from pathlib import Path


def lines(path: Path, *rows: Any) -> None:
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))


def avro(path: Path, rows: int) -> None:
    fields = NestedField(1, "id", LongType(), required=True), NestedField(2, "text", StringType(), required=True)
    with AvroOutputFile[Record](PyArrowFileIO().new_output(str(path)), Schema(*fields), "rows") as file:
        file.write_block([Record(number, f"row {number}") for number in range(rows)])


def write(kind: str, folder: Path, rows: int) -> None:
    whole = table(0, rows).select(["id", "text"])
    if kind == "json":
        lines(folder / "a.jsonl", *whole.to_pylist())
    elif kind == "arrow":
        with pa.ipc.new_file(folder / "a.arrow", whole.schema) as writer:
            writer.write_table(whole, max_chunksize=100)
    elif kind == "orc":
        po.write_table(whole, folder / "a.orc")
    else:
        avro(folder / "a.avro", rows)


@pytest.mark.parametrize("kind", ["json", "arrow", "orc", "avro"])
def test_a_file_of_each_kind_is_read_in_its_order_with_columns_and_rows_chosen(tmp_path: Path, kind: str) -> None:
    write(kind, tmp_path, 2_000)
    manifest = planned(kind=kind, location=str(tmp_path))
    assert decoded(manifest) == table(0, 2_000).select(["id", "text"]).to_pylist()
    some = planned(kind=kind, location=str(tmp_path), columns=("text", "id"), where=(("id", ">=", 1_990),))
    assert some.rows == 10
    assert decoded(some) == [{"text": f"row {n}", "id": n} for n in range(1_990, 2_000)]


def test_json_of_many_files_has_nulls_where_a_field_is_missing(tmp_path: Path) -> None:
    lines(tmp_path / "a.json", {"id": 1, "deep": {"list": [1, 2]}}, {"id": 2})
    lines(tmp_path / "b.ndjson", {"deep": {"list": []}})
    (tmp_path / "c.jsonl").touch()
    manifest = planned(kind="json", location=str(tmp_path))
    assert [one.rows for one in manifest.fragments] == [2, 1, 0]
    assert decoded(manifest) == [
        {"id": 1, "deep": {"list": [1, 2]}},
        {"id": 2, "deep": None},
        {"id": None, "deep": {"list": []}},
    ]


@pytest.mark.parametrize(
    "row",
    [
        '{"id": 1.5}',
        '{"id": "x"}',
        '{"id": 12345678901234567890}',
        '{"id": 1, "id": 2}',
        '{"id": 1, "unknown": 2}',
        '{"id": 1',
        "[1]",
        '{"id": true}',
    ],
)
def test_json_that_does_not_fit_is_refused_by_name(tmp_path: Path, row: str) -> None:
    lines(tmp_path / "a.json", {"id": 1})
    lines(tmp_path / "b.json", {"id": 2}, row)
    with pytest.raises(InexactError, match=r"b\.json"):
        planned(kind="json", location=str(tmp_path))


def test_fields_that_nobody_asked_for_may_be_anything(tmp_path: Path) -> None:
    lines(tmp_path / "a.json", {"id": 1, "note": "x"})
    lines(tmp_path / "b.json", {"id": 2, "note": 3, "more": 4})
    assert decoded(planned(kind="json", location=str(tmp_path), columns=("id",))) == [{"id": 1}, {"id": 2}]
    with pytest.raises(InvalidError, match="which is not served"):
        planned(kind="json", location=str(tmp_path), columns=("id",), where=(("note", "=", "x"),))


def test_an_arrow_file_that_points_out_of_its_memory_is_refused(tmp_path: Path) -> None:
    with pa.ipc.new_file(tmp_path / "a.arrow", pa.schema([("t", pa.string())])) as writer:
        writer.write_batch(pa.record_batch({"t": ["aa", "bb", "cc"]}))
    good, forged = (b"".join(n.to_bytes(4, "little") for n in (0, 2, 4, end)) for end in (6, 1 << 30))
    content = (tmp_path / "a.arrow").read_bytes()
    assert content.count(good) == 1
    (tmp_path / "a.arrow").write_bytes(content.replace(good, forged))
    with pytest.raises(InexactError, match=r"a\.arrow"):
        planned(kind="arrow", location=str(tmp_path))


def test_views_and_dictionaries_of_an_arrow_file_are_served_as_values(tmp_path: Path) -> None:
    columns = {"v": pa.array(["x", "y"], pa.string_view()), "d": pa.array(["x", "y"]).dictionary_encode()}
    pf.write_feather(pa.table(columns), tmp_path / "a.feather", compression="uncompressed")
    manifest = planned(kind="arrow", location=str(tmp_path))
    assert manifest.arrow_schema.types == [pa.string(), pa.string()]
    assert decoded(manifest) == [{"v": "x", "d": "x"}, {"v": "y", "d": "y"}]


@pytest.mark.parametrize("kind", ["json", "arrow", "orc", "avro"])
def test_what_is_none_of_its_kind_is_refused(tmp_path: Path, kind: str) -> None:
    (tmp_path / f"a.{kind}").write_bytes(b"\x00\xffnothing of the kind" * 100)
    with pytest.raises(InexactError, match=f"a.{kind}"):
        planned(kind=kind, location=str(tmp_path))
