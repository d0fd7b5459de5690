"""What a report is answered with instead of 200: a code, one word for programs, a sentence for people.

Not the errors of `kube`, which speak of us and the API server: that our own right to ask it is missing is no business
of whoever reports.
"""

from __future__ import annotations

from typing import Any, Final

REASONS: Final = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    413: "RequestEntityTooLarge",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}
"""Kubernetes' words for the codes in use."""


class RefusalError(Exception):
    """A request that is not answered with 200."""

    def __init__(self, code: int, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_after = retry_after
        """Seconds after which the same request may do better."""

    def status(self) -> dict[str, Any]:
        """Return it as the API server says such things."""
        return {
            "apiVersion": "v1",
            "kind": "Status",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": REASONS[self.code],
            "code": self.code,
        }
