"""Faults planted in our operator, one at a time: conformance finds each of them.

A run plants a part of them, by the seed of `tests.day`; FULL=1 plants all. `FAULTS=torch,mpi-hostfile` plants those
whose ids begin so, and `FAULTS=day` only the part of today with FULL=1.
"""

from __future__ import annotations

import logging
import os
import random
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest

from lab import trainplane
from lab.paths import REPOSITORY
from tests.conformance.drive import PATIENCE
from tests.conformance.mutation.faults import FAULTS
from tests.conformance.mutation.hunt import EVERYWHERE, Hunter, faults_in
from tests.conformance.mutation.known import FOUND_BY
from tests.conformance.mutation.launch import order
from tests.conformance.mutation.relevance import BATCH, by_relevance
from tests.conformance.side import Side
from tests.day import seed
from tests.size import FULL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from lab.cluster import Cluster
    from tests.conformance.cases import Case
    from tests.conformance.mutation.fault import Fault
    from tests.conformance.mutation.hunt import Found
    from tests.conformance.recording import Recordings
    from tests.suite import SuiteReport

SEED = seed()
"""Which faults a run without FULL=1 plants; the figure `planted_seed` reports it."""
PART, PART_SECONDS = 12, 25.0
"""Faults of a part, and the seconds after which no further one of them is planted."""
DAYS = "day"
CHOSEN = tuple(filter(None, os.environ.get("FAULTS", "").split(",")))
BATCHES = int(os.environ.get("BATCHES", "0")) or None
"""How many batches of cases a hunt may take, of which the first is the case that is known to find the fault."""

log = logging.getLogger(__name__)

pytestmark = pytest.mark.timeout(7200)


class UsableCases:
    """The cases that can show a fault: those in which ours doesn't differ while nothing is planted.

    Of cases that this session drove, that is known. Others are driven once.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._sound: dict[str, bool] = {}
        if any(item.path.name == "test_conformance.py" for item in request.session.items):
            for run in (*request.getfixturevalue("written_runs"), *request.getfixturevalue("deadline_runs")):
                self._sound[run.case.id] = not faults_in(run)

    def knows(self, cases: Iterable[Case]) -> bool:
        """Return whether a hunt with these cases can begin."""
        return all(case.id in self._sound for case in cases)

    def learn(self, cases: Iterable[Case], hunter: Hunter) -> None:
        """Judge which cases can show a fault. Nothing may be planted while this runs."""
        wanted = list({case.id: case for case in cases if case.id not in self._sound}.values())
        for start in range(0, len(wanted), BATCH):
            batch = wanted[start : start + BATCH]
            while found := hunter.hunt([case for case in batch if self._sound.get(case.id, True)]):
                log.info("shows no fault: %s", found)
                assert not found.place.startswith(EVERYWHERE), found
                self._sound[found.case] = False
            self._sound |= {case.id: self._sound.get(case.id, True) for case in batch}

    def of(self, cases: Iterable[Case]) -> list[Case]:
        """Return the cases that can show a fault."""
        return [case for case in cases if self._sound[case.id]]


@pytest.fixture(scope="module")
def usable(request: pytest.FixtureRequest) -> UsableCases:
    """Return which cases can show a fault."""
    return UsableCases(request)


@pytest.fixture(scope="module")
def orders(usable: UsableCases, our_cluster: Cluster) -> Path:
    """Return where our operator takes orders to plant; it is started anew, in place of the honest one."""
    del usable  # which may need the honest one
    where = our_cluster.folder / "faults.sock"
    engine = our_cluster.engines()[trainplane.ENGINE]
    our_cluster.kill(trainplane.ENGINE)
    start = engine.command.index("trainplane.operator")
    command = [
        *engine.command[:start],
        *("tests.conformance.mutation.launch", str(where)),
        *engine.command[start + 1 :],
    ]
    path = os.pathsep.join((str(REPOSITORY / "src"), str(REPOSITORY)))
    our_cluster.start(trainplane.ENGINE, command, {**engine.environment, "PYTHONPATH": path})
    trainplane.wait_ready(our_cluster)
    return where


@pytest.fixture(scope="module")
def hunter(orders: Path, our_cluster: Cluster, recordings: Recordings) -> Iterator[Hunter]:
    """Return who looks for faults."""
    del orders
    hunter = Hunter(Side(our_cluster, "ours", prefix="pl"), recordings)
    yield hunter
    hunter.close()


def _chosen() -> list[Fault]:
    if CHOSEN and CHOSEN != (DAYS,):
        return [fault for fault in FAULTS if fault.id.startswith(CHOSEN)]
    return list(FAULTS) if FULL and not CHOSEN else random.Random(SEED).sample(FAULTS, PART)  # noqa: S311 no secret


def _find(fault: Fault, hunter: Hunter, orders: Path, usable: UsableCases) -> Found | None:
    """Plant a fault and hunt for it."""
    order(orders, fault.id)
    for batch in by_relevance(fault)[:BATCHES]:
        if not usable.knows(batch):
            order(orders, "")
            usable.learn(batch, hunter)
            order(orders, fault.id)
        found = hunter.hunt(usable.of(batch))
        if found and (
            asdict(found) == FOUND_BY.get(fault.id)
            or _is_of(fault, [case for case in batch if case.id == found.case], hunter, orders)
        ):
            return found
    return None


def _is_of(fault: Fault, cases: Sequence[Case], hunter: Hunter, orders: Path) -> bool:
    """Return whether what was found where nobody expected it follows from the fault, and not from a busy machine.

    It must be gone with the fault, and come again with it.
    """
    order(orders, "")
    is_gone = hunter.hunt(cases) is None
    order(orders, fault.id)
    follows = is_gone and hunter.hunt(cases) is not None
    if not follows:
        log.info("%s: what %s shows does not follow from it", fault, cases[0])
    return follows


def test_every_planted_fault_is_found(hunter: Hunter, orders: Path, usable: UsableCases, report: SuiteReport) -> None:
    chosen, missed, planted = _chosen(), [], 0
    assert chosen
    usable.learn((case for fault in chosen for case in by_relevance(fault)[0]), hunter)
    begun = time.monotonic()
    for fault in chosen:
        at = time.monotonic()
        if len(chosen) == PART and at > begun + PART_SECONDS:
            break
        found = _find(fault, hunter, orders, usable)
        planted += 1
        row = {"fault": fault.id, **(asdict(found) if found else {}), "seconds": round(time.monotonic() - at, 1)}
        report.row(**row)
        log.info("%s", row)
        if found is None:
            missed.append(fault)
    order(orders, "")
    report.figure("planted", planted)
    report.figure("found", planted - len(missed))
    report.figure("planted_seed", SEED)
    report.figure("hunted_seconds", time.monotonic() - begun)
    assert not missed, "conformance did not find:\n" + "\n".join(f"{one}: {one.what}" for one in missed)


def test_nothing_is_found_where_nothing_is_planted(
    orders: Path, our_cluster: Cluster, hunter: Hunter, usable: UsableCases, recordings: Recordings
) -> None:
    """The operator that faults were planted in is ours again once they are taken out."""
    order(orders, "")
    batch = by_relevance(FAULTS[0])[0]
    usable.learn(batch, hunter)
    honest = Hunter(Side(our_cluster, "ours", prefix="ho"), recordings, waits=lambda _: PATIENCE)
    found = honest.hunt(batch)
    honest.close()
    assert found is None
