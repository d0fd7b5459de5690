from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.cache.simulator import Simulation
from tests.size import sized
from tests.unit.cache.plans import plan

if TYPE_CHECKING:
    from tests.suite import SuiteReport

RUNS = sized(10, full=1000)
MANIFEST = plan([1000 + 7 * (number % 13) for number in range(400)], 128)


def test_twenty_workers_give_512_ranks_every_row_once_whoever_dies(report: SuiteReport) -> None:
    happened: Counter[str] = Counter()
    for seed in range(RUNS):
        simulation = Simulation(MANIFEST, 20, seed)
        simulation.go([512, 384, 512], trouble=0.01)
        assert (simulation.times == 1).all(), f"seed {seed}: {simulation.happened}"
        happened += simulation.happened
    assert min(happened["killed"], happened["wiped"], happened["head"], happened["failover"]) > 0
    report.figure("simulated_runs", RUNS)
    report.figure("simulated_kills", happened["killed"])


def test_one_node_that_is_lost_in_mid_epoch_holds_nobody_up() -> None:
    simulation = Simulation(MANIFEST, 20, 0)
    simulation.go([512], trouble=0.0)
    calm = simulation.now
    simulation = Simulation(MANIFEST, 20, 0)
    # Everything is loaded, then one is gone for good.
    for _ in range(10):
        simulation._tick([], 0.0)
    loaded = simulation.now
    simulation._workers["cache-7"].back = float("inf")
    simulation.go([512], trouble=0.0)
    assert (simulation.times == 1).all()
    assert simulation.happened["failover"] > 0
    assert simulation.now - loaded <= calm
