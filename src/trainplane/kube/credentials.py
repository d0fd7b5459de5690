"""Who we are to the API server, where that can change while we run: token files, and `execplugin`.

`current()` is asked before every request, so it costs nothing while the answer is fresh. A 401 is reported with
`refused()`, which says whether asking again can help.
"""

from __future__ import annotations

import base64
import contextlib
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import quote

from trainplane.kube.errors import CredentialError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from trainplane.kube.clock import Clock

REREAD_SECONDS = 60.0
"""Age at which a token file is read again; the kubelet rotates a token when a fifth of its life (an hour) is left."""


class Credential(NamedTuple):
    """What one request carries: an `Authorization` header, a client certificate with its key (PEM), both or neither."""

    authorization: str | None = None
    certificate: tuple[str, str] | None = None

    def __repr__(self) -> str:
        return f"Credential(authorization={self.authorization is not None}, certificate={self.certificate is not None})"


class Credentials(Protocol):
    """A source of credentials."""

    async def current(self) -> Credential:
        """Return the credential to use now; raises CredentialError if there is none."""

    def refused(self, credential: Credential) -> bool:
        """Take note that the server answered 401 to `credential`; True if `current()` may now give another."""


class StaticCredentials:
    """A credential that never changes: an inline token, basic auth, or nothing beyond the TLS certificate."""

    def __init__(self, credential: Credential | None = None) -> None:
        self._credential = credential or Credential()

    async def current(self) -> Credential:
        """Return it."""
        return self._credential

    def refused(self, credential: Credential) -> bool:  # noqa: ARG002 the protocol's signature
        """Nothing else is to be had."""
        return False


def bearer(token: str) -> Credential:
    """Return the credential of a bearer token."""
    return Credential(f"Bearer {token}")


def basic(username: str, password: str) -> Credential:
    """Return the credential of a user name and password."""
    pair = base64.b64encode(f"{username}:{password}".encode()).decode()
    return Credential(f"Basic {pair}")


def impersonation(
    user: str | None, uid: str | None, groups: Sequence[str], extra: Mapping[str, Sequence[str]]
) -> list[tuple[str, str]]:
    """Return the headers by which the server takes us for somebody else; keys of extras are percent-encoded.

    Raises ValueError where there is more than a user, but no user.
    """
    headers = [("Impersonate-Uid", uid)] if uid else []
    headers += [("Impersonate-Group", group) for group in groups]
    for key, values in extra.items():
        headers += [(f"Impersonate-Extra-{quote(key, safe='')}", value) for value in values]
    if headers and not user:
        raise ValueError("as-groups, as-uid and as-user-extra need `as`, the user to impersonate")
    return [("Impersonate-User", user), *headers] if user else []


class TokenFile:
    """A token in a file that somebody else rotates, read again each minute and after a 401.

    A file that cannot be read leaves the last token in use (`fallback` before the first read): a rotation in progress
    is no reason to stop. Only when there is no token at all is it an error.
    """

    def __init__(self, path: Path, clock: Clock, *, fallback: str | None = None) -> None:
        self._path = path
        self._clock = clock
        self._credential = bearer(fallback) if fallback else None
        self._read_at: float | None = None

    async def current(self) -> Credential:
        """Return the file's token, read at most a minute ago."""
        now = self._clock.monotonic()
        if self._credential is None or self._read_at is None or now - self._read_at >= REREAD_SECONDS:
            self._credential = self._read()
            self._read_at = now
        return self._credential

    def refused(self, credential: Credential) -> bool:
        """Read the file now; True if it holds another token than the refused one."""
        self._read_at = None
        with contextlib.suppress(CredentialError):
            return self._read() != credential
        return False

    def _read(self) -> Credential:
        try:
            token = self._path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            if self._credential is not None:
                return self._credential
            raise CredentialError(f"cannot read the token file {self._path}: {error}") from None
        if not token:
            if self._credential is not None:
                return self._credential
            raise CredentialError(f"the token file {self._path} is empty: whoever mounts it has not written it yet")
        return bearer(token)
