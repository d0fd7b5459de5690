"""Twenty workers and 512 ranks on a made-up clock."""

from __future__ import annotations

from collections import Counter
from math import ceil
from typing import TYPE_CHECKING

import pytest

from tests.cache.simulator import DEADLINE, DECODED, HEARTBEAT, Simulation
from tests.size import sized
from tests.unit.cache.plans import plan
from trainplane.cache.placement import REPLICAS
from trainplane.cache.roster import LOST

if TYPE_CHECKING:
    from tests.suite import SuiteReport

RUNS = sized(14, full=1000)
FRAGMENTS, WORKERS, RANKS = 200, 20, 512
MANIFEST = plan([8192 + 7 * (number % 13) for number in range(FRAGMENTS)], 128)
SHARE = FRAGMENTS * REPLICAS / WORKERS
"""Fragments of a worker, on average."""


def calm(_: Simulation) -> None:
    """Nothing happens."""


def chaos(simulation: Simulation) -> None:
    """Workers end and come back, some with empty disks; heads too; one flaps, and now and then one joins."""
    chance = simulation.chance
    for node in list(simulation.nodes.values()):
        if simulation.lives(node) and chance.random() < 0.004:
            simulation.end(node, chance.choice((2, 20, 150)), wiped=chance.random() < 0.3)
    flapping = simulation.nodes["cache-3"]
    if simulation.now % 10 == 0 and simulation.lives(flapping):
        simulation.end(flapping, 5)
        simulation.happened["flapped"] += 1
    if chance.random() < 0.01:
        simulation.forget()
    if chance.random() < 0.01 and len(simulation.nodes) < WORKERS + 5:
        simulation.join()


@pytest.mark.timeout(sized(300, full=3600))
def test_512_ranks_have_every_row_once_whatever_happens_to_20_workers(report: SuiteReport) -> None:
    happened: Counter[str] = Counter()
    for seed in range(RUNS):
        simulation = Simulation(MANIFEST, WORKERS, seed)
        simulation.fill()
        simulation.go([RANKS, 384, RANKS] if seed % 2 else [RANKS], chaos)
        assert (simulation.times == 1).all(), f"seed {seed}: {simulation.happened}"
        happened += simulation.happened
    assert min(happened[what] for what in ("killed", "wiped", "head", "failover", "flapped", "joined")) > 0, happened
    report.figure("simulated_runs", RUNS)
    report.figure("simulated_kills", happened["killed"])
    report.figure("simulated_failovers", happened["failover"])


class _Loss:
    """One node is gone for good in mid-epoch."""

    def __init__(self, simulation: Simulation) -> None:
        self.name = f"cache-{simulation.chance.randrange(WORKERS)}"
        self.at = simulation.now + simulation.chance.randint(10, 40)
        self.whole = float("inf")
        """When everything was held twice again."""

    def __call__(self, simulation: Simulation) -> None:
        """Happen."""
        if simulation.now == self.at:
            simulation.lose(self.name)
        if simulation.now > self.at and self.whole > simulation.now and simulation.whole:
            self.whole = simulation.now


def test_a_node_lost_in_mid_epoch_moves_its_share_alone_and_all_is_whole_again_soon(report: SuiteReport) -> None:
    whole_after, waits, moved = [], [], []
    for seed in range(sized(4, full=40)):
        simulation = Simulation(MANIFEST, WORKERS, seed)
        simulation.fill()
        before, loss = simulation.loaded, _Loss(simulation)
        held = len(simulation.nodes[loss.name].held)
        simulation.go([RANKS], loss)
        assert (simulation.times == 1).all()
        moved.append(simulation.loaded - before)
        assert moved[-1] == held, "what moved is not what the lost node held"
        waits.append(simulation.longest_wait)
        whole_after.append(loss.whole - loss.at)
    # A rank waits for one call's deadline; the others decode the node's share as soon as the head gives it to them.
    assert max(waits) <= DEADLINE + 2
    assert max(moved) <= 2 * SHARE
    assert max(whole_after) <= LOST + 2 * HEARTBEAT + ceil(max(moved) / DECODED)
    report.figure("simulated_moved_share", max(moved) / (FRAGMENTS * REPLICAS))
    report.figure("simulated_longest_wait_s", max(waits))
    report.figure("simulated_whole_again_s", max(whole_after))


def test_a_node_that_joins_takes_its_share_alone() -> None:
    simulation = Simulation(MANIFEST, WORKERS, 1)
    simulation.fill()
    before = simulation.loaded

    def happens(now: Simulation) -> None:
        if now.now == joined:
            now.join()

    joined = simulation.now + 30
    simulation.go([RANKS], happens)
    assert (simulation.times == 1).all()
    assert simulation.loaded - before == len(simulation.nodes["cache-20"].wanted) <= 2 * SHARE
    assert simulation.longest_wait <= 2
    simulation.go([RANKS], calm)
    assert (simulation.times == 2).all()
    assert simulation.nodes["cache-20"].served > 0, "ranks that open later ask it"


def test_a_node_that_flaps_moves_nothing_and_holds_nobody_up() -> None:
    simulation = Simulation(MANIFEST, WORKERS, 2)
    simulation.fill()
    before = simulation.loaded

    def happens(now: Simulation) -> None:
        if now.now % 6 == 0:
            now.end(now.nodes["cache-5"], 3)

    simulation.go([RANKS], happens)
    assert (simulation.times == 1).all()
    assert simulation.happened["failover"] > 0
    assert simulation.loaded == before
    assert simulation.longest_wait <= 2


def test_workers_serve_about_as_much_as_each_other(report: SuiteReport) -> None:
    simulation = Simulation(MANIFEST, WORKERS, 3)
    simulation.fill()
    simulation.go([RANKS], calm)
    served = [node.served for node in simulation.nodes.values()]
    assert simulation.longest_wait == 0
    balance = max(served) / (sum(served) / WORKERS)
    assert balance < 2
    report.figure("simulated_balance", balance)
