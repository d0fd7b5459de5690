"""TrainJobs and runtimes from a repository: requests of Argo CD and Flux, on a live Kueue (`docs/gitops.md`).

A file is in sync when its tool finds no difference; a sync that happens all the same, as self-heal or a change of a
neighbour brings about, changes nothing.
"""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from lab.errors import LabError
from tests.fleet import objects
from tests.fleet.one_cluster import runtimes, stage
from tests.fleet.one_cluster.conftest import kueue_cluster, team
from tests.under_fire.live.gitops import ArgoClientSide, ArgoReplace, ArgoServerSide, Flux, Ignored

if TYPE_CHECKING:
    from tests.fleet.objects import Tree
    from tests.fleet.one_cluster.team import Team
    from tests.under_fire.live.gitops import Tool

__all__ = ["kueue_cluster", "team"]

PAGE = Path(__file__).parents[3] / "docs" / "gitops.md"
SHIPPED = Path(__file__).parents[3] / "runtimes"
pytestmark = pytest.mark.finding(
    "semantics", 1, "a file applied again deleted Kueue's entry, so that the queued job never started"
)
TOOLS: dict[str, type[Tool]] = {
    "Argo CD": ArgoClientSide,
    "Argo CD, replacing": ArgoReplace,
    "Argo CD, server-side": ArgoServerSide,
    "Flux": Flux,
}
MINE = "example.com/team"


def ignored() -> Ignored:
    """Return what the page tells admins of Argo CD to ignore."""
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (found,) = [
        one
        for block in blocks
        for tree in yaml.safe_load_all(block)
        for one in ((tree or {}).get("spec") or {}).get("ignoreDifferences", [])
    ]
    assert found["group"] == "trainer.kubeflow.org"
    return Ignored(found["kind"], tuple(found["jqPathExpressions"]))


def plain(team: Team) -> Tree:
    """Return a file as most people write it: a queue, nodes, and less than all that the runtime's nodes ask for."""
    file = objects.train_job("job", team.namespace, cpu="2", runtime="roomy")
    del file["spec"]["trainer"]["resourcesPerNode"]["requests"]["memory"]
    return file


def patched(team: Team) -> Tree:
    """Return a file with patches of its own."""
    change = {"name": "node", "template": {"spec": {"template": {"spec": {"nodeSelector": {stage.POOL: "plain"}}}}}}
    patch = {"manager": MINE, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [change]}}}}
    return objects.train_job("job", team.namespace, cpu="2", runtime=objects.HELD, runtimePatches=[patch])


def odd(team: Team) -> Tree:
    """Return a file whose amounts are not written as Kubernetes writes them."""
    file = objects.train_job("job", team.namespace, runtime=objects.HELD)
    file["spec"]["trainer"]["resourcesPerNode"] = {"requests": {"cpu": "2000m", "memory": "1024Mi"}}
    return file


def older(team: Team) -> Tree:
    """Return a file of an older generation of the API."""
    file = objects.train_job("job", team.namespace, cpu="2", runtime=objects.HELD)
    file["spec"]["labels"] = {"team": "red"}
    return file


FILES = {"plain": plain, "patched": patched, "odd": odd, "older": older}
SHOWN = {
    "odd": {".spec.trainer.resourcesPerNode.requests.cpu", ".spec.trainer.resourcesPerNode.requests.memory"},
    "older": {".spec.labels"},
}
"""What Argo CD's own diff shows for ever, as the page says: what is stored in other letters than were sent."""


