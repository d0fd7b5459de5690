"""Plays a script on the models, in virtual time: what `recorder` does with engines.

    states = replay_jobset("completes", JOBSETS["completes"], seed=1)

The delays of the models are drawn; where everything comes to rest must not depend on them.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any, Self

from tests.simulation import abstract
from tests.simulation.apiserver import JOBSETS, TRAINJOBS, ApiServer, Record
from tests.simulation.engines import JOBS, Engines
from tests.simulation.jobset import may_become
from tests.simulation.kueue import PRIORITY_LABEL, Kueue
from tests.simulation.loop import VirtualClock, VirtualLoop
from tests.simulation.people import GATES, NAMESPACE, train_job
from tests.simulation.playing import NAME, counted, ended, jobset_of, matches, placed_on, with_image
from tests.simulation.recordings import Observation
from trainplane.kube.resource import Key
from trainplane.kube.testing.verbs import collection_of
from trainplane.resources import JOB_SETS, PODS, TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.simulation.scripts import Step
    from trainplane.kube.testing.storage import Tree

REST_SECONDS = 60.0
"""Virtual seconds within which the models come to rest after a step; a TTL of seconds passes too."""

_JOBS, _PODS = collection_of(JOBS), collection_of(PODS)


def replay_jobset(steps: Sequence[Step], seed: int) -> list[Observation]:
    """Return the state after each step of a script of a JobSet."""
    with Virtual(seed) as cluster:
        return play(cluster, _JobSetStage(cluster), steps)


def replay_queue(steps: Sequence[Step], seed: int) -> list[Observation]:
    """Return the state after each step of a script of a queue."""
    with Virtual(seed) as cluster:
        return play(cluster, _QueueStage(cluster), steps)


def play(cluster: Virtual, stage: Any, steps: Sequence[Step]) -> list[Observation]:
    """Do the steps of a script one by one; return the state after each."""
    observations: list[Observation] = []
    for verb, *about in steps:
        refused = getattr(stage, verb)(*about) is False
        cluster.rest()
        observations.append(Observation([verb, *about], refused, stage.state()))
    return observations


class Virtual:
    """A server with nobody in it, and a loop."""

    def __init__(self, seed: int, rest_seconds: float = REST_SECONDS) -> None:
        self._rest_seconds = rest_seconds
        self.random = Random(f"replay {seed}")
        self.loop = VirtualLoop(Random(f"order {seed}"))
        self.server = ApiServer(Record(now=VirtualClock(self.loop).now))

    def __enter__(self) -> Self:
        asyncio.set_event_loop(self.loop)
        return self

    def __exit__(self, *_: object) -> None:
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        if left:
            self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self.loop.close()
        asyncio.set_event_loop(None)

    def rest(self) -> None:
        """Let time pass until nothing happens any more."""
        self.loop.run_until_complete(asyncio.sleep(self._rest_seconds))


class _JobSetStage:
    """JobSet, Job controller and garbage collector; the script is the kubelet."""

    def __init__(self, cluster: Virtual) -> None:
        self._server = cluster.server
        self._engines = Engines(cluster.server, cluster.loop, cluster.random, None)
        self._key = Key(NAMESPACE, NAME)

    def state(self) -> Tree:
        """Return how everything stands."""
        return abstract.jobset_state(self._server.find(JOBSETS, self._key), self._all(_JOBS), self._all(_PODS))

    def create(self, told: Tree) -> None:
        """Create the JobSet."""
        self._server.put(JOB_SETS, jobset_of(NAMESPACE, told), "user")

    def suspend(self) -> bool:
        """Hold it back."""
        return self._change(suspend=True)

    def resume(self) -> bool:
        """Let it run."""
        return self._change(suspend=False)

    def place(self, flavor: str) -> bool:
        """Place its pods elsewhere; False if that is refused."""
        jobset = self._server.find(JOBSETS, self._key)
        return jobset is not None and self._change(replicatedJobs=placed_on(jobset, flavor))

    def image(self, image: str) -> bool:
        """Give its pods another image; False if that is refused."""
        jobset = self._server.find(JOBSETS, self._key)
        return jobset is not None and self._change(replicatedJobs=with_image(jobset, image))

    def ttl(self, seconds: int) -> bool:
        """Give it a time after which it goes."""
        return self._change(ttlSecondsAfterFinished=seconds)

    def _change(self, **spec: Any) -> bool:
        jobset = self._server.find(JOBSETS, self._key)
        if jobset is None or not may_become(jobset["spec"], {**jobset["spec"], **spec}):
            return False
        self._server.put(JOB_SETS, {**jobset, "spec": {**jobset["spec"], **spec}}, "user")
        return True

    def delete(self) -> None:
        """Delete it."""
        self._engines.remove(JOBSETS, self._key)

    def drop_job(self, job: str) -> None:
        """Delete a Job."""
        self._engines.remove(_JOBS, Key(NAMESPACE, f"{NAME}-{job}"))

    def drop_pod(self, about: Tree) -> None:
        """Delete a pod."""
        for pod in self._chosen(about, {"Pending", "Running"}):
            self._engines.remove(_PODS, Key(NAMESPACE, pod["metadata"]["name"]))

    def run(self, about: Tree | None = None) -> None:
        """Begin pods that wait."""
        for pod in self._chosen(about, {"Pending"}):
            self._engines.show(pod, "Running")

    def succeed(self, about: Tree | None = None) -> None:
        """End pods that run, well."""
        for pod in self._chosen(about, {"Running"}):
            self._engines.show(pod, "Succeeded", 0)

    def fail(self, about: Tree | None = None) -> None:
        """End pods that run with an error."""
        for pod in self._chosen(about, {"Running"}):
            self._engines.show(pod, "Failed", 1)

    def back_off(self) -> None:
        """End pods that run with an error; another is there when all rests."""
        self.fail()

    def leave(self) -> None:
        """End pods that are told to go."""
        for pod in self._all(_PODS):
            if "deletionTimestamp" in pod["metadata"]:
                self._engines.leave(pod)

    def _chosen(self, about: Tree | None, phases: set[str]) -> list[Tree]:
        return [
            one
            for one in self._all(_PODS)
            if matches(one, about or {})
            and one["status"]["phase"] in phases
            and "deletionTimestamp" not in one["metadata"]
        ]

    def _all(self, collection: Any) -> list[Tree]:
        return list(self._server.storage.objects.get(collection, {}).values())


class _QueueStage:
    """Kueue; the script is our operator, and says what it counts."""

    def __init__(self, cluster: Virtual) -> None:
        self._server = cluster.server
        self._kueue = Kueue(cluster.server, cluster.random)
        self._task = cluster.loop.create_task(self._kueue.run())

    def state(self) -> Tree:
        """Return how everything stands."""
        jobs = list(self._server.storage.objects.get(TRAINJOBS, {}).values())
        workloads = {
            one.key.name: abstract.workload(
                reserved=one.flavor, stopping=one.evicted and bool(one.flavor), over=one.over
            )
            for one in self._kueue.workloads.values()
        }
        return abstract.queue_state(jobs, workloads, {name: self._kueue.used(name) for name in self._kueue.quota})

    def create(self, name: str, pods: int, way: str = "") -> None:
        """Create a TrainJob, perhaps with a gate, or one that goes first."""
        job = train_job(name, {"runtime": "torch", "nodes": pods, "seconds": 1, "codes": [0], "queue": True})
        if way == "gate":
            job["metadata"]["annotations"][GATES] = "example.com/gate"
        if way == "first":
            job["metadata"]["labels"][PRIORITY_LABEL] = "first"
        self._server.put(TRAIN_JOBS, job, "user")

    def count(self, name: str, active: int) -> None:
        """Count Jobs of a TrainJob as active."""
        self._status(name, counted(active))

    def finish(self, name: str, kind: str) -> None:
        """End a TrainJob."""
        self._status(name, ended(kind, self._server.storage._stamp()))

    def _status(self, name: str, status: Tree) -> None:
        self._put(name, status={**self._job(name).get("status", {}), **status})

    def delete(self, name: str) -> None:
        """Delete a TrainJob."""
        self._server.storage.writer = "user"
        self._server.storage.delete(TRAINJOBS, Key(NAMESPACE, name))

    def suspend(self, name: str) -> None:
        """Hold a TrainJob back."""
        self._put(name, spec={**self._job(name)["spec"], "suspend": True})

    def resume(self, name: str) -> None:
        """Let a TrainJob run."""
        self._put(name, spec={**self._job(name)["spec"], "suspend": False})

    def deactivate(self, name: str) -> None:
        """Take a TrainJob's quota."""
        self._kueue.deactivate(name)

    def activate(self, name: str) -> None:
        """Let it have some again."""
        self._kueue.deactivate(name, active=True)

    def open(self, name: str) -> None:
        """Open a TrainJob's gate."""
        meta = self._job(name)["metadata"]
        notes = {key: value for key, value in meta["annotations"].items() if key != GATES}
        self._put(name, metadata={**meta, "annotations": notes})

    def offer(self, quota: dict[str, int]) -> None:
        """Give each flavor so much quota."""
        self._kueue.offer(quota)

    def _job(self, name: str) -> Tree:
        found = self._server.find(TRAINJOBS, Key(NAMESPACE, name))
        assert found is not None
        return found

    def _put(self, name: str, **parts: Any) -> None:
        self._server.put(TRAIN_JOBS, {**self._job(name), **parts}, "user")
