"""Keeps the logs of all jobs while they run: mirrors the pods of every cluster, and follows what they print.

A pod says by labels which job it is of; whether that is so is judged (`judge`) before anything of it is kept.
What was once found to be a job's stays so: the pods of a worker that was lost are kept, under the cluster they ran on,
when the job is sent elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.hub.errors import HubError, NoSuchWorkerError, NotKeptError, PodRefusedError, RecordError
from trainplane.hub.kinds import is_over, key_of
from trainplane.hub.logarchive.claims import Claims
from trainplane.hub.logarchive.hearing import Hearing
from trainplane.hub.logarchive.judge import Judge
from trainplane.hub.logarchive.keptjob import in_turn
from trainplane.hub.logarchive.lines import NOTE, note
from trainplane.hub.logarchive.mirror import Mirror, is_refusal, pod_of
from trainplane.hub.logarchive.sink import JournalSink
from trainplane.hub.logarchive.streams import Streams
from trainplane.kube.errors import KubeError, NotFoundError
from trainplane.kube.logfollower import GONE, Follower
from trainplane.kube.resource import Key

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.hub.kinds import JobKey
    from trainplane.hub.logarchive.archive import Archive
    from trainplane.hub.logarchive.jobs import Jobs
    from trainplane.hub.logarchive.journal import Journal
    from trainplane.hub.logarchive.keptjob import KeptJob, KeptPod
    from trainplane.hub.logarchive.pod import Pod
    from trainplane.hub.workers import Workers
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.store import Change

log = logging.getLogger(__name__)

HUB: Final = ""
"""How the hub itself is called among the clusters."""
_JUDGES: Final = 4
"""Pods of one cluster that are judged at a time: as many questions are under way there."""
_MOMENT: Final = 0.25
"""Seconds between two looks at the fleet at least: what changes all the time is not looked at all the time."""
_TOLD: Final = 4096
"""Pods that were refused and are remembered, to tell of each once."""


@dataclass(frozen=True, slots=True)
class CollectorSettings:
    """How the collector looks after its clusters."""

    interval: float = 5.0
    """Seconds between looks at the fleet: new and removed workers, rotated credentials, reachability. Who is told of a
    change (`look_soon`) looks at once."""
    retention_interval: float = 60.0
    """Seconds between looks at what is over its time; bytes and files are looked at with every write."""
    flush_interval: float = 1.0
    """Seconds between flushes of what was written to the disk: what a machine that crashes may lose."""
    streams: int = 1024
    """Logs followed at once on one cluster; each is a connection there and to a kubelet. More are read by turns."""
    reads: int = 16
    """Logs read at once on one cluster beside these: ends of logs, and those that cannot be followed."""
    removed_seconds: float = 30.0
    """Seconds that logs of a worker wait for it after it was removed: a rename is a removal, and then a new worker."""


class LogCollector:
    """Follows every container of every job's pods into the archive."""

    def __init__(
        self,
        hub: Client,
        workers: Workers,
        jobs: Jobs,
        archive: Archive,
        *,
        clock: Clock,
        settings: CollectorSettings | None = None,
    ) -> None:
        self.mirrors: dict[str, Mirror] = {}
        self.workers: tuple[str, ...] = ()
        """The workers that there are, also those that cannot be used."""
        self.looked = asyncio.Event()
        """Set once every worker has been looked at."""
        self.refused = 0
        """How many pods said that they are a job's and are not, or not such as could be kept."""
        self._refused: OrderedDict[tuple[str, Key], None] = OrderedDict()
        self._due = asyncio.Event()
        self._hub = hub
        self._workers = workers
        self._jobs = jobs
        self._archive = archive
        self._whose = Judge(hub, jobs, archive)
        self.hearing = Hearing(jobs, archive, self._whose, self.mirrors)
        self._clock = clock
        self.settings = settings or CollectorSettings()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._claims: dict[str, Claims] = {}
        self.streams: dict[str, Streams] = {}
        """By cluster: how many logs are followed there."""
        self._gaps = 0
        self._removed: dict[str, float] = {}
        self._followers: dict[tuple[str, str], Follower[JournalSink]] = {}
        self._following: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._group = asyncio.TaskGroup()
        jobs.listen(self._job_changed)

    async def run(self) -> None:
        """Keep until cancelled."""
        async with asyncio.TaskGroup() as self._group:
            for reflector in self._jobs.reflectors:
                await reflector.known.wait()  # a hub without Kueue has no Workloads
            self._archive.enforce()
            for kept in self._archive:
                self._look_after(kept)
                for pod in kept.pods.values():
                    self._removed[pod.cluster] = self._clock.monotonic()  # until it is seen that the worker is there
            self._group.create_task(self._flush(), name="flush")
            self._start(HUB, self._hub)
            due = self._clock.monotonic()
            while True:
                await self.look_at_fleet()
                self.looked.set()
                if self._clock.monotonic() >= due:
                    self._archive.enforce()
                    due = self._clock.monotonic() + self.settings.retention_interval
                await self._pause()

    def look_soon(self) -> None:
        """Who the workers are has changed, or how they are reached: look at them now."""
        self._due.set()

    async def _pause(self) -> None:
        """Wait until the fleet is to be looked at again."""
        moment = min(_MOMENT, self.settings.interval)
        await self._clock.sleep(moment)
        with contextlib.suppress(TimeoutError):
            async with self._clock.timeout(self.settings.interval - moment):
                await self._due.wait()
        self._due.clear()

    def follower(self, pod: str, container: str) -> Follower[JournalSink] | None:
        """Return who follows a container, by the pod's uid; None when nobody does (any more)."""
        return self._followers.get((pod, container))

    @property
    def gaps(self) -> int:
        """How often lines of a log were found to be lost."""
        return self._gaps + sum(follower.sink.gaps for follower in self._followers.values())

    def problems(self, kept: KeptJob) -> list[str]:
        """Return why lines of a job do not come at present, each reason once."""
        followers = (follower for follower in self._followers.values() if follower.sink.job is kept)
        return list(dict.fromkeys(follower.problem for follower in followers if follower.problem))

    def pods(self, job: Tree, kept: KeptJob | None) -> list[tuple[str, Tree]]:
        """Return the pods of a job with their clusters: those there now, and of `kept` those gone as last seen."""
        namespace, name, kind = key_of(job)
        found: dict[str, tuple[str, Pod]] = {}
        for pod in in_turn(kept.pods.values() if kept else ()):
            try:
                found[pod.uid] = pod.cluster, pod.pod
            except (OSError, RecordError) as error:
                self._archive.set_aside.tell(pod.folder, str(error))
        for mirror in self.mirrors.values():
            for now in mirror.pods(namespace, name, job["metadata"]["uid"], kind):
                found[now.uid] = mirror.name, now
        return [(cluster, pod.to_tree()) for cluster, pod in found.values()]

    async def look_at_fleet(self) -> None:
        """Start and end mirrors as workers come and go, and find out which can be reached."""
        self._claims[HUB].retry()
        try:
            listed = await self._workers.names()
        except NotFoundError:
            listed = ()  # Kueue is not installed: the hub is all there is
        except KubeError as error:
            log.warning("workers cannot be listed", extra={"error": str(error)})
            return
        self.workers = listed
        for name in set(self.mirrors) - {HUB, *listed}:
            self._stop(name)
            self._removed[name] = self._clock.monotonic()
        await asyncio.gather(*(self._look_at(name) for name in listed))
        for name in (HUB, *listed):
            self._removed.pop(name, None)
        for name, since in list(self._removed.items()):
            if self._clock.monotonic() - since >= self.settings.removed_seconds:
                del self._removed[name]
                self._give_up(name)
                await self._workers.forget(name)
        await self._complete_records()

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
            self._read_on(name)  # by the new client; streams of the one before end now
        is_back = await self.mirrors[name].probe()
        if self.mirrors[name].silence is None:
            self._claims[name].retry()
        if is_back:
            self._read_on(name)

    def _read_on(self, name: str) -> None:
        """Let nobody who follows a log of a worker wait before the next try."""
        for follower in self._followers.values():
            if follower.sink.pod.cluster == name:
                follower.update()

    def _start(self, name: str, client: Client) -> None:
        former = self.mirrors.get(name)
        self._stop(name)
        streams = self.settings.streams + self.settings.reads
        told, kinds = self.hearing.changed, self._jobs.kinds
        mirror = Mirror(name, client, self._pod_changed, told, self._clock, streams=streams, kinds=kinds)
        self.mirrors[name] = mirror
        mirror.follow_on(former)
        self._claims[name] = Claims(lambda key: self._judge(mirror, key))
        self._tasks[name] = self._group.create_task(self._mirror(mirror), name=f"mirror-{name or 'hub'}")

    def _stop(self, name: str) -> None:
        self.mirrors.pop(name, None)
        self._claims.pop(name, None)
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()

    def _give_up(self, name: str) -> None:
        """A worker was removed: nothing more comes of its pods. Each log that has not ended says so, once."""
        for key, follower in self._followers.items():
            if follower.sink.pod.cluster == name:
                self._following[key].cancel()
        for kept in self._archive:
            for pod in [pod for pod in kept.pods.values() if pod.cluster == name]:
                for journal in pod.runs.values():
                    self._note_removal(kept, journal, name)
                kept.news.notify()
        self.streams.pop(name, None)

    def _note_removal(self, kept: KeptJob, journal: Journal, name: str) -> None:
        last = next((line for _, line in journal.backward()), None)
        text = f"lines may be missing here: worker {name} was removed from the hub"
        if journal.ended is not None or last is None or (last.startswith(NOTE) and last.endswith(text.encode())):
            return
        try:
            self._archive.append(kept, journal, [note(last.removeprefix(NOTE), text)])
        except (HubError, OSError) as error:
            log.warning("a loss cannot be noted", extra={"journal": str(journal.folder), "error": str(error)})
        self._gaps += 1
        log.warning(text, extra={"job": str(kept.key)})

    async def _mirror(self, mirror: Mirror) -> None:
        async with mirror.logs, asyncio.TaskGroup() as group:
            for reflector in mirror.reflectors:
                group.create_task(reflector.run())
            if mirror.copies is not None:
                group.create_task(mirror.copies.reflector.run())
            for _ in range(_JUDGES):
                group.create_task(self._claims[mirror.name].run())
            for reflector in mirror.reflectors:
                await reflector.synced.wait()
            mirror.follow_on(None)
            present = mirror.uids()
            for kept in self._archive:
                for uid, pod in kept.pods.items():
                    if pod.cluster == mirror.name and uid not in present:
                        self._gone(kept, pod)

    def _pod_changed(self, cluster: str, change: Change) -> None:
        entry = change.new or change.old
        if entry is None:
            return
        mirror = self.mirrors.get(cluster)
        if mirror is None:
            return
        if change.new is None:
            mirror.accepted.pop(entry.uid, None)
            self._leave(entry.uid)
            return
        try:
            self._take(mirror, pod_of(entry))
        except PodRefusedError as error:
            self._refuse(mirror, change.key, str(error))

    def _job_changed(self, key: JobKey) -> None:
        """A job or its Workload changed: pods that were nobody's may be its now, and it may have ended."""
        for kept in self._archive.named(*key):
            self._look_after(kept)
        for mirror in list(self.mirrors.values()):
            for pod_key in mirror.keys(*key):
                try:
                    pod = mirror.pod(pod_key)
                except PodRefusedError:
                    continue
                if pod is not None:
                    self._take(mirror, pod)

    def _look_after(self, kept: KeptJob) -> None:
        job = self._jobs.by_uid(kept.record.uid)
        if job is not None:
            self.hearing.keep(kept, job)
        self._archive.mark(kept, finished=is_over(job), deleted=job is None)

    def _take(self, mirror: Mirror, pod: Pod) -> None:
        """Keep a pod that is known to be a job's; of one that says so, find out."""
        job = self._whose.job_of(mirror, pod)
        if job is None:
            return
        kept = self._archive.job(job["metadata"]["uid"])
        known = kept.pods.get(pod.uid) if kept is not None else None
        if known is not None and known.cluster == mirror.name:
            mirror.accepted[pod.uid] = job["metadata"]["uid"]
        if kept is not None and mirror.accepted.get(pod.uid) == job["metadata"]["uid"]:
            self._keep(kept, job, mirror, pod)
        else:
            self._claims[mirror.name].add(pod.key)

    async def _judge(self, mirror: Mirror, key: Key) -> bool:
        """Keep a pod if it is a job's; say whether that could be found out."""
        try:
            pod = mirror.pod(key)
            kept = None if pod is None else await self._whose.find(mirror, pod)
            now = mirror.pod(key)  # anything may have changed meanwhile; what was found out has not
            mirror.blindness = None
        except PodRefusedError as error:
            self._refuse(mirror, key, str(error))
            return True
        except NotKeptError:
            return True
        except (KubeError, HubError, OSError) as error:
            if is_refusal(error):
                mirror.blindness = f"has pods whose owners cannot be seen, so their logs are not kept: {error}"
            log.warning(
                "pod cannot be judged now", extra={"cluster": mirror.name, "pod": str(key), "error": str(error)}
            )
            return False
        if kept is not None and pod is not None and now is not None and now.uid == pod.uid:
            mirror.accepted[pod.uid] = kept.record.uid
            self.hearing.changed(kept.key)
            self._take(mirror, now)
        return True

    async def _complete_records(self) -> None:
        """Note the namespaces of jobs that an older release kept, as long as the jobs are there."""
        for kept in self._archive:
            job = None if kept.record.namespace_uid else self._jobs.by_uid(kept.record.uid)
            if job is not None:
                with contextlib.suppress(KubeError, HubError, OSError):
                    await self._whose.admit(job)

    def _keep(self, kept: KeptJob, job: Tree, mirror: Mirror, pod: Pod) -> None:
        """Keep a pod of a job, and follow what it prints."""
        try:
            kept_pod = self._archive.put_pod(kept, mirror.name, pod)
            # The hub may hear of a job's end before its pods.
            self._archive.mark(kept, finished=is_over(job))
        except NotKeptError:
            return
        except (HubError, OSError) as error:
            self._refuse(mirror, pod.key, f"it cannot be kept: {error}")
            return
        for container in (*kept_pod.init_containers, *kept_pod.containers):
            self._follow(kept, kept_pod, container)

    def _refuse(self, mirror: Mirror, pod: Key, reason: str) -> None:
        """Count a pod of which nothing is kept, and tell of it, once."""
        if (mirror.name, pod) in self._refused:
            return
        self.refused += 1
        self._refused[mirror.name, pod] = None
        while len(self._refused) > _TOLD:
            self._refused.popitem(last=False)
        log.warning("pod is refused", extra={"cluster": mirror.name or "hub", "pod": str(pod), "reason": reason})

    async def _flush(self) -> None:
        while True:
            await self._clock.sleep(self.settings.flush_interval)
            await self._archive.flush()

    def _follow(self, kept: KeptJob, pod: KeptPod, container: str) -> None:
        uid = pod.uid
        known = self._followers.get((uid, container))
        if known is not None:
            known.update()
            return
        follower = Follower(
            JournalSink(self._archive, kept, pod, container),
            Key(kept.record.namespace, pod.name),
            container,
            lambda: self._client(pod.cluster),  # as it is called then: it may be renamed
            self._clock,
            places=lambda: self._streams(pod.cluster),
        )
        self._followers[uid, container] = follower
        following = self._group.create_task(self._run(follower, uid), name=f"follow-{pod.name}-{container}")
        self._following[uid, container] = following

    async def _run(self, follower: Follower[JournalSink], uid: str) -> None:
        try:
            await follower.run()
        except Exception:  # a bug must not end the other followers; the pod's next change begins anew
            log.exception("follower failed", extra={"pod": follower.sink.pod.name, "container": follower.container})
        finally:
            self._gaps += follower.sink.gaps
            self._following.pop((uid, follower.container), None)
            self._followers.pop((uid, follower.container), None)
            if not any(pod == uid for pod, _ in self._followers):
                follower.sink.pod.rest()
            follower.sink.job.news.notify()

    def _client(self, cluster: str) -> Client:
        if cluster not in self.mirrors:
            raise NoSuchWorkerError(cluster)
        return self.mirrors[cluster].logs

    def _streams(self, cluster: str) -> Streams:
        known = self.streams.get(cluster)
        if known is None:
            where = f"worker {cluster}" if cluster else "the hub"
            known = self.streams[cluster] = Streams(where, self.settings.streams, self.settings.reads)
        return known

    def _leave(self, uid: str) -> bool:
        followers = [follower for (pod, _), follower in self._followers.items() if pod == uid]
        for follower in followers:
            follower.leave()
        return bool(followers)

    def _gone(self, kept: KeptJob, pod: KeptPod) -> None:
        """A pod went while nobody looked: its journals have all there will be."""
        if self._leave(pod.uid):
            return
        for journal in list(pod.runs.values()):
            self._archive.finish(kept, journal, GONE)
        kept.news.notify()
