from __future__ import annotations

from collections import Counter

import pytest

from tests.unit.cache.plans import plan
from trainplane.cache.placement import holders
from trainplane.cache.roster import LOST, SILENT, Roster
from trainplane.cache.wire import Hello

MEMBERS = [f"cache-{number}" for number in range(20)]
FRAGMENTS = [f"part-{number:05}.parquet" for number in range(4000)]
DIGEST, OTHER = "a" * 64, "b" * 64


def hello(roster: Roster, name: str, *held: int, digest: str = DIGEST) -> Hello:
    return Hello(name, f"grpc://{name}:50051", 0, roster.manifest.name, dict.fromkeys(held, digest))


def test_fragments_have_two_holders_and_are_spread_evenly() -> None:
    counts = Counter(member for fragment in FRAGMENTS for member in holders(fragment, MEMBERS))
    assert sum(counts.values()) == 8000
    assert max(counts.values()) < 400 * 1.2
    assert min(counts.values()) > 400 * 0.8


def test_who_holds_what_does_not_depend_on_the_order_of_members() -> None:
    assert all(holders(fragment, MEMBERS) == holders(fragment, MEMBERS[::-1]) for fragment in FRAGMENTS[:100])


def test_a_member_that_leaves_moves_only_what_it_held() -> None:
    before = {fragment: holders(fragment, MEMBERS) for fragment in FRAGMENTS}
    after = {fragment: holders(fragment, MEMBERS[1:]) for fragment in FRAGMENTS}
    for fragment in FRAGMENTS:
        stayed = [member for member in before[fragment] if member != MEMBERS[0]]
        assert list(after[fragment][: len(stayed)]) == stayed
    moved = sum(before[fragment] != after[fragment] for fragment in FRAGMENTS)
    assert moved < 4000 * 2 / 20 * 1.2


def test_too_few_members_hold_everything() -> None:
    assert holders("a", ["one"]) == ("one",)
    assert holders("a", []) == ()


def test_all_is_ready_when_somebody_living_holds_each_fragment_that_has_rows() -> None:
    roster = Roster(plan([5, 0, 5], 2))
    roster.hear(hello(roster, "one", 0), now=0)
    assert not roster.ready(0)
    roster.hear(hello(roster, "two", 2), now=SILENT - 1)
    assert roster.ready(SILENT - 1)
    assert not roster.ready(SILENT)


def test_parts_are_written_to_who_has_taken_up_the_plan() -> None:
    roster = Roster(plan([], 2), expected=["one", "two", "three"])
    roster.hear(Hello("one", "grpc://one:50051", 0), now=0)
    assert (roster.taking(0), roster.takes_all(0)) == ({}, False)
    roster.hear(hello(roster, "one"), now=0)
    assert (list(roster.taking(0)), roster.takes_all(0)) == (["one"], False)
    roster.hear(hello(roster, "two"), now=SILENT)
    assert (list(roster.taking(SILENT)), roster.takes_all(SILENT)) == (["two"], False)
    roster.hear(hello(roster, "one"), now=SILENT)
    assert roster.takes_all(SILENT)


def test_one_worker_alone_takes_all() -> None:
    roster = Roster(plan([], 2))
    assert not roster.takes_all(0)
    roster.hear(hello(roster, "one"), now=0)
    assert roster.takes_all(0)


def test_a_silent_worker_is_not_named_and_keeps_its_place_for_a_while() -> None:
    roster = Roster(plan([5], 2))
    roster.hear(hello(roster, "one", 0), now=0)
    assert list(roster.living(SILENT - 1)) == ["one"]
    assert roster.locations(0, SILENT - 1) == ["grpc://one:50051"]
    assert roster.living(SILENT) == {}
    assert roster.locations(0, SILENT) == []
    assert roster.members(LOST - 1) == ("one",)
    assert roster.members(LOST) == ()


def test_a_worker_with_other_bytes_is_refused_and_may_load_anew() -> None:
    roster = Roster(plan([5, 5], 2))
    assert roster.hear(hello(roster, "one", 0), now=0) == ()
    assert roster.hear(hello(roster, "two", 0, 1, digest=OTHER), now=0) == (0,)
    assert roster.locations(0, 0) == ["grpc://one:50051"]
    assert roster.hear(hello(roster, "two", 0), now=1) == ()
    assert len(roster.locations(0, 1)) == 2


@pytest.mark.parametrize("number", [1, 2, 1 << 40])
def test_fragments_that_the_manifest_does_not_have_are_nobodys(number: int) -> None:
    roster = Roster(plan([5], 2))
    roster.hear(hello(roster, "one", number), now=0)
    assert roster.held(0) == 0


def test_what_is_held_of_another_manifest_does_not_count() -> None:
    roster = Roster(plan([5], 2))
    roster.hear(Hello("one", "grpc://one:50051", 0, "c" * 64, {0: DIGEST}), now=0)
    assert not roster.ready(0)
