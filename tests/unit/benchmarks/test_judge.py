"""The judge of benches finds a slowdown of 1.3 in each figure of ours, and takes noise for none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.judge import DISTURBED, NOISE, SLOWDOWN, SWAMPED, Goal, Run, Spread, faults

if TYPE_CHECKING:
    from collections.abc import Mapping

COST = Goal("cost", "ms", "reference", usual=0.5)
LEAST = Goal("least", "ms", "reference", usual=0.48, by_least=True)
SPEED = Goal("speed", "per_s", "reference", usual=2.0, more_is_better=True, is_timed=True)
QUIET = {"others_share": 0.0}


def turns(*pairs: tuple[Mapping[str, float], Mapping[str, float]]) -> list[Run]:
    """Return runs of ours and the reference's, in turns."""
    return [
        Run(contender, repeat, {**QUIET, **figures})
        for repeat, pair in enumerate(pairs)
        for contender, figures in zip(("ours", "reference"), pair, strict=True)
    ]


def usual(slowdown: float = 1.0) -> list[Run]:
    """Return three turns as they usually are, one of them on a machine of half the speed, with ours slowed down."""
    return turns(
        ({"ms": 2.6 * slowdown, "per_s": 100 / slowdown}, {"ms": 5.2, "per_s": 50}),
        ({"ms": 5.4 * slowdown, "per_s": 48 / slowdown}, {"ms": 10.4, "per_s": 25}),
        ({"ms": 2.5 * slowdown, "per_s": 104 / slowdown}, {"ms": 5.2, "per_s": 50}),
    )


def test_the_margin_for_noise_is_less_than_what_must_be_found() -> None:
    assert 1 < NOISE < SLOWDOWN


def test_what_is_usual_reaches_its_goals_on_a_machine_of_any_speed() -> None:
    assert faults([COST, SPEED], usual()) == []


@pytest.mark.parametrize("goal", [COST, LEAST, SPEED])
def test_a_slowdown_of_ours_is_found_and_told_in_words(goal: Goal) -> None:
    (fault,) = faults([goal], usual(SLOWDOWN))
    assert fault.startswith(f"{goal.name}: {goal.figure} of ours")
    assert f"usual is {goal.usual:.3f}" in fault


@pytest.mark.parametrize("goal", [COST, SPEED])
def test_one_odd_repeat_of_three_is_noise(goal: Goal) -> None:
    odd = turns(({"ms": 9.0, "per_s": 20}, {"ms": 5.2, "per_s": 50}))[:2]
    runs = [*odd, *(run for run in usual() if run.repeat != 0)]
    assert goal.fault(runs) is None


def test_of_the_least_all_repeats_but_one_may_be_dearer() -> None:
    runs = turns(*[({"ms": ms}, {"ms": 5.2}) for ms in (3.6, 2.5, 3.9, 3.4, 3.6)])
    assert (LEAST.judged(runs), LEAST.fault(runs)) == (2.5 / 5.2, None)
    assert COST.fault(runs) is not None, "a median takes that for ours"
    slowed = turns(*[({"ms": ms * SLOWDOWN}, {"ms": 5.2}) for ms in (3.6, 2.5, 3.9, 3.4, 3.6)])
    assert LEAST.fault(slowed) is not None


def test_of_the_least_a_turn_in_which_others_had_the_machine_is_none() -> None:
    swamped = [Run("ours", 3, {"ms": 0.1, "others_share": SWAMPED * 2}), Run("reference", 3, {"ms": 9.0})]
    assert LEAST.fault([*usual(SLOWDOWN), *swamped]) is not None


def test_a_clock_does_not_count_where_others_had_the_machine_and_cpu_time_does() -> None:
    runs = [Run(run.contender, run.repeat, {**run.figures, "others_share": DISTURBED * 2}) for run in usual(SLOWDOWN)]
    assert SPEED.ratio(runs) is None
    assert [fault.partition(":")[0] for fault in faults([COST, SPEED], runs)] == ["cost"]


def test_nothing_is_judged_where_others_had_most_of_the_machine() -> None:
    runs = [Run(run.contender, run.repeat, {**run.figures, "others_share": SWAMPED * 1.5}) for run in usual(SLOWDOWN)]
    assert (COST.ratio(runs), faults([COST, SPEED], runs)) == (None, [])


def test_a_repeat_that_was_disturbed_leaves_the_others_to_be_judged() -> None:
    runs = usual(SLOWDOWN)
    runs[0] = Run("ours", 0, {**runs[0].figures, "others_share": DISTURBED * 2})
    assert SPEED.fault(runs) is not None


def test_a_ratio_is_of_neighbours_and_has_its_spread() -> None:
    assert COST.ratio(usual()) == Spread(0.5, 2.5 / 5.2, 5.4 / 10.4)


def test_another_contender_may_stand_for_ours() -> None:
    slowed = [Run("slowed", run.repeat, run.figures) for run in usual(SLOWDOWN) if run.contender == "ours"]
    runs = [*usual(), *slowed]
    assert faults([COST], runs) == []
    assert faults([COST], runs, "slowed")
