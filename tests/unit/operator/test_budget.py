from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.unit.operator.objects import train_job
from tests.unit.operator.test_webhooks import ask
from tests.unit.operator.world import World
from trainplane.api import names
from trainplane.operator import budget
from trainplane.operator.budget import Budget
from trainplane.operator.errors import BudgetError
from trainplane.operator.webhooks import VALIDATE_TRAIN_JOB
from trainplane.render.pipeline import COMMON, FRAMEWORKS, Pipeline
from trainplane.render.plugin import Plugin
from trainplane.resources import TRAIN_JOBS

if TYPE_CHECKING:
    from trainplane.render.plan import Plan


def work(seconds: float) -> None:
    """Take some CPU."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


class Endless(Plugin):
    """A plugin of somebody else's that never comes to an end."""

    name = "Endless"

    def enforce(self, plan: Plan) -> None:
        """Go round in a circle, and take every error for one of its own."""
        del plan
        while True:
            try:
                work(0.01)
            except Exception:  # noqa: BLE001, S112 as such plugins do
                continue


def test_work_that_takes_too_long_is_broken_off() -> None:
    with pytest.raises(BudgetError, match=r"TrainJob a takes more than 0\.05 s of CPU"), Budget("TrainJob a", 0.05):
        work(60)


def test_no_error_of_the_works_own_hides_it() -> None:
    with pytest.raises(BudgetError), Budget("TrainJob a", 0.05), contextlib.suppress(Exception):
        work(60)


def test_what_ends_in_time_is_left_alone_and_so_is_what_follows() -> None:
    with Budget("TrainJob a", 0.05):
        work(0.001)
    work(0.1)


def test_an_error_of_the_work_is_its_own() -> None:
    with pytest.raises(ZeroDivisionError), Budget("TrainJob a"):
        _ = 1 / 0


def test_other_threads_are_not_timed() -> None:
    ended = []

    def run() -> None:
        with Budget("TrainJob a", 0.01):
            work(0.05)
            ended.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert ended == [True]


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a world with a plugin that never ends, and little patience."""
    monkeypatch.setattr(Budget.__init__, "__defaults__", (0.1,))
    assert budget.SECONDS > 0.1
    plugins = (*(one() for one in FRAMEWORKS), Endless(), *(one() for one in COMMON))
    world = World(pipeline=Pipeline(plugins)).with_runtime()
    world.sync()
    return world


async def test_a_review_is_answered_all_the_same(endless: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.unit.operator.test_webhooks.PIPELINE", endless.pipeline)
    verdict = await ask(endless, VALIDATE_TRAIN_JOB, train_job())
    assert (verdict.allowed, verdict.code) == (False, 422)
    assert "takes more than 0.1 s of CPU" in verdict.message


async def test_a_trainjob_that_cannot_be_rendered_in_time_fails_and_says_why(endless: World) -> None:
    endless.put(TRAIN_JOBS, train_job())
    endless.sync()
    await endless.settle()
    assert ("Failed", "True", names.REASON_OVER_BUDGET) in endless.conditions()
    assert any("takes more than 0.1 s of CPU" in message for message in endless.messages())
