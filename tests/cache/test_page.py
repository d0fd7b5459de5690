"""The examples of docs/data-cache.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from docs.executed import shown
from tests.cache.loopback import Cluster, cluster
from tests.fenced import blocks
from tests.unit.cache.data import write_parquet
from trainplane.cache.front import Behind, Front
from trainplane.cache.manifest import Source
from trainplane.cache.serving import Door
from trainplane.cache.sources import reader
from trainplane.cache.written import open_manifest

if TYPE_CHECKING:
    from tests.fenced import Fence

PAGE = Path(__file__).parents[2] / "docs/data-cache.md"
[READER] = [block for block in shown(PAGE) if block.language == "python" and "import Reading, columns" in block.text]
[STATEMENT] = blocks(PAGE, "sql")
WRITERS = [block for block in shown(PAGE) if block.language == "python" and "reviews" in block.text]


@pytest.mark.parametrize("block", WRITERS, ids=["ours", "plain"])
def test_the_page_s_writers_fill_a_cache(block: Fence, tmp_path: Path) -> None:
    source = Source(kind="written", location="reviews")
    cache = Cluster(open_manifest(source), tmp_path, 2, {}, token=b"secret")
    head = Behind(cache.head.port)
    try:
        cache.wait_ready()
        with Front(Door(), words=head, rows=head, ready=lambda: True) as front:
            exec(block.text.replace("50051", str(front.port)), {})  # noqa: S102 what the page shows
        with cache.reading() as reading:
            rows = [row for batch in reading.batches(10) for row in batch.to_pylist()]
        assert rows == [{"text": "good", "label": 1}, {"text": "bad", "label": 0}]
    finally:
        cache.close()


def test_the_page_s_reader_has_every_row(tmp_path: Path) -> None:
    write_parquet(tmp_path / "data", 3_000)
    had: list[int] = []
    text = f"{READER.text.rstrip()}\n        had += arrays['id'].tolist()\n"
    source = Source(kind="parquet", location=str(tmp_path / "data"), block_bytes=8 << 10)
    with cluster(source, tmp_path / "disks") as cache:
        exec(text.replace("50051", str(cache.head.port)), {"had": had})  # noqa: S102 what the page shows
    assert sorted(had) == list(range(3_000))


def test_the_page_s_statement_makes_rows(tmp_path: Path) -> None:
    rows = {"id": [1, 2], "text": ["SHORT", "Buy now, and buy some more"], "label": ["ham", "spam"]}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    source = Source(kind="parquet", location=str(tmp_path), sql=STATEMENT.strip())
    read = reader(source, {})
    manifest = read.plan(source)
    made = [row for batch in read.decode(manifest, manifest.fragments[0]) for row in batch.to_pylist()]
    assert made == [{"id": 2, "text": "buy now, and buy some more", "spam": True}]
