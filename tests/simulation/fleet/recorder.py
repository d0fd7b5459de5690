"""Plays scripts of a fleet on real engines and notes how they stood: `python -m tests.simulation.fleet.recorder`.

A hub and two workers of the lab, each with kube-apiserver, garbage collector and Kueue as released, joined by
MultiKueue. This module is the operator of all three and does what the script says, nothing else. Two settings of Kueue
are short, that a script need not wait: a worker is lost after `LOST_SECONDS`, not 15 minutes, and copies are swept
every 5 s (`lab.fleet`), not every minute.

A worker is cut off by a kubeconfig that leads nowhere: Kueue misses it at once, and scripts and records still reach it.
"""

from __future__ import annotations

import itertools
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

from lab import trainplane
from lab.fleet import CHECK, Fleet
from lab.processes import wait_for
from tests.simulation.fleet import workload as wl
from tests.simulation.fleet.abstract import cluster_state, job_of
from tests.simulation.fleet.history import CLUSTERS, HUB, WORKERS
from tests.simulation.fleet.replay import replay_fleet
from tests.simulation.fleet.scripts import CUT_OFF, FLEETS, OFFERED
from tests.simulation.fleet.verbs import FleetVerbs
from tests.simulation.kueue import FLAVORS, of_the_first
from tests.simulation.people import RUNTIME_SPECS, runtime
from tests.simulation.playing import QUEUE, queued
from tests.simulation.recorder import ABREAST
from tests.simulation.recordings import RECORDED, write_recording
from tests.simulation.stage import Stage, play, quota_of, resource_flavor, stamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.simulation.recordings import Observation
    from tests.simulation.scripts import Step
    from trainplane.kube.testing.storage import Tree

LOST_SECONDS: Final = 60.0
"""Kueue's `workerLostTimeout` here: longer than a step takes to come to rest, as expected or not."""
QUIET_SECONDS: Final = 7.0
"""How long nothing may change, as in `stage`; the sweep of copies has come by within it."""
READY_SECONDS: Final = 120.0
"""How long Kueue may take to know a new queue, or a cut."""

_SERIAL = itertools.count()


@contextmanager
def engines(name: str) -> Iterator[Fleet]:
    """Bring up a fleet with all engines that scripts are played on; it ends with the context, or with the process."""
    fleet = Fleet.up(
        name=name,
        owned=True,
        frameworks=("trainer.kubeflow.org/trainjob",),
        prepare=trainplane.install_crds,
        workerLostTimeout=f"{LOST_SECONDS:.0f}s",
    )
    try:
        for cluster in fleet.clusters:
            cluster.apply(*map(resource_flavor, FLAVORS), runtime("torch", "train:1", **RUNTIME_SPECS["torch"]))
        yield fleet
    finally:
        fleet.down()


def record_fleet(fleet: Fleet, steps: Sequence[Step], expected: Sequence[Observation] = ()) -> list[Observation]:
    """Return the state after each step of a script of a fleet; a state that is `expected` is accepted sooner."""
    namespace = f"fleet-script-{next(_SERIAL)}"
    with ExitStack() as open_ones:
        stages = {
            name: Stage(open_ones.enter_context(cluster.connection()), namespace)
            for name, cluster in zip(CLUSTERS, fleet.clusters, strict=True)
        }
        return play(_FleetStage(fleet, stages), steps, expected, QUIET_SECONDS)


def record_all(fleet: Fleet, expected: Mapping[str, Sequence[Observation]]) -> dict[str, list[Observation]]:
    """Return the observations of these scripts, by name: at the same time, except for scripts that cut a worker off."""
    together = {name: steps for name, steps in FLEETS.items() if name in expected}
    with ThreadPoolExecutor(ABREAST) as pool:
        played = pool.map(lambda name: record_fleet(fleet, together[name], expected[name]), together)
        noted = dict(zip(together, played, strict=True))
    return noted | {
        name: record_fleet(fleet, steps, expected[name]) for name, steps in CUT_OFF.items() if name in expected
    }


