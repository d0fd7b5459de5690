"""The words of admission.k8s.io/v1: what the API server asks and what a webhook answers.

`object` and `oldObject` stay undecoded, so a handler pays only for what it looks at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import msgspec

from trainplane.kube.codec import MALFORMED, decoder
from trainplane.kube.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

T = TypeVar("T")

API_VERSION = "admission.k8s.io/v1"

_ABSENT = (b"", b"null")

_REASONS = {400: "BadRequest", 403: "Forbidden", 409: "Conflict", 422: "Invalid", 500: "InternalError", 504: "Timeout"}


class GroupVersionKind(msgspec.Struct, frozen=True):
    """A kind; `group` is empty for the core group."""

    kind: str = ""
    version: str = ""
    group: str = ""


class GroupVersionResource(msgspec.Struct, frozen=True):
    """A resource; `group` is empty for the core group."""

    resource: str = ""
    version: str = ""
    group: str = ""


class UserInfo(msgspec.Struct, frozen=True):
    """Who asks."""

    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class AdmissionRequest(msgspec.Struct, rename="camel", frozen=True):
    """One question: may this be done?

    `kind` and `resource` are what the webhook was registered for, `request_kind` and `request_resource` what the
    user sent, where the API server converted. `object` is empty on DELETE, `old_object` on CREATE.
    """

    uid: str
    operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
    kind: GroupVersionKind = GroupVersionKind()
    resource: GroupVersionResource = GroupVersionResource()
    sub_resource: str = ""
    request_kind: GroupVersionKind | None = None
    request_resource: GroupVersionResource | None = None
    request_sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    user_info: UserInfo = UserInfo()
    object: msgspec.Raw = msgspec.Raw()
    old_object: msgspec.Raw = msgspec.Raw()
    dry_run: bool | None = None
    options: msgspec.Raw = msgspec.Raw()

    def decode(self, type_: type[T]) -> T:
        """Return `object` as a type; raises DecodeError, which becomes a denial that quotes it."""
        return self._decode("object", self.object, type_)

    def decode_old(self, type_: type[T]) -> T:
        """Return `oldObject` as a type; raises DecodeError as `decode` does."""
        return self._decode("oldObject", self.old_object, type_)

    def _decode(self, field: str, raw: msgspec.Raw, type_: type[T]) -> T:
        if bytes(raw) in _ABSENT:
            raise DecodeError(f"{field} is empty in this {self.operation} review")
        try:
            value: T = decoder(cast("Any", type_)).decode(raw)
        except MALFORMED as error:
            raise DecodeError(f"{field}: {error}") from error
        return value


class AdmissionReview(msgspec.Struct, rename="camel", frozen=True):
    """What the API server posts."""

    api_version: Literal["admission.k8s.io/v1"]
    kind: Literal["AdmissionReview"]
    request: AdmissionRequest


class Verdict(msgspec.Struct, frozen=True):
    """A webhook's answer. Made with `allow`, `mutate` and `deny`.

    `warnings` are shown by kubectl to whoever asked; the API server cuts what is longer than 256 characters each and
    4,096 together. `patch` is a list of JSON Patch operations.
    """

    allowed: bool
    code: int = 200
    reason: str = ""
    message: str = ""
    patch: Sequence[Mapping[str, Any]] = ()
    warnings: tuple[str, ...] = ()


_ALLOWED = Verdict(allowed=True)


def allow(*, warnings: Iterable[str] = ()) -> Verdict:
    """Let it pass."""
    return Verdict(allowed=True, warnings=tuple(warnings)) if warnings else _ALLOWED


def mutate(patch: Sequence[Mapping[str, Any]], *, warnings: Iterable[str] = ()) -> Verdict:
    """Let it pass with JSON Patch operations on it; none is the same as `allow`."""
    return Verdict(allowed=True, patch=patch, warnings=tuple(warnings))


def deny(message: str, *, code: int = 403, reason: str | None = None, warnings: Iterable[str] = ()) -> Verdict:
    """Refuse, with the HTTP code the user's client will get; `reason` follows from the code unless given."""
    why = _REASONS.get(code, "") if reason is None else reason
    return Verdict(allowed=False, code=code, reason=why, message=message, warnings=tuple(warnings))


class _Status(msgspec.Struct, omit_defaults=True):
    code: int
    message: str = ""
    reason: str = ""


class _Response(msgspec.Struct, rename="camel", omit_defaults=True):
    uid: str
    allowed: bool
    status: _Status | None = None
    patch: bytes | None = None  # msgspec writes bytes as base64, which is what the field wants
    patch_type: str | None = None
    warnings: tuple[str, ...] = ()


class _Answer(msgspec.Struct, rename="camel"):
    response: _Response
    api_version: str = API_VERSION
    kind: str = "AdmissionReview"


_encoder = msgspec.json.Encoder()


def encode_answer(uid: str, verdict: Verdict) -> bytes:
    """Return the AdmissionReview that carries the verdict on request `uid`."""
    response = _Response(uid, verdict.allowed, warnings=verdict.warnings)
    if not verdict.allowed:
        response.status = _Status(verdict.code, verdict.message, verdict.reason)
    elif verdict.patch:
        response.patch, response.patch_type = _encoder.encode(verdict.patch), "JSONPatch"
    return _encoder.encode(_Answer(response))
