"""The faults' judge is judged: with a mistake planted in the cache, some run finds it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import obstore
import pyarrow as pa
import pytest

from tests.cache.faults import FAULTS, Run, Site, WrongError, site_over
from trainplane.cache import reading
from trainplane.cache.errors import CacheError
from trainplane.cache.fetching import Fetcher
from trainplane.cache.order import Order, share
from trainplane.cache.reading import Reading
from trainplane.cache.roster import Roster
from trainplane.cache.segments import Segment
from trainplane.cache.sources import places
from trainplane.cache.worker import Holding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cache.faults import Fault
    from tests.unit.initializers.versity import Store

Patch = pytest.MonkeyPatch
SEEDS = 25


@pytest.fixture(scope="module")
def site(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site_over(store, tmp_path_factory.mktemp("planted")) as running:
        yield running


def lost_block(patch: Patch) -> None:
    true = Order.pieces
    patch.setattr(Order, "pieces", lambda self, spans: iter(list(true(self, spans))[:-1]))


def doubled_block(patch: Patch) -> None:
    true = Order.pieces
    patch.setattr(Order, "pieces", lambda self, spans: iter([*(pieces := list(true(self, spans))), *pieces[:1]]))


def swallowed_error(patch: Patch) -> None:
    """A call that fails is an answer without rows, as in the reference."""
    true = Fetcher._call

    def call(self: Fetcher, opened: Any, worker: str, left: Any) -> None:
        try:
            true(self, opened, worker, left)
        except CacheError:
            nothing = pa.RecordBatch.from_pylist([], self._manifest.arrow_schema)
            while left:
                left.popleft()[-1].set_result(nothing)

    patch.setattr(Fetcher, "_call", call)


def believed_disk(patch: Patch) -> None:
    """A segment from before a restart is served as it lies."""
    patch.setattr(Segment, "block", lambda self, number: self._blocks[number])


def neighbours_block(patch: Patch) -> None:
    """A worker answers with the block beside, where it has as many rows."""
    true = Holding.block

    def block(self: Holding, number: int) -> Any:
        rows = self.blocks.rows
        beside = number + 1 if number + 1 in self.blocks.of(self.blocks.fragment(number)) else number
        return true(self, beside if rows[beside] == rows[number] else number)

    patch.setattr(Holding, "block", block)


def hasty_cursor(patch: Patch) -> None:
    true = Reading.state_dict

    def state_dict(self: Reading) -> dict[str, Any]:
        state = true(self)
        *past, (world, done) = state["steps"]
        return {**state, "steps": [*past, [world, done + 1]]}

    patch.setattr(Reading, "state_dict", state_dict)


def forgotten_world(patch: Patch) -> None:
    patch.setattr(reading, "remaining", lambda spans, *_: list(spans))


def rank_of_another(patch: Patch) -> None:
    patch.setattr(reading, "share", lambda spans, parts, _, tail: share(spans, parts, 0, tail))


def any_version(patch: Patch) -> None:
    """Whatever a file has now is read, and workers need not agree."""

    def get(store: Any, key: str, *, options: dict[str, Any]) -> Any:
        return obstore.get(store, key, options={"range": options["range"]})

    patch.setattr(places, "obstore", SimpleNamespace(get=get, list=obstore.list, head=obstore.head))
    true = Roster.hear

    def hear(self: Roster, hello: Any, now: float) -> tuple[int, ...]:
        agreed = {number: self._digests.get(number, digest) for number, digest in hello.held.items()}
        return true(self, msgspec.structs.replace(hello, held=agreed), now)

    patch.setattr(Roster, "hear", hear)


@pytest.mark.parametrize(
    ("plant", "among"),
    [
        (lost_block, FAULTS),
        (doubled_block, FAULTS),
        (swallowed_error, (Site.cut, Site.worker)),
        (believed_disk, (Site.rot,)),
        (neighbours_block, FAULTS),
        (hasty_cursor, FAULTS),
        (forgotten_world, FAULTS),
        (rank_of_another, FAULTS),
        # The last one: wrong rows stay on disk behind it.
        (any_version, (Site.file,)),
    ],
)
def test_a_planted_mistake_is_found(
    site: Site, plant: Any, among: tuple[Fault, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    Run(site, 0, among).go()
    plant(monkeypatch)
    assert any(wrong(Run(site, seed, among)) for seed in range(SEEDS)), f"{plant.__name__} was not found"


def wrong(run: Run) -> bool:
    try:
        run.go()
    except WrongError:
        return True
    return False
