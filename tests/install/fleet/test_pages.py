"""docs/multikueue.md and docs/hub.md, followed to the letter on empty clusters: every part in pods, by its own chart.

The tests are steps of one story and run in order; each leaves the clusters to the next.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from lab import kwok
from lab.paths import REPOSITORY
from tests.fleet.guide.page import Page
from tests.install.fleet.stage import NAMES

if TYPE_CHECKING:
    from tests.fleet.guide.page import Command
    from tests.install.fleet.stage import Stage
    from tests.suite import SuiteReport

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

MULTIKUEUE = "docs/multikueue.md"
HUB = "docs/hub.md"
TEAM = "vision"
LATER = ("Replace a worker's token", "Take it apart")
"""Sections that other steps of the story follow."""


def commands(page: str, *sections: str) -> list[Command]:
    found = [one for one in Page.load(REPOSITORY / page).commands() if not sections or one.section in sections]
    assert found, f"{page} has no commands under {sections}"
    return found


def test_three_charts_on_three_clusters(stage: Stage, report: SuiteReport) -> None:
    start = time.monotonic()
    for command in commands(MULTIKUEUE, "Install"):
        stage.admin.follow(command, MULTIKUEUE)
    report.figure("fleet_install_s", time.monotonic() - start)
    for name in NAMES:
        for namespace, count in {"jobset-system": 1, "kueue-system": 1, "trainplane-system": 2}.items():
            pods = stage.api(name).list("pods", namespace)
            assert [pod["status"]["phase"] for pod in pods] == ["Running"] * count, f"{namespace} on {name}"


def test_the_page_leads_to_a_dispatched_job(stage: Stage) -> None:
    for worker in stage.fleet.workers:
        kwok.install(worker, nodes=2, capacity={"nvidia.com/gpu": "8"})  # the page's job wants what the lab has not
    for command in commands(MULTIKUEUE):
        if command.section in {"Install", *LATER}:
            continue
        if "examples/multikueue/trainjob.yaml" in command.script:
            for worker in stage.fleet.workers:  # training takes its time
                kwok.hold(worker, TEAM)
        if "--for=condition=Complete" in command.script:
            for worker in stage.fleet.workers:
                kwok.release(worker, TEAM)
        stage.admin.follow(command, MULTIKUEUE)


def test_the_hub_is_added_by_its_page(stage: Stage, report: SuiteReport) -> None:
    start = time.monotonic()
    for command in commands(HUB):
        stage.admin.follow(command, HUB)
    report.figure("hub_install_s", time.monotonic() - start)
    pods = {pod["metadata"]["labels"].get("app") for pod in stage.api().list("pods", "trainplane-system")}
    assert {"trainplane-hub", "trainplane-hub-archive"} <= pods
