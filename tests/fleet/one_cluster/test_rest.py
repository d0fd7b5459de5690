"""Never a hot loop: TrainJobs at rest cause no writes, counted at the API server."""

from __future__ import annotations

import re
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.fleet import objects

if TYPE_CHECKING:
    from lab.cluster import Cluster
    from tests.fleet.one_cluster.team import Team
    from tests.suite import SuiteReport

_SAMPLE = re.compile(r"^apiserver_request_total\{(?P<labels>.*)\} (?P<count>\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_READS = frozenset({"GET", "LIST", "WATCH", "CONNECT"})
_OF_NODES = frozenset({"leases", "nodes"})
"""What nodes write while nothing happens."""
_SERIES = ("PATCH", "events")
"""What Kueue and JobSet write at the end of a series of equal events, minutes after the last of them."""
_QUIET_SECONDS = 33.0
"""Longer than the operator's news of a TrainJob waits for more (30 s)."""
_WATCHED_SECONDS = 6.0


def _writes(cluster: Cluster) -> Counter[str]:
    """Return the writes that the API server has answered so far, dry runs too, by verb and resource."""
    with cluster.connection() as connection:
        text = connection.send("GET", "/metrics").decode()
    counts = Counter[str]()
    for match in _SAMPLE.finditer(text):
        labels = dict(_LABEL.findall(match["labels"]))
        verb, resource = labels["verb"], labels["resource"]
        if verb not in _READS and resource not in _OF_NODES and (verb, resource) != _SERIES:
            counts[f"{verb} {resource}/{labels['subresource']}"] += int(float(match["count"]))
    return counts


def _events(team: Team) -> dict[str, str]:
    """Return the versions of the team's own events, which are too young for the end of a series."""
    return {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in team.all("events")}


def _wait_quiet(team: Team) -> Counter[str]:
    """Wait until nothing was written for a while, and other tests' namespaces are gone; return the count."""
    team.wait(
        "other namespaces to go",
        lambda: not any("deletionTimestamp" in one["metadata"] for one in team.all("namespaces")),
    )
    last: list[tuple[float, Counter[str]]] = [(time.monotonic(), _writes(team.cluster))]

    def quiet() -> bool:
        now = _writes(team.cluster)
        if now != last[0][1]:
            last[0] = time.monotonic(), now
        return time.monotonic() - last[0][0] > _QUIET_SECONDS

    team.wait("writes to end", quiet, seconds=180)
    return last[0][1]


@pytest.mark.scenario("I-rest", "queued, running and stopped jobs at rest cause no writes")
def test_jobs_at_rest_cause_no_writes(team: Team, report: SuiteReport) -> None:
    team.open_queue({"cpu": "1"})
    team.submit("stopped", runtime=objects.HELD)
    team.wait_running("stopped")
    workload = (team.workload("stopped") or {})["metadata"]["name"]
    team.patch("workloads", workload, {"spec": {"active": False}})
    team.wait("it to be stopped", lambda: team.suspended("stopped") and not team.active("stopped"))
    team.submit("running", runtime=objects.HELD)
    team.wait_running("running")
    for number in range(3):
        team.submit(f"queued-{number}", runtime=objects.HELD)
    team.wait_queued("queued-0")

    before, told = _wait_quiet(team), _events(team)
    time.sleep(_WATCHED_SECONDS)  # nothing tells that nothing happens
    written = _writes(team.cluster) - before
    report.figure("writes_at_rest", written.total())
    assert not written
    assert _events(team) == told

    # Kueue 0.19 stops a stopped job again whenever it looks (kueue#15652): an answer of ours would go on for ever.
    versions = [team.job("stopped")["metadata"]["resourceVersion"]]
    team.patch("trainjobs", "stopped", {"metadata": {"labels": {"look": "again"}}})
    versions.append(team.job("stopped")["metadata"]["resourceVersion"])
    _wait_quiet(team)
    after = _writes(team.cluster) - before
    assert team.job("stopped")["metadata"]["resourceVersion"] == versions[1], "whatever was written changed nothing"
    assert after["PATCH trainjobs/"] <= 4, after
    report.figure("writes_after_a_look", after.total())
