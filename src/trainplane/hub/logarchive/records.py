"""What stands on the volume beside the lines: small records, each with a version and a digest.

    {"version": 2, "digest": "sha256:…", "record": {…}}

A record that does not fit its digest, its type or its place is not believed (`RecordError`): a disk lies, a file is put
where it does not belong, a newer release wrote it. Version 1 had the record alone, and is still read.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Final, TypeVar, cast

import msgspec
from msgspec import Meta

from trainplane.api import names
from trainplane.hub.errors import RecordError
from trainplane.hub.logarchive.pod import UNREADABLE, Name
from trainplane.hub.logarchive.testimony import NOTHING_TOLD, Testimony
from trainplane.kube.codec import decoder

T = TypeVar("T")

VERSION: Final = 2
RECORD_BYTES: Final = 1 << 20
"""Bytes of the longest record that is read; ours have some KB, and those of version 1 had whole pods."""

_Text = Annotated[str, Meta(max_length=253)]
_Kind = Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9]*\Z", max_length=63)]


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a job itself. Times are seconds since 1970, of the hub's clock."""

    uid: Name
    namespace: Name
    name: Name
    seen: float
    """When we first kept something of it."""
    namespace_uid: _Text = ""
    """Which namespace of that name it is in: one that is deleted and made again is another. Empty in what a release
    before this one wrote, until its TrainJob is seen."""
    kind: _Kind = names.TRAIN_JOB
    """Of which kind it is; those that older releases kept are TrainJobs."""
    finished: float | None = None
    deleted: float | None = None
    told: Testimony = NOTHING_TOLD
    """What the operator of its cluster told of it last."""


class PodRecord(msgspec.Struct, frozen=True):
    """A pod as last seen, and where."""

    cluster: _Text
    """The worker; empty for the hub itself."""
    pod: msgspec.Raw
    job: _Text = ""
    """The uid of its job; empty in version 1."""
    seen: float = 0.0
    """When the hub first kept it, in seconds since 1970 of the hub's clock; 0 in what an older release wrote."""


class EndRecord(msgspec.Struct, frozen=True):
    """That a log was read to its end."""

    of: _Text
    """Whose: the job's uid, the pod's, and the name of the run."""
    reason: _Text
    end: int
    """Bytes ever kept of it: more than are there show that some were lost."""


class _Envelope(msgspec.Struct):
    version: int
    digest: str
    record: msgspec.Raw


def encode(record: msgspec.Struct) -> bytes:
    """Return a record as it stands on the volume."""
    text = msgspec.json.encode(record)
    return b'{"version":%d,"digest":"%s","record":%s}\n' % (VERSION, _digest(text).encode(), text)


def decode(data: bytes, type_: type[T]) -> T:
    """Return a record; raises RecordError."""
    try:
        envelope = decoder(_Envelope).decode(data)
    except msgspec.ValidationError:
        return _decode(data, type_)  # version 1, or nothing
    except UNREADABLE as error:
        raise RecordError(f"it is no record: {error}") from error
    if envelope.version != VERSION:
        raise RecordError(f"it is of version {envelope.version}, and this release reads up to {VERSION}")
    if _digest(bytes(envelope.record)) != envelope.digest:
        raise RecordError("it does not fit its digest")
    return _decode(bytes(envelope.record), type_)


def _decode(data: bytes, type_: type[T]) -> T:
    try:
        found: T = decoder(cast("Any", type_)).decode(data)
    except UNREADABLE as error:
        raise RecordError(f"it is no {type_.__name__}: {error}") from error
    return found


def _digest(text: bytes) -> str:
    return f"sha256:{hashlib.sha256(text).hexdigest()}"
