from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trainplane.hub.kept.bounds import Bounds, JobRecord, ended_at, expired, surplus


def record(uid: str, *, finished: float | None = None, deleted: float | None = None) -> JobRecord:
    return JobRecord(uid=uid, namespace="team", name=uid, seen=0.0, finished=finished, deleted=deleted)


def test_finished_jobs_go_when_their_time_is_over_and_running_ones_never() -> None:
    bounds = Bounds(seconds=100, deleted_seconds=10)
    records = [record("runs"), record("fresh", finished=950), record("old", finished=899)]
    assert [each.uid for each in expired(records, bounds, 1000)] == ["old"]


def test_deleted_jobs_go_sooner() -> None:
    bounds = Bounds(seconds=100, deleted_seconds=10)
    records = [record("a", finished=950, deleted=995), record("b", finished=950, deleted=980), record("c", deleted=980)]
    assert [each.uid for each in expired(records, bounds, 1000)] == ["b", "c"]


def test_what_ended_first_makes_room() -> None:
    sizes = {record("late", finished=3): 5, record("early", finished=1): 5, record("runs"): 5}
    assert [each.uid for each in surplus(sizes, Bounds(total_bytes=15))] == []
    assert [each.uid for each in surplus(sizes, Bounds(total_bytes=14))] == ["early"]
    assert [each.uid for each in surplus(sizes, Bounds(total_bytes=9))] == ["early", "late"]
    assert [each.uid for each in surplus(sizes, Bounds(total_bytes=1))] == ["early", "late"]


@given(
    st.dictionaries(
        st.builds(
            record,
            st.text("abcdef", min_size=1, max_size=4),
            finished=st.none() | st.floats(0, 100),
            deleted=st.none() | st.floats(0, 100),
        ),
        st.integers(0, 50),
        max_size=12,
    ),
    st.integers(0, 300),
)
def test_no_more_goes_than_must_and_nothing_that_runs(sizes: dict[JobRecord, int], total: int) -> None:
    gone = surplus(sizes, Bounds(total_bytes=total))
    assert all(ended_at(each) is not None for each in gone)
    left = sum(sizes.values()) - sum(sizes[each] for each in gone)
    ended = [each for each in sizes if ended_at(each) is not None]
    assert left <= total or len(gone) == len(ended)
    if gone:
        assert left + sizes[gone[-1]] > total


def test_segments_are_a_fair_share_within_reason() -> None:
    bounds = Bounds(job_bytes=256 << 20)
    assert bounds.segment_bytes(0) == bounds.segment_bytes(1) == 4 << 20
    assert bounds.segment_bytes(64) == 512 << 10
    assert bounds.segment_bytes(100_000) == 16 << 10
