"""One measured run: so many jobs from create to Complete on one side, and what they cost whom."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks.life import requests
from benchmarks.life.engines import used
from benchmarks.life.stage import PLENTY, PODS
from lab.paths import REPOSITORY
from lab.processes import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.life.engines import Used
    from benchmarks.life.requests import Counts
    from benchmarks.life.stage import Side

_DRIVER: Final = "drive"
_ENVIRONMENT: Final = {"PYTHONPATH": f"{REPOSITORY}/src:{REPOSITORY}", "PYTHONDONTWRITEBYTECODE": "1"}
YARDSTICK: Final = ("kwok", "kube-scheduler")
"""Engines that do the same work on both sides: what they take tells how fast the machine was meanwhile."""
QUIET_SECONDS: Final = 6.0
SETTLE_SECONDS: Final = 30.0
"""After the last job's end the operator's requests are counted until none came for the first, at most for the second:
what is said after the fact is part of a life. Ours holds back what may wait for up to five seconds."""
PATIENCE: Final = 600.0
"""Seconds that jobs of a run may take together."""


@dataclass(frozen=True)
class Run:
    """What jobs of one run took, all of it for one job where it can be divided."""

    side: str
    jobs: int
    operator: str
    user: str
    times: dict[str, Any]
    counts: Counts
    used: Used

    @property
    def requests(self) -> float:
        """Requests of the operator for a job."""
        return requests.total(self.counts, [self.user]) / self.jobs

    @property
    def all_requests(self) -> float:
        """Requests of everyone for a job."""
        return requests.total(self.counts, self.counts) / self.jobs

    def cpu_ms(self, *engines: str) -> float:
        """CPU time of engines for a job."""
        return sum(self.used.cpu.get(engine, 0.0) for engine in engines) / self.jobs * 1000

    def kilobytes(self, engine: str) -> float:
        """Bytes between an engine and the API server for a job."""
        return self.used.bytes().get(engine, 0) / self.jobs / 1000

    @property
    def yardstick(self) -> float:
        """CPU time for a job of the engines that do the same on both sides."""
        return self.cpu_ms(*YARDSTICK)

    def row(self) -> dict[str, Any]:
        """Return all of it, by names."""
        shares = {
            who: {what: round(number / self.jobs, 2) for what, number in counts.most_common()}
            for who, counts in sorted(self.counts.items(), key=lambda one: -one[1].total())
        }
        engines = sorted(self.used.cpu, key=lambda name: -self.used.cpu[name])
        return {
            "side": self.side,
            "jobs": self.jobs,
            "requests_per_job": round(self.requests, 3),
            "all_requests_per_job": round(self.all_requests, 2),
            **{name: round(value, 4) for name, value in self.times.items() if isinstance(value, float | int)},
            "cpu_ms_per_job": {name: round(self.cpu_ms(name), 2) for name in engines},
            "kilobytes_per_job": {name: round(self.kilobytes(name), 2) for name in self.used.sockets},
            "rss_mb": {name: round(value, 1) for name, value in self.used.rss.items()},
            "operator_requests_per_job": shares.get(self.user, {}),
            "requests_by_user_per_job": shares,
        }


def live(
    side: Side,
    namespace: str,
    jobs: int,
    *,
    kueue: bool,
    quota: dict[str, str] | None = None,
    seconds: float = PATIENCE,
) -> Run:
    """Let so many jobs live on a side, in a namespace of their own, and return what they took.

    When `seconds` are over, those that are complete are taken for all; who wants all looks at `times`.
    """
    job = side.prepare(namespace, (quota or PLENTY) if kueue else None)
    side.wait_quiet()
    plan = {"namespace": namespace, "job": job, "pods": PODS, "kueue": kueue, "seconds": seconds}
    plan |= {"names": [f"job-{number:05}" for number in range(jobs)], "complete": jobs}
    logs, before = side.logs(), used(*side.clusters)
    times = drive(side, plan)
    counts, after = settled(side, logs)
    assert not times["failed"], f"{side.name}: {times['failed']} failed"
    operator = side.operator
    return Run(side.name, times["jobs_complete"], operator.engine, operator.user, times, counts, after.since(before))


def settled(side: Side, logs: list[requests.Log], seconds: float = SETTLE_SECONDS) -> tuple[Counts, Used]:
    """Return what was asked since the logs were opened, and what was used when the operator had no more to say."""
    events = [event for log in logs for event in log.more()]
    now = last = time.monotonic()
    latest, after = now + seconds, used(*side.clusters)
    while now < min(latest, last + QUIET_SECONDS):
        time.sleep(0.5)
        more = [event for log in logs for event in log.more()]
        events += more
        now = time.monotonic()
        if requests.total(requests.count(more), [side.operator.user]):
            last, after = now, used(*side.clusters)
    return requests.count(events), after


def sent(side: Side, namespace: str) -> Path:
    """Return the file that is there as soon as all jobs of a run are sent."""
    return side.cluster.folder / f"{namespace}-result.sent"


def drive(side: Side, plan: dict[str, Any]) -> dict[str, Any]:
    """Run the driver to its end inside the cluster's network and return its times."""
    cluster = side.cluster
    result, plan_file = (cluster.folder / f"{plan['namespace']}-{name}.json" for name in ("result", "plan"))
    plan_file.write_text(json.dumps(plan))
    command = [
        *(sys.executable, "-m", "benchmarks.life.drive"),
        *(str(cluster.kubeconfig), str(plan_file), str(result)),
    ]
    driver = cluster.start(_DRIVER, command, _ENVIRONMENT)
    wait_for(
        _DRIVER,
        lambda: result.exists() or not driver.alive(),
        seconds=plan["seconds"] + plan.get("patience", 0.0) + 120,
        log=cluster.log(_DRIVER),
    )
    assert result.exists(), cluster.log(_DRIVER).read_text()[-3000:]
    times: dict[str, Any] = json.loads(result.read_text())
    return times
