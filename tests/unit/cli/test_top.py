"""`trainplane top`: again and again, through what goes wrong meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.client.backend import FakeBackend
from trainplane.cli.top import look_again
from trainplane.client.aio import AsyncTrainerClient
from trainplane.client.errors import ForbiddenError, UnreachableError
from trainplane.client.types.overview import Overview

if TYPE_CHECKING:
    from trainplane.client.errors import TrainplaneError


class Moody(FakeBackend):
    """Answers with the next of its moods."""

    def __init__(self, *moods: Overview | TrainplaneError) -> None:
        super().__init__()
        self.moods = list(moods)

    async def survey(self, *, whole: bool = True) -> Overview:
        del whole
        mood = self.moods.pop(0)
        if isinstance(mood, Overview):
            return mood
        raise mood


async def test_a_cluster_that_is_away_for_a_moment_leaves_what_was_seen_and_says_so() -> None:
    first, later = Overview({"Running": 1}, unread={"queues": "no"}), Overview({"Running": 2})
    client = AsyncTrainerClient(backend=Moody(first, UnreachableError("no answer"), UnreachableError("no"), later))
    looks = look_again(client, 0, whole=True)
    assert await anext(looks) == first
    away = await anext(looks)
    assert away.jobs == {"Running": 1}
    assert away.unread == {"now": "this is as last seen: no answer", "queues": "no"}
    assert (await anext(looks)).unread["now"].endswith("last seen: no answer")
    assert await anext(looks) == later
    await looks.aclose()


async def test_where_nothing_can_be_read_at_first_that_is_the_answer() -> None:
    client = AsyncTrainerClient(backend=Moody(ForbiddenError("you may not list trainjobs")))
    with pytest.raises(ForbiddenError):
        await anext(look_again(client, 0, whole=True))
