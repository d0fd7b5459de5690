"""What the operator of a cluster tells of a TrainJob there: what went wrong first, and its timeline.

Kueue copies a worker's status to the hub as far as it knows it, and it does not know these. So the hub reads them of
MultiKueue's copies itself, and keeps the last it read with the job's logs, for the copy goes when the job is over.

A worker may send anything: what comes in is parsed, cleaned and bounded here (some KB), and nothing else is kept.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from trainplane.api import names
from trainplane.api.trainjob import FirstFault, Milestone  # noqa: TC001 msgspec reads annotations as it runs
from trainplane.explain.faults import kept_fault
from trainplane.explain.timeline import kept_timeline
from trainplane.hub.logarchive.owners import Owner
from trainplane.kube.codec import MALFORMED, decoder
from trainplane.kube.projection import Projection
from trainplane.kube.reflector import Reflector
from trainplane.kube.store import Store
from trainplane.resources import TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.api.tree import Tree
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.projection import ObjectHeader
    from trainplane.kube.resource import Key
    from trainplane.kube.store import Change

MOST_BYTES: Final = 2 << 20
"""Bytes of a TrainJob that is read: more than an API server takes."""


class Testimony(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is told of a TrainJob, as the hub's view shows it."""

    __test__ = False

    first_fault: FirstFault | None = None
    timeline: list[Milestone] = []

    def __bool__(self) -> bool:
        return bool(self.first_fault or self.timeline)

    def tree(self) -> Tree:
        """Return its fields as a document's status has them."""
        found: Tree = msgspec.to_builtins(self)
        return found


NOTHING_TOLD: Final = Testimony()


def read(job: Tree) -> Testimony:
    """Return what a TrainJob's status tells."""
    return Testimony(kept_fault(job), kept_timeline(job))


class Copies:
    """MultiKueue's copies of TrainJobs on one worker, mirrored to what they tell.

    A copy that reports progress changes every ten seconds, and what is told here of it seldom does: it is cleaned once.
    """

    def __init__(self, client: Client, changed: Callable[[Key], None], clock: Clock) -> None:
        self._store = Store(TRAIN_JOBS, Projection(transform=self._stored))
        self._read: dict[Key, tuple[bytes, Testimony]] = {}
        """What was read last of each copy, and the digest of what it was read from."""

        def hear(change: Change) -> None:
            if change.new is not None:
                changed(change.key)
            else:
                self._read.pop(change.key, None)

        self.reflector = Reflector(client, TRAIN_JOBS, self._store, [hear], clock, labels=names.LABEL_MULTIKUEUE_ORIGIN)

    def get(self, key: Key) -> tuple[Owner, Testimony] | None:
        """Return who a copy is, and what is told of it; None if there is none."""
        kept = self._store.decode(key, _Kept)
        return None if kept is None else (Owner(key.name, *kept.owner), kept.told)

    def _stored(self, header: ObjectHeader) -> Any:
        """Return what is stored of a copy; of one that does not fit, only who it is."""
        metadata = {"name": header.key.name, "namespace": header.key.namespace, "uid": header.uid}
        try:
            copy = _read(header.raw) if len(bytes(header.raw)) <= MOST_BYTES else _Copy()
            told = self._told(header.key, copy.status or _Status())
        except MALFORMED:
            return _Kept(metadata)
        labels = copy.metadata.labels or {}
        workload = (copy.metadata.annotations or {}).get(names.PREBUILT_WORKLOAD) or labels.get(names.PREBUILT_WORKLOAD)
        return _Kept(metadata, (header.uid, workload, names.LABEL_MULTIKUEUE_ORIGIN in labels), told)

    def _told(self, key: Key, status: _Status) -> Testimony:
        texts = bytes(status.first_fault), bytes(status.timeline)
        digest = hashlib.sha256(b"\0".join(texts)).digest()
        known = self._read.get(key)
        if known is None or known[0] != digest:
            fault, timeline = map(msgspec.json.decode, texts)
            known = self._read[key] = digest, read({"status": {"firstFault": fault, "timeline": timeline}})
        return known[1]


class _Kept(msgspec.Struct, frozen=True):
    metadata: dict[str, str]
    owner: tuple[str, str | None, bool] = ("", None, False)
    """Uid, Workload, and whether MultiKueue made it."""
    told: Testimony = NOTHING_TOLD


class _Metadata(msgspec.Struct, frozen=True):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


_NULL: Final = msgspec.Raw(b"null")


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    first_fault: msgspec.Raw = _NULL
    timeline: msgspec.Raw = _NULL


class _Copy(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    status: _Status | None = None


_read: Final[Callable[[msgspec.Raw], _Copy]] = decoder(_Copy).decode
