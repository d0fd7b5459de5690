"""Both sides, and all probes of the run on both of them: they wait more than they work, so several run at once."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeAlias

import pytest

from tests.sdk.official.probe import PROBES, Observed
from tests.sdk.official.side import SIDES, Name, Side, sides

if TYPE_CHECKING:
    from collections.abc import Iterator

Observations: TypeAlias = "dict[str, dict[Name, Future[Observed]]]"
AT_ONCE = 4
"""Probes that run at the same time on a side."""


@pytest.fixture(scope="module")
def both() -> Iterator[dict[Name, Side]]:
    with sides() as both:
        yield both


@pytest.fixture(scope="module")
def observations(request: pytest.FixtureRequest, both: dict[Name, Side]) -> Iterator[Observations]:
    """Return what each probe that this run asks for sees on each side, as it comes."""
    asked = {item.callspec.params.get("name") for item in request.session.items if hasattr(item, "callspec")}
    pools = {side: ThreadPoolExecutor(AT_ONCE) for side in SIDES}
    yield {
        name: {side: pools[side].submit(probe.look, both[side]) for side in SIDES}
        for name, probe in PROBES.items()
        if name in asked
    }
    for pool in pools.values():
        pool.shutdown(cancel_futures=True)
