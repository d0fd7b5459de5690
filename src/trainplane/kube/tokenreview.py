"""Delegated authentication: the API server is asked whose bearer token this is (TokenReview).

Answers are remembered for seconds, by the token's digest and never the token itself. An API server that cannot be asked
knows nobody: the error is raised, and who asks is refused.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from trainplane.kube.resource import Resource

if TYPE_CHECKING:
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock

TOKEN_REVIEWS: Final = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
LONGEST: Final = 16 << 10
"""Bytes of the longest token that is asked about; those of service accounts have about one thousand."""


@dataclass(frozen=True, slots=True)
class TokenUser:
    """Whom a token belongs to."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""


@dataclass
class TokenReviewer:
    """Asks whose tokens these are."""

    client: Client
    clock: Clock
    audiences: tuple[str, ...] = ()
    """Whom tokens must be meant for; none: the API server itself."""
    seconds: float = 10.0
    """Seconds that an answer is remembered: a token that was taken back counts no longer."""
    most: int = 1024
    """Answers remembered at once: a flood of made-up tokens forgets good ones, and costs a review for each."""
    _known: OrderedDict[bytes, tuple[float, TokenUser | None]] = field(default_factory=OrderedDict)

    async def user_of(self, token: str) -> TokenUser | None:
        """Return whose token this is, None if the API server does not accept it. Raises KubeError if it cannot say."""
        if not token or len(token) > LONGEST:
            return None
        digest = hashlib.sha256(token.encode(errors="surrogateescape")).digest()
        known = self._known.get(digest)
        now = self.clock.monotonic()
        if known is None or known[0] <= now:
            found = await self._ask(token)
            known = self._known[digest] = (now + self.seconds, found)
            self._known.move_to_end(digest)
            while len(self._known) > self.most:
                self._known.popitem(last=False)
        return known[1]

    async def _ask(self, token: str) -> TokenUser | None:
        spec: dict[str, Any] = {"token": token}
        if self.audiences:
            spec["audiences"] = list(self.audiences)
        review = {"apiVersion": TOKEN_REVIEWS.api_version, "kind": TOKEN_REVIEWS.kind, "spec": spec}
        status = (await self.client.create(TOKEN_REVIEWS, review)).get("status") or {}
        if not status.get("authenticated"):
            return None
        if self.audiences and not set(self.audiences) & set(status.get("audiences") or ()):
            return None  # an API server that knows no audiences has judged by its own
        user = status.get("user") or {}
        return TokenUser(str(user.get("username") or ""), tuple(user.get("groups") or ()), str(user.get("uid") or ""))
