"""Keeps the logs of all TrainJobs while they run: mirrors the pods of every cluster, and follows what they print.

Whose a pod is, the hub's TrainJobs say: the JobSet, and so its pods' label, has the TrainJob's name, and Kueue notes on
each pod its Workload, whose name is unique to the TrainJob. A worker that was lost and came back may still run pods of
a job that was sent elsewhere; they are the job's all the same and are kept, under the cluster they ran on.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.hub.errors import HubError, NoSuchWorkerError
from trainplane.hub.kept.follower import GONE, Follower, without_managed_fields
from trainplane.hub.kept.jobs import is_finished
from trainplane.hub.kept.mirror import Mirror
from trainplane.kube.errors import KubeError, NotFoundError

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.hub.kept.archive import Archive, KeptJob, KeptPod
    from trainplane.hub.kept.jobs import Jobs
    from trainplane.hub.workers import Workers
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.resource import Key
    from trainplane.kube.store import Change

log = logging.getLogger(__name__)

HUB: Final = ""
"""How the hub itself is called among the clusters."""
ANNOTATION_WORKLOAD: Final = "kueue.x-k8s.io/workload"


@dataclass(frozen=True, slots=True)
class KeeperSettings:
    """How the keeper looks after its clusters."""

    interval: float = 5.0
    """Seconds between looks at the fleet: new and removed workers, rotated credentials, reachability."""
    bounds_interval: float = 60.0
    """Seconds between looks at what is over its time or over the bytes of all; one job's bytes are looked at always."""
    streams: int = 1024
    """Logs followed at once on one cluster; each is a connection there and to a kubelet. More wait their turn."""


