"""Failures as the API server says them: a Status with a code, a reason and a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.hub.errors import (
    HubError,
    NoLogError,
    NoSuchJobError,
    NoSuchWorkerError,
    NotPlacedError,
    QueryError,
    TooManyReadersError,
    WorkerCredentialsError,
    WorkerUnreachableError,
)
from trainplane.kube.errors import ApiError

if TYPE_CHECKING:
    from trainplane.api.tree import Tree

_CODES: Final[dict[type[HubError], tuple[int, str]]] = {
    NoSuchJobError: (404, "NotFound"),
    NoSuchWorkerError: (404, "NotFound"),
    NoLogError: (404, "NotFound"),
    NotPlacedError: (404, "NotFound"),
    QueryError: (400, "BadRequest"),
    TooManyReadersError: (429, "TooManyRequests"),
    WorkerUnreachableError: (503, "ServiceUnavailable"),
    WorkerCredentialsError: (503, "ServiceUnavailable"),
}


def status_of(error: Exception) -> Tree:
    """Return the Status that tells of an error; what is not meant for users tells no more than that it happened."""
    if isinstance(error, ApiError):
        code, reason, message = error.code, error.reason, error.message
    elif isinstance(error, HubError):
        code, reason = _CODES.get(type(error), (500, "InternalError"))
        message = str(error)
    else:
        code, reason = 500, "InternalError"
        message = f"the hub server failed ({type(error).__name__}); its log has the details"
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


def warning(text: str) -> str:
    """Return a Warning header, which kubectl prints on standard error."""
    plain = "".join(letter if 32 <= ord(letter) < 127 else "?" for letter in text)
    quoted = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'
