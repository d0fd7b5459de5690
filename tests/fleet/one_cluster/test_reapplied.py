"""A file that is sent again while its TrainJob is queued or runs: by `kubectl`, or by Argo CD, which does the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from lab.errors import CommandError
from tests.fleet import objects
from tests.fleet.one_cluster.stage import POOL

if TYPE_CHECKING:
    from tests.fleet.objects import Tree
    from tests.fleet.one_cluster.team import Team

_MINE = "example.com/team"
_SENT = {
    "apply": ("apply", "-f", "-"),
    "server-side apply": (
        "apply",
        "--server-side",
        "--force-conflicts",
        "--field-manager=argocd-controller",
        "-f",
        "-",
    ),
    "replace": ("replace", "-f", "-"),
}
"""How files are sent: a three-way merge, Flux's and Argo CD's way if it is told so, and Argo CD's `Replace=true`."""


def _file(team: Team) -> Tree:
    change = {"name": "node", "template": {"spec": {"template": {"spec": {"nodeSelector": {POOL: "plain"}}}}}}
    patch = {"manager": _MINE, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [change]}}}}
    return objects.train_job("job", team.namespace, cpu="2", runtime=objects.HELD, runtimePatches=[patch])


def _send(team: Team, way: str, file: str) -> None:
    """Send a file; `kubectl replace` reads first, and its write conflicts with a status that is written in between."""

    def is_taken() -> bool:
        try:
            team.cluster.kubectl(*_SENT[way], stdin=file)
        except CommandError as error:
            assert "the object has been modified" in str(error)  # noqa: PT017 sent again
            return False
        return True

    team.wait("the file to be taken", is_taken)


@pytest.mark.finding("semantics", 1, "a file applied again deleted Kueue's entry, so that the queued job never started")
@pytest.mark.parametrize("way", _SENT)
def test_a_queued_job_keeps_its_place_and_starts(team: Team, way: str) -> None:
    team.open_queue({"cpu": "2"})
    team.submit("first", cpu="2", runtime=objects.HELD)
    team.wait_running("first")
    file = json.dumps(_file(team))
    team.cluster.kubectl("apply", "-f", "-", stdin=file)
    team.wait_queued("job")
    before = team.job("job")
    _send(team, way, file)
    assert team.job("job")["spec"] == before["spec"], "nothing was edited, so nothing changes"
    team.end_pods("first")
    team.wait_running("job")
    assert [one["manager"] for one in team.job("job")["spec"]["runtimePatches"]] == [_MINE, objects.KUEUE_MANAGER]

    running, pods = team.job("job"), [pod["metadata"]["uid"] for pod in team.pods("job")]
    _send(team, way, file)
    assert team.job("job")["spec"] == running["spec"]
    assert team.job("job")["metadata"]["generation"] == running["metadata"]["generation"]
    assert [pod["metadata"]["uid"] for pod in team.pods("job")] == pods


def test_an_edited_file_reaches_a_queued_job(team: Team) -> None:
    team.open_queue({"cpu": "1"})
    file = _file(team)
    team.cluster.kubectl("apply", "-f", "-", stdin=json.dumps(file))
    team.wait_queued("job")
    pod = file["spec"]["runtimePatches"][0]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"][0]
    pod["template"]["spec"]["template"]["metadata"] = {"labels": {"a": "b"}}
    team.cluster.kubectl("apply", "-f", "-", stdin=json.dumps(file))
    mine, kueues = team.job("job")["spec"]["runtimePatches"]
    assert mine["trainingRuntimeSpec"] == file["spec"]["runtimePatches"][0]["trainingRuntimeSpec"]
    assert kueues["manager"] == objects.KUEUE_MANAGER
    team.patch("clusterqueues", team.namespace, {"spec": objects.cluster_queue(team.namespace)["spec"]})
    team.wait_running("job")
    (made,) = team.pods("job")
    assert made["metadata"]["labels"]["a"] == "b"


def test_a_job_that_was_taken_from_the_cluster_can_be_created_again(team: Team) -> None:
    team.open_queue()
    team.cluster.kubectl("apply", "-f", "-", stdin=json.dumps(_file(team)))
    team.wait_running("job")
    taken = team.job("job")
    copy = {**taken, "metadata": {"name": "copy", "namespace": team.namespace, "labels": taken["metadata"]["labels"]}}
    team.cluster.kubectl("create", "-f", "-", stdin=json.dumps(copy))
    team.wait_running("copy")
