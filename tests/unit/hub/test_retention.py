from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trainplane.hub.logarchive.records import JobRecord
from trainplane.hub.logarchive.retention import (
    BLOCK,
    NOTHING,
    Retention,
    Usage,
    ended_at,
    expired,
    lowered,
    of_file,
    payer,
)

USAGES = st.builds(Usage, st.integers(0, 5000), st.integers(0, 50))


def record(uid: str, *, finished: float | None = None, deleted: float | None = None) -> JobRecord:
    return JobRecord(uid=uid, namespace="team", name=uid, seen=0.0, finished=finished, deleted=deleted)


def test_finished_jobs_go_when_their_time_is_over_and_running_ones_never() -> None:
    retention = Retention(seconds=100, deleted_seconds=10)
    records = [record("runs"), record("fresh", finished=950), record("old", finished=899)]
    assert [each.uid for each in expired(records, retention, 1000)] == ["old"]


def test_deleted_jobs_go_sooner() -> None:
    retention = Retention(seconds=100, deleted_seconds=10)
    records = [record("a", finished=950, deleted=995), record("b", finished=950, deleted=980), record("c", deleted=980)]
    assert [each.uid for each in expired(records, retention, 1000)] == ["b", "c"]


def test_what_came_first_is_the_end() -> None:
    assert ended_at(record("runs")) is None
    assert ended_at(record("a", finished=3, deleted=9)) == 3
    assert ended_at(record("a", deleted=9)) == 9


def test_files_take_whole_blocks() -> None:
    assert [of_file(size).bytes for size in (0, 1, BLOCK, BLOCK + 1)] == [0, BLOCK, BLOCK, 2 * BLOCK]
    assert of_file(0).files == 1


def test_who_has_the_most_of_what_is_too_much_pays() -> None:
    usages = {"a": Usage(50, 1), "b": Usage(40, 9), "c": Usage(1, 1)}
    assert payer(usages, Usage(91, 11)) is None
    assert payer(usages, Usage(90, 11)) == "a"
    assert payer(usages, Usage(91, 10)) == "b"
    assert payer(usages, Usage(90, 11), {"a"}) == "b"
    assert payer(usages, Usage(90, 11), {"a", "b"}) is None, "who has little does not pay for who cannot"


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), USAGES, max_size=8), USAGES)
def test_a_namespace_within_its_share_never_pays(usages: dict[str, Usage], total: Usage) -> None:
    retention = Retention(total_bytes=total.bytes, total_files=total.files)
    goal = lowered(retention.total())
    share = retention.share(len(usages))
    exhausted: set[str] = set()
    while (paying := payer(usages, goal, exhausted)) is not None:
        assert not usages[paying].within(share)
        exhausted.add(paying)
    if not exhausted:
        assert sum(usages.values(), NOTHING).within(goal)


def test_segments_are_a_fair_share_within_reason() -> None:
    retention = Retention(job_bytes=256 << 20)
    assert retention.segment_bytes(0) == retention.segment_bytes(1) == 4 << 20
    assert retention.segment_bytes(64) == 512 << 10
    assert retention.segment_bytes(100_000) == 16 << 10
