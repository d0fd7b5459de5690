"""docs/multikueue.md, followed to the letter on a fleet whose hub does not know of these workers by these names yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from lab import kwok
from lab.paths import REPOSITORY
from tests.fleet.api import Api
from tests.fleet.guide.admin import Admin
from tests.fleet.guide.page import Page
from tests.fleet.team import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.fleet import Fleet
    from tests.fleet.guide.page import Command
    from tests.suite import SuiteReport

PAGE = Page.load(REPOSITORY / "docs/multikueue.md")
OBJECTS = REPOSITORY / "examples/multikueue"
_APART = "Take it apart"
_INSTALL = "Install"
"""By Helm, into pods: `tests/install/fleet` runs it. Here the lab has installed the same as processes."""
_REPLACE = "Replace a worker's token"
_NAMESPACE = "vision"


@pytest.fixture
def admin(fleet: Fleet, tmp_path: Path) -> Iterator[Admin]:
    """Return the page's reader; what the page made is taken apart as it says, however far the test came."""
    admin = Admin.of(dict(zip(("hub", "east", "west"), fleet.clusters, strict=True)), tmp_path)
    yield admin
    for command in _section(_APART):
        admin.run(command.script)


def _section(title: str) -> list[Command]:
    found = [command for command in PAGE.commands() if command.section == title]
    assert found, f"docs/multikueue.md has no commands under `{title}`"
    return found


def _replace_tokens(fleet: Fleet, admin: Admin) -> None:
    """Replace the workers' tokens as the page says, and wait until an old one is good for nothing."""
    secret = Api(fleet.hub).get("secrets", "kueue-system", "east")
    assert secret is not None
    old = f"base64 --decode <<<{secret['data']['kubeconfig']} > $KUBECONFIG.old && export KUBECONFIG=$KUBECONFIG.old\n"
    assert admin.run(f"{old} kubectl get clusterqueues").code == 0
    for command in _section(_REPLACE):
        admin.follow(command, "docs/multikueue.md")
    refused = lambda: "Unauthorized" in admin.run(f"{old} kubectl get clusterqueues", check=False).output  # noqa: E731 one line to wait for
    wait_until("the old token to be refused", refused, log=fleet.workers[0])


def test_the_page_leads_from_clusters_to_a_dispatched_job(fleet: Fleet, admin: Admin, report: SuiteReport) -> None:
    commands = [command for command in PAGE.commands() if command.section not in {_INSTALL, _REPLACE}]
    for command in commands:
        if "apply -f examples/multikueue/trainjob.yaml" in command.script:
            for worker in fleet.workers:  # training takes its time
                kwok.hold(worker, _NAMESPACE)
        if "=Succeeded" in command.script:
            _replace_tokens(fleet, admin)  # whoever tidies up on the worker now, does it by the new one
            for worker in fleet.workers:
                kwok.release(worker, _NAMESPACE)
        admin.follow(command, "docs/multikueue.md")
    for cluster in fleet.clusters:
        assert Api(cluster).get("clustertrainingruntimes", "", "torch-distributed") is None
    report.figure("guide_commands", len(commands) + len(_section(_REPLACE)))


def test_objects_that_the_page_shows_are_those_that_it_applies() -> None:
    shown = [block for block in PAGE.blocks() if block.language == "yaml" and block.text.startswith("# examples/")]
    assert len(shown) >= 2
    for block in shown:
        path = block.text.splitlines()[0].removeprefix("# ")
        stored = list(yaml.safe_load_all((REPOSITORY / path).read_text()))
        assert yaml.safe_load(block.text) in stored, f"docs/multikueue.md, line {block.line}, differs from {path}"


def test_every_object_is_applied_by_the_page() -> None:
    scripts = "".join(command.script for command in PAGE.commands())
    assert [path.name for path in OBJECTS.glob("*.yaml") if f"examples/multikueue/{path.name}" not in scripts] == []


def test_settings_that_the_page_names_are_those_of_a_running_hub(fleet: Fleet) -> None:
    (block,) = [b for b in PAGE.blocks() if b.language == "yaml" and not b.text.startswith("# examples/")]
    named = yaml.safe_load(block.text)
    running = yaml.safe_load((fleet.hub.folder / "kueue.yaml").read_text())
    assert set(named["integrations"]["frameworks"]) == set(running["integrations"]["frameworks"])
    assert named["multiKueue"].keys() == running["multiKueue"].keys()
