from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.kube.loop.objects import seeded
from trainplane.kube.backoff import Backoff


def test_waits_double_up_to_the_cap() -> None:
    backoff = Backoff(base=1, factor=2, cap=10, jitter=0)
    assert [backoff.delay(failures, seeded(0)) for failures in range(1, 7)] == [1, 2, 4, 8, 10, 10]


def test_no_failure_counts_as_the_first() -> None:
    assert Backoff(base=1, jitter=0).delay(0, seeded(0)) == 1


@given(st.integers(1, 10_000), st.integers())
def test_jitter_stays_within_its_share_and_below_the_cap(failures: int, seed: int) -> None:
    backoff = Backoff(base=0.5, factor=2, cap=60, jitter=0.5)
    longest = min(60, 0.5 * 2 ** min(failures - 1, 20))
    assert longest / 2 <= backoff.delay(failures, seeded(seed)) <= longest


def test_what_failed_together_comes_back_apart() -> None:
    random = seeded(1)
    assert len({Backoff().delay(5, random) for _ in range(10)}) == 10
