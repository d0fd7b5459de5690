"""What can go wrong between us and a cluster.

```
KubeError
├── ConfigError              the kubeconfig or the pod's mounts cannot be used               user
│   └── CredentialError      a token file, certificate or exec plugin gave nothing usable    user
├── TransportError           no answer: reset, timed out, garbled HTTP          retryable    cluster
│   └── ConnectError         not even connected, so nothing was sent            retryable    cluster
│       └── HandshakeError   connected, but one side does not trust the other's certificate  user
├── StreamError              a watch, log or exec stream was cut or garbled     retryable    cluster
├── DecodeError              an answer that does not fit the type asked for                  ours
├── LeadershipLostError      we led and no longer do: exit (lease.py)                        cluster
├── CertificateError         a certificate or key that cannot be served (certificates.py)    user
└── ApiError                 the API server said no; told apart by its reason
    ├── BadRequestError          400                                                         ours
    ├── UnauthorizedError        401                                                         user
    ├── ForbiddenError           403                                                         user
    ├── NotFoundError            404                                                         user
    ├── MethodNotAllowedError    405                                                         ours
    ├── ConflictError            409 an older resourceVersion or a foreign field    retryable    ours
    ├── AlreadyExistsError       409 the name is taken                                       user
    ├── GoneError                410 the resourceVersion or continue token expired           ours
    ├── TooLargeError            413                                                         user
    ├── UnsupportedMediaError    415                                                         ours
    ├── InvalidError             422 the object breaks its schema                            user
    ├── TooManyRequestsError     429                                            retryable    cluster
    ├── InternalServerError      500 and any 5xx without a place of its own     retryable    cluster
    ├── UnavailableError         502, 503                                       retryable    cluster
    └── ServerTimeoutError       504, or 500 with reason ServerTimeout          retryable    cluster
```

`retryable` says that the same call may succeed later with nothing changed by a person (a ConflictError: after a fresh
read; a GoneError is not, since the same resourceVersion never comes back). `whose` says who has to act.
"""

from __future__ import annotations

import copyreg
import functools
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

Whose = Literal["user", "ours", "cluster"]


class KubeError(Exception):
    """Anything this room raises on purpose."""

    retryable: ClassVar[bool] = False
    whose: ClassVar[Whose] = "ours"
    in_doubt: bool = False
    """Whether what was asked may have been done all the same: this, or an earlier try, does not tell."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel between processes as it is: the words of an error are no arguments to make it from."""
        state = {"args": self.args, **self.__dict__}
        return copyreg.__newobj__, (type(self), *self.args), state  # type: ignore[attr-defined] # pickle's own


class ConfigError(KubeError):
    """The way to the cluster is described wrongly or not at all."""

    whose = "user"


class CredentialError(ConfigError):
    """The description is sound, but what it points at gave no usable credential."""


class TransportError(KubeError):
    """No answer came, and whether the server acted on the request is unknown.

    Its message has all that the HTTP client said and may be told; the client's own errors, which show whole requests
    with their credentials, are never its cause.
    """

    retryable = True
    whose: ClassVar[Whose] = "cluster"
    in_doubt = True

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out
        """Whether it was patience that ended, which may be a sign of an overloaded server."""


class ConnectError(TransportError):
    """No connection was made: the server cannot have seen the request, so any verb may be repeated."""

    in_doubt = False


class HandshakeError(ConnectError):
    """TLS failed: an authority, a server name or a client certificate does not match what the cluster uses."""

    retryable = False
    whose = "user"


class StreamError(KubeError):
    """A stream ended where it must not, or carried something that is no event."""

    retryable = True
    whose = "cluster"


class DecodeError(KubeError):
    """The server's answer is not JSON or does not fit the type that the caller asked for."""


class ApiError(KubeError):
    """The API server answered with a Status of failure.

    `code`, `reason`, `message` and `details` are the Status's own; `retry_after` is the number of seconds the server
    asked us to wait, from the header or from `details.retryAfterSeconds`, or None.
    """

    default_code: ClassVar[int] = 500
    default_reason: ClassVar[str] = "Unknown"

    def __init__(
        self,
        message: str = "",
        *,
        code: int | None = None,
        reason: str | None = None,
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.code = self.default_code if code is None else code
        self.reason = self.default_reason if reason is None else reason
        self.message = message
        self.details: Mapping[str, Any] = {} if details is None else details
        self.retry_after = retry_after
        super().__init__(f"{self.code} {self.reason}: {message}" if message else f"{self.code} {self.reason}")

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[str]]:
        """Let it be raised again in another process: it is not made from its words."""
        status: dict[str, Any] = {
            "code": self.code,
            "reason": self.reason,
            "details": self.details,
            "retry_after": self.retry_after,
        }
        return functools.partial(type(self), **status), (self.message,)


