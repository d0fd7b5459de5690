"""Faults planted in our operator, one at a time: conformance finds each of them.

A run plants a part of them, by the seed of `tests.day`; FULL=1 plants all. `FAULTS=torch,mpi-hostfile` plants those
whose ids begin so, and `FAULTS=day` only the part of today with FULL=1.
"""

from __future__ import annotations

import hashlib
import logging
import os
import random
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lab import trainplane
from lab.paths import REPOSITORY
from tests.conformance.drive import PATIENCE, Drive
from tests.conformance.mutation.faults import FAULTS
from tests.conformance.mutation.hunt import EVERYWHERE, Hunter, faults_in, is_settled, patience
from tests.conformance.mutation.known import FOUND_BY
from tests.conformance.mutation.launch import order
from tests.conformance.mutation.recording import Recorder, Recording
from tests.conformance.mutation.relevance import BATCH, by_relevance
from tests.conformance.side import Side
from tests.day import seed
from tests.size import FULL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from lab.cluster import Cluster
    from tests.conformance.cases import Case
    from tests.conformance.drive import Run
    from tests.conformance.mutation.fault import Fault
    from tests.conformance.mutation.hunt import Found
    from tests.suite import SuiteReport

SEED = seed()
"""Which faults a run without FULL=1 plants; the figure `planted_seed` reports it."""
PART, PART_SECONDS = 12, 25.0
"""Faults of a part, and the seconds after which no further one of them is planted."""
DAYS = "day"
CHOSEN = tuple(filter(None, os.environ.get("FAULTS", "").split(",")))
BATCHES = int(os.environ.get("BATCHES", "0")) or None
"""How many batches of cases a hunt may take, of which the first is the case that is known to find the fault."""
AT_ONCE = 40
KEPT = REPOSITORY / "build/conformance"

log = logging.getLogger(__name__)

pytestmark = pytest.mark.timeout(7200)


class Reference:
    """What the reference says of cases: asked when it is needed, and kept for the next run of the same suite.

    A case in which ours differs while nothing is planted can show no fault. Of cases that this session drove, that is
    known; of others, it is found out.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self._drive: Drive | None = None
        self._sound: dict[str, bool] = {}
        self._path = KEPT / f"reference-{_digest()}.json.gz"
        self.recording = Recording.load(self._path) if self._path.exists() else Recording({})
        if any(item.path.name == "test_conformance.py" for item in request.session.items):
            self._hear([*request.getfixturevalue("written_runs"), *request.getfixturevalue("deadline_runs")])

    def close(self) -> None:
        """Close what was opened."""
        if self._drive is not None:
            self._drive.close()

    def knows(self, cases: Iterable[Case]) -> bool:
        """Return whether a hunt with these cases can begin."""
        return all(case.id in self._sound for case in cases)

    def learn(self, cases: Iterable[Case], hunter: Hunter) -> None:
        """Drive cases that nobody drove, and judge which of them can show a fault; nothing may be planted meanwhile."""
        wanted = list({case.id: case for case in cases if case.id not in self._sound}.values())
        missing = [case for case in wanted if case not in self.recording]
        for start in range(0, len(missing), AT_ONCE):
            self._hear(self._driver().run(missing[start : start + AT_ONCE]))
            self.recording.save(self._path)
        judged = [case for case in wanted if case.id not in self._sound]
        for start in range(0, len(judged), BATCH):
            batch = judged[start : start + BATCH]
            while found := hunter.hunt([case for case in batch if self._sound.get(case.id, True)]):
                log.info("shows no fault: %s", found)
                assert not found.place.startswith(EVERYWHERE), found
                self._sound[found.case] = False
            self._sound |= {case.id: self._sound.get(case.id, True) for case in batch}

    def sound(self, cases: Iterable[Case]) -> list[Case]:
        """Return the cases that can show a fault."""
        return [case for case in cases if self._sound[case.id]]

    def _driver(self) -> Drive:
        if self._drive is None:
            recorder = self._request.getfixturevalue("recorder")
            ours = Side(self._request.getfixturevalue("our_cluster"), "ours", prefix="le")
            self._drive = Drive(recorder, ours, is_expected=is_settled, patience=patience)
        return self._drive

    def _hear(self, runs: list[Run]) -> None:
        recorder: Recorder = self._request.getfixturevalue("recorder")
        self.recording.cases |= recorder.recording(runs).cases
        self._sound |= {run.case.id: not faults_in(run) for run in runs}


@pytest.fixture(scope="module")
def reference(request: pytest.FixtureRequest) -> Iterator[Reference]:
    """Return what the reference says."""
    reference = Reference(request)
    yield reference
    reference.close()


def _digest() -> str:
    """Return a word for what the reference's answers depend on beside the cases: the lab, and who asks."""
    digest = hashlib.sha256()
    asks = Path(__file__).parents[1] / "side.py"
    for path in (asks, *sorted((REPOSITORY / "lab").rglob("*.*"))):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(str(path.relative_to(REPOSITORY)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@pytest.fixture(scope="module")
def orders(reference: Reference, our_cluster: Cluster) -> Path:
    """Return where our operator takes orders to plant; it is started anew, in place of the honest one."""
    del reference  # which may need the honest one
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
def hunter(orders: Path, our_cluster: Cluster, reference: Reference) -> Iterator[Hunter]:
    """Return who looks for faults."""
    del orders
    hunter = Hunter(Side(our_cluster, "ours", prefix="pl"), reference.recording)
    yield hunter
    hunter.close()


def _chosen() -> list[Fault]:
    if CHOSEN and CHOSEN != (DAYS,):
        return [fault for fault in FAULTS if fault.id.startswith(CHOSEN)]
    return list(FAULTS) if FULL and not CHOSEN else random.Random(SEED).sample(FAULTS, PART)  # noqa: S311 no secret


def _find(fault: Fault, hunter: Hunter, orders: Path, reference: Reference) -> Found | None:
    """Plant a fault and hunt for it."""
    order(orders, fault.id)
    for batch in by_relevance(fault)[:BATCHES]:
        if not reference.knows(batch):
            order(orders, "")
            reference.learn(batch, hunter)
            order(orders, fault.id)
        found = hunter.hunt(reference.sound(batch))
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


def test_every_planted_fault_is_found(hunter: Hunter, orders: Path, reference: Reference, report: SuiteReport) -> None:
    chosen, missed, planted = _chosen(), [], 0
    assert chosen
    reference.learn((case for fault in chosen for case in by_relevance(fault)[0]), hunter)
    begun = time.monotonic()
    for fault in chosen:
        at = time.monotonic()
        if len(chosen) == PART and at > begun + PART_SECONDS:
            break
        found = _find(fault, hunter, orders, reference)
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
    orders: Path, our_cluster: Cluster, hunter: Hunter, reference: Reference
) -> None:
    """The operator that faults were planted in is ours again once they are taken out."""
    order(orders, "")
    batch = by_relevance(FAULTS[0])[0]
    reference.learn(batch, hunter)
    honest = Hunter(Side(our_cluster, "ours", prefix="ho"), reference.recording, waits=lambda _: PATIENCE)
    found = honest.hunt(batch)
    honest.close()
    assert found is None