def roomy(name: str = "roomy", image: str = "registry.invalid/train:1") -> Tree:
    """Return a runtime whose nodes ask for memory, and run until the test ends them; it leaves no default to others."""
    runtime = objects.runtime(name, lasts=runtimes.LONG, image=image)
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    job |= {"groupName": "default", "replicas": 1}
    job["template"]["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"memory": "1Gi"}}
    return runtime


def tool_of(name: str, team: Team) -> Tool:
    kind = TOOLS[name]
    return kind(team, ignored()) if issubclass(kind, ArgoClientSide) else kind(team)


def heal(tool: Tool, file: Tree) -> None:
    """Sync what the cluster has already, and see that nothing happens."""
    before = tool.live(file)
    for _ in range(3):
        tool.sync(file)
    after = tool.live(file)
    assert after["spec"] == before["spec"]
    assert after["metadata"]["generation"] == before["metadata"]["generation"]


def first_sync(tool: Tool, file: Tree) -> None:
    """Sync a new TrainJob; Kueue refuses one whose runtime it has not seen yet, so ask again for a moment."""

    def accepted() -> bool:
        try:
            tool.sync(file)
        except LabError as refusal:
            if "not found" not in str(refusal):
                raise
            return False
        return True

    tool.team.wait("Kueue to know the runtime", accepted)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("name", TOOLS)
def test_no_drift_and_no_harm_from_queued_to_done(team: Team, name: str, file: str) -> None:
    tool, document = tool_of(name, team), FILES[file](team)
    shown = SHOWN.get(file, set()) if isinstance(tool, ArgoClientSide) else set()
    team.cluster.apply(roomy())
    team.open_queue({"cpu": "2"})
    team.submit("first", cpu="2", runtime=objects.HELD)
    team.wait_running("first")
    first_sync(tool, document)
    team.wait_queued("job")
    assert tool.drift(document).keys() == shown
    heal(tool, document)
    team.end_pods("first")
    team.wait_running("job")
    pods = [pod["metadata"]["uid"] for pod in team.pods("job")]
    assert tool.drift(document).keys() == shown
    heal(tool, document)
    assert [pod["metadata"]["uid"] for pod in team.pods("job")] == pods
    team.end_pods("job")
    team.wait("the job to be complete", lambda: team.holds("trainjobs", "job", "Complete"))
    assert tool.drift(document).keys() == shown
    heal(tool, document)


@pytest.mark.parametrize("name", TOOLS)
def test_an_edit_in_the_repository_is_seen_and_reaches_a_queued_job(team: Team, name: str) -> None:
    tool, file = tool_of(name, team), patched(team)
    team.open_queue({"cpu": "1"})
    first_sync(tool, file)
    team.wait_queued("job")
    edited = copy.deepcopy(file)
    (job,) = edited["spec"]["runtimePatches"][0]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    job["template"]["spec"]["template"]["spec"]["nodeSelector"] = {stage.POOL: "spot"}
    assert tool.drift(edited)
    tool.sync(edited)
    assert tool.drift(edited) == {}
    mine, kueues = tool.live(edited)["spec"]["runtimePatches"]
    assert mine["trainingRuntimeSpec"] == edited["spec"]["runtimePatches"][0]["trainingRuntimeSpec"]
    assert kueues["manager"] == objects.KUEUE_MANAGER


def test_what_the_page_says_to_ignore_is_needed_and_suspend_is_better_left_out(team: Team) -> None:
    file = {**patched(team)}
    file["spec"] = {**file["spec"], "suspend": True}
    bare, told = ArgoClientSide(team), ArgoClientSide(team, ignored())
    team.open_queue()
    first_sync(told, file)
    team.wait_running("job")
    assert bare.drift(file).keys() == {".spec.runtimePatches", ".spec.suspend"}
    assert told.drift(file) == {".spec.suspend": (True, False)}
    del file["spec"]["suspend"]
    told.sync(file)
    assert told.drift(file) == {}
    team.wait_running("job")


@pytest.mark.parametrize("name", TOOLS)
def test_shipped_runtimes_do_not_drift(team: Team, name: str) -> None:
    tool = tool_of(name, team)
    shipped = [yaml.safe_load(path.read_text()) for path in sorted(SHIPPED.glob("*.yaml"))]
    assert len(shipped) > 10
    for runtime in shipped:
        runtime["metadata"]["name"] = f"{team.namespace}-{runtime['metadata']['name']}"
        team.leftovers.append(("clustertrainingruntimes", runtime["metadata"]["name"]))
        tool.sync(runtime)
        assert tool.drift(runtime) == {}
        heal(tool, runtime)


def test_what_the_schema_fills_into_lists_is_seen_by_argo_cds_own_diff_alone(team: Team) -> None:
    runtime = objects.runtime(f"{team.namespace}-terse")
    team.leftovers.append(("clustertrainingruntimes", runtime["metadata"]["name"]))
    for kind in (ArgoClientSide, ArgoServerSide, Flux):
        tool = kind(team)
        tool.sync(runtime)
        shown = {".spec.template.spec.replicatedJobs"} if kind is ArgoClientSide else set()
        assert tool.drift(runtime).keys() == shown
        heal(tool, runtime)


def images(team: Team, job: str) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in team.pods(job)}


@pytest.mark.parametrize("name", TOOLS)
def test_a_runtime_that_is_in_use_is_upgraded_by_a_new_name(team: Team, name: str) -> None:
    tool = tool_of(name, team)
    first, second = (roomy(f"{team.namespace}-v{number}", f"registry.invalid/train:{number}") for number in (1, 2))
    old, new = first["metadata"]["name"], second["metadata"]["name"]
    team.leftovers += [("clustertrainingruntimes", old), ("clustertrainingruntimes", new)]
    tool.sync(first)
    assert tool.drift(first) == {}
    team.open_queue({"cpu": "2"})
    for job in ("running", "queued"):
        team.submit(job, cpu="2", runtime=old)
        (team.wait_running if job == "running" else team.wait_queued)(job)

    with pytest.raises(LabError, match="Give the changed runtime another name"):
        tool.sync(roomy(old, "registry.invalid/train:2"))
    uncounted = copy.deepcopy(first)
    uncounted["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": 3}
    uncounted["metadata"]["labels"]["trainer.kubeflow.org/support"] = "deprecated"
    uncounted["metadata"]["annotations"] = {"trainplane.dev/replaced-by": new}
    tool.sync(uncounted)
    tool.sync(second)
    assert (tool.drift(uncounted), tool.drift(second)) == ({}, {})
    said = team.cluster.kubectl("delete", "clustertrainingruntime", old, "--dry-run=server", check=False)
    assert f"TrainJobs {team.namespace}/queued, {team.namespace}/running" in said.stderr

    assert images(team, "running") == {"registry.invalid/train:1"}
    team.end_pods("running")
    team.wait_running("queued")
    assert images(team, "queued") == {"registry.invalid/train:1"}
    assert "failurePolicy" not in team.get("jobsets", "queued")["spec"], "it began before the edit"
    team.submit("later", cpu="2", runtime=new)
    team.end_pods("queued")
    team.wait_running("later")
    assert images(team, "later") == {"registry.invalid/train:2"}

    def may_go() -> bool:
        return team.cluster.kubectl("delete", "clustertrainingruntime", old, "--dry-run=server", check=False).code == 0

    team.wait("the old runtime to be free", may_go)


def test_who_uses_a_runtime_that_was_replaced_is_told_by_what(team: Team) -> None:
    runtime = roomy(f"{team.namespace}-v1")
    runtime["metadata"]["labels"]["trainer.kubeflow.org/support"] = "deprecated"
    runtime["metadata"]["annotations"] = {"trainplane.dev/replaced-by": "train-v2"}
    team.create(runtime)
    job = json.dumps(objects.train_job("job", team.namespace, queue=None, runtime=runtime["metadata"]["name"]))

    def told() -> bool:
        done = team.cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=job, check=False)
        return "use train-v2 instead" in done.stderr

    team.wait("the warning", told)
