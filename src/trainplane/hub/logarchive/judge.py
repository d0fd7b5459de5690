"""Says whose a pod is, and begins to keep what it is of.

A pod names its job by labels: that is where the question begins, and not its answer. On the hub, the job at the end of
the pod's chain of owners (`owners`) must be the hub's own. On a worker it must be MultiKueue's copy of the hub's,
which carries the name of the Workload that both have, and the worker must be the one to which Kueue sent the job: so
nobody, no other worker either, adds anything to a job that is not theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.hub.errors import NotKeptError, PodRefusedError
from trainplane.hub.kinds import claimed, kind_of
from trainplane.hub.logarchive.owners import look
from trainplane.resources import NAMESPACES

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.hub.logarchive.archive import Archive
    from trainplane.hub.logarchive.jobs import Jobs
    from trainplane.hub.logarchive.keptjob import KeptJob
    from trainplane.hub.logarchive.mirror import Mirror
    from trainplane.hub.logarchive.owners import Owner
    from trainplane.hub.logarchive.pod import Pod
    from trainplane.kube.client import Client


class Judge:
    """Judges pods of every cluster by what their cluster and the hub say now."""

    def __init__(self, hub: Client, jobs: Jobs, archive: Archive) -> None:
        self._hub = hub
        self._jobs = jobs
        self._archive = archive

    def job_of(self, mirror: Mirror, pod: Pod) -> Tree | None:
        """Return the job that a pod says it is of, if such a one can have pods on that cluster."""
        said = claimed(pod.metadata.labels or {}, self._jobs.kinds)
        if said is None:
            return None
        kind, name = said
        job = self._jobs.get(pod.metadata.namespace, name, kind.name)
        return job if job is not None and kind.is_dispatched(job) != mirror.is_hub else None

    async def find(self, mirror: Mirror, pod: Pod) -> KeptJob | None:
        """Return what is kept of the job that a pod is of; None if it is of none, as things stand.

        Raises:
            PodRefusedError: it is of none, and never will be.
            NotKeptError: the job is over, and nothing is kept of it any more.
            KubeError, FullError, OSError: that cannot be found out, or not be kept, at present.
        """
        job = self.job_of(mirror, pod)
        if job is None:
            return None
        kind = kind_of(job)
        owner = await mirror.owners.find(pod, kind.chains)
        if owner is None:
            *makers, last = (resource.kind for resource in kind.chains[0])
            made_by = f"{', '.join(makers)} and {last}" if makers else last
            raise PodRefusedError(f"it says that it is a {kind.name}'s, but no {made_by} made it")
        return await self.admit(job) if self.is_owner(mirror, owner, job) else None

    async def admit(self, job: Tree) -> KeptJob:
        """Return what is kept of a job, and begin to keep it if there is nothing yet; raises as `find` does.

        The namespace is asked for first and the job then: one that is there afterwards is in that very namespace.
        """
        kind, metadata = kind_of(job), job["metadata"]
        uid, namespace, name = metadata["uid"], metadata["namespace"], metadata["name"]
        kept = self._archive.job(uid)
        if kept is not None and kept.record.namespace_uid:
            return kept
        if self._archive.is_over(uid):
            raise NotKeptError(f"the logs of {kind.name} {namespace}/{name} went by retention")
        there = await look(self._hub, NAMESPACES, namespace)
        now = await look(self._hub, kind.resource, name, namespace)
        if there is None or now is None or now.uid != uid:
            raise NotKeptError(f"{kind.name} {namespace}/{name} is gone")
        return self._archive.admit(uid, namespace, name, there.uid, kind.name)

    def is_owner(self, mirror: Mirror, owner: Owner, job: Tree) -> bool:
        """Return whether an owner of pods on a cluster is a job of the hub's, or the copy of it that counts."""
        if mirror.is_hub:
            return bool(owner.uid == job["metadata"]["uid"])
        placement = self._jobs.place(job)
        is_copy = owner.is_copy and owner.name == placement.name and owner.workload == placement.workload is not None
        return is_copy and placement.cluster == mirror.name
