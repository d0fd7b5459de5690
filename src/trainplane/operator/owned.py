"""Mirrors of what the operator makes beside JobSets: ConfigMaps, groups and Services of TrainJobs, by name and owner.

Somebody deletes a job's hostfile or its group, and it should be back at once; so these are watched, their metadata
alone. No label singles them out (their labels are the reference's, which has none), so all ConfigMaps and groups of the
cluster pass by, and what is not ours is dropped as it is read. Kept is what a TrainJob controls *and* has a name that
we give: whoever may write ConfigMaps may forge an owner, but not have more than a handful kept for each TrainJob, and
what names an owner that is not there goes by Kubernetes' own garbage collection. A row is the owner's name and uid, and
a number that changes with the object.

Secrets are not among them: a watch of Secrets, by label or of their metadata alone, needs the right to list all of
them, data included, for RBAC grants no less. What is drawn once is looked at when a pod is about to mount it instead
(`keys`).

A kind that the cluster does not have, or that this account may not list, is looked for each minute; until it is there
nobody is missed (`OwnedMirrors.lacks` is False).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.api import names
from trainplane.kube.codec import MALFORMED, decoder
from trainplane.kube.metadataonly import MetadataOnly
from trainplane.kube.projection import Projection
from trainplane.kube.reflector import Reflector
from trainplane.kube.store import Store
from trainplane.resources import CONFIG_MAPS, SERVICES, resource_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.observer import Observer
    from trainplane.kube.projection import Entry, ObjectHeader
    from trainplane.kube.resource import Key, Resource
    from trainplane.kube.store import Change

    Handler = Callable[[Store, Change], None]

POD_GROUPS: Final = tuple(
    resource_of({"apiVersion": version, "kind": names.POD_GROUP})
    for version in (names.VOLCANO_API_VERSION, names.COSCHEDULING_API_VERSION)
)
_GIVEN: Final[dict[Resource, tuple[Callable[[str], str], ...]]] = {
    CONFIG_MAPS: (names.snapshot_name, names.mpi_hostfile_name, names.flux_entrypoint_name, names.code_name),
    **dict.fromkeys(POD_GROUPS, (names.pod_group_name,)),
    SERVICES: (names.cache_service_name,),
}
"""The names that we give to objects of a TrainJob. The history of its metrics is not among them: it is written often,
and begins anew by itself."""
_LABELS: Final = {SERVICES: names.LABEL_JOBSET_NAME}
"""What the objects of a resource are selected by, where the reference makes none and a label is ours to give."""


class _Owner(msgspec.Struct, frozen=True, rename="camel", gc=False):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    generation: int = 0
    owner_references: list[_Owner] | None = None


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is kept of an object: whose it is, and a number that differs once somebody changed what we apply."""

    owner: str
    uid: str
    """The owner's."""
    version: int
    """See `version_of`."""


_read: Final[Callable[[msgspec.Raw], _Meta]] = decoder(_Meta).decode


def version_of(resource: Resource, generation: int, resource_version: int) -> int:
    """Return a number that differs once somebody changed what we apply of an object.

    Of a group, whose status its scheduler writes all the time, the generation; other kinds do not count theirs.
    """
    return generation if resource in POD_GROUPS else resource_version


def row(entry: Entry) -> Row:
    """Return a row of the mirrors."""
    return entry.decode(Row)


def _keeper(resource: Resource) -> Projection:
    given = _GIVEN[resource]

    def owner(header: ObjectHeader) -> tuple[_Owner, int] | None:
        try:
            meta = _read(header.fields["metadata"])
        except MALFORMED:
            return None
        for one in meta.owner_references or ():
            group = one.api_version.partition("/")[0]
            if one.controller and (group, one.kind) == (names.GROUP, names.TRAIN_JOB):
                is_given = any(name(one.name) == header.key.name for name in given)
                return (one, meta.generation) if is_given else None
        return None

    def cut(header: ObjectHeader) -> Row:
        found = owner(header)
        if found is None:
            raise AssertionError(f"{resource.plural} {header.key} was kept and is no TrainJob's")
        return Row(found[0].name, found[0].uid, version_of(resource, found[1], header.resource_version))

    return Projection(transform=cut, keeps=lambda header: owner(header) is not None)


class OwnedMirrors:
    """The mirrors, empty until reflectors fill them."""

    def __init__(self) -> None:
        self._stores = {resource: Store(resource, _keeper(resource)) for resource in _GIVEN}

    def all(self) -> tuple[Store, ...]:
        """Return every mirror."""
        return tuple(self._stores.values())

    def lacks(self, resource: Resource, key: Key, owner: str) -> bool:
        """Return whether an object is known not to be there, or not to be of the TrainJob with the uid `owner`."""
        store = self._stores.get(resource)
        if store is None or not store.observed:
            return False
        entry = store.entry(key)
        return entry is None or row(entry).uid != owner

    def reflectors(
        self, client: Client, handler: Handler, clock: Clock, *, namespace: str | None, observer: Observer
    ) -> list[Reflector]:
        """Return a reflector for each mirror; `handler` hears of each change, and in which."""
        return [
            Reflector(
                MetadataOnly(client),
                store.resource,
                store,
                [partial(handler, store)],
                clock,
                namespace=namespace,
                labels=_LABELS.get(store.resource),
                observer=observer,
                needed=False,
            )
            for store in self._stores.values()
        ]
