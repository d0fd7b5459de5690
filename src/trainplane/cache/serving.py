"""What the Flight servers of head and worker have in common: TLS, the token at the door, errors in our words."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import pyarrow.flight as fl

from trainplane.cache.errors import CacheError
from trainplane.cache.wire import as_flight

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Door:
    """How a server is reached."""

    host: str = "127.0.0.1"
    port: int = 0
    """0: any that is free."""
    certificate: bytes = b""
    key: bytes = b""
    """PEM; with both, TLS is spoken and nothing else."""
    token: bytes = b""
    """What a caller must bring as `authorization: Bearer`; empty: nothing."""

    @property
    def location(self) -> str:
        """Where the server listens."""
        return f"grpc{'+tls' if self.certificate else ''}://{self.host}:{self.port}"

    @property
    def options(self) -> dict[str, Any]:
        """What a Flight server is made with."""
        options: dict[str, Any] = {"middleware": {"token": _TokenCheck(self.token)}} if self.token else {}
        if self.certificate:
            options["tls_certificates"] = [(self.certificate, self.key)]
        return options


class _TokenCheck(fl.ServerMiddlewareFactory):  # type: ignore[misc] # pyarrow has no types
    """Turns callers away that do not have the token, before anything of theirs is read."""

    def __init__(self, token: bytes) -> None:
        super().__init__()
        self._expected = b"Bearer " + token

    def start_call(self, info: Any, headers: dict[str, list[Any]]) -> None:
        """Let a call in, or not."""
        del info
        brought = next(
            (value for name, values in headers.items() if name.lower() == "authorization" for value in values), ""
        )
        given = brought if isinstance(brought, bytes) else str(brought).encode()
        if not hmac.compare_digest(given, self._expected):
            raise fl.FlightUnauthenticatedError("[trainplane Denied] this cache wants its token")


def answered(method: Callable[P, T]) -> Callable[P, T]:
    """Make errors of ours cross the wire as what they are."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except CacheError as error:
            raise as_flight(error) from None

    return call
