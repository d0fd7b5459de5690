"""TFJob: TF_CONFIG, the addresses of all and which of them a pod is.

A job of one pod trains alone and gets none. With `enableDynamicWorker` a worker knows the parameter servers and itself,
so that workers may come and go; one that fails for good is not missed then.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from trainplane.api.legacy import names
from trainplane.legacy.frameworks.framework import Framework, variable
from trainplane.legacy.job import Member

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.legacy.decision import Settings
    from trainplane.legacy.job import Job
    from trainplane.legacy.tally import Tally


class TensorFlow(Framework):
    """Serves TFJobs."""

    def variables(self, job: Job, member: Member, settings: Settings) -> list[Tree]:
        """Return TF_CONFIG."""
        if job.total == 1:
            return []
        task = {"type": member.type.lower(), "index": member.number}
        if _is_dynamic(job):
            config: Tree = {"cluster": _seen_by(job, member, settings), "task": task}
        else:
            everyone = {one.lower(): _addresses(job, one, settings) for one in sorted(job.replicas, key=str.lower)}
            config = {"cluster": everyone, "task": task, "environment": "cloud"}
        return [variable("TF_CONFIG", json.dumps(config, separators=(",", ":")))]

    def tells(self, job: Job, container: Tree) -> bool:
        """Return whether a container of a pod is told: the one that trains."""
        return container.get("name") == job.kind.container

    def leaders(self, job: Job) -> tuple[str, ...]:
        """Return the types that decide: chief or master where there is one, else the workers."""
        return tuple(one for one in (names.CHIEF, names.MASTER) if one in job.replicas) or (names.WORKER,)

    def is_master(self, job: Job, member: Member) -> bool:
        """Return whether it is a pod that the others look up to: worker 0, where there is no chief."""
        return member.type in self.leaders(job) and (member.type != names.WORKER or member.number == 0)

    def is_done(self, job: Job, tally: Tally) -> bool:
        """Return whether the job has done its work: without a chief when worker 0 has, unless all must."""
        if self.leaders(job) == (names.WORKER,) and job.spec.get("successPolicy") != names.SUCCESS_ALL_WORKERS:
            first = Member(names.WORKER, 0)
            return first in tally.succeeded or super().is_done(job, tally)
        return super().is_done(job, tally)

    def forgives(self, job: Job, member: Member) -> bool:
        """Return whether the job goes on without a pod: a worker that may come and go, if no exit code is final."""
        is_final = job.replicas[member.type].restart == names.RESTART_EXIT_CODE
        return _is_dynamic(job) and member.type == names.WORKER and not is_final


def _is_dynamic(job: Job) -> bool:
    return job.spec.get("enableDynamicWorker") is True


def _seen_by(job: Job, member: Member, settings: Settings) -> Tree:
    """Return the addresses that a pod of a job with dynamic workers knows: its own, and those of parameter servers."""
    servers = _addresses(job, names.PS, settings)
    if member.type == names.PS:
        return {"worker": {}, "ps": [servers[member.number]]}
    if member.type == names.WORKER:
        return {"worker": {str(member.number): _address(job, member, settings)}, "ps": servers}
    return {"worker": {}, "ps": []}


def _addresses(job: Job, replica_type: str, settings: Settings) -> list[str]:
    return [_address(job, Member(replica_type, index), settings) for index in range(job.count(replica_type))]


def _address(job: Job, member: Member, settings: Settings) -> str:
    domain = f".{settings.cluster_domain}" if settings.cluster_domain else ""
    return f"{job.pod_name(*member)}.{job.namespace}.svc{domain}:{job.port(member.type)}"
