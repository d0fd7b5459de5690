"""Which fronts may speak for users to the owner of the volume (`front` says what a front is)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.hub.apiserver.delegated_auth import FrontProxy, user_in
from trainplane.kube.errors import UnauthorizedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainplane.kube.access import User
    from trainplane.kube.tokenreview import TokenReviewer

AUDIENCE: Final = "trainplane-hub"
"""Whom the tokens of fronts are meant for: one that leaks is no use against the API server."""
_HEADERS: Final = FrontProxy("")
"""A front names users in the headers that the API server uses by default."""


@dataclass(frozen=True, slots=True)
class Fronts:
    """Believes one service account."""

    reviewer: TokenReviewer
    account: str
    """`system:serviceaccount:NAMESPACE:NAME`."""

    async def authenticate(self, headers: Sequence[tuple[str, str]]) -> User:
        """Return who asks, as a front says. Raises UnauthorizedError if it is none that says so."""
        given = [value for name, value in headers if name.lower() == "authorization"]
        kind, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        found = await self.reviewer.user_of(token.strip()) if kind.lower() == "bearer" else None
        if found is None or found.name != self.account:
            raise UnauthorizedError("only the API server and our own fronts are answered here")
        return user_in(_HEADERS, headers)
