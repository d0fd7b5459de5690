"""Who keeps a place when there are too many, told by names."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from trainplane.kube.capacity import Capacity


@dataclass(eq=False)
class Caller:
    name: str
    cut_off: list[str] = field(default_factory=list)

    def cut(self) -> None:
        self.cut_off.append(self.name)


def callers(capacity: Capacity[Caller], names: str) -> list[Caller]:
    found = [Caller(name) for name in names]
    for caller in found:
        assert capacity.enter(caller)
    return found


def ask(capacity: Capacity[Caller], caller: Caller) -> None:
    capacity.advance(caller)
    capacity.answer(caller)
    capacity.finish(caller)


def present(capacity: Capacity[Caller]) -> str:
    return "".join(sorted(caller.name for caller in capacity.all()))


def test_silent_newcomers_take_each_others_place_and_not_that_of_who_asked() -> None:
    capacity = Capacity[Caller](4, 0)
    honest, *_ = callers(capacity, "habc")
    ask(capacity, honest)
    callers(capacity, "defgijkl")
    assert present(capacity) == "hjkl"
    assert honest.cut_off == []


def test_idle_ones_that_asked_once_go_before_one_that_asks_again() -> None:
    capacity = Capacity[Caller](4, 0)
    honest, *others = callers(capacity, "habc")
    for caller in (honest, *others):
        ask(capacity, caller)
    ask(capacity, honest)
    newcomers = callers(capacity, "de")
    assert present(capacity) == "cdeh"
    assert [caller.cut_off for caller in newcomers] == [[], []]


def test_a_newcomer_is_not_cut_for_the_next_while_idle_ones_hold_the_places() -> None:
    capacity = Capacity[Caller](6, 0)
    for caller in callers(capacity, "abcdef"):
        ask(capacity, caller)
    first, _, _ = callers(capacity, "xyz")
    assert first.cut_off == []


def test_whoever_is_being_answered_stays_and_then_nobody_else_comes_in() -> None:
    capacity = Capacity[Caller](2, 0)
    for caller in callers(capacity, "ab"):
        capacity.answer(caller)
    assert not capacity.enter(Caller("c"))
    assert present(capacity) == "ab"
    assert capacity.cuts == {"refused": 1}


def test_beginning_a_request_counts_as_use() -> None:
    capacity = Capacity[Caller](2, 0)
    first, second = callers(capacity, "ab")
    for caller in (first, second):
        ask(capacity, caller)
    capacity.advance(first)
    capacity.advance(Caller("stranger"))
    callers(capacity, "c")
    assert present(capacity) == "ac"


def test_a_newcomer_that_gets_on_outlasts_silent_ones() -> None:
    capacity = Capacity[Caller](4, 0)
    honest, *_ = callers(capacity, "habc")
    capacity.advance(honest)
    callers(capacity, "de")
    capacity.advance(honest)
    callers(capacity, "fgi")
    assert present(capacity) == "fghi"


def test_the_request_that_began_first_pays_for_bytes_that_are_too_many() -> None:
    capacity = Capacity[Caller](9, 100, free=10)
    first, second, third = callers(capacity, "abc")
    assert capacity.hold(first, 60)
    assert capacity.hold(second, 60)
    assert capacity.spent == 100
    assert capacity.hold(third, 10), "what is free is free for all"
    assert capacity.hold(third, 1)
    assert (first.cut_off, second.cut_off, capacity.spent) == (["a"], [], 51)
    assert present(capacity) == "bc"


def test_whole_requests_keep_their_bytes_and_the_newcomer_pays() -> None:
    capacity = Capacity[Caller](9, 100, free=0)
    first, second = callers(capacity, "ab")
    assert capacity.hold(first, 90)
    capacity.answer(first)
    assert not capacity.hold(second, 20)
    assert (first.cut_off, second.cut_off, capacity.cuts) == ([], ["b"], {"memory": 1})
    capacity.finish(first)
    assert capacity.spent == 0


@pytest.mark.parametrize("answered", [True, False])
def test_leaving_gives_everything_back(answered: bool) -> None:
    capacity = Capacity[Caller](1, 100, free=0)
    (caller,) = callers(capacity, "a")
    capacity.hold(caller, 90)
    if answered:
        capacity.answer(caller)
    capacity.leave(caller)
    capacity.leave(caller)
    assert (len(capacity), capacity.spent, caller.cut_off) == (0, 0, [])


class Crowd(RuleBasedStateMachine):
    """Any order of events: places and bytes never run over, and nobody is cut while being answered."""

    connected = Bundle("connected")

    def __init__(self) -> None:
        super().__init__()
        self.capacity = Capacity[Caller](5, 50, free=10)
        self.answering: set[Caller] = set()

    @rule(target=connected)
    def enter(self) -> object:
        caller = Caller("x")
        return caller if self.capacity.enter(caller) else multiple()

    @rule(caller=connected, size=st.integers(1, 40))
    def send(self, caller: Caller, size: int) -> None:
        if caller in self.capacity.all() and caller not in self.answering:
            self.capacity.advance(caller)
            assert self.capacity.hold(caller, size) == (not caller.cut_off)

    @rule(caller=connected)
    def complete(self, caller: Caller) -> None:
        if caller in self.capacity.all():
            self.capacity.answer(caller)
            self.answering.add(caller)

    @rule(caller=connected)
    def finish(self, caller: Caller) -> None:
        self.capacity.finish(caller)
        self.answering.discard(caller)

    @rule(caller=connected)
    def leave(self, caller: Caller) -> None:
        self.capacity.leave(caller)
        self.answering.discard(caller)

    @invariant()
    def bounds_hold(self) -> None:
        everybody = self.capacity.all()
        assert len(everybody) == len(set(everybody)) == len(self.capacity) <= 5
        assert 0 <= self.capacity.spent <= 50
        assert not any(caller.cut_off for caller in everybody)
        assert self.answering <= set(everybody)


TestCrowd = Crowd.TestCase
