"""Charts and bars."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from trainplane.cli.live.cells import ASCII
from trainplane.cli.live.chart import bar, chart

BEGAN = datetime(2026, 11, 16, 8, tzinfo=UTC)


def at(*values: float, seconds: float = 10) -> list[tuple[datetime, float]]:
    return [(BEGAN + timedelta(seconds=seconds * n), value) for n, value in enumerate(values)]


def test_values_rise_from_the_left_to_the_right() -> None:
    assert chart(at(0, 1, 2, 3, 4, 5, 6, 7), 8, 1) == ["▁▂▃▄▅▆▇█"]
    assert chart(at(0, 8), 4, 2) == [" █  ", "▁█  "]


def test_a_taller_chart_has_more_steps() -> None:
    upper, lower = chart(at(*range(16)), 16, 2)
    assert lower == "▁▂▃▄▅▆▇█████████"
    assert upper == "        ▁▂▃▄▅▆▇█"


def test_a_value_that_never_changes_stands_in_the_middle() -> None:
    (row,) = chart(at(3, 3, 3, 3), 4, 1)
    assert set(row) <= {"▄", "▅"}


@pytest.mark.parametrize("values", [(-1e308, 1e308), (1e308, 1e308), (5e-324, 0.0), (1e-300, 1e300)])
def test_values_may_be_as_large_or_small_as_floats_are(values: tuple[float, float]) -> None:
    rows = chart(at(*values), 10, 3)
    assert len(rows) == 3
    assert all(len(row) == 10 for row in rows)


def test_time_counts_and_not_the_number_of_points() -> None:
    late = [(BEGAN, 0.0), (BEGAN + timedelta(seconds=90), 9.0), (BEGAN + timedelta(seconds=100), 9.0)]
    (row,) = chart(late, 10, 1)
    assert row.rstrip().count("▁") > row.count("█")


def test_nothing_and_a_single_point_are_charts_too() -> None:
    assert chart([], 5, 2) == ["     ", "     "]
    assert chart(at(1), 5, 1)[0].strip()
    assert chart([(BEGAN, 1.0), (BEGAN, 2.0)], 5, 1)[0].strip()
    assert chart(at(1, 2), 0, 1) == [""]


def test_a_chart_of_letters_alone() -> None:
    assert chart(at(*range(8)), 8, 1, ASCII)[0].isascii()


@pytest.mark.parametrize(("share", "full"), [(0, 0), (1e-9, 1), (0.5, 5), (0.999, 9), (1, 10), (7, 10), (-1, 0)])
def test_a_bar_is_full_only_when_all_is_used_and_empty_only_when_nothing_is(share: float, full: int) -> None:
    assert bar(share, 10) == full
