"""What the answer suggests, done: the job starts, and with a little more it would not have."""

from __future__ import annotations

import random
import shlex
from typing import TYPE_CHECKING, Any

from tests.fleet import objects
from tests.fleet.api import RefusedError
from tests.fleet.queued.asking import GPU, Desk, causes, checked, suggestion
from tests.fleet.team import true_condition
from tests.size import sized

if TYPE_CHECKING:
    from tests.fleet.api import Api
    from tests.fleet.queued.conftest import MakeDesk

Tree = dict[str, Any]

COHORTS = sized(5, full=20)
"""Random cohorts in which Kueue's verdict is compared with ours."""


def test_fewer_nodes_and_another_queue_let_a_job_start(desk: MakeDesk) -> None:
    ours = desk(quotas={"worker1": {GPU: "8"}})
    ours.queue("empty", "64")
    ours.submit("holder", nodes=1, gpus=3, cpu="100m")
    ours.wait_started("holder")
    ours.submit("wide", nodes=4, gpus=2, cpu="100m")
    ours.wait_refused("wide")
    told = ours.wait_answer("wide", "QuotaInUse")
    assert told.holders[0].job == "TrainJob/holder"
    assert (told.holders[0].amount, told.holders[0].resource) == ("3", GPU)
    assert suggestion(told, "FewerNodes").num_nodes == 2
    assert [each.now for each in told.suggestions] == [True, True, False], "what helps now comes first"

    ours.submit("three", nodes=3, gpus=2, cpu="100m")
    ours.wait_refused("three")
    ours.submit("two", nodes=2, gpus=2, cpu="100m")
    ours.wait_started("two")
    other = suggestion(ours.ask("wide")["wide"], "OtherQueue")
    assert other.queue == "empty"
    ours.team.cluster(ours.on).kubectl(*shlex.split(other.do.partition("kubectl ")[2]))
    ours.wait_started("wide")


def test_what_fits_in_a_cohort_is_what_kueue_admits(desk: MakeDesk) -> None:
    """Quota is all that this is about: an admission check that never agrees keeps pods from being made."""
    ours = desk()
    check = ours.check("never")
    ours.work_on(check)
    draw = random.Random(20260301)  # noqa: S311 the same cohorts in every run
    for number in range(COHORTS):
        _make_cohort(ours, f"c{number}", draw, **checked(check))

    def submit(name: str, queue: str, nodes: list[int]) -> list[str]:
        names = [f"c{number}-{name}" for number in range(COHORTS)]
        for number, job in enumerate(names):
            ours.submit(job, queue=f"c{number}-{queue}", nodes=nodes[number], gpus=1, cpu="10m")
        return names

    held = [draw.randint(1, 3) for _ in range(COHORTS)]
    ours.wait_reserved(*submit("holder", "b", held))
    ours.wait_counted({f"{ours.team.namespace}-c{number}-b": gpus for number, gpus in enumerate(held)})
    askers = submit("asker", "a", [30] * COHORTS)
    ours.wait_refused(*askers)
    told = ours.ask(*askers)
    assert all(set(causes(each)) & {"QuotaInUse", "ExceedsQuota"} for each in told.values())
    fewer = [suggestion(told[name], "FewerNodes") for name in askers]
    assert all(each.now for each in fewer)
    most = [each.num_nodes or 0 for each in fewer]
    ours.wait_refused(*submit("above", "a", [nodes + 1 for nodes in most]))
    ours.wait_reserved(*submit("within", "a", most))


def _make_cohort(ours: Desk, name: str, draw: random.Random, **spec: Any) -> None:
    """Make two queues in a cohort with a quota of its own, in which limits of all kinds are drawn."""
    cohort = f"{ours.team.namespace}-{name}"
    for queue, least in (("a", 1), ("b", 3)):
        gpus = draw.randint(least, 8)
        drawn = {"borrowingLimit": draw.randint(0, 6), "lendingLimit": draw.randint(0, gpus)}
        limits = {kind: str(most) for kind, most in drawn.items() if draw.random() < 0.6}
        ours.queue(f"{name}-{queue}", str(gpus), limits=limits, cohortName=cohort, **spec)
    amounts = [{"name": GPU, "nominalQuota": str(draw.randint(0, 3))}]
    group = {"coveredResources": [GPU], "flavors": [{"name": objects.FLAVOR, "resources": amounts}]}
    shared = {"metadata": {"name": cohort}, "spec": {"resourceGroups": [group]}}
    ours.team.api(ours.on).apply({"apiVersion": objects.KUEUE, "kind": "Cohort", **shared})


