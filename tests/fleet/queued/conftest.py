from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

from tests.fleet.queued.asking import Desk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fleet.team import MakeTeam


class MakeDesk(Protocol):
    """The fixture `desk`: called with the cluster to work on and what the fixture `team` takes."""

    def __call__(self, on: str = "worker1", **team: Any) -> Desk: ...


@pytest.fixture
def desk(team: MakeTeam) -> Iterator[MakeDesk]:
    """Return a function that makes a team with a desk to ask at; its queues are deleted afterwards."""
    made: list[Desk] = []

    def make(on: str = "worker1", **others: Any) -> Desk:
        made.append(Desk(team(**others), on))
        return made[-1]

    yield make
    for one in made:
        one.remove()
