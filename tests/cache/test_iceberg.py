"""Iceberg tables that pyiceberg wrote, on disk and in a bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFileContent
from pyiceberg.types import LongType

from tests.cache.loopback import cluster, ids
from tests.cache.obstore_io import ObstoreIO
from tests.unit.cache.data import table
from trainplane.cache.errors import InexactError, NotFoundError
from trainplane.cache.manifest import Source
from trainplane.cache.sources import iceberg, reader

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.table import Table

    from tests.unit.initializers.versity import Store
    from trainplane.cache.manifest import Predicate


def written(folder: Path, warehouse: str, **properties: str) -> Table:
    """Return a table of two appends: 3,000 and 2,000 rows."""
    catalog = SqlCatalog("tests", uri=f"sqlite:///{folder}/catalog.db", warehouse=warehouse, **properties)
    catalog.create_namespace("schema_name")
    rows = table(0, 5_000)
    made = catalog.create_table("schema_name.table_name", schema=rows.schema)
    made.append(rows.slice(0, 3_000))
    made.append(rows.slice(3_000))
    catalog.close()
    return made


def found(source: Source, env: dict[str, str]) -> list[dict[str, Any]]:
    read = reader(source, env)
    manifest = read.plan(source)
    rows = [row for one in manifest.fragments for batch in read.decode(manifest, one) for row in batch.to_pylist()]
    assert len(rows) == manifest.rows
    return rows


def test_a_table_in_a_bucket_is_served_whole(store: Store, tmp_path: Path) -> None:
    properties = {
        "py-io-impl": f"{ObstoreIO.__module__}.{ObstoreIO.__name__}",
        "s3.endpoint": store.endpoint,
        "s3.access-key-id": store.env["ACCESS_KEY_ID"],
        "s3.secret-access-key": store.env["SECRET_ACCESS_KEY"],
        "s3.region": "us-east-1",
    }
    made = written(tmp_path, "s3://bucket/warehouse", **properties)
    source = Source(kind="iceberg", location=made.metadata_location)
    with cluster(source, tmp_path / "disks", env=store.env) as cache, cache.reading(seed=1) as reading:
        assert sorted(ids(reading)) == list(range(5_000))


def test_columns_rows_and_snapshots_are_chosen(tmp_path: Path) -> None:
    made = written(tmp_path, f"file://{tmp_path}")
    first = made.history()[0].snapshot_id
    where: tuple[Predicate, ...] = (("id", ">=", 2_990), ("id", "not in", (2_995, 4_000)))
    rows = found(Source(kind="iceberg", location=made.metadata_location, columns=("text",), where=where), {})
    assert len(rows) == 2_008
    assert list(rows[0]) == ["text"]
    older = found(Source(kind="iceberg", location=made.metadata_location, where=where, snapshot=first), {})
    assert sorted(row["id"] for row in older) == [n for n in range(2_990, 3_000) if n != 2_995]


def test_a_column_that_was_added_later_is_null_before(tmp_path: Path) -> None:
    made = written(tmp_path, f"file://{tmp_path}")
    with made.update_schema() as update:
        update.add_column("label", LongType())
    made.append(table(5_000, 10).append_column("label", pa.array(range(10), pa.int64())))
    rows = found(Source(kind="iceberg", location=made.metadata_location, columns=("id", "label")), {})
    assert min((row["id"], row["label"]) for row in rows if row["label"] is not None) == (5_000, 0)
    assert sum(row["label"] is None for row in rows) == 5_000


def test_sql_is_declared_over_a_table(tmp_path: Path) -> None:
    made = written(tmp_path, f"file://{tmp_path}")
    sql = "SELECT upper(text) AS loud FROM dataset WHERE id >= 4995"
    rows = found(Source(kind="iceberg", location=made.metadata_location, where=(("id", "<", 4_998),), sql=sql), {})
    assert sorted(row["loud"] for row in rows) == [f"ROW {n}" for n in range(4_995, 4_998)]


def test_the_plan_stays_with_its_snapshot(tmp_path: Path) -> None:
    made = written(tmp_path, f"file://{tmp_path}")
    source = Source(kind="iceberg", location=made.metadata_location)
    manifest = reader(source, {}).plan(source)
    made.append(table(5_000, 10))
    again = reader(source, {}).plan(manifest.source)
    assert again.name == manifest.name
    assert manifest.source.snapshot is not None


def test_equality_deletes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # pyiceberg writes none: its plan is changed as if another engine had.
    made = written(tmp_path, f"file://{tmp_path}")
    source = Source(kind="iceberg", location=made.metadata_location)
    planned = list(made.scan().plan_files())
    delete = next(iter(planned)).file
    monkeypatch.setattr(type(delete), "content", property(lambda _: DataFileContent.EQUALITY_DELETES))
    for task in planned:
        task.delete_files.add(delete)
    monkeypatch.setattr("pyiceberg.table.DataScan.plan_files", lambda _: planned)
    with pytest.raises(InexactError, match="equality deletes"):
        reader(source, {}).plan(source)


def test_what_is_not_there_or_empty_is_said(tmp_path: Path) -> None:
    source = Source(kind="iceberg", location=f"file://{tmp_path}/none.metadata.json")
    with pytest.raises(NotFoundError, match=r"none\.metadata\.json"):
        reader(source, {}).plan(source)
    made = written(tmp_path, f"file://{tmp_path}")
    with pytest.raises(NotFoundError, match="no snapshot 1"):
        reader(source, {}).plan(Source(kind="iceberg", location=made.metadata_location, snapshot=1))
    assert iceberg.IcebergReader({"ENDPOINT": "http://x"})._properties == {"s3.endpoint": "http://x"}
