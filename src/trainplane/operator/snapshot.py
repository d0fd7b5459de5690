"""The runtime as it was when a TrainJob began, kept in a ConfigMap of the TrainJob's own.

A runtime may be edited or deleted while TrainJobs run on it. Each TrainJob therefore goes on with the runtime that it
began with: `<name>-runtime-snapshot`, key `runtime`, the whole object as YAML, controlled by the TrainJob, immutable.

**The ConfigMap is a place to keep a text, not a reason to believe it.** Whoever may write ConfigMaps could put another
template there, while Kueue counts by the runtime. So the digest of the text stands in the TrainJob's status, which its
author cannot write, and from then on the runtime is whatever has that digest, wherever it is found: in memory, in the
runtime as it stands, in the ConfigMap. As long as no digest is recorded, a snapshot that is there already must be shown
to be true: it says what the runtime says now, or it is what the TrainJob's JobSet was made from.

A snapshot is created, never applied: two operators, or one that crashed in between, agree on the first.

One that the reference took went through Go's types: amounts are written anew, and what is empty was dropped or added.
Nothing else may differ from the runtime as it stands (`are_alike`), or a snapshot that somebody planted would pass for
it. So False and 0 count as absent only in fields where they mean the same: `automountServiceAccountToken: false` does
not.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
import yaml

from trainplane.api import names
from trainplane.api.errors import QuantityError
from trainplane.api.quantity import Quantity
from trainplane.kube.errors import AlreadyExistsError, NotFoundError
from trainplane.operator import yamltext
from trainplane.operator.adoption import check_owner, owned_by
from trainplane.operator.errors import (
    EarlierSelfError,
    OperatorError,
    RuntimeMissingError,
    SnapshotChangedError,
    SnapshotError,
    SnapshotMissingError,
)
from trainplane.operator.runtimes import FoundRuntime, Runtime, digest_of, read
from trainplane.operator.stores import Meta  # noqa: TC001 msgspec reads annotations as it runs
from trainplane.resources import CONFIG_MAPS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trainplane.api.meta import ObjectMeta
    from trainplane.api.trainjob import RuntimeRef, TrainJob
    from trainplane.api.tree import Tree
    from trainplane.kube.client import Client
    from trainplane.operator.apply import Writer
    from trainplane.operator.runtimes import Runtimes, RuntimeText

_ANEW = "delete the TrainJob and create it anew, to run with the runtime as it is now"
_DELETE = "delete it, and the runtime is kept anew"
_ZERO_IS_ABSENT: Final = frozenset(
    {"divisor", "hostIPC", "hostNetwork", "hostPID", "jobIndex", "podIndex", "readOnly", "stdin", "stdinOnce", "tty"}
)
"""Fields that are no pointers in Go's types, so that a zero which somebody wrote is not written again."""
_MAPS_OF_AMOUNTS: Final = frozenset({"limits", "overhead", "requests"})
_AMOUNTS: Final = frozenset({"divisor", "sizeLimit"})
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_RUNTIMES_KNOWN = 128
"""Runtimes kept decoded, by digest: one per version of each runtime in use, and TrainJobs of one version share it."""

MadeFrom: TypeAlias = "Callable[[Runtime], Awaitable[bool]]"
"""Says whether the JobSet that a TrainJob has was made from a runtime."""


class ConfigMap(msgspec.Struct, frozen=True):
    """What we read of a snapshot."""

    metadata: Meta
    data: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """The runtime that a TrainJob began with, and the digest to record."""

    runtime: Runtime
    digest: str
    is_new: bool = False
    """Whether the snapshot was created just now: then nothing of the TrainJob can have been made before."""


