"""Nodes as signs."""

from __future__ import annotations

import pytest

from tests.unit.cli.live.drawn import drawn
from tests.unit.cli.live.facts import a_training
from trainplane.cli.live.grid import WORST, grid, legend, node_states, nodes_each
from trainplane.client.types.jobs import Step


def test_each_node_has_its_sign_in_its_place() -> None:
    states = node_states(a_training(256).job)
    rows = drawn(grid(states, 78, 4), 78, 4).splitlines()
    assert len(rows) == 4
    assert rows[0].startswith("  0 ■▣■■■■■■ ■")
    assert rows[3].startswith("192 ")
    assert rows[3].endswith("■✗")
    assert sum(row.count("■") for row in rows) == 254


def test_nodes_without_a_pod_are_shown_as_to_come() -> None:
    job = a_training(4).job
    job.num_nodes = 6
    assert node_states(job) == ["running", "again", "running", "failed", "absent", "absent"]


def test_a_sign_for_several_shows_the_worst_of_them() -> None:
    states = ["running"] * 5000
    states[4321] = "failed"
    shown = drawn(grid(states, 78, 4), 78, 4)
    assert nodes_each(5000, 78, 4) == 20
    assert shown.count("✗") == 1
    assert shown.count("■") == 249


@pytest.mark.parametrize("count", [1, 2, 8, 9, 64, 256, 1000, 100_000])
@pytest.mark.parametrize("width", [12, 38, 78, 118])
def test_any_number_fits_any_width(count: int, width: int) -> None:
    drawn(grid(["running"] * count, width, 4), max(width, 6 + 1 + 8), 4)


def test_the_legend_counts_every_state_by_name_the_worst_first() -> None:
    text = "".join(part for part, _ in legend([*WORST, "running"]))
    assert text.startswith("✗ 1 failed")
    assert "■ 2 running" in text
    assert legend([]) == []


def test_a_node_with_an_absurd_number_costs_nothing() -> None:
    job = a_training(2).job
    job.steps.append(Step("node-" + "9" * 4000, "Running", "x"))
    assert len(node_states(job)) <= 100_000