def test_the_place_in_line_is_the_order_in_which_kueue_admits(desk: MakeDesk) -> None:
    ours = desk(quotas={"worker1": {GPU: "2"}}, queueingStrategy="StrictFIFO")
    high = f"{ours.team.namespace}-high"
    ours.team.api(ours.on).apply(objects.priority_class(high, 100))
    ours.submit("first", gpus=2, cpu="10m")
    ours.wait_started("first")
    for name in ("low-1", "low-2"):
        ours.submit(name, gpus=2, cpu="10m")
    ours.submit("late-but-high", gpus=2, cpu="10m", labels={objects.PRIORITY_LABEL: high})
    waiting = {"low-1": ["QuotaInUse", "BehindOthers"], "low-2": ["QuotaInUse", "BehindOthers"]}
    ours.wait_answers({**waiting, "late-but-high": ["QuotaInUse"]})
    told = ours.ask(*waiting, "late-but-high")
    line = sorted(told, key=lambda name: told[name].position or 0)
    assert [told[name].position for name in line] == [1, 2, 3]
    assert {one.pending for one in told.values()} == {3}
    assert line[0] == "late-but-high"
    running = "first"
    for name in line:
        assert not [each for each in told[name].suggestions if each.now], "whoever comes now stands behind them all"
        ours.team.delete(running, on=ours.on)
        ours.wait_started(name)
        later = line[line.index(name) + 1 :]
        assert all((ours.team.job(each, on=ours.on) or {})["spec"]["suspend"] for each in later)
        running = name
    ours.team.api(ours.on).delete("workloadpriorityclasses", "", high)


def test_topology_that_cannot_be_had_is_told_and_what_fits_starts(desk: MakeDesk) -> None:
    ours = desk()
    api, namespace = ours.team.api(ours.on), ours.team.namespace
    rack, taint = f"{namespace}/rack", {"key": namespace, "value": "racks", "effect": "NoSchedule"}
    nodes = [
        _node(f"{namespace}-{number}", {rack: f"r{number // 2}", namespace: "racks"}, taint) for number in range(4)
    ]
    levels = {"levels": [{"nodeLabel": rack}, {"nodeLabel": "kubernetes.io/hostname"}]}
    tolerated = {**taint, "operator": "Equal"}
    runtime = objects.runtime("close", lasts="24h")
    pods = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    pods["metadata"]["annotations"]["kueue.x-k8s.io/podset-required-topology"] = rack
    api.apply(
        *nodes,
        {"apiVersion": objects.KUEUE, "kind": "Topology", "metadata": {"name": namespace}, "spec": levels},
        objects.flavor(namespace, nodeLabels={namespace: "racks"}, tolerations=[tolerated], topologyName=namespace),
        objects.namespaced(runtime, namespace),
    )
    try:
        ours.queue("racks", "64", flavor=namespace)
        ours.team.wait("the nodes", lambda: all(_is_ready(api, node["metadata"]["name"]) for node in nodes))
        ours.team.wait("the queue", lambda: not ours.team.job("scattered", on=ours.on) and _try(ours))
        ours.wait_answer("scattered", "Topology")
        # Kueue may have looked before it saw all nodes; it looks again.
        ours.team.wait("room for two in a rack", lambda: _fewer(ours, "scattered") == [2])
        close = {"queue": "racks", "runtime": "close", "kind": "TrainingRuntime", "gpus": 8}
        ours.submit("together", nodes=2, **close)
        ours.wait_started("together")
    finally:
        for node in nodes:
            api.delete("nodes", "", node["metadata"]["name"])
        api.delete("resourceflavors", "", namespace)
        api.delete("topologies", "", namespace)


def _try(ours: Desk) -> bool:
    """Submit the job that wants three nodes of one rack, as soon as Kueue knows its runtime."""
    try:
        ours.submit("scattered", queue="racks", runtime="close", kind="TrainingRuntime", nodes=3, gpus=8)
    except RefusedError as error:
        assert "not found" in error.message  # noqa: PT017 tried again
        return False
    return True


def _fewer(ours: Desk, name: str) -> list[int | None]:
    """Return with how many nodes a job would fit, as the answer suggests."""
    return [each.num_nodes for each in ours.ask(name)[name].suggestions if each.kind == "FewerNodes"]


def _is_ready(api: Api, name: str) -> bool:
    return true_condition(api.get("nodes", "", name), "Ready") is not None


def _node(name: str, labels: dict[str, str], taint: Tree) -> Tree:
    offered = {"cpu": "32", "memory": "256Gi", "pods": "110", GPU: "8"}
    meta = {
        "name": name,
        "annotations": {"kwok.x-k8s.io/node": "fake"},
        "labels": {"kubernetes.io/hostname": name, **labels},
    }
    status = {"allocatable": offered, "capacity": offered}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {"taints": [taint]}, "status": status}
