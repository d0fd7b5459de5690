"""The rules of election: every order of pauses, losses and drift that Hypothesis and a long simulation can find."""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from trainplane.kube.election import Claim, ElectionRules, LeaseSettings

SETTINGS = LeaseSettings("ns", "lock")
WALL = datetime(2026, 1, 1, tzinfo=UTC)
CANDIDATES = 3
SLOWEST, FASTEST = 0.82, 1.22
"""Rates of the candidates' clocks: their ratio stays below lease_duration / renew_deadline, the stated bound."""

Tree = dict[str, Any]


@dataclass
class Server:
    """One Lease with optimistic locking."""

    lease: Tree | None = None
    version: int = 0

    def write(self, body: Tree, *, new: bool) -> Tree | None:
        """Return the stored Lease, or None for a conflict."""
        if new != (self.lease is None):
            return None
        if (
            self.lease is not None
            and body["metadata"].get("resourceVersion") != self.lease["metadata"]["resourceVersion"]
        ):
            return None
        self.version += 1
        self.lease = copy.deepcopy(body)
        self.lease["metadata"]["resourceVersion"] = str(self.version)
        return copy.deepcopy(self.lease)

    def delete(self) -> None:
        self.lease = None

    def touch(self) -> None:
        """Somebody edits an annotation."""
        if self.lease is not None:
            self.version += 1
            self.lease["metadata"]["resourceVersion"] = str(self.version)


@dataclass
class Candidate:
    """A process with its own clock and at most one request under way."""

    candidacy: ElectionRules
    rate: float
    offset: float
    request: Literal["read"] | Claim | None = None
    served: bool = False
    answer: Tree | None = None

    def clock(self, real: float) -> float:
        return self.offset + real * self.rate


@dataclass
class World:
    """Real time, the server, the candidates, and writes whose senders gave up but which may still arrive."""

    rates: list[float]
    server: Server = field(default_factory=Server)
    real: float = 0.0
    strays: list[tuple[Tree, bool]] = field(default_factory=list)
    born: int = 0
    candidates: list[Candidate] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.candidates = [self.spawn(rate) for rate in self.rates]

    def spawn(self, rate: float) -> Candidate:
        self.born += 1
        return Candidate(ElectionRules(f"candidate-{self.born}", SETTINGS), rate, offset=1000.0 * self.born)

    def now(self, candidate: Candidate) -> float:
        return candidate.clock(self.real)

    def leaders(self) -> list[str]:
        return [c.candidacy.identity for c in self.candidates if c.candidacy.is_leader(self.now(c))]

    def send(self, candidate: Candidate) -> None:
        if candidate.request is not None:
            return
        if candidate.candidacy.needs_read:
            candidate.request = "read"
        else:
            wall = WALL + timedelta(seconds=self.now(candidate))
            candidate.request = candidate.candidacy.claim(self.now(candidate), wall)
        candidate.served = False

    def serve(self, candidate: Candidate) -> None:
        if candidate.request is None or candidate.served:
            return
        candidate.served = True
        if isinstance(candidate.request, Claim):
            candidate.answer = self.server.write(candidate.request.body, new=candidate.request.new)
        else:
            candidate.answer = copy.deepcopy(self.server.lease)

    def deliver(self, candidate: Candidate) -> None:
        if not candidate.served:
            return
        if candidate.request == "read":
            candidate.candidacy.saw(candidate.answer, self.now(candidate))
        elif isinstance(candidate.request, Claim) and candidate.answer is not None:
            candidate.candidacy.wrote(candidate.request, candidate.answer, self.now(candidate))
        else:
            candidate.candidacy.failed()
        candidate.request, candidate.served = None, False

    def give_up(self, candidate: Candidate) -> None:
        """The answer is lost, or the request still wanders; the candidate cannot tell which."""
        if candidate.request is None:
            return
        if isinstance(candidate.request, Claim) and not candidate.served:
            self.strays.append((candidate.request.body, candidate.request.new))
        candidate.candidacy.failed()
        candidate.request, candidate.served = None, False

    def attempt(self, candidate: Candidate) -> None:
        for _ in range(2):
            self.send(candidate)
            self.serve(candidate)
            self.deliver(candidate)

    def resign(self, candidate: Candidate) -> None:
        body = candidate.candidacy.resign(WALL + timedelta(seconds=self.now(candidate)))
        if body is not None:
            self.strays.append((body, False))

    def arrive(self, index: int) -> None:
        body, new = self.strays.pop(index)
        self.server.write(body, new=new)

    def replace(self, index: int) -> None:
        """The process dies without a word and another starts in its place."""
        self.candidates[index] = self.spawn(self.candidates[index].rate)