class _FleetStage(FleetVerbs):
    """A script's namespace and queue on each cluster; this is the operator of all."""

    def __init__(self, fleet: Fleet, stages: Mapping[str, Stage]) -> None:
        self._fleet = fleet
        self._stages = stages
        self._hub = stages[HUB]
        self._cut_at = 0.0
        for name, stage in stages.items():
            checks = {"admissionChecksStrategy": {"admissionChecks": [{"name": CHECK}]}} if name == HUB else {}
            stage.add_queue(resourceGroups=_quota(OFFERED[name]), **checks)
        for name, stage in stages.items():
            path = f"{stage.kueue}/namespaces/{stage.namespace}/localqueues/{QUEUE}"
            _wait_until(f"the queue on {name}", stage, path, active=True)

    def state(self) -> Tree:
        """Return how everything stands."""
        return {
            name: cluster_state(stage.send("GET", stage.jobs)["items"], map(_renamed, stage.workloads()))
            for name, stage in self._stages.items()
        }

    # -- users, and operators

    def create(self, name: str, pods: int) -> None:
        """Create a TrainJob at the hub."""
        self._hub.send("POST", self._hub.jobs, queued(name, pods))

    def drop_job(self, name: str, cluster: str) -> bool:
        """Delete a TrainJob on a cluster."""
        return self._stages[cluster].may("DELETE", f"{self._stages[cluster].jobs}/{name}")

    def _change(self, name: str, cluster: str, part: str, fields: Tree) -> bool:
        stage = self._stages[cluster]
        path = f"{stage.jobs}/{name}"
        return stage.may("PATCH", f"{path}/status" if part == "status" else path, {part: fields})

    def _stamp(self) -> str:
        return stamp()

    # -- administrators

    def _activate(self, name: str, *, active: bool) -> None:
        for one in self._hub.workloads():
            if job_of(one) == name:
                self._hub.send("PATCH", self._hub.workload_path(one), {"spec": {"active": active}})

    def offer(self, cluster: str, pods: int) -> None:
        """Give a cluster's queue so much quota."""
        self._stages[cluster].change_queue(resourceGroups=_quota(pods))

    def drain(self, cluster: str) -> None:
        """Let a cluster's queue evict all."""
        self._stages[cluster].change_queue(stopPolicy="HoldAndDrain")

    def fill(self, cluster: str) -> None:
        """Let it admit again."""
        self._stages[cluster].change_queue(stopPolicy="None")

    def drop_workload(self, name: str, cluster: str) -> None:
        """Delete the Workload of a TrainJob on a cluster."""
        stage = self._stages[cluster]
        for one in stage.workloads():
            if job_of(one) == name:
                stage.send("DELETE", stage.workload_path(one))

    # -- the way to a worker

    def cut(self, worker: str) -> None:
        """Let MultiKueue not reach a worker."""
        number = WORKERS.index(worker)
        self._fleet.mislead(self._fleet.workers[number])
        self._cut_at = time.monotonic()
        path = f"{self._hub.kueue}/multikueueclusters/worker{number + 1}"
        _wait_until(f"the hub to miss {worker}", self._hub, path, active=False)

    def mend(self, _: str) -> None:
        """Let MultiKueue reach it again."""
        self._fleet.hurry()
        self._fleet.wait_connected()

    def lose(self) -> None:
        """Let so much time pass that a worker that is cut off is lost."""
        time.sleep(max(self._cut_at + LOST_SECONDS - time.monotonic(), 0.0))


def _quota(pods: int) -> list[Tree]:
    return quota_of(of_the_first(pods))


def _wait_until(what: str, stage: Stage, path: str, *, active: bool) -> None:
    """Wait until Kueue says of an object that it is active, or that it is not."""
    wait_for(what, lambda: wl.says(stage.send("GET", path), "Active") is active, seconds=READY_SECONDS)


def _renamed(workload: Tree) -> Tree:
    """Return a Workload that calls workers as scripts do."""
    names = {f"worker{number}": name for number, name in enumerate(WORKERS, start=1)}
    status: Any = {**(workload.get("status") or {})}
    if status.get("clusterName"):
        status["clusterName"] = names[status["clusterName"]]
    if status.get("nominatedClusterNames"):
        status["nominatedClusterNames"] = [names[one] for one in status["nominatedClusterNames"]]
    return {**workload, "status": status}


def main(names: list[str]) -> None:
    """Record the scripts of these names, or all, and keep them."""
    chosen = {name: steps for name, steps in (FLEETS | CUT_OFF).items() if not names or name in names}
    expected = {name: replay_fleet(steps, 1) for name, steps in chosen.items()}
    with engines("recorder") as fleet:
        for name, states in record_all(fleet, expected).items():
            write_recording(RECORDED / "fleet", name, states)


if __name__ == "__main__":
    main(sys.argv[1:])
