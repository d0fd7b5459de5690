"""The seed of a run: fixed by default, that of today on request."""

from __future__ import annotations

import pytest

from tests.day import FIXED, TODAY, day, seed


@pytest.mark.parametrize("environ", [{}, {"SEED": ""}, {"FULL": "0"}])
def test_the_seed_by_default_is_that_of_the_fixed_day(environ: dict[str, str]) -> None:
    assert day(environ) == FIXED
    assert seed(environ) == FIXED.toordinal()


@pytest.mark.parametrize("environ", [{"FULL": "1"}, {"SEED": "day"}, {"SEED": "day", "FULL": "1"}])
def test_the_seed_with_full_or_day_is_that_of_today(environ: dict[str, str]) -> None:
    assert day(environ) == TODAY
    assert seed(environ) == TODAY.toordinal()


@pytest.mark.parametrize("environ", [{"SEED": "7"}, {"SEED": "7", "FULL": "1"}])
def test_the_seed_with_a_number_is_that_number(environ: dict[str, str]) -> None:
    assert seed(environ) == seed(environ, apart=1_000_000) == 7


def test_seeds_of_days_that_are_apart_leave_room_for_a_run_of_each() -> None:
    assert seed({}, apart=1_000_000) == FIXED.toordinal() * 1_000_000
