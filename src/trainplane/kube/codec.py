"""Bytes to objects and back: cached decoders, line framing, Status to exceptions.

Lists and watch events hold their objects as `msgspec.Raw`, the untouched JSON text, so that whoever takes them decodes
each once, into the type it wants. A Raw of a page is a view that keeps the whole page's bytes alive: store
`bytes(raw)`, not the Raw.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import msgspec

from trainplane.kube.errors import ApiError, DecodeError, StreamError, error_class
from trainplane.kube.resource import Key

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

T = TypeVar("T")

LINE_MAX = 256 << 20
"""Bytes of the longest line accepted. etcd refuses objects of a few MB; this only stops a stream that never breaks."""

LONGEST_RETRY = 86400
"""Seconds of the longest wait that a server may ask for and be believed."""

MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoders raise for bytes that are no JSON, do not fit their type, are no UTF-8, or are nested without sense."""


class Page(msgspec.Struct, frozen=True):
    """One page of a list. `remaining` is the server's estimate of what follows, None where it gives none."""

    items: list[msgspec.Raw]
    resource_version: str
    remaining: int | None = None
    next: str = ""


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """One change: `type` is ADDED, MODIFIED, DELETED, BOOKMARK or, before the client turns it into a raise, ERROR."""

    type: str
    object: msgspec.Raw


class ListMeta(msgspec.Struct, rename="camel", gc=False):
    """The part of a list's metadata that paging needs."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class ListOf(msgspec.Struct, Generic[T]):
    """A list whose items are decoded, or kept raw, in the same pass. The server may send `items: null`."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[T] | None = None


class _Status(msgspec.Struct, gc=False):
    kind: str = ""
    status: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: dict[str, Any] | None = None


@cache
def decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    """Return the one decoder of a type; building one costs as much as decoding hundreds of objects."""
    return msgspec.json.Decoder(type_)


_encoder = msgspec.json.Encoder()


def encode(value: Any) -> bytes:
    """Return the JSON of an object, whether a tree, a Struct or already encoded (bytes pass through)."""
    return value if isinstance(value, bytes) else _encoder.encode(value)


def decode(data: bytes | msgspec.Raw, type_: type[T]) -> T:
    """Return `data` as `type_`; raises DecodeError that says what did not fit and where."""
    if type_ is bytes:
        return bytes(data)  # type: ignore[return-value] # the caller asked for the text itself
    try:
        value: T = decoder(cast("Any", type_)).decode(data)
    except MALFORMED as error:
        name = getattr(type_, "__name__", str(type_))
        raise DecodeError(f"the server's answer is not {name}: {error}; it begins {bytes(data)[:120]!r}") from error
    return value


class _Named(msgspec.Struct, gc=False):
    name: str | None = None
    namespace: str | None = None


class _Object(msgspec.Struct, gc=False):
    metadata: _Named


def key_of(obj: Any) -> Key:
    """Return who an object says it is, whether a tree, a Struct or encoded; what it does not say is empty."""
    if isinstance(obj, dict):
        tree = obj.get("metadata") or {}
        return Key(tree.get("namespace") or "", tree.get("name") or "")
    meta = decode(obj, _Object).metadata if isinstance(obj, bytes) else obj.metadata
    return Key(getattr(meta, "namespace", None) or "", getattr(meta, "name", None) or "")


def decode_page(data: bytes) -> Page:
    """Return a page with raw items: one scan over the bytes, no object built per item."""
    listing = decode(data, ListOf[msgspec.Raw])
    meta = listing.metadata
    return Page(listing.items or [], meta.resource_version, meta.remaining_item_count, meta.continue_)


def decode_event(line: bytes) -> WatchEvent:
    """Return the event of a line; raises StreamError for a line that is none, the typed ApiError for an ERROR event."""
    try:
        event: WatchEvent = decoder(WatchEvent).decode(line)
    except MALFORMED as error:
        raise StreamError(f"a watch stream carried {line[:120]!r} of {len(line)} bytes: {error}") from error
    if event.type == "ERROR":
        raise error_from_status(bytes(event.object))
    return event


def error_from_status(body: bytes, code: int = 500, headers: Mapping[str, str] | None = None) -> ApiError:
    """Return the typed error for an answer of failure, also when its body is no Status (a proxy's page, say)."""
    try:
        status = decoder(_Status).decode(body)
        is_status = status.kind == "Status" or bool(status.reason)
    except MALFORMED:
        status, is_status = _Status(), False
    if not is_status:
        status = _Status(message=body[:300].decode("utf-8", "replace").strip())
    details = status.details or {}
    retry_after = retry_after_seconds(headers or {})
    asked = details.get("retryAfterSeconds")
    if retry_after is None and isinstance(asked, int | float) and 0 < asked < LONGEST_RETRY:
        retry_after = float(asked)
    code = status.code or code
    class_ = error_class(code, status.reason)
    return class_(status.message, code=code, reason=status.reason or None, details=details, retry_after=retry_after)


def retry_after_seconds(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return how long `Retry-After` asks to wait, at most `LONGEST_RETRY`; None without one or with nonsense.

    A date counts against `now`, or, without it, against the answer's own `Date`, which needs no common clock.
    """
    value = headers.get("Retry-After")
    if value is None:
        return None
    if value.strip().isdecimal() and value.isascii():
        return min(float(value), LONGEST_RETRY)
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 slow to import, and servers hardly ever send a date

    try:
        until = parsedate_to_datetime(value)
        since = now or parsedate_to_datetime(headers["Date"])
        return min(max(0.0, (until - since).total_seconds()), LONGEST_RETRY)
    except (ValueError, TypeError, KeyError):
        return None


class Lines:
    """Cuts a stream of chunks into lines, at a cost linear in its bytes however it is split.

    Chunks of an unfinished line are kept aside and joined once, when its end arrives; only new bytes are searched.
    """

    def __init__(self, line_max: int = LINE_MAX) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._line_max = line_max

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that `chunk` completes, without their newlines; raises StreamError past `line_max`."""
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._parts:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
        if lines:
            self._parts.clear()
            self._size = 0
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
            if self._size > self._line_max:
                raise StreamError(f"a line of the stream is longer than {self._line_max} bytes")
        return lines

    def rest(self) -> bytes:
        """Return what came after the last newline: empty when the stream ended where a line did."""
        return b"".join(self._parts)
