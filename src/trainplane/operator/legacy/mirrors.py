"""What the operator sees of jobs of the older kinds: the jobs, and what they control.

A job's objects are found by the uid of their controller, never by a label or a name alone: those of an earlier job of
the same name are not this one's, nor is what somebody else put in its place. A pod of a launcher's batch Job counts as
that job's, too. Who may make objects in a namespace and read that uid can still mislead about the jobs of that
namespace, and about no others.

Of pods, only those with the label of a job's name are watched, and kept is what says how they are doing: commands,
variables and volumes are where people put their secrets. Services, batch Jobs, autoscalers and PodGroups of the old
operators have no label in common, so all are watched, and of those that no such job controls the name alone is kept.
ConfigMaps and Secrets are not watched at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from trainplane.api.legacy.kinds import KINDS, MPI
from trainplane.kube.codec import MALFORMED, decoder
from trainplane.kube.projection import Index, Projection
from trainplane.kube.resource import Key, Resource
from trainplane.kube.store import Store
from trainplane.legacy.decision import SCHEDULER_PLUGINS, VOLCANO, Observed
from trainplane.operator.stores import Owner  # noqa: TC001 msgspec reads annotations as it runs
from trainplane.resources import HORIZONTAL_POD_AUTOSCALERS, JOBS, LEGACY_JOBS, PODS, SERVICES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from trainplane.api.legacy.kinds import Kind
    from trainplane.api.tree import Tree
    from trainplane.kube.projection import Entry, ObjectHeader
    from trainplane.kube.store import Change

POD_GROUPS: Final = {
    VOLCANO: Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup"),
    SCHEDULER_PLUGINS: Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup"),
}
"""By the gang scheduler whose they are."""

_UID, _NAME = "controller-uid", "controller-name"
_POD_METADATA: Final = frozenset({"creationTimestamp", "deletionTimestamp", "labels", "ownerReferences"})


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    namespace: str = ""
    owner_references: list[Owner] | None = None


class _Owned(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()

    @property
    def controller(self) -> Owner | None:
        """The owner that controls the object, or None."""
        return next((owner for owner in self.metadata.owner_references or () if owner.controller), None)


def _uid(seen: _Owned) -> tuple[str, ...]:
    return (f"{seen.metadata.namespace}/{seen.controller.uid}",) if seen.controller else ()


def _name(seen: _Owned) -> tuple[str, ...]:
    return (f"{seen.controller.kind}/{seen.controller.name}",) if seen.controller else ()


_INDEXES: Final = {_UID: Index(_Owned, _uid), _NAME: Index(_Owned, _name)}


class Mirrors:
    """The mirrors of some kinds, empty until reflectors fill them."""

    def __init__(self, kinds: Sequence[Kind], gang: str = "") -> None:
        self.jobs = {kind.name: Store(LEGACY_JOBS[kind.name]) for kind in kinds}
        """The jobs themselves, whole, by kind."""
        self.pods = Store(PODS, Projection(frozenset({"status"}), _POD_METADATA), _INDEXES)
        self.services = _of_jobs(SERVICES)
        self._batch_jobs = _of_jobs(JOBS)
        others = [self._batch_jobs] if MPI in kinds else []
        others += [_of_jobs(HORIZONTAL_POD_AUTOSCALERS)] if any(kind.elastic for kind in kinds) else []
        others += [_of_jobs(POD_GROUPS[gang])] if gang else []
        self.others = tuple(others)

    def objects(self) -> tuple[Store, ...]:
        """Return the mirrors of what jobs control."""
        return self.pods, self.services, *self.others

    def all(self) -> tuple[Store, ...]:
        """Return every mirror, the jobs last."""
        return *self.objects(), *self.jobs.values()

    def observe(self, job: Tree, key: Key, uid: str, now: datetime) -> Observed:
        """Return what there is of a job."""
        others = tuple(tree for store in self.others for tree in _controlled(store, key.namespace, uid))
        launchers = (str(tree["metadata"]["uid"]) for tree in others if tree.get("kind") == JOBS.kind)
        return Observed(
            job=job,
            pods=tuple(pod for one in (uid, *launchers) for pod in _controlled(self.pods, key.namespace, one)),
            services=tuple(_controlled(self.services, key.namespace, uid)),
            others=others,
            now=now,
        )

    def jobs_of(self, change: Change) -> Iterator[tuple[str, Key]]:
        """Yield the kind and key of each job that a change of another object is news of."""
        seen = {self._job_of(change.key.namespace, entry) for entry in (change.old, change.new) if entry is not None}
        for job in seen:
            if job is not None and job[1] in self.jobs[job[0]]:
                yield job

    def _job_of(self, namespace: str, entry: Entry) -> tuple[str, Key] | None:
        """Return the kind and key of who controls an object; of a batch Job's pod, of who controls that Job."""
        kind, key = _controller(namespace, entry)
        if kind == JOBS.kind:  # one step and no more: what tenants write may go round in circles
            launcher = self._batch_jobs.entry(key)
            kind, key = ("", key) if launcher is None else _controller(namespace, launcher)
        return (kind, key) if kind in self.jobs else None


def _controller(namespace: str, entry: Entry) -> tuple[str, Key]:
    """Return the kind and key of who controls an object; an empty kind if nobody does."""
    kind, _, name = "".join(entry.indexed[1]).partition("/")
    return kind, Key(namespace, name)


def _controlled(store: Store, namespace: str, uid: str) -> Iterable[Tree]:
    """Return the objects that a uid controls, by name."""
    keys = sorted(store.by_index(_UID, f"{namespace}/{uid}"))
    return (tree for tree in (store.decode(key, dict) for key in keys) if tree is not None)


def _of_jobs(mirrored: Resource) -> Store:
    return Store(mirrored, Projection(transform=_cut(mirrored)), _INDEXES)


def _cut(mirrored: Resource) -> Callable[[ObjectHeader], Any]:
    """Return what keeps an object that one of our kinds controls, and of any other the name."""
    read, fields = decoder(_Owned).decode, decoder(dict[str, msgspec.Raw]).decode

    def cut(header: ObjectHeader) -> Tree:
        identity = {"apiVersion": mirrored.api_version, "kind": mirrored.kind}
        try:
            controller = read(header.raw).controller
            metadata = fields(header.fields["metadata"])
        except MALFORMED:
            controller, metadata = None, {}
        if controller is None or controller.kind not in KINDS:
            key = header.key
            return {**identity, "metadata": {"name": key.name, "namespace": key.namespace, "uid": header.uid}}
        metadata.pop("managedFields", None)
        return {**header.fields, **identity, "metadata": metadata}

    return cut