class Snapshots:
    """Finds the runtime that each TrainJob began with, and keeps it if this is the beginning."""

    def __init__(self, client: Client, writer: Writer, runtimes: Runtimes) -> None:
        self._client = client
        self._writer = writer
        self._runtimes = runtimes
        self._known: OrderedDict[str, Runtime] = OrderedDict()

    async def keep(self, job: TrainJob, made_from: MadeFrom | None) -> Kept:
        """Return the runtime of a TrainJob of which no digest is recorded, and see to it that a snapshot exists.

        `made_from` is there if the TrainJob has a JobSet. If it has none, there is probably no snapshot either, and
        trying to create one spares a read.

        Raises:
            RuntimeMissingError: neither the runtime nor a snapshot is there.
            SnapshotError: there is a snapshot that cannot be used, or of which nothing shows that it is true.
            ForeignObjectError, EarlierSelfError: there is a snapshot that is not this TrainJob's.
        """
        meta, ref = job.metadata, job.spec.runtime_ref
        live = await self._runtimes.find(ref, meta.namespace)
        if made_from is None and live is not None and await self._create(meta, live.text):
            return self._remember(live.document, live.text.digest, is_new=True)
        found = await self._read(meta)
        if found is None:
            if live is None:
                raise _missing(meta, ref)
            if made_from is None or not await self._create(meta, live.text):
                raise EarlierSelfError(f"ConfigMap {names.snapshot_name(meta.name)} came and went just now")
            return self._remember(live.document, live.text.digest)
        text = own_text(found, meta)
        if live is not None and text == live.text.yaml:
            return self._remember(live.document, live.text.digest)
        runtime = decode(text, ref, found.metadata.name)
        if live is not None and are_alike(runtime.tree, live.document.tree):
            return self._remember(runtime, digest_of(text))
        if made_from is not None and await made_from(runtime):
            return self._remember(runtime, digest_of(text))
        raise _unproven(found.metadata.name, ref, is_gone=live is None)

    async def recorded(self, meta: ObjectMeta, ref: RuntimeRef, digest: str) -> Runtime:
        """Return the runtime that has the digest which a TrainJob's status records.

        Raises:
            SnapshotChangedError: the runtime has changed, and so has the snapshot.
            SnapshotMissingError: the runtime has changed, and the snapshot is gone.
        """
        known = self._known.get(digest)
        if known is not None:
            self._known.move_to_end(digest)
            return known
        try:
            live = await self._runtimes.find(ref, meta.namespace)
        except OperatorError:
            live = None
        if live is not None and live.text.digest == digest:
            return self._remember(live.document, digest).runtime
        found = await self._read(meta)
        name, runtime = names.snapshot_name(meta.name), f"{ref.kind} {ref.name!r}"
        if found is None:
            raise SnapshotMissingError(
                f"ConfigMap {name} is gone, and {runtime} is not what it was when the TrainJob began "
                f"(status.runtimeDigest): {_ANEW}"
            )
        text = (found.data or {}).get(names.SNAPSHOT_KEY, "")
        if digest_of(text) != digest:
            raise SnapshotChangedError(
                f"ConfigMap {name} is not what the TrainJob began with: its digest is not that of "
                f"status.runtimeDigest, so what it holds is not run, and {runtime} has changed as well: {_ANEW}"
            )
        return self._remember(decode(text, ref, name), digest).runtime

    async def restore(self, meta: ObjectMeta, ref: RuntimeRef, digest: str) -> bool:
        """Keep once more the runtime that has the digest which a TrainJob's status records; False if it cannot be.

        Only a text that has that digest: the runtime as it stands may say something else by now, and so may a runtime
        that the reference once wrote down and we would write otherwise. Where nobody knows the text there is nothing to
        keep; what runs needs none.
        """
        text = self._text(meta, ref, digest)
        return text is not None and await self._create(meta, text)

    def _text(self, meta: ObjectMeta, ref: RuntimeRef, digest: str) -> RuntimeText | None:
        try:
            live = self._runtimes.seen(ref, meta.namespace)
        except OperatorError:
            live = None
        known = self._known.get(digest)
        for found in (live, None if known is None else FoundRuntime(known)):
            if found is not None and found.text.digest == digest:
                return found.text
        return None

    async def _read(self, meta: ObjectMeta) -> ConfigMap | None:
        try:
            return await self._client.get(CONFIG_MAPS, names.snapshot_name(meta.name), meta.namespace, type_=ConfigMap)
        except NotFoundError:
            return None

    async def _create(self, meta: ObjectMeta, text: RuntimeText) -> bool:
        """Create the snapshot; False if there is one."""
        try:
            await self._writer.create(CONFIG_MAPS, config_map(meta, text.json))
        except AlreadyExistsError:
            return False
        return True

    def _remember(self, runtime: Runtime, digest: str, *, is_new: bool = False) -> Kept:
        self._known[digest] = runtime
        self._known.move_to_end(digest)
        if len(self._known) > _RUNTIMES_KNOWN:
            self._known.popitem(last=False)
        return Kept(runtime, digest, is_new)


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
        "immutable": True,
        "data": {names.SNAPSHOT_KEY: text},
    }


