"""A fleet on a screen: what needs attention first, as much as fits, the rest counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.cli.live.drawn import drawn
from tests.unit.cli.live.facts import HOSTILE, NOW, SIZES, a_fleet
from trainplane.cli.live.cells import ASCII
from trainplane.cli.live.fleet import fleet_view
from trainplane.client.display.facts import amount
from trainplane.client.types.overview import Overview, QueueUse


def shown(seen: Overview, width: int = 80, height: int = 24) -> str:
    return drawn(fleet_view(seen, NOW, width, height, title="context hub", note="Ctrl-C leaves"), width, height)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
@pytest.mark.parametrize(("queues", "workers"), [(2, 1), (8, 5), (1000, 20)])
def test_all_that_matters_is_on_the_screen(queues: int, workers: int, width: int, height: int) -> None:
    text = shown(a_fleet(queues, workers), width, height)
    for told in (
        "context hub, all namespaces",
        "■ 12 Running  □ 40 Queued  ✗ 2 Failed  ✓ 120 Succeeded",
        "40 of 64 used, 24 idle",
        "quota nvidia.com/gpu",
        "✗ team-1",
        "stopped: flavor a100 is missing",
        "✗ vision/job-1",
        "failed 60 s ago: OOM",
        f"workers: {workers}, ",
        f"queues: {queues}, ",
    ):
        assert told in text
    assert ("✗ worker2" in text) == (workers > 2)


def test_of_very_many_queues_the_rest_is_counted() -> None:
    text = shown(a_fleet(1000, 20))
    heading = next(row for row in text.splitlines() if row.startswith("queues"))
    named = sum(" wait " in row and "run" in row for row in text.splitlines())
    assert heading.endswith(f"({1000 - named} more)")


def test_stopped_queues_come_first_then_those_where_somebody_waits_then_the_fullest() -> None:
    rows = [row.split()[1] for row in shown(a_fleet(8, 0), 80, 40).splitlines() if " run  " in row]
    assert rows == ["team-1", "team-7", "team-5", "team-4", "team-2", "team-6", "team-3", "team-0"]


def test_where_there_is_room_each_quota_has_its_bar_devices_first() -> None:
    rows = shown(a_fleet(2, 0), 120, 40).splitlines()
    begin = next(n for n, row in enumerate(rows) if " team-0 " in row)
    assert [row.split()[-2] for row in rows[begin : begin + 3]] == ["nvidia.com/gpu", "memory", "cpu"]
    assert "0/512Gi" in rows[begin + 1]


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_others_write_the_screen_is_ours(text: str, width: int, height: int) -> None:
    shown(a_fleet(8, 5, text), width, height)


def test_a_cluster_without_anything_says_so() -> None:
    assert "jobs  none" in shown(Overview())
    assert "no quota" in shown(Overview(queues=(QueueUse("bare"),)))


def test_what_may_not_be_read_is_said() -> None:
    unread = {"queues": "you may not list clusterqueues", "devices": "you may not list nodes"}
    text = shown(replace(Overview(namespace="team", jobs={"Running": 1}), unread=unread), 80, 24)
    assert "! not seen: queues: you may not list clusterqueues" in text
    assert "! not seen: devices: you may not list nodes" in text
    assert "namespace team" in text


def test_amounts_are_written_as_people_do() -> None:
    assert amount("cpu", 0.5) == "0.5"
    assert amount("memory", 1.5 * 2**40) == "1.5Ti"
    assert amount("nvidia.com/gpu", 31856) == "31856"
    assert amount("memory", 1e300).endswith("Ei")


def test_a_terminal_without_signs_gets_letters() -> None:
    assert drawn(fleet_view(a_fleet(), NOW, 80, 24, ASCII, title="hub"), 80, 24).isascii()
