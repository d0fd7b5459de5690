"""Looks for planted faults in histories, and keeps which history found each: of one cluster, or of a fleet."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, NamedTuple

from tests.size import sized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.simulation.history import History
    from tests.simulation.machine import Outcome
    from tests.simulation.planting import Planted
    from tests.suite import SuiteReport

MOST = 10_000
"""Seeds from which histories for a fault are drawn; those without the coincidence that it needs are passed over."""

ENOUGH = 60
"""Histories that are run for one fault, as a rule."""

TRIED = sized(ENOUGH, full=MOST)
"""The same in this run; the one that found it when it was looked for last is the first."""


class Find(NamedTuple):
    """The history that found a fault, the promise that it broke, and how many were run."""

    seed: int
    rule: str
    tried: int


class Search(NamedTuple):
    """Faults, the file that says which history found each last, and how histories are drawn and run."""

    faults: Sequence[Planted]
    path: Path
    draw: Callable[[int], History]
    run: Callable[[History], Outcome]

    @property
    def finding(self) -> dict[str, int]:
        """The seed of a history that finds a fault, by the fault's name."""
        found: dict[str, int] = json.loads(self.path.read_text())
        return found

    def histories(self, fault: Planted) -> Iterator[History]:
        """Yield the histories that may show a fault: first the one that did when it was looked for last."""
        finding = self.finding
        if fault.name in finding:
            yield self.draw(finding[fault.name])
        drawn = (self.draw(seed) for seed in range(MOST))
        yield from (one for one in drawn if fault.theme in {"", one.theme})

    def find(self, fault: Planted, most: int) -> Find | None:
        """Run histories with a fault until one breaks a promise; None if so many do not."""
        with fault.put_in():
            for tried, history in enumerate(itertools.islice(self.histories(fault), most), 1):
                broken = self.run(history).violations
                if broken:
                    return Find(history.seed, broken[0].rule, tried)
        return None

    def must_find(self, fault: Planted, report: SuiteReport) -> None:
        """Look for a fault as far as the size of the run goes, and note what found it; fail if nothing did."""
        found = self.find(fault, TRIED)
        report.row(
            planted=fault.name,
            found=found is not None,
            history=found and found.seed,
            rule=found and found.rule,
            tried=found and found.tried,
        )
        assert found, f"not found in {TRIED} histories"

    def keep(self, names: list[str]) -> None:
        """Look for the faults of these names, or for all of which no history is kept, and keep what found them."""
        found = self.finding
        wanted = names or {one.name for one in self.faults} - found.keys()
        for fault in self.faults:
            if fault.name not in wanted:
                continue
            one = self.find(fault, ENOUGH)
            print(fault.name, one, flush=True)  # noqa: T201 for people
            found.pop(fault.name, None)
            if one is not None:
                found[fault.name] = one.seed
            self.path.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n")
