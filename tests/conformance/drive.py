"""Drives cases on both sides in step, and compares after each step.

Cases run at once, each in a namespace of its own. A step is taken in all of them, then fences tell that both operators
have reached what was queued; a case that then differs is looked at again for a while, so that a slow operator is not a
different one. What differs is judged again at every step: what was declared when it came may have had to heal since.
Once a request is accepted on one side alone, the rest of the case would compare two stories: it ends.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from tests.conformance import documents
from tests.conformance.cases import Await, Change, Create
from tests.conformance.compare import ABSENT, Difference, Verdict, object_differences, verdict_differences

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.conformance.cases import Case, Step, Tree
    from tests.conformance.side import Side

Result = TypeVar("Result")

_WRITERS = 8
_HOPS = 3
"""Fences after each step: applied, JobSet seen, status seen. Each passes through the operator's queue once more."""
EDIT_SECONDS = 2.5
"""Seconds for which ours waits for another edit of a TrainJob that is held back, before its JobSet follows."""
PATIENCE = 40.0
"""Seconds for which a case that differs unexpectedly is looked at again: what a busy machine may hold up one side.

Ours alone puts counts off for fifteen while it is busy (`operator/trainjob.py`).
"""
REFERENCE_PATIENCE = 120.0
"""The same for an object that the reference alone lacks: it has one worker for all cases, and what failed once there
waits longer with each try, and for a place among ten tries a second."""


def patience(found: Difference) -> float:
    """Return for how long a difference that nobody expects is looked at again."""
    return REFERENCE_PATIENCE if (found.path, found.reference) == ("", ABSENT) else PATIENCE


@dataclass
class Run:
    """A case under way."""

    case: Case
    number: int
    verdicts: list[tuple[Verdict, Verdict]] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    over: bool = False

    @property
    def refused(self) -> frozenset[int]:
        """The numbers of the steps that both sides refused; what is set up comes before the first."""
        pairs = enumerate(self.verdicts, -len(self.case.setup))
        return frozenset(number for number, pair in pairs if not any(verdict.accepted for verdict in pair))


