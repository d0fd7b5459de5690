from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from trainplane.cache.errors import ChangedError, DiskError
from trainplane.cache.segments import Shelf, rechunked

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])


def batches(*sizes: int) -> list[pa.RecordBatch]:
    start, made = 0, []
    for size in sizes:
        numbers = range(start, start + size)
        made.append(pa.record_batch([pa.array(numbers, pa.int64()), [f"row {n}" for n in numbers]], schema=SCHEMA))
        start += size
    return made


def shelf(root: Path, rows: int = 10) -> Shelf:
    return Shelf(root, "a" * 64, SCHEMA, rows)


@pytest.mark.parametrize("sizes", [(35,), (1, 34), (10, 10, 15), (9, 2, 0, 24), (30, 5)])
def test_blocks_have_the_rows_of_the_plan_however_they_came(sizes: tuple[int, ...]) -> None:
    chunks = list(rechunked(batches(*sizes), SCHEMA, 10))
    assert [chunk.num_rows for chunk in chunks] == [10, 10, 10, 5]
    assert [n for chunk in chunks for n in chunk["id"].to_pylist()] == list(range(35))


def test_the_same_rows_make_the_same_segment_however_they_came(tmp_path: Path) -> None:
    one = shelf(tmp_path / "one").write(0, 35, batches(35))
    other = shelf(tmp_path / "other").write(0, 35, batches(3, 30, 2))
    assert one.note == other.note


@pytest.mark.parametrize("rows", [34, 36])
def test_fewer_or_more_rows_than_planned_are_refused_and_leave_nothing(tmp_path: Path, rows: int) -> None:
    with pytest.raises(ChangedError, match=str(rows)):
        shelf(tmp_path).write(0, rows, batches(35))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_source_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> object:
        yield batches(20)[0]
        raise ChangedError("gone")

    with pytest.raises(ChangedError, match="gone"):
        shelf(tmp_path).write(0, 35, broken())  # type: ignore[arg-type]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_segment_from_before_is_attached_and_the_same(tmp_path: Path) -> None:
    written = shelf(tmp_path).write(3, 35, batches(35))
    attached = shelf(tmp_path).attach(3, 35)
    assert attached is not None
    assert attached.note == written.note
    assert [attached.block(n).equals(written.block(n)) for n in range(4)] == [True] * 4


def test_a_segment_of_which_a_byte_rotted_is_found_out_when_read(tmp_path: Path) -> None:
    shelf(tmp_path).write(0, 35, batches(35))
    path = next(tmp_path.rglob("0.arrow"))
    content = bytearray(path.read_bytes())
    at = content.index(b"row 15")
    content[at] ^= 1
    path.write_bytes(content)
    attached = shelf(tmp_path).attach(0, 35)
    assert attached is not None
    assert attached.block(0)["text"][0].as_py() == "row 0"
    with pytest.raises(DiskError, match="block 1 "):
        attached.block(1)


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.unlink(),
        lambda path: path.with_suffix(".json").unlink(),
        lambda path: path.with_suffix(".json").write_bytes(b"{"),
        lambda path: path.write_bytes(b"\0" * path.stat().st_size),
        lambda path: path.with_suffix(".json").write_text(
            path.with_suffix(".json").read_text().replace('"checksums":[', '"checksums":[1,')
        ),
    ],
)
def test_a_segment_that_is_not_whole_is_not_attached(tmp_path: Path, harm: object) -> None:
    shelf(tmp_path).write(0, 35, batches(35))
    harm(next(tmp_path.rglob("0.arrow")))  # type: ignore[operator]
    assert shelf(tmp_path).attach(0, 35) is None


def test_a_segment_of_another_plan_is_not_attached(tmp_path: Path) -> None:
    shelf(tmp_path).write(0, 35, batches(35))
    assert shelf(tmp_path).attach(0, 36) is None
    assert shelf(tmp_path, rows=7).attach(0, 35) is None
    assert Shelf(tmp_path, "b" * 64, SCHEMA, 10).attach(0, 35) is None


def test_parts_of_a_process_that_died_are_cleared_away(tmp_path: Path) -> None:
    shelf(tmp_path)
    part = next(tmp_path.iterdir()) / "0.part-1234"
    part.write_bytes(b"half")
    shelf(tmp_path)
    assert not part.exists()


def test_a_full_disk_is_said_as_such() -> None:
    from pathlib import Path  # noqa: PLC0415 for this one

    with pytest.raises(DiskError, match="cannot be written"):
        shelf(Path("/proc/nowhere"))