class Election(RuleBasedStateMachine):
    """Any interleaving of three candidates; any of them may stand still for any time between any two steps."""

    @initialize(rates=st.lists(st.floats(SLOWEST, FASTEST), min_size=CANDIDATES, max_size=CANDIDATES))
    def start(self, rates: list[float]) -> None:
        self.world = World(rates)

    @rule(seconds=st.sampled_from([0.01, 0.5, 2.0, 4.9, 8.3, 9.9, 12.2, 14.9, 18.3, 40.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.real += seconds

    @rule(index=st.integers(0, CANDIDATES - 1))
    def attempt(self, index: int) -> None:
        self.world.attempt(self.world.candidates[index])

    @rule(index=st.integers(0, CANDIDATES - 1), seconds=st.integers(1, 40))
    def one_stands_still_while_the_others_go_on(self, index: int, seconds: int) -> None:
        for _ in range(seconds):
            self.world.real += 1.0
            for candidate in self.world.candidates:
                if candidate is not self.world.candidates[index]:
                    self.world.attempt(candidate)
                    self.at_most_one_leads()

    @rule(index=st.integers(0, CANDIDATES - 1), seconds=st.integers(1, 40))
    def a_write_is_answered_late(self, index: int, seconds: int) -> None:
        candidate = self.world.candidates[index]
        while candidate.candidacy.needs_read:
            self.world.send(candidate)
            self.world.serve(candidate)
            self.world.deliver(candidate)
        self.world.send(candidate)
        self.world.serve(candidate)
        self.one_stands_still_while_the_others_go_on(index, seconds)
        self.world.deliver(candidate)

    @rule(index=st.integers(0, CANDIDATES - 1))
    def send(self, index: int) -> None:
        self.world.send(self.world.candidates[index])

    @rule(index=st.integers(0, CANDIDATES - 1))
    def serve(self, index: int) -> None:
        self.world.serve(self.world.candidates[index])

    @rule(index=st.integers(0, CANDIDATES - 1))
    def deliver(self, index: int) -> None:
        self.world.deliver(self.world.candidates[index])

    @rule(index=st.integers(0, CANDIDATES - 1))
    def give_up(self, index: int) -> None:
        self.world.give_up(self.world.candidates[index])

    @rule(index=st.integers(0, CANDIDATES - 1))
    def resign(self, index: int) -> None:
        self.world.resign(self.world.candidates[index])

    @rule(index=st.integers(0, CANDIDATES - 1))
    def die(self, index: int) -> None:
        self.world.replace(index)

    @precondition(lambda self: self.world.strays)
    @rule(data=st.data())
    def stray_write_arrives(self, data: st.DataObject) -> None:
        self.world.arrive(data.draw(st.integers(0, len(self.world.strays) - 1)))

    @rule()
    def somebody_annotates_the_lease(self) -> None:
        self.world.server.touch()

    @invariant()
    def at_most_one_leads(self) -> None:
        assert len(self.world.leaders()) <= 1

    @invariant()
    def a_leader_holds_the_lease(self) -> None:
        for leader in self.world.leaders():
            assert self.world.server.lease is not None
            assert self.world.server.lease["spec"]["holderIdentity"] == leader


Election.TestCase.settings = hypothesis_settings(max_examples=80, stateful_step_count=40, deadline=None)
TestElection = Election.TestCase


@pytest.mark.parametrize("seed", range(5))
def test_hundreds_of_hand_overs_with_one_leader_at_a_time(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 a simulation, not a secret
    world = World([dice.uniform(SLOWEST, FASTEST) for _ in range(CANDIDATES)])
    reigns: list[str] = []
    for _ in range(12_000):
        world.real += dice.expovariate(1.0)
        index = dice.randrange(CANDIDATES)
        candidate = world.candidates[index]
        act = dice.choices(
            [world.attempt, world.send, world.serve, world.deliver, world.give_up, world.resign], [60, 8, 8, 8, 4, 1]
        )[0]
        act(candidate)
        if candidate.candidacy.lapse(world.now(candidate)):
            world.replace(index)
        if world.strays and dice.random() < 0.2:
            world.arrive(dice.randrange(len(world.strays)))
        leaders = world.leaders()
        assert len(leaders) <= 1
        if leaders and leaders[0] not in reigns:
            reigns.append(leaders[0])
    assert len(reigns) >= 200


def duel(leader_rate: float, follower_rate: float) -> list[str]:
    """A leader falls silent the moment it was elected; return who leads once a follower could claim."""
    world = World([leader_rate, follower_rate])
    leader, follower = world.candidates
    world.attempt(leader)
    assert world.leaders() == ["candidate-1"]
    world.attempt(follower)
    world.real += SETTINGS.lease_duration / follower_rate
    world.attempt(follower)
    return world.leaders()


def test_the_bound_on_drift_is_tight() -> None:
    bound = SETTINGS.lease_duration / SETTINGS.renew_deadline
    assert duel(1.0, bound * 0.99) == ["candidate-2"]
    assert duel(1.0, bound * 1.01) == ["candidate-1", "candidate-2"]


def test_a_paused_leader_finds_itself_deposed_without_any_step() -> None:
    world = World([1.0, 1.0])
    leader, follower = world.candidates
    world.attempt(leader)
    world.attempt(follower)
    world.real += 10
    assert world.leaders() == []
    world.real += 5
    world.attempt(follower)
    assert world.leaders() == ["candidate-2"]
    world.attempt(leader)
    assert leader.candidacy.lapse(world.now(leader))
    assert world.leaders() == ["candidate-2"]


def test_a_renewal_whose_answer_was_lost_is_found_by_reading() -> None:
    world = World([1.0])
    [leader] = world.candidates
    world.attempt(leader)
    world.real += 4
    world.send(leader)
    world.serve(leader)
    world.give_up(leader)
    world.real += 2
    world.attempt(leader)
    assert leader.candidacy.deadline == pytest.approx(world.now(leader) + SETTINGS.renew_deadline)


def test_a_late_yes_does_not_revive_a_leadership() -> None:
    world = World([1.0])
    [leader] = world.candidates
    world.attempt(leader)
    world.real += 9
    world.send(leader)
    world.serve(leader)
    world.real += 2
    world.deliver(leader)
    assert leader.candidacy.phase == "over"
    assert world.leaders() == []
    assert leader.candidacy.claim(world.now(leader), WALL) is None


def test_an_election_won_too_slowly_is_claimed_again() -> None:
    world = World([1.0])
    [candidate] = world.candidates
    world.send(candidate)
    world.serve(candidate)
    world.deliver(candidate)
    world.send(candidate)
    world.serve(candidate)
    world.real += 11
    world.deliver(candidate)
    assert world.leaders() == []
    world.attempt(candidate)
    assert world.leaders() == ["candidate-1"]


def test_renewals_are_seen_by_change_and_not_by_the_clock_of_another() -> None:
    world = World([1.0, 1.0])
    leader, follower = world.candidates
    leader.offset = -1e9  # its renewTime lies decades in the past
    world.attempt(leader)
    for _ in range(20):
        world.real += 5
        world.attempt(leader)
        world.attempt(follower)
        assert world.leaders() == ["candidate-1"]


def test_a_standing_wall_clock_still_shows_renewals() -> None:
    candidacy = ElectionRules("me", SETTINGS)
    candidacy.saw(None, 0.0)
    first = candidacy.claim(0.0, WALL)
    assert first is not None
    candidacy.wrote(first, first.body | {"metadata": {**first.body["metadata"], "resourceVersion": "1"}}, 0.0)
    second = candidacy.claim(1.0, WALL - timedelta(days=1))
    assert second is not None
    assert first.body["spec"]["renewTime"] == "2026-01-01T00:00:00.000000Z"
    assert second.body["spec"]["renewTime"] == "2026-01-01T00:00:00.000001Z"


def test_an_annotation_is_no_renewal() -> None:
    world = World([1.0, 1.0])
    leader, follower = world.candidates
    world.attempt(leader)
    for _ in range(8):
        world.attempt(follower)
        world.server.touch()
        world.real += 2
    world.attempt(follower)
    assert world.leaders() == ["candidate-2"]


def test_the_holder_of_a_deleted_lease_is_waited_for_by_those_who_knew_it() -> None:
    world = World([1.0, 1.0])
    leader, follower = world.candidates
    world.attempt(leader)
    world.attempt(follower)
    world.server.delete()
    world.real += 9
    world.attempt(follower)
    assert world.leaders() == ["candidate-1"]
    world.real += 6
    world.attempt(follower)
    assert world.leaders() == ["candidate-2"]
    assert world.server.lease is not None
    assert world.server.lease["spec"]["leaseTransitions"] == 1


def test_a_leader_whose_lease_was_deleted_stops_and_does_not_make_it_anew() -> None:
    world = World([1.0])
    [leader] = world.candidates
    world.attempt(leader)
    world.server.delete()
    world.attempt(leader)
    world.attempt(leader)
    assert leader.candidacy.lapse(world.now(leader))
    assert world.server == Server(lease=None, version=1)


def test_a_resigned_lease_is_taken_at_once_and_counts_the_transition() -> None:
    world = World([1.0, 1.0])
    leader, follower = world.candidates
    world.attempt(leader)
    world.attempt(follower)
    world.resign(leader)
    assert world.leaders() == []
    world.arrive(0)
    world.attempt(follower)
    assert world.leaders() == ["candidate-2"]
    assert follower.candidacy.term == 1


def test_the_record_of_a_foreign_holder_decides_how_long_it_is_waited_for() -> None:
    candidacy = ElectionRules("me", SETTINGS)
    foreign = {"metadata": {"resourceVersion": "7"}, "spec": {"holderIdentity": "other", "leaseDurationSeconds": 60}}
    candidacy.saw(foreign, 0.0)
    assert candidacy.claim(59.9, WALL) is None
    candidacy.saw(foreign, 60.0)
    claim = candidacy.claim(60.0, WALL)
    assert claim is not None
    assert not claim.new
    assert claim.body["metadata"] == {"resourceVersion": "7"}


def test_fields_we_do_not_know_survive_a_claim() -> None:
    candidacy = ElectionRules("me", SETTINGS)
    lease: Tree = {
        "metadata": {"resourceVersion": "7", "labels": {"a": "b"}},
        "spec": {"holderIdentity": "", "strategy": "OldestEmulationVersion"},
    }
    candidacy.saw(lease, 0.0)
    claim = candidacy.claim(0.0, WALL)
    assert claim is not None
    assert claim.body["metadata"] == lease["metadata"]
    assert claim.body["spec"]["strategy"] == "OldestEmulationVersion"
    assert lease["spec"]["holderIdentity"] == ""


def test_resigning_without_holding_writes_nothing() -> None:
    assert ElectionRules("me", SETTINGS).resign(WALL) is None


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"lease_duration": 0}, "lease_duration"),
        ({"lease_duration": 2.5}, "lease_duration"),
        ({"renew_deadline": 15.0}, "renew_deadline"),
        ({"retry_period": 0.0}, "retry_period"),
        ({"retry_period": 9.0}, "retry_period"),
        ({"name": ""}, "name"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        LeaseSettings(**{"namespace": "ns", "name": "lock", **fields})
