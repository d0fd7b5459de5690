"""Whose a pod is: the job at the end of its chain of owners, asked of the cluster that has it.

    pod ──controller──► Job ──controller──► JobSet ──controller──► TrainJob
    pod ──controller──► PyTorchJob, and its siblings
    pod ──controller──► Job ──controller──► MPIJob, for a launcher

Labels and annotations are whatever the author of a pod writes, and so are its owner references; but what they name
must be there, with that uid, and be made by what stands next in the chain, up to a job. An owner is there before
what it makes, and a uid is given once, so an answer is final and is remembered by the owner's uid: a TrainJob costs
one GET for each of its Jobs and two more, of metadata alone, and a job of another kind one or two.

What remains: who may create pods in a job's namespace can name its owner as the owner of their pod, as they can for the
owner's own controller. Lines can be forged within a namespace, never across.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import msgspec

from trainplane.api import names
from trainplane.hub.logarchive.pod import UNREADABLE, OwnerReference, controller_of
from trainplane.kube.codec import decoder
from trainplane.kube.errors import NotFoundError, StreamError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.hub.logarchive.pod import Pod
    from trainplane.kube.client import Client
    from trainplane.kube.resource import Resource

    Chain: TypeAlias = tuple[Resource, ...]
    """Kinds of owners, from that of a pod up to the job."""

PARTIAL: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""Asks for an object without its content."""
_REMEMBERED: Final = 8192
"""Answers that are remembered of a cluster; a pod that is kept is not asked for again."""


class Owner(NamedTuple):
    """The job that a pod was made for, as it is on the pod's cluster."""

    name: str
    uid: str
    workload: str | None = None
    """On a worker: its Workload, which has the same name on the hub."""
    is_copy: bool = False
    """Whether MultiKueue made it."""


class Metadata(msgspec.Struct, rename="camel"):
    """Who an object is, and who made it."""

    name: str
    uid: str
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None


class _Object(msgspec.Struct):
    metadata: Metadata


class Owners:
    """The owners of one cluster's pods."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: OrderedDict[tuple[str, OwnerReference, Chain], Owner | None] = OrderedDict()

    async def find(self, pod: Pod, chains: Iterable[Chain]) -> Owner | None:
        """Return the job that a pod was made for; None if no chain leads from it to one. Raises KubeError."""
        to = pod.controller
        chain = next((one for one in chains if to is not None and _is_of(to, one[0])), None)
        return None if chain is None else await self._climb(pod.metadata.namespace, to, chain)

    async def _climb(self, namespace: str, to: OwnerReference | None, chain: Chain) -> Owner | None:
        """Return what is at the end of a chain of owners, all of them in one namespace."""
        if to is None or not _is_of(to, chain[0]):
            return None
        # By all that a reference says: a wrong name with the right uid must not answer for the right one, nor a Job
        # that leads to no TrainJob for one that leads to an MPIJob.
        asked = namespace, to, chain
        if asked not in self._known:
            found = await look(self._client, chain[0], to.name, namespace)
            owner = None
            if found is not None and found.uid == to.uid:
                above = controller_of(found.owner_references)
                owner = await self._climb(namespace, above, chain[1:]) if chain[1:] else _owner(found)
            self._known[asked] = owner
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
            return owner
        return self._known[asked]


def _is_of(reference: OwnerReference, resource: Resource) -> bool:
    group = reference.api_version.rpartition("/")[0]
    return (group, reference.kind) == (resource.group, resource.kind)


def _owner(job: Metadata) -> Owner:
    labels, annotations = job.labels or {}, job.annotations or {}
    workload = annotations.get(names.PREBUILT_WORKLOAD) or labels.get(names.PREBUILT_WORKLOAD)
    return Owner(job.name, job.uid, workload, names.LABEL_MULTIKUEUE_ORIGIN in labels)


async def look(client: Client, resource: Resource, name: str, namespace: str | None = None) -> Metadata | None:
    """Return the metadata of an object, None if there is none; raises KubeError."""
    try:
        path = resource.path(namespace, name)
    except ValueError:
        return None
    try:
        answer = await client.raw("GET", path, accept=PARTIAL)
    except NotFoundError as error:
        if error.details.get("name") is None:
            raise  # not the object is missing but its kind, which may be served again
        return None
    try:
        found: _Object = decoder(_Object).decode(answer.body)
    except UNREADABLE as error:
        raise StreamError(f"{resource.kind} {name} is no object: {type(error).__name__}") from error
    return found.metadata
