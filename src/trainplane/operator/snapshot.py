"""The runtime as it was when a TrainJob began, kept in a ConfigMap of the TrainJob's own.

A runtime may be edited or deleted while TrainJobs run on it. Each TrainJob therefore goes on with the runtime that it
began with: `<name>-runtime-snapshot`, key `runtime`, the whole object as YAML, controlled by the TrainJob.

A snapshot is created, never applied: one that is there already holds, however it came to be there, if it is this
TrainJob's. So two operators, or one that crashed in between, agree on the first that was written.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from trainplane.api import names
from trainplane.kube.errors import AlreadyExistsError, NotFoundError
from trainplane.operator import yamltext
from trainplane.operator.errors import EarlierSelfError, RuntimeMissingError, SnapshotError
from trainplane.operator.resources import CONFIG_MAPS, owned_by
from trainplane.operator.runtimes import Runtime, read
from trainplane.operator.stores import Meta  # noqa: TC001 msgspec reads annotations as it runs

if TYPE_CHECKING:
    from trainplane.api.document import Document
    from trainplane.api.meta import ObjectMeta
    from trainplane.api.trainjob import RuntimeRef, TrainJob
    from trainplane.api.tree import Tree
    from trainplane.kube.client import Client
    from trainplane.operator.runtimes import Runtimes
    from trainplane.operator.writer import Writer

_SNAPSHOTS_DECODED = 128
"""Distinct snapshots kept decoded: one per version of each runtime in use, and TrainJobs of one version share it."""


class ConfigMap(msgspec.Struct, frozen=True):
    """What we read of a snapshot."""

    metadata: Meta
    data: dict[str, str] | None = None


class Snapshots:
    """Finds the runtime that each TrainJob began with, and keeps it if this is the beginning."""

    def __init__(self, client: Client, writer: Writer, runtimes: Runtimes) -> None:
        self._client = client
        self._writer = writer
        self._runtimes = runtimes

    async def runtime_of(self, job: Document[TrainJob], *, is_new: bool) -> Runtime:
        """Return the runtime of a TrainJob, after having seen to it that a snapshot of it exists.

        `is_new` is a guess that spares a read: there is probably no snapshot yet.

        Raises:
            RuntimeMissingError: neither the runtime nor a snapshot is there.
            SnapshotError: there is a snapshot that cannot be used.
            EarlierSelfError: the snapshot of an earlier TrainJob of this name is not gone yet.
        """
        meta, ref = job.view.metadata, job.view.spec.runtime_ref
        if not is_new:
            kept = await self.kept(meta, ref)
            if kept is not None:
                return kept
        runtime = await self._runtimes.find(ref, meta.namespace)
        if runtime is not None:
            try:
                await self._writer.create(CONFIG_MAPS, config_map(meta, runtime.text))
            except AlreadyExistsError:
                pass
            else:
                return runtime.document
        kept = await self.kept(meta, ref)
        if kept is not None:
            return kept
        if runtime is not None:
            raise EarlierSelfError(f"the snapshot {names.snapshot_name(meta.name)} came and went just now")
        raise RuntimeMissingError(
            f"spec.runtimeRef: {ref.kind} {ref.name!r} does not exist"
            + (f" in namespace {meta.namespace}" if ref.kind == names.TRAINING_RUNTIME else "")
            + ": create it, and the TrainJob goes on by itself"
        )

    async def kept(self, meta: ObjectMeta, ref: RuntimeRef) -> Runtime | None:
        """Return the runtime that a TrainJob's snapshot keeps, or None if there is no snapshot."""
        try:
            found = await self._client.get(CONFIG_MAPS, names.snapshot_name(meta.name), meta.namespace, type_=ConfigMap)
        except NotFoundError:
            return None
        return restore(found, meta, ref)


def config_map(job: ObjectMeta, text: msgspec.Raw | str) -> Tree:
    """Return the snapshot of a runtime for a TrainJob; `text` is its YAML, perhaps already a JSON string."""
    return {
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": CONFIG_MAPS.kind,
        "metadata": {
            "name": names.snapshot_name(job.name),
            "namespace": job.namespace,
            "ownerReferences": [owned_by(job)],
        },
        "data": {names.SNAPSHOT_KEY: text},
    }


def restore(found: ConfigMap, job: ObjectMeta, ref: RuntimeRef) -> Runtime:
    """Return the runtime that a snapshot keeps.

    Raises:
        SnapshotError: it is not this TrainJob's, holds no runtime, or another than the TrainJob names.
        EarlierSelfError: it belongs to a TrainJob of the same name that was deleted.
    """
    name = f"ConfigMap {found.metadata.name}"
    owner = found.metadata.controller
    if owner is None or owner.uid != job.uid:
        if owner is not None and (owner.kind, owner.name) == (names.TRAIN_JOB, job.name):
            raise EarlierSelfError(f"{name} belongs to an earlier TrainJob of this name and is about to be removed")
        raise SnapshotError(
            f"{name} is not controlled by this TrainJob: delete or rename it, the TrainJob needs this name for the "
            "snapshot of its runtime"
        )
    text = (found.data or {}).get(names.SNAPSHOT_KEY)
    if text is None:
        raise SnapshotError(f"{name} has no key {names.SNAPSHOT_KEY!r}: delete it, and the runtime is kept anew")
    runtime = _decoded(text, name, ref.kind)
    _check(runtime.tree, ref, name)
    return runtime


@lru_cache(maxsize=_SNAPSHOTS_DECODED)
def _decoded(text: str, name: str, kind: str) -> Runtime:
    advice = "delete it, and the runtime is kept anew"
    try:
        tree = yamltext.load(text)
    except yaml.YAMLError as error:
        raise SnapshotError(f"{name} holds no YAML: {error}: {advice}") from error
    if not isinstance(tree, dict):
        raise SnapshotError(f"{name} holds no object: {advice}")
    return read(tree, kind)


def _check(tree: Tree, ref: RuntimeRef, name: str) -> None:
    meta: Any = tree.get("metadata") or {}
    found = (tree.get("apiVersion", "").rpartition("/")[0], tree.get("kind"), meta.get("name"))
    group = names.GROUP if ref.api_group in {"", names.LEGACY_GROUP} else ref.api_group
    if found != (group, ref.kind, ref.name):
        raise SnapshotError(
            f"{name} keeps {found[1]}.{found[0]} {found[2]!r}, but spec.runtimeRef names {ref.kind}.{group} "
            f"{ref.name!r}: delete it, and the runtime is kept anew"
        )
