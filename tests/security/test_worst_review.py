"""The worst that one look at an object can cost, found by search: CPU and memory of every review and rendering.

Hypothesis draws scenes (`scenes`), climbs towards those whose looks cost most, one hill for each kind of look, and the
worst are measured anew, at full size and several times: a neighbour on the machine makes CPU time longer, never
shorter, so the least of some runs is the truth. The machine is weighed first, by a piece of work that is always the
same: on a slower one, the bounds are as much wider.

At full size every place at which the schema lets an object grow is looked at by itself, too.
"""

from __future__ import annotations

import gc
import heapq
import time
import tracemalloc
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings, target

from tests.security.grown import Growth, grown, places, runtime, train_job
from tests.security.reviews import Scene, Stage
from tests.security.scenes import FOUND, JOBS, RUNTIMES, Draft, drafts
from tests.size import FULL
from trainplane.api import tree as trees
from trainplane.api.bounds import MOST_VALUES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.security.reviews import Looks
    from tests.suite import SuiteReport

SECONDS = 0.5
"""Of CPU, for one look."""
MEGABYTES = 64.0
"""Above what the process has already, for one look."""
SHARE = 1.0 if FULL else 0.2
"""Of the full size, while searching."""
EXAMPLES = 600 if FULL else 20
KEPT = 24 if FULL else 1
"""How many of the worst scenes are measured anew, beside those of earlier searches."""
YAML = frozenset({"keep a runtime", "restore a runtime"})
"""Looks that depend on a runtime's size and little else: measured at the end, not searched for."""
USUAL_SECONDS = 0.02
"""Of CPU, that `calibrate`'s work takes on the machine that the bounds are meant for."""


@pytest.fixture(scope="module")
def slowness() -> float:
    """Return how much slower this machine is, now, than the one that the bounds are meant for; at least 1."""
    tree = [{"name": f"n{n}", "value": "x"} for n in range(20_000)]
    return max(1.0, least_seconds(lambda: trees.copy(tree), 5) / USUAL_SECONDS)


def least_seconds(work: Callable[[], object], times: int) -> float:
    """Return the CPU time of the quickest of some runs."""
    found = []
    gc.disable()  # a collection belongs to all that was made before, and the heap of a test is large
    try:
        for _ in range(times):
            start = time.process_time()
            work()
            found.append(time.process_time() - start)
    finally:
        gc.enable()
    return min(found)


@dataclass
class Worst:
    """The scenes that cost most so far."""

    kept: list[tuple[float, int, Draft]] = field(default_factory=list)
    seen: int = 0

    @cached_property
    def looks(self) -> list[Looks]:
        """The looks at the worst of this search, and of earlier ones, at full size."""
        drafts = [*(draft for _, _, draft in self.kept), *FOUND]
        return [Stage(draft.fitted()).looks() for draft in drafts]

    def note(self, draft: Draft, seconds: float) -> None:
        self.seen += 1
        heapq.heappush(self.kept, (seconds, self.seen, draft))
        if len(self.kept) > KEPT:
            heapq.heappop(self.kept)


@pytest.fixture(scope="module")
def worst() -> Worst:
    """Search, and return the scenes that cost most."""
    found = Worst()

    @settings(
        max_examples=EXAMPLES,
        database=None,
        phases=[Phase.generate, Phase.target],
        suppress_health_check=list(HealthCheck),
    )
    @given(drafts())
    def search(draft: Draft) -> None:
        most = 0.0
        for name, look in Stage(draft.fitted(SHARE)).looks().items():
            if name not in YAML:
                seconds = least_seconds(look, 1)
                target(seconds, label=name)
                most = max(most, seconds)
        found.note(draft, most)

    search()
    return found


@pytest.mark.attack("whoever may create a TrainJob or a runtime", "one object that holds up the reviews of all others")
def test_no_object_takes_more_than_half_a_second(worst: Worst, slowness: float, report: SuiteReport) -> None:
    costs: dict[str, float] = {}
    for looks in worst.looks:
        for name, look in looks.items():
            costs[name] = max(costs.get(name, 0.0), least_seconds(look, 2))
    report.figure("reviews_searched", worst.seen)
    report.figure("worst_review_s", max(costs.values()))
    report.row(figure="worst_review_s", slowness=round(slowness, 2), looks={k: round(v, 4) for k, v in costs.items()})
    assert max(costs.values()) <= SECONDS * slowness, costs


@pytest.mark.attack("whoever may create a TrainJob or a runtime", "one object that takes the operator's memory")
def test_no_object_takes_more_than_64_megabytes(worst: Worst, report: SuiteReport) -> None:
    costs: dict[str, float] = {}
    for looks in worst.looks if FULL else worst.looks[::3]:  # counting every byte is slow
        for name, look in looks.items():
            costs[name] = max(costs.get(name, 0.0), peak_megabytes(look))
    report.figure("worst_review_mb", max(costs.values()))
    assert max(costs.values()) <= MEGABYTES, costs


def peak_megabytes(work: Callable[[], object]) -> float:
    """Return how much more memory some work held at its height than before it."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


@pytest.mark.full
@pytest.mark.parametrize("plural", [JOBS, RUNTIMES])
def test_every_place_alone_costs_in_proportion_to_its_size(plural: str, slowness: float) -> None:
    """Twice as many entries take about twice as long, wherever the schema lets an object grow."""
    for place in places(plural):
        half, whole = (_alone(plural, Growth(place, MOST_VALUES // parts)) for parts in (8, 4))
        for name, look in whole.items():
            seconds = least_seconds(look, 2)
            if seconds > 0.05 * slowness:  # below, the noise is louder
                assert seconds < 3.0 * least_seconds(half[name], 2), (place, name, seconds)


def _alone(plural: str, growth: Growth) -> dict[str, Callable[[], object]]:
    job, whole = train_job(), runtime()
    if plural == JOBS:
        return Stage(Scene(grown(JOBS, job, growth), job, whole, whole)).looks()
    return Stage(Scene(job, job, grown(RUNTIMES, whole, growth), whole)).looks()
