"""Runtimes: found, decoded once per version, and freed of a finalizer that older releases left.

Thousands of TrainJobs name the same few runtimes. Each version of a runtime is decoded once and written as YAML once,
for the snapshots.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from trainplane.api import document, names
from trainplane.api.errors import DecodeError
from trainplane.api.runtime import ClusterTrainingRuntime, TrainingRuntime
from trainplane.kube.client import MERGE_PATCH
from trainplane.kube.controller import DONE
from trainplane.kube.errors import NotFoundError
from trainplane.kube.resource import Key
from trainplane.operator import yamltext
from trainplane.operator.errors import RuntimeUnsupportedError, SnapshotError
from trainplane.operator.stores import used
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES

if TYPE_CHECKING:
    from trainplane.api.document import Document
    from trainplane.api.trainjob import RuntimeRef
    from trainplane.api.tree import Tree
    from trainplane.kube.client import Client
    from trainplane.kube.controller import Result
    from trainplane.kube.projection import Entry
    from trainplane.kube.resource import Resource
    from trainplane.kube.store import Store
    from trainplane.operator.apply import Writer
    from trainplane.operator.stores import Stores

Runtime: TypeAlias = "Document[TrainingRuntime] | Document[ClusterTrainingRuntime]"


@dataclass(slots=True)
class FoundRuntime:
    """A runtime as it stands, and its text once somebody needed it."""

    document: Runtime
    _text: RuntimeText | None = field(default=None, repr=False)

    @property
    def text(self) -> RuntimeText:
        """The whole runtime as YAML, but for its resourceVersion: what is the same is written the same."""
        if self._text is None:
            tree = self.document.tree
            meta = {name: value for name, value in tree.get("metadata", {}).items() if name != "resourceVersion"}
            self._text = RuntimeText.of(yamltext.dump({**tree, "metadata": meta}))
        return self._text


@dataclass(frozen=True, slots=True)
class RuntimeText:
    """A runtime as a snapshot holds it."""

    yaml: str
    digest: str
    """By which it is known from then on."""
    json: msgspec.Raw
    """The YAML as a JSON string, ready to be sent with each TrainJob of the runtime."""

    @classmethod
    def of(cls, text: str) -> RuntimeText:
        """Return a text with its digest."""
        return cls(text, digest_of(text), msgspec.Raw(msgspec.json.encode(text)))


def digest_of(text: str) -> str:
    """Return the digest of a runtime's text, as `status.runtimeDigest` has it."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


class Runtimes:
    """The runtimes that TrainJobs name, from the stores, or from the API server where those do not know one yet."""

    def __init__(self, client: Client, stores: Stores) -> None:
        self._client = client
        self._stores: dict[str, tuple[Store, Resource]] = {
            names.TRAINING_RUNTIME: (stores.training_runtimes, TRAINING_RUNTIMES),
            names.CLUSTER_TRAINING_RUNTIME: (stores.cluster_training_runtimes, CLUSTER_TRAINING_RUNTIMES),
        }
        self._train_jobs = stores.train_jobs
        self._decoded: dict[tuple[str, Key], tuple[Entry, FoundRuntime]] = {}

    async def find(self, ref: RuntimeRef, namespace: str) -> FoundRuntime | None:
        """Return the runtime that a TrainJob in a namespace names, or None if there is none.

        Raises:
            RuntimeUnsupportedError: the reference names no kind of runtime.
        """
        known = self.seen(ref, namespace)
        if known is not None:
            return known
        _, resource = self._place(ref)
        try:
            tree = await self._client.get(resource, ref.name, namespace if resource.namespaced else None)
        except NotFoundError:
            return None
        return FoundRuntime(read(tree, ref.kind))

    def seen(self, ref: RuntimeRef, namespace: str) -> FoundRuntime | None:
        """Return the runtime as the mirror has it, or None if it does not know it; raises as `find`."""
        store, resource = self._place(ref)
        key = Key(namespace if resource.namespaced else "", ref.name)
        entry = store.entry(key)
        if entry is None:
            self._decoded.pop((ref.kind, key), None)
            return None
        known = self._decoded.get((ref.kind, key))
        if known is None or known[0] is not entry:  # not its version, which a restored server gives twice
            found = FoundRuntime(decode(entry.data, ref.kind))
            known = self._decoded[ref.kind, key] = entry, found
        return known[1]

    def users(self, kind: str, namespace: str, name: str, *, index: Literal["queued", "used"] = "queued") -> list[str]:
        """Return the unfinished TrainJobs that use a runtime, in Kueue's queues or all: as namespace/name, in order."""
        place = namespace if kind == names.TRAINING_RUNTIME else ""
        return sorted(map(str, self._train_jobs.by_index(index, used(kind, place, name))))

    def _place(self, ref: RuntimeRef) -> tuple[Store, Resource]:
        place = self._stores.get(ref.kind)
        if place is None or ref.api_group not in {names.GROUP, names.LEGACY_GROUP, ""}:
            raise RuntimeUnsupportedError(
                f"spec.runtimeRef: {names.runtime_key(ref.api_group, ref.kind)} is no kind of runtime: "
                f"name a {names.TRAINING_RUNTIME} or a {names.CLUSTER_TRAINING_RUNTIME} of {names.GROUP}"
            )
        return place


def decode(data: bytes, kind: str) -> Runtime:
    """Return the document of a runtime of either kind from its JSON; raises as `read`."""
    try:
        return read(document.decode_tree(data), kind)
    except DecodeError as error:
        raise SnapshotError(f"the {kind} cannot be read: {error}") from error


def read(tree: Tree, kind: str) -> Runtime:
    """Return the document of a runtime of either kind.

    Raises:
        SnapshotError: it is none; the message names the field.
    """
    meta = tree.get("metadata")
    if isinstance(meta, dict):
        meta.pop("managedFields", None)
    try:
        if kind == names.TRAINING_RUNTIME:
            return document.read(tree, TrainingRuntime)
        return document.read(tree, ClusterTrainingRuntime)
    except DecodeError as error:
        raise SnapshotError(f"the {kind} cannot be read: {error}") from error


class _Finalizers(msgspec.Struct, rename="camel"):
    finalizers: list[str] | None = None


class _Finalized(msgspec.Struct):
    metadata: _Finalizers


class FinalizerRemover:
    """Takes from runtimes the finalizer with which older releases kept them from being deleted while in use."""

    def __init__(self, writer: Writer, store: Store) -> None:
        self._writer = writer
        self._store = store

    async def reconcile(self, key: Key) -> Result:
        """Remove the finalizer, if it is there."""
        entry = self._store.entry(key)
        if entry is None:
            return DONE
        finalizers = entry.decode(_Finalized).metadata.finalizers or []
        if names.FINALIZER_IN_USE not in finalizers:
            return DONE
        kept = [finalizer for finalizer in finalizers if finalizer != names.FINALIZER_IN_USE]
        patch = {"metadata": {"resourceVersion": str(entry.resource_version), "finalizers": kept}}
        try:
            await self._writer.patch(self._store.resource, key, patch, content_type=MERGE_PATCH)
        except NotFoundError:
            return DONE
        return DONE
