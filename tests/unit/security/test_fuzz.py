"""The fuzzing harness on itself: a planted crash, hang and leak are each found, and inputs follow from the seed."""

from __future__ import annotations

import mmap
import time
from datetime import date
from random import Random
from typing import ClassVar

import msgspec
import pytest

from tests.day import FIXED, TODAY
from tests.security.fuzz import campaign, findings
from tests.security.fuzz.findings import attempt, minimised
from tests.security.fuzz.mutations import Mutator, copied, encode, places_of
from tests.security.fuzz.target import BrokenPromiseError, Target
from tests.security.fuzz.worker import Report, case


class Planted(Target):
    """Inputs are numbers; what a number does, a subclass says."""

    name: ClassVar[str] = "planted"
    cases: ClassVar[int] = 100

    def generate(self, random: Random) -> bytes:
        return encode({"n": random.randrange(100), "rest": ["x"] * 3})

    def run(self, data: bytes) -> str:
        return self.act(int(msgspec.json.decode(data).get("n", -1)))

    def act(self, number: int) -> str:
        return "even" if number % 2 == 0 else "odd"


class Crashes(Planted):
    def act(self, number: int) -> str:
        if number == 7:
            raise KeyError(number)
        return super().act(number)


class Lies(Planted):
    def act(self, number: int) -> str:
        if number == 7:
            raise BrokenPromiseError("it says what is not so")
        return super().act(number)


class Hangs(Planted):
    def act(self, number: int) -> str:
        while number == 7:
            pass
        return super().act(number)


class HangsUnseen(Planted):
    """As an event loop does: what is raised in it is caught, and the answer comes all the same."""

    def act(self, number: int) -> str:
        try:
            while number == 7:
                pass
        except BaseException:  # noqa: BLE001 on purpose
            return "swallowed"
        return super().act(number)


class Sleeps(Planted):
    """Uses no CPU, as code that waits for what never comes."""

    def act(self, number: int) -> str:
        if number == 7:
            time.sleep(600)
        return super().act(number)


class Leaks(Planted):
    """It keeps pages of its own: bytes could fill a heap that the tests before left free, and nothing would grow."""

    held: ClassVar[list[mmap.mmap]] = []

    def act(self, number: int) -> str:
        self.held.append(mmap.mmap(-1, 16 << 10))
        self.held[-1].write(b"x" * (16 << 10))
        return super().act(number)


class Bombs(Planted):
    def act(self, number: int) -> str:
        return str(len(b"x" * (512 << 20 if number == 7 else 1)) > 1)


@pytest.fixture(autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "REPOSITORY", tmp_path_factory.getbasetemp())
    monkeypatch.setattr(findings, "FOLDER", tmp_path_factory.mktemp("fuzz"))


def run(target: type[Planted], cases: int = 300) -> Report:
    reports = campaign.run({"planted": target}, {"planted": cases}, 1, processes=1, say=lambda _: None)
    return reports["planted"]


def test_a_run_of_good_inputs_finds_nothing_and_counts_them() -> None:
    report = run(Planted)
    assert report.findings == []
    assert report.cases == sum(report.outcomes.values()) == 300
    assert set(report.outcomes) == {"even", "odd"}


@pytest.mark.parametrize("target", [Crashes, Lies])
def test_a_planted_crash_is_found_once_and_made_small(target: type[Planted]) -> None:
    report = run(target)
    (finding,) = report.findings
    assert finding.kind == "crash"
    assert report.count("crash") == report.outcomes["crash"] > 1
    assert msgspec.json.decode(finding.path.read_bytes()) == {"n": 7}
    assert attempt(target(), finding.path.read_bytes())[1] is not None


@pytest.mark.parametrize("target", [Hangs, HangsUnseen])
def test_a_planted_hang_is_found(target: type[Planted]) -> None:
    report = run(target, 150)
    assert {finding.kind for finding in report.findings} == {"hang"}
    assert report.cases == 150


def test_code_that_never_comes_back_is_ended_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "SILENT_SECONDS", 5.0)
    (finding,) = run(Sleeps).findings
    assert finding.kind == "hang"
    assert msgspec.json.decode(finding.data)["n"] == 7


def test_a_planted_leak_shows_as_growth() -> None:
    assert run(Leaks, 3000).growth_mb > 24
    assert run(Planted, 3000).growth_mb < 8


def test_a_planted_bomb_is_found() -> None:
    assert {finding.kind for finding in run(Bombs).findings} == {"memory"}


def test_inputs_follow_from_the_seed() -> None:
    target = Planted()
    assert [case(target, 5, n) for n in range(20)] == [case(target, 5, n) for n in range(20)]
    assert [case(target, 5, n) for n in range(20)] != [case(target, 6, n) for n in range(20)]


def test_the_seed_without_fuzz_seed_is_that_of_the_day() -> None:
    assert campaign.seed_of_run({"FUZZ_SEED": "12"}) == 12
    assert campaign.seed_of_run({}) == (FIXED - date(1970, 1, 1)).days
    assert campaign.seed_of_run({"SEED": "day"}) == (TODAY - date(1970, 1, 1)).days


def test_changes_of_a_tree_share_nothing_with_what_it_came_from() -> None:
    tree = {"a": [1, {"b": "c"}], "d": None}
    before = copied(tree)
    for seed in range(300):
        encode(Mutator(Random(seed)).tree(copied(tree)))  # noqa: S311 inputs, no secrets
    assert tree == before
    assert len(places_of(tree)) == 5


def test_a_finding_that_is_small_already_stays() -> None:
    found = attempt(Crashes(), b'{"n":7}')[1]
    assert found is not None
    assert minimised(Crashes(), found).data == b'{"n":7}'
