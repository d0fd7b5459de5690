"""What is made of a block, by whom, and what happens when nothing can be made of it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.cache.loopback import Cluster, cluster
from tests.unit.cache.data import write_parquet
from trainplane.cache.blocks import Blocks
from trainplane.cache.fetching import Fetcher
from trainplane.cache.manifest import Source
from trainplane.cache.opening import HeadLine

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    root = tmp_path_factory.mktemp("fetching")
    write_parquet(root / "data", 8_000)
    source = Source(kind="parquet", location=str(root / "data"), block_bytes=32 << 10)
    with cluster(source, root / "disks") as running:
        yield running


@pytest.fixture
def fetcher(cache: Cluster) -> Iterator[Fetcher]:
    fetching = Fetcher(HeadLine(cache.address, cache.access), cache.manifest, Blocks(cache.manifest), ahead=4)
    yield fetching
    fetching.close()


def test_a_block_is_made_into_something_once_and_not_by_the_one_who_waits(fetcher: Fetcher) -> None:
    made: list[tuple[int, str]] = []

    def shape(block: Any) -> int:
        made.append((block.num_rows, threading.current_thread().name))
        return int(block["id"][0].as_py())

    numbers = [3, 0, 5, 1]
    found = list(fetcher.blocks((number, shape) for number in numbers))
    size = made[0][0]
    assert found == [number * size for number in numbers]
    assert len(made) == len(numbers)
    assert threading.current_thread().name not in {name for _, name in made}


@pytest.mark.parametrize("error", [pa.ArrowInvalid("no such place"), ValueError("no such place")])
def test_a_block_of_which_nothing_can_be_made_is_told_and_no_workers_fault(fetcher: Fetcher, error: Exception) -> None:
    def shape(_: Any) -> Any:
        raise error

    with pytest.raises(type(error), match="no such place"):
        next(iter(fetcher.blocks([(0, shape)])))
    assert fetcher.counts.failovers == 0
    assert fetcher.counts.blocks == 1
