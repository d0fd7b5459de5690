"""Outputs on bad days: the destination has a final manifest only if it equals the folder, or the cause is right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.size import FULL
from tests.unit.initializers import outseeds
from tests.unit.initializers.versity import Store, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with serving(tmp_path_factory.mktemp("versitygw")) as served:
        yield served


@pytest.mark.parametrize("seed", range(100 if FULL else 12))
def test_an_output_is_whole_or_the_cause_is_right(store: Store, tmp_path: Path, seed: int) -> None:
    outseeds.run(seed, tmp_path, store)