class BadRequestError(ApiError):
    """The request itself is malformed."""

    default_code, default_reason = 400, "BadRequest"


class UnauthorizedError(ApiError):
    """The credentials are missing, expired or unknown to the cluster."""

    default_code, default_reason, whose = 401, "Unauthorized", "user"


class ForbiddenError(ApiError):
    """The cluster knows us and does not let us: a missing Role, a quota, an admission policy."""

    default_code, default_reason, whose = 403, "Forbidden", "user"


class NotFoundError(ApiError):
    """No such object, or no such resource (a CRD that is not installed)."""

    default_code, default_reason, whose = 404, "NotFound", "user"


class MethodNotAllowedError(ApiError):
    """The resource does not know this verb."""

    default_code, default_reason = 405, "MethodNotAllowed"


class ConflictError(ApiError):
    """Somebody wrote in between, or owns a field we apply without force."""

    default_code, default_reason, retryable = 409, "Conflict", True


class AlreadyExistsError(ApiError):
    """An object of that name is there already."""

    default_code, default_reason, whose = 409, "AlreadyExists", "user"


class GoneError(ApiError):
    """The resourceVersion or continue token is older than the server's memory: list again."""

    default_code, default_reason = 410, "Expired"


class TooLargeError(ApiError):
    """The object is bigger than the server stores."""

    default_code, default_reason, whose = 413, "RequestEntityTooLarge", "user"


class UnsupportedMediaError(ApiError):
    """The server does not speak the content type we sent."""

    default_code, default_reason = 415, "UnsupportedMediaType"


class InvalidError(ApiError):
    """The object breaks its schema or an admission rule; `details["causes"]` names the fields."""

    default_code, default_reason, whose = 422, "Invalid", "user"


class TooManyRequestsError(ApiError):
    """The server sheds load, or a disruption budget holds an eviction back."""

    default_code, default_reason, retryable, whose = 429, "TooManyRequests", True, "cluster"


class InternalServerError(ApiError):
    """The server failed inside; a webhook that cannot be reached looks like this too."""

    default_code, default_reason, retryable, whose = 500, "InternalError", True, "cluster"


class UnavailableError(ApiError):
    """The server, or what stands behind it, is not serving now."""

    default_code, default_reason, retryable, whose = 503, "ServiceUnavailable", True, "cluster"


class ServerTimeoutError(ApiError):
    """The server gave up waiting; it may or may not have done what we asked."""

    default_code, default_reason, retryable, whose = 504, "Timeout", True, "cluster"
    in_doubt = True


_BY_REASON: dict[str, type[ApiError]] = {
    "BadRequest": BadRequestError,
    "Unauthorized": UnauthorizedError,
    "Forbidden": ForbiddenError,
    "NotFound": NotFoundError,
    "MethodNotAllowed": MethodNotAllowedError,
    "Conflict": ConflictError,
    "AlreadyExists": AlreadyExistsError,
    "Gone": GoneError,
    "Expired": GoneError,
    "RequestEntityTooLarge": TooLargeError,
    "UnsupportedMediaType": UnsupportedMediaError,
    "Invalid": InvalidError,
    "TooManyRequests": TooManyRequestsError,
    "InternalError": InternalServerError,
    "ServiceUnavailable": UnavailableError,
    "ServerTimeout": ServerTimeoutError,
    "Timeout": ServerTimeoutError,
}

_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    405: MethodNotAllowedError,
    409: ConflictError,
    410: GoneError,
    413: TooLargeError,
    415: UnsupportedMediaError,
    422: InvalidError,
    429: TooManyRequestsError,
    502: UnavailableError,
    503: UnavailableError,
    504: ServerTimeoutError,
}


def error_class(code: int, reason: str | None = None) -> type[ApiError]:
    """Return the class for a Status: its reason decides, its code where the reason is none of ours."""
    known = _BY_REASON.get(reason or "") or _BY_CODE.get(code)
    if known is not None:
        return known
    return InternalServerError if code >= 500 else ApiError


def is_from_the_future(error: KubeError) -> bool:
    """Whether the server says that it has not come as far as the resourceVersion that was asked for."""
    if not isinstance(error, ApiError):
        return False
    causes = error.details.get("causes")
    return any(
        isinstance(cause, dict) and cause.get("reason") == "ResourceVersionTooLarge"
        for cause in (causes if isinstance(causes, list) else ())
    ) or ("Too large resource version" in error.message)
