from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from tests.unit.cache.data import table, write_parquet
from trainplane.cache.errors import CacheError, ChangedError, InexactError, InvalidError, NotFoundError
from trainplane.cache.manifest import Manifest, Source, read_manifest
from trainplane.cache.sources import reader

if TYPE_CHECKING:
    from pathlib import Path


def planned(**source: Any) -> Manifest:
    made = Source(**source)
    return reader(made, {}).plan(made)


def decoded(manifest: Manifest) -> list[dict[str, Any]]:
    read = reader(manifest.source, {})
    return [row for one in manifest.fragments for batch in read.decode(manifest, one) for row in batch.to_pylist()]


def test_a_folder_is_planned_with_exact_rows_and_the_true_schema(tmp_path: Path) -> None:
    write_parquet(tmp_path / "deep", 2500, 0, 30)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".hidden.parquet").write_bytes(b"not data")
    manifest = planned(kind="parquet", location=str(tmp_path))
    assert [(one.name, one.rows) for one in manifest.fragments] == [
        ("deep/000.parquet", 2500),
        ("deep/001.parquet", 0),
        ("deep/002.parquet", 30),
    ]
    assert manifest.arrow_schema.equals(table(0, 1).schema)
    assert [row["id"] for row in decoded(manifest)] == list(range(2530))


def test_the_same_content_has_the_same_name_and_no_other(tmp_path: Path) -> None:
    write_parquet(tmp_path, 20, 30)
    one, again = (planned(kind="parquet", location=str(tmp_path)) for _ in range(2))
    assert one.name == again.name
    assert read_manifest(one.encoded, one.name) == one
    assert planned(kind="parquet", location=str(tmp_path), columns=("id",)).name != one.name
    with pytest.raises(InvalidError):
        read_manifest(one.encoded + b" ", one.name)


def test_columns_and_rows_are_chosen(tmp_path: Path) -> None:
    write_parquet(tmp_path, 2500, 3000)
    manifest = planned(
        kind="parquet", location=str(tmp_path), columns=("text", "id"), where=(("id", ">=", 2400), ("id", "<", 2600))
    )
    assert [one.rows for one in manifest.fragments] == [100, 100]
    rows = decoded(manifest)
    assert list(rows[0]) == ["text", "id"]
    assert [row["id"] for row in rows] == list(range(2400, 2600))


@pytest.mark.parametrize(
    ("predicate", "count"),
    [
        (("id", "=", 7), 1),
        (("id", "!=", 7), 99),
        (("id", "<=", 7), 8),
        (("id", ">", 7), 92),
        (("id", "in", (1, 2, 500)), 2),
        (("id", "not in", (1, 2, 500)), 98),
        (("text", "=", "row 3"), 1),
    ],
)
def test_each_relation_filters(tmp_path: Path, predicate: Any, count: int) -> None:
    write_parquet(tmp_path, 100)
    # The column is not served, only asked about.
    manifest = planned(kind="parquet", location=str(tmp_path), columns=("x",), where=(predicate,))
    assert manifest.rows == len(decoded(manifest)) == count


def test_a_folder_of_csv_is_read_with_the_types_of_its_first_file(tmp_path: Path) -> None:
    for number in range(2):
        pc.write_csv(table(number * 50, 50).select(["id", "text"]), tmp_path / f"{number}.csv")
    manifest = planned(kind="csv", location=str(tmp_path), where=(("id", "<", 60),))
    assert [one.rows for one in manifest.fragments] == [50, 10]
    assert [row["id"] for row in decoded(manifest)] == list(range(60))


def test_a_csv_whose_values_do_not_fit_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "0.csv").write_text("id\n1\n2\n")
    (tmp_path / "1.csv").write_text("id\n3\nfour\n")
    with pytest.raises(InexactError, match=r"1\.csv"):
        decoded(planned(kind="csv", location=str(tmp_path)))


def test_dictionaries_are_served_as_values(tmp_path: Path) -> None:
    for number, words in enumerate((["a", "b"], ["c", None])):
        pq.write_table(pa.table({"word": pa.array(words).dictionary_encode()}), tmp_path / f"{number}.parquet")
    manifest = planned(kind="parquet", location=str(tmp_path))
    assert manifest.arrow_schema.field("word").type == pa.string()
    assert [row["word"] for row in decoded(manifest)] == ["a", "b", "c", None]


def broken_schema(folder: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([1.5]), "text": ["a"], "x": [1]}), folder / "b.parquet")


def missing_column(folder: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), folder / "b.parquet")


def no_parquet(folder: Path) -> None:
    (folder / "b.parquet").write_bytes(b"PAR1 not at all PAR1")


@pytest.mark.parametrize("harm", [broken_schema, missing_column, no_parquet])
def test_a_file_that_cannot_be_read_exactly_is_refused_by_name(tmp_path: Path, harm: Any) -> None:
    write_parquet(tmp_path, 10)
    harm(tmp_path)
    with pytest.raises(InexactError, match=r"b\.parquet"):
        planned(kind="parquet", location=str(tmp_path))


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        ({"location": "/nowhere/at/all"}, NotFoundError, "nowhere"),
        ({"location": "ftp://x/y"}, InvalidError, "ftp"),
        ({"kind": "csv"}, InvalidError, ".csv"),
        ({"columns": ("none",)}, InvalidError, "'none'"),
        ({"where": (("none", "=", 1),)}, InvalidError, "'none'"),
        ({"where": (("id", "<", 0),)}, InexactError, "no rows"),
        ({"columns": ("id", "id")}, InexactError, "one name"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_is_read(
    tmp_path: Path, source: dict[str, Any], error: type[CacheError], words: str
) -> None:
    write_parquet(tmp_path, 10)
    with pytest.raises(error, match=words):
        planned(**{"kind": "parquet", "location": str(tmp_path), **source})


def test_a_filter_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(InvalidError, match="id in 3"):
        Source(kind="csv", location="x", where=(("id", "in", 3),))


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    write_parquet(tmp_path / "secret", 10)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.parquet").symlink_to(tmp_path / "secret" / "000.parquet")
    with pytest.raises(InvalidError, match="leads out"):
        planned(kind="parquet", location=str(tmp_path / "data"))


def test_a_manifest_that_names_a_file_outside_of_the_folder_is_refused(tmp_path: Path) -> None:
    write_parquet(tmp_path / "secret", 10)
    write_parquet(tmp_path / "data", 10)
    manifest = planned(kind="parquet", location=str(tmp_path / "data"))
    (honest,) = manifest.fragments
    for name in ("../secret/000.parquet", str(tmp_path / "secret" / "000.parquet")):
        with pytest.raises(InvalidError, match="leads out"):
            list(reader(manifest.source, {}).decode(manifest, msgspec.structs.replace(honest, name=name)))


def rewritten(path: Path) -> None:
    pq.write_table(table(100, 10), path)


def touched(path: Path) -> None:
    os.utime(path, ns=(1, 1))


def removed(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("harm", [rewritten, touched, removed])
def test_a_file_that_changes_after_planning_is_refused(tmp_path: Path, harm: Any) -> None:
    write_parquet(tmp_path, 10)
    manifest = planned(kind="parquet", location=str(tmp_path))
    harm(tmp_path / "000.parquet")
    with pytest.raises(ChangedError, match=r"000\.parquet"):
        decoded(manifest)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    write_parquet(tmp_path, 200_000)
    manifest = planned(kind="parquet", location=str(tmp_path))
    batches = reader(manifest.source, {}).decode(manifest, manifest.fragments[0])
    next(batches)
    rewritten(tmp_path / "000.parquet")
    with pytest.raises(ChangedError):
        list(batches)
