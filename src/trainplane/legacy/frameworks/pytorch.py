"""PyTorchJob: what torch.distributed and torchrun read, and workers that wait for their master's address.

With a master, pods know it by MASTER_ADDR and their RANK among nodes. Without one, torchrun finds the others by a
rendezvous (`elasticPolicy`), by default on worker 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import tree as trees
from trainplane.api.legacy import names
from trainplane.legacy.frameworks.framework import UNBUFFERED, Framework, variable

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.legacy.decision import Settings
    from trainplane.legacy.job import Job, Member
    from trainplane.legacy.tally import Tally

_DIGITS: Final = 6
"""Of the largest number of processes that is one."""
_WAIT: Final = (
    'tries=0; until getent hosts "$1" || nslookup "$1"; do tries=$((tries + 1)); [ "$tries" -lt "$2" ] || exit 1; '
    'echo "$1 has no address yet"; sleep 2; done'
)
"""Whichever of the two an image has: Debian's have the first, Alpine's both."""


class PyTorch(Framework):
    """Serves PyTorchJobs."""

    def variables(self, job: Job, member: Member, settings: Settings) -> list[Tree]:
        """Return the variables of torch.distributed (RANK and others), and those of torchrun (PET_)."""
        del settings
        found = [UNBUFFERED]
        if names.MASTER in job.replicas:
            address, port = job.pod_name(names.MASTER), job.port(names.MASTER)
            rank = member.number + (member.type == names.WORKER)
            found += [
                variable("MASTER_PORT", port),
                variable("PET_MASTER_PORT", port),
                variable("MASTER_ADDR", address),
                variable("PET_MASTER_ADDR", address),
                variable("WORLD_SIZE", job.total * _processes(job)),
                variable("RANK", rank),
                variable("PET_NODE_RANK", rank),
            ]
        if job.spec.get("nprocPerNode") is not None:
            found.append(variable("PET_NPROC_PER_NODE", job.spec["nprocPerNode"]))
        if job.elastic is None:
            return [*found, variable("PET_NNODES", job.total)]
        return found + _elastic(job, job.elastic)

    def init_containers(self, job: Job, member: Member, settings: Settings) -> list[Tree]:
        """Return what lets a worker start only when its master has an address."""
        if member.type != names.WORKER or names.MASTER not in job.replicas:
            return []
        return [
            {
                "name": "init-pytorch",
                "image": settings.init_image,
                "imagePullPolicy": "IfNotPresent",
                "command": ["sh", "-c", _WAIT, "sh", job.pod_name(names.MASTER), str(settings.init_tries)],
                "resources": {
                    "limits": {"cpu": "100m", "memory": "20Mi"},
                    "requests": {"cpu": "50m", "memory": "10Mi"},
                },
            }
        ]

    def is_master(self, job: Job, member: Member) -> bool:
        """Return whether it is a pod that the others look up to: worker 0, where there is no master."""
        return member.type == names.MASTER or (names.MASTER not in job.replicas and member.number == 0)

    def is_done(self, job: Job, tally: Tally) -> bool:
        """Return whether the job has done its work: with elastic workers, when one of them says so."""
        if job.elastic is not None and names.MASTER not in job.replicas and tally.counts[names.WORKER].succeeded:
            return True
        return super().is_done(job, tally)


def _processes(job: Job) -> int:
    """Return how many processes a pod has; 1 if only the pod can tell (`auto`, `gpu`)."""
    said = str(job.spec.get("nprocPerNode"))
    return int(said) if said.isdecimal() and len(said) <= _DIGITS else 1


def _elastic(job: Job, policy: Tree) -> list[Tree]:
    host = trees.text(policy, "rdzvHost") or job.pod_name(names.WORKER)
    port = trees.number(policy, "rdzvPort") or job.port(names.WORKER)
    found = [
        variable("PET_RDZV_ENDPOINT", f"{host}:{port}"),
        variable("PET_RDZV_BACKEND", trees.text(policy, "rdzvBackend") or "c10d"),
        variable("PET_NNODES", f"{policy.get('minReplicas', job.total)}:{policy.get('maxReplicas', job.total)}"),
    ]
    for field, name in (
        ("maxRestarts", "PET_MAX_RESTARTS"),
        ("nProcPerNode", "PET_NPROC_PER_NODE"),
        ("rdzvId", "PET_RDZV_ID"),
    ):
        if policy.get(field) is not None:
            found.append(variable(name, policy[field]))
    settings = [f"{one.get('key', '')}={one.get('value', '')}" for one in trees.entries(policy, "rdzvConf")]
    if settings:
        found.append(variable("PET_RDZV_CONF", ",".join(settings)))
    if policy.get("standalone") is True:
        found.append(variable("PET_STANDALONE", ""))
    return found