def own_text(found: ConfigMap, job: ObjectMeta) -> str:
    """Return what a snapshot holds, if it says that it is a TrainJob's.

    Raises:
        ForeignObjectError, EarlierSelfError: it is not this TrainJob's (`adoption.check_owner`).
        SnapshotError: it holds nothing.
    """
    check_owner(CONFIG_MAPS.kind, found.metadata, job)
    text = (found.data or {}).get(names.SNAPSHOT_KEY)
    if text is None:
        raise SnapshotError(f"ConfigMap {found.metadata.name} has no key {names.SNAPSHOT_KEY!r}: {_DELETE}")
    return text


def decode(text: str, ref: RuntimeRef, name: str) -> Runtime:
    """Return the runtime that the text of a snapshot is.

    Raises:
        SnapshotError: it is none, or another than the TrainJob names.
    """
    try:
        tree = yamltext.load(text)
    except yaml.YAMLError as error:
        raise SnapshotError(f"ConfigMap {name} holds no YAML: {error}: {_DELETE}") from error
    if not isinstance(tree, dict):
        raise SnapshotError(f"ConfigMap {name} holds no object: {_DELETE}")
    runtime = read(tree, ref.kind)
    meta: Any = tree.get("metadata") or {}
    found = (str(tree.get("apiVersion")).rpartition("/")[0], tree.get("kind"), meta.get("name"))
    group = names.GROUP if ref.api_group in {"", names.LEGACY_GROUP} else ref.api_group
    if found != (group, ref.kind, ref.name):
        raise SnapshotError(
            f"ConfigMap {name} keeps {found[1]}.{found[0]} {found[2]!r}, but spec.runtimeRef names {ref.kind}.{group} "
            f"{ref.name!r}: {_DELETE}"
        )
    return runtime


def _missing(meta: ObjectMeta, ref: RuntimeRef) -> RuntimeMissingError:
    place = f" in namespace {meta.namespace}" if ref.kind == names.TRAINING_RUNTIME else ""
    return RuntimeMissingError(
        f"spec.runtimeRef: {ref.kind} {ref.name!r} does not exist{place}: create it, and the TrainJob goes on by itself"
    )


def _unproven(name: str, ref: RuntimeRef, *, is_gone: bool) -> SnapshotError:
    runtime = f"{ref.kind} {ref.name!r}"
    if is_gone:
        return SnapshotError(
            f"spec.runtimeRef: {runtime} does not exist, and nothing shows that ConfigMap {name} is what it was: "
            "create the runtime, and the TrainJob goes on by itself"
        )
    return SnapshotError(
        f"ConfigMap {name} was not kept by this controller and does not say what {runtime} says: delete it, and the "
        "runtime is kept as it is now"
    )


def are_alike(one: Tree, other: Tree) -> bool:
    """Return whether every TrainJob becomes the same of two runtimes."""
    return bool(_meaning(one) == _meaning(other))


def _meaning(runtime: Tree) -> Any:
    """Return all of a runtime that rendering looks at, in one form."""
    meta = runtime.get("metadata") or {}
    identity = (runtime.get("apiVersion"), runtime.get("kind"), meta.get("namespace") or "", meta.get("name"))
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key != _LAST_APPLIED}
    return *identity, meta.get("labels") or {}, annotations, _plain(runtime.get("spec"))


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if isinstance(value, dict):
        plain = {name: _field(name, entry) for name, entry in value.items()}
        return {name: entry for name, entry in plain.items() if not _is_absent(name, entry)}
    return value


def _field(name: str, value: Any) -> Any:
    if name in _MAPS_OF_AMOUNTS and isinstance(value, dict):
        return {resource: _amount(amount) for resource, amount in value.items()}
    return _amount(value) if name in _AMOUNTS else _plain(value)


def _amount(value: Any) -> Any:
    try:
        return Quantity.of(value).nanos
    except QuantityError:
        return _plain(value)


def _is_absent(name: str, value: Any) -> bool:
    return value in (None, "", [], {}) or (name in _ZERO_IS_ABSENT and not value)