class Drive:
    """Two sides, and the numbers of the namespaces that are taken on them."""

    def __init__(
        self,
        reference: Side,
        ours: Side,
        *,
        is_expected: Callable[[Difference], bool] = lambda _: False,
        patience: Callable[[Difference], float] = patience,
        ends_with: Callable[[Difference], bool] = lambda _: False,
    ) -> None:
        self.sides = (reference, ours)
        self._patience = patience
        self._ends_with = ends_with
        self._is_expected = is_expected
        self._taken = 0
        self._pool = ThreadPoolExecutor(2 * _WRITERS)
        for side in self.sides:
            side.prepare(documents.runtime())

    def close(self) -> None:
        """End the threads and their connections."""
        self._pool.shutdown()
        for side in self.sides:
            side.close()

    def run(self, cases: Sequence[Case]) -> list[Run]:
        """Take all cases to their ends, or until a difference that it `ends_with`; return what was found of each."""
        runs = [Run(case, self._taken + number) for number, case in enumerate(cases)]
        self._taken += len(runs)
        self._both(runs, lambda side, run: side.begin(run.case, side.namespace(run.number)))
        for index in range(max((len(run.case.setup) for run in runs), default=0)):
            here = [run for run in runs if index < len(run.case.setup)]
            self._take(here, [Create(run.case.setup[index]) for run in here], -1)
        self._settle()
        self._compare([run for run in runs if run.case.setup and not run.over], -1)
        for index in range(max((len(run.case.steps) for run in runs), default=0)):
            if self._is_at_end(runs):
                break
            here = [run for run in runs if index < len(run.case.steps) and not run.over]
            self._take(here, [run.case.steps[index] for run in here], index)
            if self._is_at_end(here):
                break
            self._await([run for run in here if isinstance(run.case.steps[index], Await)], index)
            self._settle()
            if any(isinstance(run.case.steps[index], Change) for run in here):
                time.sleep(EDIT_SECONDS)
            self._compare([run for run in here if not run.over], index)
        return runs

    # -- one step -------------------------------------------------------------------------------------------------

    def _take(self, runs: list[Run], steps: Sequence[Step], index: int) -> None:
        taken = {run.number: step for run, step in zip(runs, steps, strict=True)}
        verdicts = self._both(runs, lambda side, run: side.take(taken[run.number], side.namespace(run.number)))
        for run, (left, right) in zip(runs, verdicts, strict=True):
            refused = run.refused
            run.verdicts.append((left, right))
            for path, one, other in verdict_differences(left, right):
                message = "\n".join(filter(None, (left.message if path != "warned" else "", right.message)))
                found = Difference(run.case, index, taken[run.number], "verdict", path, one, other, message, refused)
                run.differences.append(found)
            run.over = run.over or left.accepted != right.accepted

    def _both(self, runs: list[Run], work: Callable[[Side, Run], Result]) -> list[tuple[Result, Result]]:
        pending = [[self._pool.submit(work, side, run) for side in self.sides] for run in runs]
        return [(left.result(), right.result()) for left, right in pending]

    def _settle(self) -> None:
        document = documents.train_job()
        waits = [self._pool.submit(_fences, side, document) for side in self.sides]
        for wait in waits:
            wait.result()

    # -- comparison -----------------------------------------------------------------------------------------------

    def _compare(self, runs: list[Run], index: int) -> None:
        """Note what differs, once it is not going to change: what is expected at once, the rest after a while."""
        begun = time.monotonic()
        while runs:
            later = []
            for run, (left, right) in zip(runs, self._observe(runs), strict=True):
                found = self._differences(run, index, object_differences(left, right))
                waits = [self._patience(one) for one in found if not self._is_expected(one)]
                if not waits or time.monotonic() > begun + min(waits):
                    run.differences += self._to_note(run, found)
                    # What happens to a JobSet that one side alone has is another story too.
                    run.over = any((one.place.partition(" ")[0], one.path) == ("JobSet", "") for one in found)
                else:
                    later.append(run)
            if self._is_at_end(runs):
                return
            runs = later
            if runs:
                time.sleep(0.25)

    def _is_at_end(self, runs: list[Run]) -> bool:
        return any(self._ends_with(one) for run in runs for one in run.differences)

    def _differences(self, run: Run, index: int, found: list[tuple[str, str, object, object]]) -> list[Difference]:
        """Return what differs at a step, be it for the first time or still."""
        step = run.case.steps[index] if index >= 0 else None
        return [
            Difference(run.case, index, step, place, path, one, other, refused=run.refused)
            for place, path, one, other in found
        ]

    def _to_note(self, run: Run, found: list[Difference]) -> list[Difference]:
        """Return what is new since the case's earlier steps, and what is not expected to be there any more."""
        known = {(old.place, old.path, str(old.reference), str(old.ours)) for old in run.differences}
        return [
            one
            for one in found
            if (one.place, one.path, str(one.reference), str(one.ours)) not in known or not self._is_expected(one)
        ]

    def _observe(self, runs: list[Run]) -> list[tuple[dict[str, Tree], dict[str, Tree]]]:
        """Return the objects of each run on both sides, in normal form."""
        names = [[side.namespace(run.number) for run in runs] for side in self.sides]
        left, right = (self._pool.submit(side.states, ours) for side, ours in zip(self.sides, names, strict=True))
        return list(zip(left.result(), right.result(), strict=True))

    def _await(self, runs: list[Run], index: int) -> None:
        """Wait until the awaited conditions are there on both sides; the comparison tells where one never came."""
        begun = time.monotonic()
        while runs:
            seen = self._observe(runs)
            runs = [
                run for run, states in zip(runs, seen, strict=True) if _awaits(run.case.steps[index], states, begun)
            ]
            time.sleep(0.25)


def _fences(side: Side, document: Tree) -> None:
    for _ in range(_HOPS):
        side.fence(document)


def _awaits(step: Step, states: tuple[dict[str, Tree], ...], begun: float) -> bool:
    if not isinstance(step, Await) or time.monotonic() > begun + step.seconds:
        return False
    return not all(_has(state.get(f"TrainJob {step.name}", {}), step.condition) for state in states)


def _has(job: Tree, condition: str) -> bool:
    conditions = job.get("status", {}).get("conditions", ())
    return any(entry["type"] == condition and entry["status"] == "True" for entry in conditions)
