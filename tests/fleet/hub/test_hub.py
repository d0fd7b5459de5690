"""The hub view with real pods on a real worker, through the hub's own API server, while things break."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lab import hub
from tests.fleet.hub.stage import BURST, RESTARTING, STEADY, whole
from tests.fleet.outage import control_plane_away
from tests.fleet.team import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fleet.hub.stage import Seen
    from tests.suite import SuiteReport

CUT_SECONDS = 10
"""Longer than the hub server waits before it gives a silent worker up; shorter than Kueue does."""


def _cells(seen: Seen, name: str) -> list[str]:
    namespace = f"--namespace={seen.team.namespace}"
    shown = seen.team.fleet.hub.kubectl("get", namespace, "trainjobs.hub.trainplane.dev", name).stdout.splitlines()
    assert shown[0].split() == ["NAME", "CLUSTER", "STATE", "READY", "AGE"]
    return shown[1].split()


def test_lines_of_a_job_are_kept_once_each_through_cuts_and_kills(
    seen: Seen, report: SuiteReport, tmp_path: Path
) -> None:
    team, fleet = seen.team, seen.team.fleet
    worker = fleet.workers[0]
    assert "there is no TrainJob 'steady'" in seen.raw("steady", "log?follow=true").stderr
    seen.submit("steady", STEADY, nodes=2)
    early = seen.follow("steady", "rank=1", tmp_path / "early")
    team.wait_running("steady", on="worker1")
    seen.wait_lines("steady", 100)
    running = ["steady", "worker1", "Running", "2/2"]
    team.wait("the hub to show both pods", lambda: _cells(seen, "steady")[:4] == running)

    with control_plane_away(worker, seconds=2 * PATIENCE):
        pass  # killed and at once brought back
    seen.wait_lines("steady", 500)

    fleet.cut(worker)
    try:
        time.sleep(CUT_SECONDS)  # what is tested is that time passes without a word
    finally:
        fleet.mend(worker)
    seen.wait_lines("steady", 2000)
    team.wait("lines for whoever follows", lambda: (tmp_path / "early").read_bytes().count(b"\n") > 100)

    fleet.hub.kill(hub.ENGINE)
    fleet.hub.revive(hub.ENGINE)
    hub.wait_ready(fleet.hub)
    assert early.wait(PATIENCE) != 0, "a log that is cut off must not seem whole"
    late = seen.follow("steady", "rank=1", tmp_path / "late")
    seen.wait_lines("steady", 500)

    seen.tell("steady")
    team.wait_done("steady")
    team.wait_gone("steady", on="worker1")
    team.wait("pods to be gone", lambda: not team.pods("steady", on="worker1"))
    assert late.wait(PATIENCE) == 0
    followed = (tmp_path / "late").read_text().splitlines()
    assert whole(followed)
    *begun, _ = (tmp_path / "early").read_text().split("\n")
    assert begun == followed[: len(begun)]
    assert len(begun) > 100
    team.wait("the end of rank 0", lambda: any("end " in line for line in seen.log("steady", "rank=0&tailLines=1")))
    for rank in (0, 1):
        assert whole(seen.log("steady", f"rank={rank}"))
    assert seen.log("steady", "rank=1") == followed
    both = seen.log("steady", "rank=all&tailLines=1")
    assert sorted(line.partition(" end ")[0] for line in both) == ["[node-0]", "[node-1]"]
    assert _cells(seen, "steady")[:3] == ["steady", "worker1", "Complete"]
    report.figure("hub_lines_kept_through_faults", sum(len(seen.log("steady", f"rank={rank}")) for rank in (0, 1)))


def test_the_last_lines_of_short_jobs_are_kept_though_their_pods_go_at_once(seen: Seen) -> None:
    names = [f"burst-{number}" for number in range(3)]
    for name in names:
        seen.submit(name, BURST)
    for name in names:
        seen.team.wait_done(name)
        seen.team.wait_gone(name, on="worker1")
    for name in names:
        seen.team.wait(f"all lines of {name}", lambda name=name: seen.lines(name) >= 20000)  # type: ignore[misc]
        assert seen.log(name) == [f"line {number}" for number in range(20000)]


def test_a_restarted_container_has_a_previous_log_and_events_of_both_clusters(seen: Seen) -> None:
    team = seen.team
    seen.submit("again", RESTARTING)
    team.wait("the second run", lambda: seen.log("again") == [f"second {number}" for number in range(5)])
    # A status that lags behind its kubelet shows the second run's lines before it is known that there was a first.
    first = [f"first {number}" for number in range(50)]
    team.wait("the first run", lambda: seen.log("again", "previous=true") == first)
    team.wait("the restart to be shown", lambda: _restarts(seen, "again") == [1])
    (pod,) = seen.tree("again", "pods")["items"]
    assert pod["metadata"]["annotations"]["hub.trainplane.dev/cluster"] == "worker1"
    kinds = {("hub", "Workload"), ("worker1", "Pod"), ("worker1", "TrainJob")}
    team.wait("events of both clusters", lambda: kinds <= _told(seen, "again"))
    assert {cluster for cluster, _ in _told(seen, "again")} == {"hub", "worker1"}
    seen.tell("again")
    team.wait_done("again")
    team.wait_gone("again", on="worker1")
    assert seen.log("again", "previous=true") == first
    assert [pod["metadata"]["name"]] == [item["metadata"]["name"] for item in seen.tree("again", "pods")["items"]]


def _restarts(seen: Seen, name: str) -> list[int]:
    """Return for each container of a job how often it was restarted, as the hub shows it."""
    pods = seen.tree(name, "pods")["items"]
    return [status["restartCount"] for pod in pods for status in pod["status"]["containerStatuses"]]


def _told(seen: Seen, name: str) -> set[tuple[str, str]]:
    """Return what the events of a job are about, with the cluster that each is from."""
    events = seen.tree(name, "events")["items"]
    return {
        (event["metadata"]["annotations"]["hub.trainplane.dev/cluster"], event["involvedObject"]["kind"])
        for event in events
    }


def test_the_hubs_rbac_decides_who_reads(seen: Seen) -> None:
    team, cluster = seen.team, seen.team.fleet.hub
    user = f"ana-{team.namespace}"
    kubeconfig = cluster.user(user, user)
    seen.submit("private", BURST)
    team.wait_done("private")
    team.wait("its log", lambda: seen.lines("private") == 20000)
    refused = seen.raw("private", "log", kubeconfig=kubeconfig)
    assert refused.code != 0
    assert "Forbidden" in refused.stderr
    namespace = f"--namespace={team.namespace}"
    rules = ["--verb=get", "--resource=trainjobs.hub.trainplane.dev/log"]
    cluster.kubectl("create", "role", namespace, "log-reader", *rules)
    cluster.kubectl("create", "rolebinding", namespace, "ana", "--role=log-reader", f"--user={user}")
    team.wait("the role to count", lambda: seen.raw("private", "log", kubeconfig=kubeconfig).code == 0)
    assert len(seen.raw("private", "log", kubeconfig=kubeconfig).stdout.splitlines()) == 20000
    for part in ("pods", "events", ""):
        assert "Forbidden" in seen.raw("private", part, kubeconfig=kubeconfig).stderr