class Keeper:
    """Follows every container of every TrainJob's pods into the archive."""

    def __init__(
        self,
        hub: Client,
        workers: Workers,
        jobs: Jobs,
        archive: Archive,
        *,
        clock: Clock,
        settings: KeeperSettings | None = None,
    ) -> None:
        self.mirrors: dict[str, Mirror] = {}
        self.looked = asyncio.Event()
        """Set once every worker has been looked at."""
        self._hub = hub
        self._workers = workers
        self._jobs = jobs
        self._archive = archive
        self._clock = clock
        self._settings = settings or KeeperSettings()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._places: dict[str, asyncio.Semaphore] = {}
        self._followers: dict[tuple[str, str], Follower] = {}
        self._group = asyncio.TaskGroup()
        jobs.listen(self._job_changed)

    async def run(self) -> None:
        """Keep until cancelled."""
        async with asyncio.TaskGroup() as self._group:
            for reflector in self._jobs.reflectors:
                await reflector.synced.wait()
            for kept in self._archive:
                self._look_after(kept)
            self._start(HUB, self._hub)
            due = self._clock.monotonic()
            while True:
                await self.look_at_fleet()
                self.looked.set()
                if self._clock.monotonic() >= due:
                    self._archive.enforce()
                    due = self._clock.monotonic() + self._settings.bounds_interval
                await self._clock.sleep(self._settings.interval)

    def follower(self, pod: str, container: str) -> Follower | None:
        """Return who follows a container, by the pod's uid; None when nobody does (any more)."""
        return self._followers.get((pod, container))

    def problems(self, kept: KeptJob) -> list[str]:
        """Return why lines of a job do not come at present, each reason once."""
        followers = (follower for follower in self._followers.values() if follower.job is kept)
        return list(dict.fromkeys(follower.problem for follower in followers if follower.problem))

    def pods(self, job: Tree, kept: KeptJob | None) -> list[tuple[str, Tree]]:
        """Return the pods of a TrainJob with their clusters: those there now, and of `kept` those gone as last seen."""
        metadata = job["metadata"]
        found = {uid: (pod.cluster, pod.record.pod) for uid, pod in (kept.pods if kept else {}).items()}
        for mirror in self.mirrors.values():
            for pod in mirror.pods(metadata["namespace"], metadata["name"]):
                if self._belongs(job, mirror.name, pod):
                    found[pod["metadata"]["uid"]] = mirror.name, pod
        return sorted(found.values(), key=lambda entry: (entry[1]["metadata"].get("creationTimestamp") or "", entry[0]))

    async def look_at_fleet(self) -> None:
        """Start and end mirrors as workers come and go, and find out which can be reached."""
        try:
            listed = await self._workers.names()
        except NotFoundError:
            listed = ()  # Kueue is not installed: the hub is all there is
        except KubeError as error:
            log.warning("workers cannot be listed", extra={"error": str(error)})
            return
        for name in set(self.mirrors) - {HUB, *listed}:
            self._stop(name)
        await asyncio.gather(*(self._look_at(name) for name in listed))

    async def _look_at(self, name: str) -> None:
        try:
            client = await self._workers.client(name)
        except (HubError, KubeError) as error:
            if name in self.mirrors:
                self.mirrors[name].silence = str(error)
            log.warning("worker cannot be used", extra={"cluster": name, "error": str(error)})
            return
        if name not in self.mirrors or self.mirrors[name].client is not client:
            self._start(name, client)
        if await self.mirrors[name].probe():
            for follower in self._followers.values():
                if follower.pod.cluster == name:
                    follower.update()

    def _start(self, name: str, client: Client) -> None:
        self._stop(name)
        mirror = self.mirrors[name] = Mirror(name, client, self._pod_changed, self._clock)
        self._tasks[name] = self._group.create_task(self._mirror(mirror), name=f"mirror-{name or 'hub'}")

    def _stop(self, name: str) -> None:
        self.mirrors.pop(name, None)
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()

    async def _mirror(self, mirror: Mirror) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(mirror.reflector.run())
            await mirror.reflector.synced.wait()
            present = mirror.uids()
            for kept in self._archive:
                for uid, pod in kept.pods.items():
                    if pod.cluster == mirror.name and uid not in present:
                        self._gone(kept, pod)

    def _pod_changed(self, cluster: str, change: Change) -> None:
        entry = change.new or change.old
        if entry is None:
            return
        pod = entry.decode(dict)
        if change.new is not None:
            self._take(cluster, pod)
            return
        self._leave(entry.uid)

    def _job_changed(self, key: Key) -> None:
        """A TrainJob or its Workload changed: pods that were nobody's may be its now, and it may have ended."""
        kept = self._archive.latest(*key)
        if kept is not None:
            self._look_after(kept)
        for mirror in list(self.mirrors.values()):
            for pod in mirror.pods(*key):
                self._take(mirror.name, pod)

    def _look_after(self, kept: KeptJob) -> None:
        job = self._jobs.by_uid(kept.record.uid)
        self._archive.mark(kept, finished=job is not None and is_finished(job), deleted=job is None)

    def _take(self, cluster: str, pod: Tree) -> None:
        """Keep a pod if it is a TrainJob's, and follow what it prints."""
        metadata = pod["metadata"]
        job = self._jobs.get(metadata["namespace"], trees.get(metadata, "labels", names.LABEL_JOBSET_NAME) or "")
        if job is None or not self._belongs(job, cluster, pod):
            return
        try:
            kept = self._archive.admit(job["metadata"]["uid"], metadata["namespace"], job["metadata"]["name"])
            kept_pod = self._archive.put_pod(kept, cluster, without_managed_fields(pod))
            self._archive.mark(kept, finished=is_finished(job))  # the hub may hear of a job's end before its pods
        except (HubError, OSError):
            log.exception("pod cannot be kept", extra={"pod": f"{metadata['namespace']}/{metadata['name']}"})
            return
        for container in (*kept_pod.init_containers, *kept_pod.containers):
            self._follow(kept, kept_pod, container)

    def _belongs(self, job: Tree, cluster: str, pod: Tree) -> bool:
        is_local = trees.get(job, "spec", "managedBy") != names.MANAGED_BY_MULTIKUEUE
        if is_local or cluster == HUB:
            return is_local and cluster == HUB
        placement = self._jobs.place(job)
        noted = trees.get(pod, "metadata", "annotations", ANNOTATION_WORKLOAD)
        return noted == placement.workload if noted else placement.cluster == cluster

    def _follow(self, kept: KeptJob, pod: KeptPod, container: str) -> None:
        uid = pod.folder.name
        known = self._followers.get((uid, container))
        if known is not None:
            known.update()
            return
        cluster = pod.cluster
        places = self._places.setdefault(cluster, asyncio.Semaphore(self._settings.streams))
        follower = Follower(
            self._archive, kept, pod, container, lambda: self._client(cluster), self._clock, places=places
        )
        self._followers[uid, container] = follower
        self._group.create_task(self._run(follower, uid), name=f"follow-{pod.name}-{container}")

    async def _run(self, follower: Follower, uid: str) -> None:
        try:
            await follower.run()
        except Exception:  # a bug must not end the other followers; the pod's next change begins anew
            log.exception("follower failed", extra={"pod": follower.pod.name, "container": follower.container})
        finally:
            self._followers.pop((uid, follower.container), None)
            if not any(pod == uid for pod, _ in self._followers):
                follower.pod.rest()
            follower.job.tell()

    def _client(self, cluster: str) -> Client:
        if cluster not in self.mirrors:
            raise NoSuchWorkerError(cluster)
        return self.mirrors[cluster].client

    def _leave(self, uid: str) -> bool:
        followers = [follower for (pod, _), follower in self._followers.items() if pod == uid]
        for follower in followers:
            follower.leave()
        return bool(followers)

    def _gone(self, kept: KeptJob, pod: KeptPod) -> None:
        """A pod went while nobody looked: its journals have all there will be."""
        if self._leave(pod.folder.name):
            return
        for journal in pod.runs.values():
            if journal.ended is None:
                journal.finish(GONE)
        kept.tell()
