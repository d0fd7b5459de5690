"""Many jobs in one queue: `python -m benchmarks.life.scale --side ours queued --jobs 10000 --running 50`.

`queued`: few jobs run, and go on running; all others wait. Then one after the other is ended, and what the admission of
the next one costs is taken from the audit log; then operator and Kueue are killed and started again, and what they ask
until they are quiet is counted. `through`: jobs pass through a queue that has room for some; operator and Kueue are
killed and started again on the way.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from benchmarks.life import requests
from benchmarks.life.engines import used
from benchmarks.life.lives import YARDSTICK, drive, live, sent, settled
from benchmarks.life.stage import OPERATORS, PODS, Side, runtime
from lab import kueue
from lab.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_NAMESPACE: Final = "scale"
_HELD: Final = "held"
_DIGEST_SECONDS: Final = 600.0
"""How long engines may take at least to have nothing more to say: Kueue, as it is shipped, looks at TrainJobs one at a
time, and comes back to one that it has admitted only when it has seen all that were sent since."""
_DIGEST_SECONDS_PER_JOB: Final = 0.25
"""What they may take for each job on a machine that they fill: 0.1 s of all its cores were measured."""
_BETWEEN_SECONDS: Final = 30.0
ENGINES: Final = ("kube-apiserver", "etcd", "kueue")


def quota(jobs: int) -> dict[str, str]:
    """Return a quota for so many jobs at a time."""
    return {"cpu": str(jobs * PODS), "memory": f"{jobs * PODS}Gi"}


def digest_seconds(jobs: int) -> float:
    """Return how long engines may take until they have nothing more to say of so many jobs."""
    return max(_DIGEST_SECONDS, jobs * _DIGEST_SECONDS_PER_JOB)


def queued(side: Side, jobs: int, running: int, *, seconds: float, admissions: int) -> Iterator[dict[str, Any]]:
    """Fill a queue, then measure admissions one by one and restarts; yields what each of these took."""
    side.cluster.apply(runtime(_HELD, "24h"))
    job = side.prepare(_NAMESPACE, quota(running), _HELD)
    side.wait_quiet()
    logs, before = side.logs(), used(*side.clusters)
    plan = {"namespace": _NAMESPACE, "job": job, "pods": PODS, "kueue": True, "complete": 0, "running": running}
    plan |= {"names": [f"job-{number:05}" for number in range(jobs)], "seconds": seconds}
    patience = digest_seconds(jobs)
    times = drive(side, plan | {"patience": patience})
    assert times["jobs_running"] >= running, f"{times['jobs_running']} of {running} jobs run: {times}"
    side.wait_quiet(patience)
    counts, filled = settled(side, logs, patience)
    made = times["jobs_created"]
    figures: dict[str, Any] = {"queued_jobs": made, "queued_running": running, "filling_s": times["creating_s"]}
    figures |= {f"filling_{name}": times[name] for name in ("created_p50_s", "created_p99_s", "running_p99_s")}
    figures["filling_requests_per_job"] = requests.total(counts, [side.operator.user]) / made
    for engine in (side.operator.engine, *ENGINES):
        figures[f"{engine}_rss_mb"] = filled.rss[engine]
        figures[f"{engine}_filling_cpu_ms_per_job"] = (filled.cpu[engine] - before.cpu[engine]) / made * 1000
    yield figures
    yield _admissions(side, admissions)
    yield _restart(side, side.operator.engine, lambda: side.operator.wait_ready(side.cluster), patience)
    yield _restart(side, "kueue", lambda: kueue.wait_ready(side.cluster), patience)


def _admissions(side: Side, number: int) -> dict[str, Any]:
    """End jobs one by one, and return what it takes until the pods of the next one run, and what it costs."""
    waits: list[float] = []
    cpu: Counter[str] = Counter()
    own = total = 0
    for _ in range(number):
        (log,), before = side.logs(), used(side.cluster)
        _end_one(side)
        events: list[dict[str, Any]] = []

        def next_runs(log: requests.Log = log, events: list[dict[str, Any]] = events) -> bool:
            events.extend(log.more())
            return len(_bindings(events)) >= PODS

        wait_for("the next job's pods", next_runs, seconds=120, log=side.cluster.log("kueue"))
        begin = min(_moment(event) for event in events if requests.what(event) == "patch pods/status")
        waits.append(max(_moment(event) for event in _bindings(events)) - begin)
        counts, after = settled(side, [log], 30)
        cpu.update(after.since(before).cpu)
        for events_counts in (requests.count(events), counts):
            own += requests.total(events_counts, [side.operator.user])
            total += requests.total(events_counts, events_counts)
    waits.sort()
    figures: dict[str, Any] = {"admissions": number, "admission_p50_s": waits[number // 2]}
    figures["admission_p99_s"] = waits[int(number * 0.99)]
    figures |= {"admission_requests": own / number, "admission_all_requests": total / number}
    for engine in (side.operator.engine, *ENGINES, *YARDSTICK):
        figures[f"{engine}_admission_cpu_ms"] = cpu[engine] / number * 1000
    return figures


def _bindings(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if requests.what(event) == "create pods/binding"]


def _moment(event: dict[str, Any]) -> float:
    return datetime.fromisoformat(event["stageTimestamp"]).timestamp()


def _end_one(side: Side) -> None:
    """Let the pods of one running job succeed."""
    with side.cluster.connection() as connection:
        path = f"/api/v1/namespaces/{_NAMESPACE}/pods"
        pods = json.loads(connection.send("GET", f"{path}?fieldSelector=status.phase%3DRunning"))["items"]
        label = "jobset.sigs.k8s.io/jobset-name"
        job = min(pod["metadata"]["labels"][label] for pod in pods)
        for pod in pods:
            if pod["metadata"]["labels"][label] == job:
                body = json.dumps({"status": {"phase": "Succeeded"}})
                place = f"{path}/{pod['metadata']['name']}/status"
                connection.send("PATCH", place, body, "application/merge-patch+json")


def _restart(side: Side, engine: str, wait_ready: Callable[[], None], patience: float) -> dict[str, Any]:
    """Kill an engine, start it again, and return what it and the operator asked until the operator was quiet."""
    logs = side.logs()
    side.cluster.kill(engine)
    begin = time.monotonic()
    process = side.cluster.revive(engine)
    wait_ready()
    ready = time.monotonic() - begin
    counts, _ = settled(side, logs, patience)
    name = f"restart_{engine}"
    return {
        f"{name}_ready_s": ready,
        f"{name}_quiet_s": time.monotonic() - begin,
        f"{name}_cpu_s": process.cpu_seconds(),
        f"{name}_rss_mb": process.rss_mb(),
        f"{name}_operator_requests": requests.total(counts, [side.operator.user]),
        f"{name}_kueue_requests": requests.total(counts, ["kueue"]),
        f"{name}_operator_asked": dict(counts.get(side.operator.user, {})),
        f"{name}_kueue_asked": dict(counts.get("kueue", {})),
    }


def through(side: Side, jobs: int, at_a_time: int, *, seconds: float, restarts: bool) -> dict[str, Any]:
    """Let jobs pass through a queue with room for so many of them at a time."""
    namespace = f"{_NAMESPACE}-through"
    ending = threading.Event()
    disturber = threading.Thread(target=_disturb, args=(side, sent(side, namespace), ending), daemon=True)
    if restarts:
        disturber.start()
    run = live(side, namespace, jobs, kueue=True, quota=quota(at_a_time), seconds=seconds)
    ending.set()
    return {**run.row(), "jobs_sent": jobs, "at_a_time": at_a_time, "restarts": restarts}


def _disturb(side: Side, all_sent: Path, ending: threading.Event) -> None:
    """Start the operator again when all jobs are sent, and Kueue a while later: who sends one meanwhile is refused."""
    for engine in (side.operator.engine, "kueue"):
        while not all_sent.exists():
            if ending.wait(1):
                return
        side.cluster.kill(engine)
        side.cluster.revive(engine)
        if ending.wait(_BETWEEN_SECONDS):
            return


def main() -> None:
    """Bring one side up, fill it and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", choices=list(OPERATORS), default="ours")
    parser.add_argument("mode", choices=("queued", "through"))
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--running", type=int, default=50, help="jobs for which the queue has room")
    parser.add_argument("--seconds", type=float, default=900, help="how long sending may take")
    parser.add_argument("--kueue-workers", type=int, help="TrainJobs that Kueue looks at at once; one as it is shipped")
    parser.add_argument("--admissions", type=int, default=10, help="queued: jobs that are ended one by one")
    parser.add_argument("--restarts", action="store_true", help="through: kill operator and Kueue on the way")
    given = parser.parse_args()
    (side,) = Side.up(given.side)
    try:
        side.add_kueue(given.kueue_workers)
        if given.mode == "queued":
            parts = queued(side, given.jobs, given.running, seconds=given.seconds, admissions=given.admissions)
        else:
            parts = iter([through(side, given.jobs, given.running, seconds=given.seconds, restarts=given.restarts)])
        for part in parts:
            print(json.dumps(part, indent=2), flush=True)
    finally:
        side.down()


if __name__ == "__main__":
    main()
