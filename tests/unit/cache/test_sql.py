"""Declared SQL: each row by itself, exactly counted, in the source's order; everything else is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.unit.cache.data import write_parquet
from tests.unit.cache.test_formats import lines
from tests.unit.cache.test_sources import decoded, planned
from trainplane.cache.errors import CacheError, InexactError, InvalidError
from trainplane.cache.manifest import read_manifest
from trainplane.cache.sources.sql import Statement

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string()), ("list", pa.list_(pa.int64()))])


def test_rows_are_chosen_and_made_in_the_order_of_the_source(tmp_path: Path) -> None:
    write_parquet(tmp_path, 70_000, 0, 2_500)
    sql = "SELECT upper(text) AS loud, id * 2 AS twice FROM dataset WHERE id % 5 = 1"
    manifest = planned(kind="parquet", location=str(tmp_path), sql=sql)
    assert [one.rows for one in manifest.fragments] == [14_000, 0, 500]
    assert manifest.arrow_schema.names == ["loud", "twice"]
    assert decoded(manifest) == [{"loud": f"ROW {n}", "twice": 2 * n} for n in range(1, 72_500, 5)]
    assert read_manifest(manifest.encoded, manifest.name) == manifest


def test_only_what_the_statement_needs_is_read(tmp_path: Path) -> None:
    write_parquet(tmp_path, 100)
    manifest = planned(kind="parquet", location=str(tmp_path), sql="SELECT id FROM dataset", where=(("id", "<", 3),))
    assert pa.ipc.read_schema(pa.py_buffer(manifest.read)).names == ["id"]
    assert decoded(manifest) == [{"id": 0}, {"id": 1}, {"id": 2}]


def test_a_statement_sees_the_columns_and_rows_that_are_declared(tmp_path: Path) -> None:
    lines(tmp_path / "a.json", *({"id": n, "text": "x", "odd": None} for n in range(10)))
    manifest = planned(
        kind="json",
        location=str(tmp_path),
        columns=("id", "text"),
        where=(("id", ">", 7),),
        sql="WITH q AS (SELECT * FROM dataset) SELECT text || '!' AS t FROM q",
    )
    assert decoded(manifest) == [{"t": "x!"}, {"t": "x!"}]
    with pytest.raises(InvalidError, match="odd"):
        planned(kind="json", location=str(tmp_path), columns=("id",), sql="SELECT odd FROM dataset")


def test_lists_are_spread_over_rows(tmp_path: Path) -> None:
    lines(tmp_path / "a.json", {"id": 1, "list": [1, 2]}, {"id": 2, "list": []}, {"id": 3, "list": [3]})
    manifest = planned(kind="json", location=str(tmp_path), sql="SELECT id, unnest(list) AS one FROM dataset")
    assert decoded(manifest) == [{"id": 1, "one": 1}, {"id": 1, "one": 2}, {"id": 3, "one": 3}]
    assert manifest.rows == 3


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM dataset",
        "SELECT id, sum(id) FROM dataset GROUP BY id",
        "SELECT DISTINCT id FROM dataset",
        "SELECT id FROM dataset ORDER BY id",
        "SELECT id FROM dataset LIMIT 5",
        "SELECT id FROM dataset TABLESAMPLE (10)",
        "SELECT row_number() OVER () FROM dataset",
        "SELECT a.id FROM dataset a JOIN dataset b ON a.id = b.id",
        "SELECT id FROM dataset UNION ALL SELECT id FROM dataset",
        "SELECT id FROM dataset WHERE id IN (SELECT id FROM dataset)",
        "SELECT (SELECT 1) AS one FROM dataset",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
        "SELECT 1",
        "VALUES (1)",
    ],
)
def test_what_looks_at_several_rows_or_none_is_refused(sql: str) -> None:
    with pytest.raises(InvalidError, match=r"each row by itself|TABLESAMPLE"):
        Statement(sql, SCHEMA)


@pytest.mark.parametrize(
    "name", ["random()", "rand()", "uuid()", "now()", "today()", "current_date", "current_time", "current_timestamp"]
)
def test_what_differs_by_call_is_refused(name: str) -> None:
    with pytest.raises(InvalidError):
        Statement("SELECT NAME AS x FROM dataset".replace("NAME", name), SCHEMA)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM '/etc/passwd'",
        'SELECT * FROM "/etc/hosts.csv"',
        "SELECT * FROM 's3://bucket/other.parquet'",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
        "CREATE TABLE t AS SELECT * FROM dataset",
        "COPY dataset TO '/tmp/stolen.csv'",
        "INSERT INTO dataset SELECT * FROM dataset",
        "SET datafusion.catalog.information_schema = true",
        "DROP TABLE dataset",
        "SELECT id FROM dataset; DROP TABLE dataset",
        "EXPLAIN ANALYZE SELECT id FROM dataset",
        "SELECT * FROM information_schema.tables",
        "SELECT repeat(text, 1000000000) AS x FROM dataset",
        "SELECT rpad(text, 1000000000) AS x FROM dataset",
        "SELECT generate_series(1, 1000000000000) AS x FROM dataset",
        "SELECT array_repeat(1, 1000000000) AS x FROM dataset",
        "SELECT * FROM range(1, 1000000000000)",
        "SELECT " + "(" * 2000 + "id" + ")" * 2000 + " AS x FROM dataset",
        "SELECT " + "- " * 2000 + "id AS x FROM dataset",
        "SELECT nothing FROM dataset",
        "SELECT id AS a, text AS a FROM dataset",
        "SELEKT",
        "\x00",
    ],
)
def test_attacks_and_mistakes_are_refused_before_anything_runs(sql: str) -> None:
    with pytest.raises(InvalidError, match="SQL") as caught:
        Statement(sql, SCHEMA)
    assert "\n" not in caught.value.line


def test_a_statement_that_is_too_long_is_no_source(tmp_path: Path) -> None:
    from trainplane.cache.settings import read_source  # noqa: PLC0415 for this alone

    with pytest.raises(InvalidError, match="SQL"):
        read_source({"STORAGE_URI": str(tmp_path), "SQL": "SELECT id FROM dataset" + " " * 4096})
    assert read_source({"STORAGE_URI": str(tmp_path), "SQL": "SELECT 1"}).sql == "SELECT 1"


def test_a_row_that_a_statement_cannot_make_is_an_error_and_never_left_out(tmp_path: Path) -> None:
    write_parquet(tmp_path, 2_000)
    with pytest.raises(InexactError, match=r"000\.parquet: SQL: .*[Dd]ivide by zero"):
        planned(kind="parquet", location=str(tmp_path), sql="SELECT 1 / (id - 1500) AS x FROM dataset WHERE id >= 0")
    later = planned(kind="parquet", location=str(tmp_path), sql="SELECT CAST(substr(text, 5) AS INT) AS n FROM dataset")
    assert [row["n"] for row in decoded(later)] == list(range(2_000))


def test_a_statement_that_leaves_no_row_is_refused(tmp_path: Path) -> None:
    write_parquet(tmp_path, 20)
    with pytest.raises(CacheError, match="no rows"):
        planned(kind="parquet", location=str(tmp_path), sql="SELECT id FROM dataset WHERE id < 0")
