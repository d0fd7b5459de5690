"""The rule for cluster reads finds each form, and stays silent on waits and on what is no read."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from tests.unit.clocks.reads import Project, module_of

LAB = """
class Cluster:
    def kubectl(self, *arguments: str) -> str: ...
    def get(self, *arguments: str) -> dict:
        return self.kubectl("get", *arguments)
    def apply(self, *documents: dict) -> None: ...
"""
TEAM = """
from collections.abc import Iterator
from lab.cluster import Cluster
from lab.processes import wait_for
class Api:
    cluster: Cluster
    def list(self, plural: str) -> list:
        return self._send("GET", plural)
    def create(self, tree: dict) -> dict:
        return self._send("POST", tree)
class Team:
    cluster: Cluster
    def api(self) -> Api: ...
    def job(self, name: str) -> dict:
        return self.cluster.get("trainjob", name)
    def suspended(self, name: str) -> bool:
        return self.job(name)["spec"]["suspend"]
    def submit(self, name: str) -> dict:
        return self.api().create({})
    def wait(self, what: str, holds) -> None: ...
    def wait_running(self, name: str) -> str:
        return self.job(name)["place"]
    def finish(self, name: str) -> dict:
        self.wait("end", lambda: self.job(name))
        return self.job(name)
class MakeTeam:
    def __call__(self) -> Team: ...
def pods(team: Team) -> list:
    return team.api().list("pods")
"""
TEST = """
from lab.cluster import Cluster
from lab.processes import wait_for
from tests.fleet.team import MakeTeam, Team, pods
from trainplane.client import AsyncTrainerClient
from trainplane.kube.client import Client
def local(team: Team) -> set:
    return {one for one in pods(team)}
async def test(team: MakeTeam, us: Team, cluster: Cluster, client: Client, trainer: AsyncTrainerClient, tree: dict):
"""


def found(body: str) -> list[int]:
    modules = {"lab/cluster.py": LAB, "tests/fleet/team.py": TEAM}
    modules["tests/fleet/test_x.py"] = TEST + indent(dedent(body), "    ")
    project = Project(module_of(Path(path), source) for path, source in modules.items())
    return [finding.line - TEST.count("\n") for finding in project.findings()]


@pytest.mark.parametrize(
    "body",
    [
        "assert us.job('x')",
        "assert us.suspended('x') is False",
        "assert not us.api().list('pods')",
        "assert us.cluster.get('pods') == []",
        "assert cluster.kubectl('--namespace=x', 'get', 'pods') == ''",
        "assert 'x' in cluster.kubectl('logs', 'pod')",
        "assert len(pods(us)) == 2",
        "assert local(us) == {1}",
        "assert (await client.get(PODS, 'x', 'ns'))['spec'] == 3",
        "assert [one async for one in client.logs('ns', 'x')] == []",
        "assert (await trainer.get_job('x')).status == 'Complete'",
        "assert {one['name'] for one in pods(us)} == set(), us.job('x')",
    ],
)
def test_assert_that_reads_a_cluster_is_found(body: str) -> None:
    assert found(body) == [1]


def test_type_of_a_local_name_is_followed() -> None:
    assert found("mine = team()\nassert mine.job('x')") == [2]


@pytest.mark.parametrize(
    "body",
    [
        "us.wait('x', lambda: us.job('x'))",
        "wait_for('x', lambda: bool(us.job('x')), seconds=60)",
        "assert us.wait_running('x') == 'worker1'",
        "assert wait_for('x', lambda: bool(us.job('x')), seconds=60) >= 0",
        "assert us.submit('x')['metadata']",
        "assert us.api().create({}) == {}",
        "assert us.finish('x')['status']",
        "assert tree.get('x') == 3",
        "assert cluster.kubectl('create', 'configmap', 'x') == ''",
        "def holds():\n    assert us.job('x')\n    return True\nus.wait('x', holds)",
        "assert seen, us.job('x')",
    ],
)
def test_wait_and_answer_of_a_write_are_allowed(body: str) -> None:
    assert found(body) == []


def test_finding_names_place_and_fix() -> None:
    module = module_of(Path("tests/e2e/test_x.py"), "def test_y(c):\n    assert c.kubectl('get', 'x')\n")
    (finding,) = Project([module]).findings()
    assert finding.key == "read tests/e2e/test_x.py::test_y"
    assert str(finding).startswith("tests/e2e/test_x.py:2: assert on one read of a cluster: another controller")
